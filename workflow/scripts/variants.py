"""Write the alleles that the configuration names as a list, one a line; of none, its headings."""

from veff import atomic, autotune, job

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    lines = snakemake.params.alleles or ["chrom\tpos\tref\talt"]
    atomic.write_text(snakemake.output[0], "".join(f"{line}\n" for line in lines))
