"""Find which edits regions and a list ask for."""

from pathlib import Path

from veff import atomic, autotune, job, plan, sums
from veff.edited import planning
from veff.inputs.identity import Input
from veff.inputs.reference import Reference
from veff.models import experiment

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    given = Input.all(params.sha256)
    experiments = experiment.experiments(experiment.read(files.models))
    aliases = given[files.aliases] if files.aliases else None
    cut = plan.Cut(**params.cut)
    summary = planning.plan(
        given[files.regions] if files.regions else None,
        given[files.edits] if files.edits else None,
        Reference.open(Path(files.reference[0]).parent, aliases),
        tile=params.tile,
        span=min(one.geometry.output_length for one in experiments) // 2,
        chunk_size=cut.chunk_size(params.chunk_size),
        most_chunks=cut.most_chunks(params.chunk_size),
        virtual=Path(output.virtual),
        planned=Path(output.planned),
    )
    sums.write(output.virtual, output.planned)
    atomic.write_json(output.summary, summary | {"words": planning.words(summary)})
