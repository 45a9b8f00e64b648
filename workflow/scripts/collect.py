"""Stack what the scoring jobs wrote into the tables of the run."""

from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.models import biosamples, experiment
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
    sums.check(files.alleles, *filter(None, (files.annotations, files.members)))
    collect.check(
        [*files.answers, *files.folds, *files.nulls],
        [*files.jobs, *files.stored, *files.null_jobs],
    )
    collect.collect(
        files.alleles,
        collect.by_bundle(files.answers),
        collect.by_bundle(files.folds),
        nulls=null.Nulls(files.nulls, nulls) if nulls else None,
        fdr=params.fdr,
        annotations=files.annotations or None,
        members=files.members or None,
        experiments=params.experiments,
        samples=biosamples.read(files.experiments),
        partitioned=params.partitioned,
        metadata=provenance.of_scores(
            experiments,
            how,
            {key: null.digest(one) for key, one in nulls.items()},
            peaks,
            params.fdr,
        ),
        scores=output.scores,
        folds_out=output.folds,
        biosamples_out=Path(output.biosamples),
        summary=output.summary,
        summary_tsv=output.summary_tsv,
    )
    sums.write(output.scores, output.folds, output.biosamples, output.summary)
