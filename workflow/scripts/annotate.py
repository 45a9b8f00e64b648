"""Write the input's records again, with the largest effects in INFO."""

from pathlib import Path

from veff import annotate, autotune, job, summary
from veff.reference import Reference

with job.logged(snakemake.log[0]):
    autotune.enable()
    reference = Reference.open(Path(snakemake.input.reference[0]).parent)
    annotate.annotate(
        Path(snakemake.input.variants),
        Path(snakemake.output[0]),
        summary.HEADER,
        summary.info(snakemake.input.summary),
        dict(zip(reference.names, reference.lengths.tolist(), strict=True)),
        reference,
    )
