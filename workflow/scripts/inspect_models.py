"""Load each checkpoint of a bundle, and write down what it is, or why it cannot be used."""

from veff import atomic, autotune, job

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    from veff.cherimoya import checkpoint
    from veff.models.sheet import Request

    downloads = snakemake.input.downloads
    record = atomic.read_json(downloads) if downloads else {}
    requests = [Request(**one) for one in snakemake.params.experiments]
    found = checkpoint.inspect(requests, record, snakemake.params.sha256)
    atomic.write_json(snakemake.output[0], [one.plain() for one in found])
