"""Put together what is known of all models, in the order of the sheet."""

import logging

from veff import atomic, autotune, job
from veff.models import acceptance, experiment
from veff.models.sheet import Request

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    requests = [Request(**one) for one in snakemake.params.experiments]
    order = {one.name: number for number, one in enumerate(requests)}
    every = [one for path in snakemake.input for one in experiment.read(path)]
    every.sort(key=lambda one: (order[one.experiment], one.fold))
    for names in acceptance.duplicates(every):
        logging.warning("the same checkpoint under %d names: %s", len(names), ", ".join(names))
    atomic.write_json(snakemake.output.models, [one.plain() for one in every])
    acceptance.write_experiments(snakemake.output.experiments, requests, every)
