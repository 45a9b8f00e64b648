"""Keep this run's seeds where later runs look for them."""

from pathlib import Path

from veff import autotune, job

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    autotune.keep(Path(snakemake.input[0]).parent, snakemake.params.seed)
