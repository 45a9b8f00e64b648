"""Find what a person carries around the alleles, and what is to be scored for it."""

from pathlib import Path

from veff import atomic, autotune, job, plan, sums
from veff.inputs.identity import Input
from veff.inputs.reference import Reference
from veff.models import experiment
from veff.personal import planning

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    given = Input.all(params.sha256)
    sums.check(files.alleles, files.scoreable)
    experiments = experiment.experiments(experiment.read(files.models))
    aliases = given[files.aliases] if files.aliases else None
    cut = plan.Cut(**params.cut)
    summary = planning.plan(
        Path(files.alleles),
        Path(files.scoreable),
        given[files.person],
        Reference.open(Path(files.reference[0]).parent, aliases),
        sample=None if params.sample is None else str(params.sample),
        input_length=max(one.geometry.input_length for one in experiments),
        chunk_size=cut.chunk_size(params.chunk_size),
        most_chunks=cut.most_chunks(params.chunk_size),
        virtual=Path(output.virtual),
        planned=Path(output.planned),
        **params.judged,
    )
    sums.write(output.virtual, output.planned)
    atomic.write_json(output.summary, summary | {"words": planning.words(summary)})
