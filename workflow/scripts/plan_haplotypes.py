"""Find which alleles the chromosomes of the samples carry together, and what is to be scored."""

from pathlib import Path

from veff import atomic, autotune, job, plan, sums
from veff.haplotypes import pairs, planning
from veff.inputs.identity import Input
from veff.inputs.reference import Reference
from veff.models import experiment

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
        span=min(one.geometry.output_length for one in experiments) // 2,
        input_length=max(one.geometry.input_length for one in experiments),
        chunk_size=cut.chunk_size(params.chunk_size),
        most_chunks=cut.most_chunks(params.chunk_size),
        nulls=params.nulls
        and pairs.Random(
            params.nulls["n"], params.nulls["seed"], given.get(params.nulls["regions"])
        ),
        out=planning.Out(*map(Path, output[:5])),
    )
    sums.write(*output[:5])
    atomic.write_json(output.summary, summary | {"words": planning.words(summary)})
