"""Write the input's records again, with the largest effects in INFO."""

from pathlib import Path

from veff import annotate, autotune, job, summary, tables

with job.logged(snakemake.log[0]):
    autotune.enable()
    contigs = tables.read_json(snakemake.input.contigs)
    annotate.annotate(
        Path(snakemake.input.variants),
        Path(snakemake.output[0]),
        summary.HEADER,
        summary.info(snakemake.input.summary),
        dict(zip(contigs["names"], contigs["lengths"], strict=True)),
    )
