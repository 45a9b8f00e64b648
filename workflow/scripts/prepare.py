"""Read the variants, check each allele against the reference, and number those to score."""

from pathlib import Path

from veff import atomic, autotune, job, plan, sums
from veff.inputs import preparing
from veff.inputs.identity import Input
from veff.inputs.reference import Reference

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, output = snakemake.params, snakemake.output
    folder = Path(snakemake.input.reference[0]).parent
    given = Input.all(params.sha256)
    source = given.get(snakemake.input.variants) or Input(snakemake.input.variants)
    aliases = given[snakemake.input.aliases] if snakemake.input.aliases else None
    cut = plan.Cut(**params.cut)
    summary = preparing.prepare(
        source,
        Reference.open(folder, aliases),
        Path(output.alleles),
        Path(output.scoreable),
        chunk_size=cut.chunk_size(params.chunk_size),
        most_chunks=cut.most_chunks(params.chunk_size),
        max_allele_length=params.max_allele_length,
        max_ref_mismatch=params.max_ref_mismatch,
        malformed_rows=params.malformed_rows,
        positions=params.positions,
    )
    sums.write(output.alleles, output.scoreable)
    summary |= {"cut": params.cut, "sha256": source.sha256}
    atomic.write_json(output.summary, summary)
