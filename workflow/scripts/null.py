"""Score random alleles with one bundle of experiments, or find that it was done before."""

import time
from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.models import experiment
from veff.outputs import provenance
from veff.scoring.how import How

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    began = time.monotonic()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    setup = atomic.read_json(files.setup)
    how = How(**params.how).on(snakemake.resources.get("gpu", 0))
    settings = snakemake.config["autotune"] | how.where
    autotune.enable(settings, setup["work"], [Path(files.setup).parent])
    from veff.inputs.reference import Reference
    from veff.scoring import null, score

    reference = Reference.open(Path(files.bases).parent)
    checkpoints = experiment.read(files.models)
    experiments = experiment.experiments(checkpoints)
    asked = null.checked(params.nulls, params.sha256)
    wanted = null.identities(experiments, reference.sha256, asked, how)

    def answers(*what) -> list:
        sizes = {"batch_size": setup["batch_size"], "threads": snakemake.threads}
        proofs = Path(files.setup).parent / "proofs"
        return [answer for answer, _ in score.score(*what, how, proofs=proofs, **sizes)]

    nulls = null.make(
        experiments,
        reference,
        asked,
        wanted,
        Path(params.folder),
        answers,
    )
    null.write(Path(output.nulls), nulls, list(wanted.values()))
    sums.write(output.nulls)
    record = provenance.job(
        time.monotonic() - began,
        n_alleles=params.nulls["n"] * len(params.nulls["classes"]),
        n_models=len(checkpoints),
        tuned=autotune.report(),
        parts=[output.nulls],
    )
    atomic.write_record(output.job, record)
