"""Load each checkpoint of a bundle, and write down what it is, or why it cannot be used."""

from veff import autotune, job, tables

with job.logged(snakemake.log[0]):
    autotune.enable()
    from veff.cherimoya import checkpoint

    downloads = snakemake.input.downloads
    record = tables.read_json(downloads) if downloads else {}
    tables.write_json(
        snakemake.output[0], checkpoint.inspect(snakemake.params.experiments, record)
    )
