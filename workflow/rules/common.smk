import yaml
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import validate

from veff import config as settings
from veff import sheet, summary, tables
from veff.errors import InputError


SCHEMA = Path(workflow.current_basedir) / "../schemas/config.schema.yaml"

try:
    settings.check(config, yaml.safe_load(SCHEMA.read_text()))
    validate(config, str(SCHEMA))  # fills in the defaults
    EXPERIMENTS = sheet.read(config["models"])
except InputError as error:
    raise WorkflowError(str(error)) from None

OUT = config["outdir"].rstrip("/")
BATCHES = sheet.batches(EXPERIMENTS, config["models_per_job"])
GPU = int(config["device"] != "cpu")


wildcard_constraints:
    chunk=r"\d+",
    batch=r"\d+",


def parts(kind):
    """The parts of this kind of all scoring jobs: for each model batch, its chunks in order."""

    def of(wildcards):
        prepared = tables.read_json(checkpoints.prepare.get().output.summary)
        return [
            f"{OUT}/parts/{kind}/{chunk}.{batch}.{'json' if kind == 'jobs' else 'parquet'}"
            for batch in range(len(BATCHES))
            for chunk in range(prepared["chunks"])
        ]

    return of


def checkpoint_files(wildcards):
    """The checkpoint files of a model batch."""
    return [path for one in BATCHES[int(wildcards.batch)] for path in one.checkpoints]


def closing_words():
    """What a run ends with, when it made its results."""
    done = Path(OUT, "provenance.json").is_file()
    return summary.closing(OUT) if done else f"Done so far: {OUT}"
