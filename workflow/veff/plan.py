"""How many alleles should one scoring job take, and how large are the outputs?"""

from pathlib import Path

from veff import atomic
from veff.models.sheet import Request

JOB_S = 600
# Alleles x models a second of a default-size model: on one NVIDIA H200, measured by
# tests/bench/throughput.py, and, computed only, on one CPU core.
GPU_RATE = 20_000
CPU_RATE = 2
# A job holds its alleles and one experiment's scores in memory.
ALLELES_A_JOB = 5_000_000
# Snakemake plans a few thousand jobs in half a minute: chunks x bundles of models.
MODELS_A_JOB = 50
BATCHES = 40
# With more experiments, the scores are a folder with a file for each.
EXPERIMENTS_A_FILE = 100
# Scores of more alleles x experiments are not written as text.
TSV_ROWS = 10_000_000


def chunk_size(setting: int | str, device: str, models: int) -> int:
    """Alleles a job: the setting, or for `auto` what `models` models score in ten minutes, and
    not more than fit in memory.

    A `device` of `auto` is a GPU where this process sees one.
    """
    if setting != "auto":
        return setting
    from veff.autotune import gpus  # for a job: the parse of the Snakefile needs none of it

    on_gpu = device == "cuda" or (device == "auto" and bool(gpus.visible()))
    rate = GPU_RATE if on_gpu else CPU_RATE
    return min(max(1, JOB_S * rate // models), ALLELES_A_JOB)


def models_per_job(setting: int | str, experiments: list[Request]) -> int:
    """The most checkpoints that a job takes: the setting, or what `auto` makes of the sheet."""
    if setting != "auto":
        return setting
    models = sum(len(one.checkpoints) for one in experiments)
    return max(MODELS_A_JOB, -(-models // BATCHES))


def models_in_a_bundle(prepared: str | Path, bundles: dict[str, list[Request]]) -> int:
    """The models that a job is planned for: of the first bundle when the run began.

    `prepared` is the summary of the prepared alleles: where it is there already, what it was
    planned for holds, so that models added later do not divide the alleles anew.
    """
    if Path(prepared).is_file():
        return atomic.read_json(prepared)["models_in_a_bundle"]
    first = next(iter(bundles.values()))
    return sum(len(one.checkpoints) for one in first)
