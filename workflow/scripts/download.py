"""Fetch a batch's checkpoints from the Hugging Face hub."""

from veff import autotune, catv1, job, tables

with job.logged(snakemake.log[0]):
    autotune.enable()
    record = catv1.download(snakemake.params.files, snakemake.params.revision)
    tables.write_json(snakemake.output[0], record)
