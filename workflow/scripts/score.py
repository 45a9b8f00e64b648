"""Score one chunk of alleles with one batch of experiments."""

import time
from pathlib import Path

from veff import autotune, job, provenance, tables

with job.logged(snakemake.log[0]):
    began = time.monotonic()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    setup = tables.read_json(files.setup)
    autotune.enable(params.autotune, setup["work"], [Path(files.setup).parent])
    from veff import predict, score

    descriptions = [
        one for one in tables.read_json(files.models) if one["experiment"] in params.experiments
    ]
    answers, folds = score.score(
        Path(files.scoreable),
        int(snakemake.wildcards.chunk),
        Path(files.bases).parent,
        descriptions,
        device=predict.device(params.autotune["device"]),
        batch_size=setup["batch_size"],
        precision=params.precision,
        engine=params.engine,
        threads=snakemake.threads,
    )
    tables.write_parquet(output.answers, answers)
    tables.write_parquet(output.folds, folds)
    record = provenance.job(
        time.monotonic() - began,
        n_alleles=len(answers[0]),
        n_models=len(descriptions),
        tuned=autotune.report(),
    )
    tables.write_json(output.job, record)
