"""Accept a bundle's models for scoring, or say which one is wrong."""

from veff import atomic, autotune, job
from veff.models import acceptance, experiment

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files = snakemake.params, snakemake.input
    accepted = acceptance.accept(
        experiment.read_inspected(files.inspected),
        params.max_allele_length,
        params.assemblies,
        atomic.read_json(files.contigs)["assembly"],
    )
    atomic.write_json(snakemake.output[0], [one.plain() for one in accepted])
