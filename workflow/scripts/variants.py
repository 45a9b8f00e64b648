"""Write the alleles that the configuration names as a list, one a line."""

from veff import atomic, autotune, job

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    atomic.write_text(snakemake.output[0], "".join(f"{one}\n" for one in snakemake.params.alleles))
