"""Say which genes, peaks, motif hits and enhancers of genes lie at each allele."""

from pathlib import Path

from veff import autotune, job, sums
from veff.inputs.identity import Input
from veff.inputs.reference import Reference
from veff.outputs import nearby

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files = snakemake.params, snakemake.input
    given = Input.all(params.sha256)
    aliases = given[files.aliases] if files.aliases else None
    sums.check(files.alleles)
    nearby.write(
        Path(snakemake.output[0]),
        Path(files.alleles),
        Reference.open(Path(files.reference[0]).parent, aliases),
        peaks_of={name: given[path] for name, path in params.peaks_of.items()},
        **{kind: given[path] for kind, path in params.files.items()},
    )
    sums.write(snakemake.output[0])
