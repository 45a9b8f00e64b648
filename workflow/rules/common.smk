import yaml
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import validate

from veff import autotune
from veff import config as settings
from veff import sheet, summary, tables
from veff.errors import InputError

SCHEMA = Path(workflow.current_basedir) / "../schemas/config.schema.yaml"

try:
    settings.typed(config)
    settings.check(config, yaml.safe_load(SCHEMA.read_text()))
    validate(config, str(SCHEMA))  # fills in the defaults
    EXPERIMENTS = sheet.read(config["models"])
except InputError as error:
    raise WorkflowError(str(error)) from None

OUT = config["outdir"].rstrip("/")
BATCHES = sheet.batches(EXPERIMENTS, config["models_per_job"])
GPU = int(config["device"] != "cpu")
NULLS = {} if config["nulls"] == "none" else config["nulls"]
TOP = config["top"]["n"]
SCORE_VERSION = (
    1  # raised when a change of the code changes a score, so that scores are redone
)
# What decides a prediction besides the models.
HOW = {key: config[key] for key in ("ensemble", "reverse_complement", "precision")}


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


def nulls(extension):
    """The nulls of all model batches, or what was noted about making them."""

    def of(wildcards):
        prepared = tables.read_json(checkpoints.prepare.get().output.summary)
        wanted = NULLS and prepared["chunks"]
        return [
            f"{OUT}/parts/nulls/{batch}.{extension}"
            for batch in range(len(BATCHES) if wanted else 0)
        ]

    return of


def checkpoint_files(wildcards):
    """The checkpoint files of a model batch."""
    return [path for one in BATCHES[int(wildcards.batch)] for path in one.checkpoints]


def closing_words():
    """What a run ends with, once it made all its results."""
    record = Path(OUT, "provenance.json")
    if not record.is_file():
        return f"Done so far: {OUT}"
    tuned = tables.read_json(record)["scoring"]["autotune"]
    return f"{summary.closing(OUT)}\n{autotune.last_line(tuned)}"
