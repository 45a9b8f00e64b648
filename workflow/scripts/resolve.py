"""Check every checkpoint of the model sheet, and write down what it is."""

from veff import autotune, job, sheet, tables

with job.logged(snakemake.log[0]):
    autotune.enable()
    from veff import models

    experiments = sheet.read(snakemake.input.sheet)
    descriptions = models.resolve(experiments, snakemake.params.max_allele_length)
    tables.write_json(snakemake.output[0], descriptions)
