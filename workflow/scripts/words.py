"""Say in a sentence what each of the largest effects is."""

from pathlib import Path

from veff import autotune, job, sums
from veff.outputs import words

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    files = snakemake.input
    sums.check(files.summary, files.scores, *([files.motifs] if files.motifs else []))
    words.write(
        Path(snakemake.output[0]),
        Path(files.summary),
        Path(files.scores),
        Path(files.motifs) if files.motifs else None,
        snakemake.params.top,
    )
    sums.write(snakemake.output[0])
