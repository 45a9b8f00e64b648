"""Look for motifs where the alleles' two sequences differ."""

from pathlib import Path

from veff import autotune, job, sums
from veff.inputs.identity import Input
from veff.inputs.reference import Reference
from veff.motifs import hits, motifset
from veff.outputs import summary

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files = snakemake.params, snakemake.input
    sums.check(files.scoreable, *([files.summary] if files.summary else []))
    given = Input.all(params.sha256)
    largest = summary.largest(Path(files.summary), params.top) if files.summary else None
    hits.write(
        Path(snakemake.output[0]),
        Path(files.scoreable),
        Reference.open(Path(files.bases).parent),
        motifset.read(given.get(params.motifs, params.motifs)),
        ids=largest and [row["allele_id"] for row in largest],
        nulls=params.nulls and params.nulls | {"regions": given.get(params.nulls["regions"])},
        threads=snakemake.threads,
    )
    sums.write(snakemake.output[0])
