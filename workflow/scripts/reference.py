"""Lay the reference out as one array of bases that every job maps into memory."""

from pathlib import Path

from veff import autotune, job
from veff.inputs import reference
from veff.inputs.identity import Input

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    given = Input.all(snakemake.params.sha256)
    reference.build(given[snakemake.input.fasta], Path(snakemake.output.bases).parent)
