"""Put together what was scored for haplotypes."""

from pathlib import Path

from veff import autotune, job, sums
from veff.haplotypes import collecting
from veff.models import experiment
from veff.outputs import collect, provenance
from veff.scoring.how import How

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    experiments = experiment.experiments(experiment.read(files.models))
    sums.check(files.planned, files.sampled, files.pairs, files.alleles)
    collect.check(files.answers, files.jobs)
    collecting.write(
        Path(files.planned),
        Path(files.sampled),
        Path(files.pairs),
        Path(files.alleles),
        collect.by_bundle(files.answers),
        params.experiments,
        partitioned=params.partitioned,
        metadata=provenance.of_scores(experiments, How(**params.how), {}, {}, None),
        haplotypes=Path(output.haplotypes),
        imbalance=Path(output.imbalance),
        of_alleles=Path(output.of_alleles),
        shown=Path(output.shown),
    )
    sums.write(output.haplotypes, output.imbalance, output.of_alleles)
