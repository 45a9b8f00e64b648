"""Decide the batch size of the work to come, and warm the autotune cache for it."""

from pathlib import Path

from veff import autotune, batches, job, tables

with job.logged(snakemake.log[0]):
    autotune.enable()
    params = snakemake.params
    models = tables.read_json(snakemake.input.models)
    asked = {"device": params.device, "gpu_model": params.gpu_model}
    settings = snakemake.config["autotune"] | asked
    gpu = autotune.claim(settings)  # before torch looks at the GPUs
    batch_size = batches.size(params.batch_size, models, gpu is not None)
    how = {"task": "score", "precision": params.precision, "engine": params.engine}
    work = [
        item
        for size in batches.pass_sizes(batch_size)
        for item in autotune.work(models, batch_size=size, **how)
    ]
    if params.shuffles:
        work += autotune.work(
            models,
            task="attribute",
            batch_size=params.shuffles,
            precision="fp32",
            engine="cherimoya",
        )
    said = autotune.setup(settings, work, Path(snakemake.output[0]).parent)
    tables.write_record(snakemake.output[0], {"batch_size": batch_size, "work": work, **said})
