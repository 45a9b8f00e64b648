"""Score random SNVs with one bundle of experiments, or find that it was done before."""

import time
from pathlib import Path

from veff import autotune, job, tables
from veff.outputs import provenance

with job.logged(snakemake.log[0]):
    began = time.monotonic()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    setup = tables.read_json(files.setup)
    settings = snakemake.config["autotune"] | params.on
    autotune.enable(settings, setup["work"], [Path(files.setup).parent])
    from veff.cherimoya import engine
    from veff.inputs.reference import Reference
    from veff.scoring import null, score

    reference = Reference.open(Path(files.bases).parent)
    descriptions = tables.read_json(files.models)
    wanted = null.identities(
        descriptions, reference.sha256, params.nulls, {**params.how, "version": params.version}
    )
    how = score.How(
        device=engine.device(params.on["device"]),
        batch_size=setup["batch_size"],
        threads=snakemake.threads,
        engine=params.engine,
        **params.how,
    )
    nulls = null.make(
        descriptions,
        reference,
        params.nulls,
        wanted,
        Path(params.folder),
        lambda *what: [answers for answers, _ in score.score(*what, how)],
    )
    null.write(Path(output.nulls), nulls, list(wanted.values()))
    record = provenance.job(
        time.monotonic() - began,
        n_alleles=params.nulls["n"],
        n_models=len(descriptions),
        tuned=autotune.report(),
    )
    tables.write_record(output.job, record)
