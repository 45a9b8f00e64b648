"""Take from the store what it has of a bundle's scores, and say what is left to score."""

from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.models import experiment
from veff.scoring.how import How
from veff.store import Store, using

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    sums.check(files.scoreable, files.contigs)
    record = using.split(
        Store(snakemake.config["store"], How(**params.how), params.on_gpu),
        Path(files.scoreable),
        atomic.read_json(files.contigs),
        experiment.usable(files.inspected),
        to_score=Path(output.to_score),
        answers=Path(output.answers),
        folds=Path(output.folds),
    )
    sums.write(output.to_score)
    atomic.write_json(output.record, record)
