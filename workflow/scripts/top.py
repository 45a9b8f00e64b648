"""Explain the alleles with the largest effects: figures, tracks, profiles, attributions."""

import time
from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.inputs.identity import Input
from veff.models import experiment
from veff.outputs import provenance, summary
from veff.scoring.how import How

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    began = time.monotonic()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    setup = atomic.read_json(files.setup)
    how = How(**params.how).on(snakemake.resources.get("gpu", 0))
    settings = snakemake.config["autotune"] | how.where
    autotune.enable(settings, setup["work"], [Path(files.setup).parent])
    import torch

    from veff.inputs.reference import Reference
    from veff.motifs import motifset
    from veff.motifs.marks import Marks
    from veff.report import top
    from veff.scoring import explain

    torch.set_num_threads(snakemake.threads)
    sums.check(files.summary, files.scoreable, *([files.hits] if files.hits else []))
    wanted = Input.all(params.sha256).get(params.motifs, params.motifs)
    rows = summary.largest(Path(files.summary), params.top["n"])
    reference = Reference.open(Path(files.bases).parent)
    explained = explain.explain(
        rows,
        Path(files.scoreable),
        reference,
        experiment.experiments(experiment.read(files.models)),
        how,
        batch_size=setup["batch_size"],
        shuffles=params.top["shuffles"],
        proofs=Path(files.setup).parents[1] / "proofs",
    )
    top.write(
        explained,
        reference,
        Path(snakemake.config["reference"]),
        figures_out=Path(output.figures),
        tracks_out=Path(output.tracks),
        profiles_out=Path(output.profiles),
        attributions_out=Path(output.attributions),
        marks=wanted and Marks(Path(files.hits), motifset.read(wanted)),
        processes=snakemake.threads,
    )
    sums.write(output.profiles)
    record = provenance.job(
        time.monotonic() - began,
        n_alleles=len(rows),
        n_models=0,
        tuned=autotune.report(),
    )
    atomic.write_record(output.job, record)
