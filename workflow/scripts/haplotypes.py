"""Put together what was scored for haplotypes."""

from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.haplotypes import collecting
from veff.models import experiment
from veff.outputs import collect, provenance
from veff.scoring import null
from veff.scoring.how import How

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    experiments = experiment.experiments(experiment.read(files.models))
    how = How(**params.how)
    nulls, peaks = {}, {}
    if params.nulls:
        sha256, peaks = atomic.read_json(files.contigs)["sha256"], params.nulls["peaks"]
        asked = null.checked(params.nulls, params.sha256)
        nulls = null.identities(experiments, sha256, asked, how)
    sums.check(files.planned, files.sampled, files.alleles)
    collect.check(
        [*files.answers, *files.nulls, *files.pairs],
        [*files.jobs, *files.null_jobs, *files.pair_jobs],
    )
    collecting.write(
        Path(files.planned),
        Path(files.sampled),
        Path(files.alleles),
        collect.by_bundle(files.answers),
        params.experiments,
        nulls=null.Nulls([*files.nulls, *files.pairs], nulls) if nulls else None,
        partitioned=params.partitioned,
        metadata=provenance.of_scores(
            experiments, how, {key: null.digest(one) for key, one in nulls.items()}, peaks, None
        ),
        haplotypes=Path(output.haplotypes),
        imbalance=Path(output.imbalance),
        of_alleles=Path(output.of_alleles),
        shown=Path(output.shown),
    )
    sums.write(output.haplotypes, output.imbalance, output.of_alleles)
