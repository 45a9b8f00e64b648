"""Write the input's records again, with the largest effects in INFO."""

from pathlib import Path

import pyarrow.parquet as pq

from veff import autotune, job, sums
from veff.inputs.identity import Input
from veff.inputs.reference import Reference
from veff.models import experiment
from veff.outputs import info, vcf

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    files = snakemake.input
    given = Input.all(snakemake.params.sha256)
    aliases = given[files.aliases] if files.aliases else None
    reference = Reference.open(Path(files.reference[0]).parent, aliases)
    sums.check(files.summary, files.scores, *([files.haplotypes] if files.haplotypes else []))
    experiments = info.PerExperiment(
        Path(files.scores),
        experiment.experiments(experiment.read(files.models)),
        snakemake.params.experiments,
        pq.read_metadata(files.summary).num_rows,
    )
    haplotypes = info.PerHaplotype(Path(files.haplotypes) if files.haplotypes else None)
    vcf.annotate(
        given.get(files.variants) or Input(files.variants),
        Path(snakemake.output[0]),
        info.header(experiments, haplotypes),
        info.texts(files.summary, experiments, haplotypes),
        reference,
        snakemake.params.positions,
    )
