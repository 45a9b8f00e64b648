"""Write down what made this run."""

from veff import autotune, job, tables
from veff.outputs import provenance

with job.logged(snakemake.log[0]):
    autotune.enable()
    files = snakemake.input
    record = provenance.run(
        snakemake.params.config,
        files.contigs,
        files.prepared,
        files.models,
        files.setup,
        files.jobs,
        files.nulls,
        [files.top] if files.top else [],
    )
    tables.write_json(snakemake.output[0], record)
