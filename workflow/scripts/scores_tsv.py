"""Write the scores as text too."""

from veff import autotune, job, sums, tables

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    sums.check(snakemake.input[0])
    tables.parquet_to_tsv(snakemake.input[0], snakemake.output[0])
