"""Stack what the scoring jobs wrote into the tables of the run."""

from veff import autotune, collect, job

with job.logged(snakemake.log[0]):
    autotune.enable()
    collect.collect(
        snakemake.input.alleles,
        collect.by_batch(snakemake.input.answers, snakemake.params.batches),
        collect.by_batch(snakemake.input.folds, snakemake.params.batches),
        scores=snakemake.output.scores,
        scores_tsv=snakemake.output.tsv,
        folds_out=snakemake.output.folds,
        summary=snakemake.output.summary,
    )
