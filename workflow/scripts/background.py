"""Put together what was scored on a person's chromosomes."""

from pathlib import Path

from veff import autotune, job, sums
from veff.models import experiment
from veff.outputs import collect, provenance
from veff.personal import collecting
from veff.scoring.how import How

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    experiments = experiment.experiments(experiment.read(files.models))
    sums.check(files.planned, files.scores)
    collect.check(files.answers, files.jobs)
    collecting.write(
        Path(files.planned),
        Path(files.scores),
        collect.by_bundle(files.answers),
        params.experiments,
        Path(output.personal),
        Path(output.shown),
        partitioned=params.partitioned,
        metadata=provenance.of_scores(experiments, How(**params.how), {}, {}, None),
    )
    sums.write(output.personal)
