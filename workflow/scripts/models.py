"""Put together what is known of all models, in the order of the sheet."""

import logging

from veff import autotune, job, tables
from veff.models import descriptions

with job.logged(snakemake.log[0]):
    autotune.enable()
    experiments = snakemake.params.experiments
    order = {one["name"]: number for number, one in enumerate(experiments)}
    every = [one for path in snakemake.input for one in tables.read_json(path)]
    every.sort(key=lambda one: (order[one["experiment"]], one["fold"]))
    for names in descriptions.duplicates(every):
        logging.warning("the same checkpoint under %d names: %s", len(names), ", ".join(names))
    tables.write_json(snakemake.output.models, every)
    descriptions.write_experiments(snakemake.output.experiments, experiments, every)
