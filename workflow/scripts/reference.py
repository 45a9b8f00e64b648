"""Lay the reference out as one array of bases that every job maps into memory."""

from pathlib import Path

from veff import autotune, job
from veff.inputs import reference

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    reference.build(Path(snakemake.input[0]), Path(snakemake.output.bases).parent)
