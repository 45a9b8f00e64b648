"""Write the scores as text too."""

from veff import autotune, job, tables

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    tables.parquet_to_tsv(snakemake.input[0], snakemake.output[0])
