"""Score one chunk of alleles with one bundle of experiments."""

import time
from pathlib import Path

import pyarrow.parquet as pq

from veff import atomic, autotune, job, sums, tables
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
    from veff.scoring import heldout, score

    checkpoints = experiment.read(files.models)
    sums.check(files.scoreable)
    alleles = pq.ParquetFile(files.scoreable).read_row_group(int(snakemake.wildcards.chunk))
    reference = Reference.open(Path(files.bases).parent)
    experiments = experiment.experiments(checkpoints)
    if how.ensemble == "heldout":
        heldout.check(alleles, reference, experiments)

    def scores(alleles):
        return score.score(
            alleles,
            reference,
            experiments,
            how,
            batch_size=setup["batch_size"],
            threads=snakemake.threads,
            proofs=Path(files.setup).parent / "proofs",
        )

    if files.contigs:
        from veff.store import Store, using

        sums.check(files.contigs)
        gpu = autotune.claim(settings)
        store = Store(snakemake.config["store"], how, gpu is not None)
        of_store = atomic.read_json(files.contigs), experiments, gpu and gpu.name
        if "edits" in alleles.column_names:
            scored = using.reusing(scores, store, alleles, *of_store)
        else:  # of these, rule stored has taken out what the store has
            scored = using.adding(scores(alleles), store, alleles, *of_store)
    else:
        scored = scores(alleles)
    tables.write_parquets([output.answers, output.folds], scored)
    record = provenance.job(
        time.monotonic() - began,
        n_alleles=len(alleles),
        n_models=len(checkpoints),
        tuned=autotune.report(),
        parts=[output.answers, output.folds],
    )
    atomic.write_record(output.job, record)
