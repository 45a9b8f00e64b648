"""What decides a score to the last bit, besides the allele and the contig that it stands on?"""

import hashlib
import json
import re
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from veff.models.experiment import Experiment
from veff.scoring.how import How

FORMAT = 1  # of a part; raised when its columns change
CPU = "CPU"


def of(experiment: Experiment, how: How, device: str) -> dict:
    """What a part of the store was scored by, `device` as `name` has it.

    The bits that a CPU gives differ between kinds of CPU, as those of GPUs do, and between
    releases of the libraries that multiply. The reference is not here: an allele knows its contig
    by the hash of its bases, so that another contig in the file changes nothing.
    """
    held_out = how.ensemble == "heldout"
    return {
        "format": FORMAT,
        "models_sha256": experiment.sha256,
        "group": experiment.group,
        "input_length": experiment.geometry.input_length,
        "output_length": experiment.geometry.output_length,
        "test_chroms": [list(fold.test_chroms) for fold in experiment.folds] if held_out else None,
        **how.decisive,
        "engine": how.engine,
        "device": device,
        "cpu": _cpu() if device == CPU else None,
        "libraries": {name: _version(name) for name in ("cherimoya", "torch", "triton")},
    }


def digest(identity: dict) -> str:
    """What an identity is called."""
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def name(device: str | None) -> str:
    """A device, a GPU as NVML calls it or None for a CPU, as a folder is called."""
    return re.sub(r"[^A-Za-z0-9]+", "-", device or CPU).strip("-")


@cache
def _version(package: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


@cache
def _cpu() -> str:
    """The model of this machine's CPU, and the widest of its instructions that matter here."""
    said: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        said.setdefault(key.strip(), value.strip())
    flags = said.get("flags", said.get("Features", "")).split()
    widest = next((one for one in ("amx_tile", "avx512f", "avx2") if one in flags), "")
    keys = ("vendor_id", "cpu family", "model", "model name", "CPU part")
    return " ".join(filter(None, [*(said.get(key, "") for key in keys), widest]))
