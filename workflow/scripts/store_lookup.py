"""Answer from the store alone, and say what is not there."""

from pathlib import Path

from veff import atomic, autotune, job, sums
from veff.models import experiment
from veff.scoring.how import How
from veff.store import Store, lookup

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    sums.check(files.alleles, files.scoreable, files.contigs)
    said = lookup.lookup(
        Store(snakemake.config["store"], How(**params.how), params.on_gpu),
        Path(files.alleles),
        Path(files.scoreable),
        atomic.read_json(files.contigs),
        [one for path in files.inspected for one in experiment.usable(path)],
        found=Path(output.found),
        missing=Path(output.missing),
    )
    print(said)
