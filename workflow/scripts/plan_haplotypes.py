"""Find which alleles the chromosomes of the samples carry together, and what is to be scored."""

from pathlib import Path

from veff import atomic, autotune, job, plan, sums
from veff.haplotypes import planning
from veff.inputs.identity import Input
from veff.inputs.reference import Reference
from veff.models import experiment
from veff.scoring import pairs

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    given = Input.all(params.sha256)
    sums.check(files.alleles, files.scoreable)
    experiments = experiment.experiments(experiment.read(files.models))
    cut = plan.Cut(**params.cut)
    summary = planning.plan(
        given[files.variants],
        Path(files.alleles),
        Path(files.scoreable),
        Reference.open(Path(files.reference[0]).parent),
        samples=given[files.samples] if files.samples else params.samples,
        max_haplotypes=params.max_haplotypes,
        span=min(pairs.span(one.geometry) for one in experiments),
        input_length=max(one.geometry.input_length for one in experiments),
        chunk_size=cut.chunk_size(params.chunk_size),
        most_chunks=cut.most_chunks(params.chunk_size),
        out=planning.Out(*map(Path, output[:4])),
    )
    sums.write(*output[:4])
    atomic.write_json(output.summary, summary | {"words": planning.words(summary)})
