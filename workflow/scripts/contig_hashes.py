"""Hash each contig, by which the store knows what an allele stands on."""

from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.inputs.reference import Reference
from veff.store import contigs

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    reference = Reference.open(Path(snakemake.input.bases).parent)
    atomic.write_json(snakemake.output[0], contigs.hashes(reference))
    sums.write(snakemake.output[0])
