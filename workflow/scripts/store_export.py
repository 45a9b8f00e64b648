"""Write what the store has as tables that are asked for by position."""

from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.inputs.reference import Reference
from veff.models import experiment
from veff.scoring.how import How
from veff.store import Store, export

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    sums.check(files.contigs)
    n = export.export(
        Store(snakemake.config["store"], How(**params.how), params.on_gpu),
        Reference.open(Path(files.bases).parent),
        atomic.read_json(files.contigs),
        [one for path in files.inspected for one in experiment.usable(path)],
        tsv=Path(output.tsv),
        vcf=Path(output.vcf),
    )
    print(f"store: {n:,} alleles written: {output.tsv}, {output.vcf}")
