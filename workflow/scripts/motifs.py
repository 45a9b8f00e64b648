"""Say which motif each allele gains, loses, strengthens or weakens."""

from pathlib import Path

from veff import autotune, job
from veff.motifs import verdicts

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    files = snakemake.input
    verdicts.write(
        Path(snakemake.output[0]),
        Path(files.alleles),
        Path(files.hits),
        Path(files.attributions) if files.attributions else None,
    )
