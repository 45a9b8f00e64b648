"""Decide the batch size of the work to come, and warm the autotune cache for it."""

from pathlib import Path

from veff import atomic, autotune, job
from veff.autotune import gpus
from veff.cherimoya import memory
from veff.models import experiment
from veff.scoring.how import How

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params = snakemake.params
    architectures = [one.architecture for one in experiment.read(snakemake.input.models)]
    how = How(**params.how).on(snakemake.resources.get("gpu", 0))
    settings = snakemake.config["autotune"] | how.where
    gpu_bytes = gpus.memory if autotune.claim(settings) else None
    batch_size = memory.size(params.batch_size, architectures, gpu_bytes)
    work = autotune.work(
        architectures,
        memory.pass_sizes(batch_size),
        precision=how.precision,
        engine=how.engine,
        shuffles=params.shuffles,
    )
    said = autotune.setup(settings, work, Path(snakemake.output[0]).parent)
    atomic.write_record(snakemake.output[0], {"batch_size": batch_size, "work": work, **said})
