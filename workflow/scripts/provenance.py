"""Write down what made this run."""

from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.outputs import closing, provenance

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    files = snakemake.input
    sums.check(files.summary)
    record = provenance.run(
        snakemake.params.config,
        files.contigs,
        files.prepared,
        files.models,
        files.setup,
        [*files.jobs, *files.haplotypes, *files.edits, *files.background],
        [*files.nulls, *files.pairs],
        files.stored,
        [files.top] if files.top else [],
    )
    words = closing.words(record, Path(files.summary), has_text=bool(files.text))
    atomic.write_text(snakemake.output.closing, words + "\n")
    atomic.write_json(snakemake.output.record, record)
