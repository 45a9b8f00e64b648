"""Decide the batch size of the run, and warm the autotune cache for the work to come."""

from pathlib import Path

from veff import autotune, job, tables
from veff.errors import InputError

with job.logged(snakemake.log[0]):
    autotune.enable()
    params, output = snakemake.params, snakemake.output
    inspected = [one for path in snakemake.input.models for one in tables.read_json(path)]
    models = [one for one in inspected if "error" not in one]
    if not models:
        raise InputError(f"no checkpoint can be used; the first: {inspected[0]['error']}")
    autotune.claim(params.autotune)  # before torch looks at the GPUs
    from veff import predict

    device = predict.device(params.autotune["device"])
    batch_size = min(predict.batch_size(device, params.batch_size, model) for model in models)
    work = autotune.work(
        models,
        task="score",
        batch_size=batch_size,
        precision=params.precision,
        engine=params.engine,
    )
    if params.top["n"]:
        work += autotune.work(
            models,
            task="attribute",
            batch_size=params.top["shuffles"],
            precision="fp32",
            engine="cherimoya",
        )
    said = autotune.setup(params.autotune, work, Path(output.work).parent)
    tables.write_json(output.work, {"batch_size": batch_size, "work": work, **said})
