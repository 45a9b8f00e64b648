"""Say of each allele which credible set it is of, and with which probability."""

from pathlib import Path

from veff import autotune, job, sums
from veff.inputs.identity import Input
from veff.outputs import finemapping

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    files, params = snakemake.input, snakemake.params
    sums.check(files.alleles)
    finemapping.write(
        Path(snakemake.output[0]),
        Input.all(params.sha256).get(files.variants) or Input(files.variants),
        Path(files.alleles),
        finemapping.Headings(**params.headings),
    )
    sums.write(snakemake.output[0])
