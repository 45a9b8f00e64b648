"""Score one chunk of alleles with one batch of experiments."""

import time
from pathlib import Path

from veff import autotune, job, tables

with job.logged(snakemake.log[0]):
    began = time.monotonic()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    setup = tables.read_json(files.setup)
    autotune.enable(params.autotune, setup["work"], Path(files.setup).parent)
    from veff import predict, provenance, score
    from veff.reference import Reference

    device = predict.device(params.device)
    descriptions = [
        one for one in tables.read_json(files.models) if one["experiment"] in params.experiments
    ]
    answers, folds = score.score(
        Path(files.scoreable),
        int(snakemake.wildcards.chunk),
        Reference.open(Path(files.reference[0]).parent),
        descriptions,
        device=device,
        batch_size=setup["batch_size"],
        precision=params.precision,
        engine=params.engine,
    )
    tables.write_parquet(output.answers, answers)
    tables.write_parquet(output.folds, folds)
