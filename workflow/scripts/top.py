"""Draw the alleles with the largest effects: profiles, difference, attributions."""

import time
from pathlib import Path

from veff import autotune, job, provenance, tables

with job.logged(snakemake.log[0]):
    began = time.monotonic()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    setup = tables.read_json(files.setup)
    settings = snakemake.config["autotune"] | params.on
    autotune.enable(settings, setup["work"], [Path(files.setup).parent])
    import torch

    from veff import attribute, figures, predict
    from veff.reference import Reference

    torch.set_num_threads(snakemake.threads)
    rows = attribute.largest(Path(files.summary), params.top["n"])
    explained = attribute.explain(
        rows,
        Path(files.scoreable),
        Reference.open(Path(files.bases).parent),
        tables.read_json(files.models),
        device=predict.device(params.on["device"]),
        batch_size=setup["batch_size"],
        precision=params.precision,
        engine=params.engine,
        shuffles=params.top["shuffles"],
    )
    attributions = figures.draw_all(explained, Path(output.figures))
    tables.write_parquet(output.attributions, [attributions])
    record = provenance.job(
        time.monotonic() - began,
        n_alleles=len(rows),
        n_models=0,
        tuned=autotune.report(),
    )
    tables.write_record(output.job, record)
