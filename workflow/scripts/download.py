"""Fetch a bundle's checkpoints from the Hugging Face hub."""

from veff import atomic, autotune, job
from veff.models import catv1

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    record = catv1.download(snakemake.params.files, snakemake.params.revision)
    atomic.write_json(snakemake.output[0], record)
