"""Put together, and draw, what was scored for edits."""

from pathlib import Path

from veff import autotune, job, sums
from veff.edited import collecting
from veff.inputs.reference import Reference
from veff.models import experiment
from veff.outputs import collect, provenance
from veff.report import saturation
from veff.scoring.how import How

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    experiments = experiment.experiments(experiment.read(files.models))
    sums.check(files.planned)
    collect.check(files.answers, files.jobs)
    collecting.write(
        Path(files.planned),
        collect.by_bundle(files.answers),
        params.experiments,
        Path(output.edits),
        partitioned=params.partitioned,
        metadata=provenance.of_scores(experiments, How(**params.how), {}, {}, None),
    )
    sums.write(output.edits)
    saturation.write(
        Path(output.edits),
        params.experiments,
        Reference.open(Path(files.bases).parent),
        Path(output.figures),
        Path(output.tracks),
    )
