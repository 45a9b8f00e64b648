"""Say which motif each allele gains, loses, strengthens or weakens."""

from pathlib import Path

from veff import autotune, job, sums
from veff.motifs import verdicts

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    files = snakemake.input
    sums.check(files.summary, files.hits)
    verdicts.write(
        Path(snakemake.output[0]),
        Path(files.summary),
        Path(files.hits),
        Path(files.attributions) if files.attributions else None,
    )
    sums.write(snakemake.output[0])
