"""Decide the batch size of the work to come, and warm the autotune cache for it."""

from pathlib import Path

from veff import autotune, job, tables
from veff.cherimoya import memory

with job.logged(snakemake.log[0]):
    autotune.enable()
    params = snakemake.params
    models = tables.read_json(snakemake.input.models)
    settings = snakemake.config["autotune"] | params.on
    gpu = autotune.claim(settings)  # before torch looks at the GPUs
    batch_size = memory.size(params.batch_size, models, gpu is not None)
    work = autotune.work(
        models,
        memory.pass_sizes(batch_size),
        precision=params.precision,
        engine=params.engine,
        shuffles=params.shuffles,
    )
    said = autotune.setup(settings, work, Path(snakemake.output[0]).parent)
    tables.write_record(snakemake.output[0], {"batch_size": batch_size, "work": work, **said})
