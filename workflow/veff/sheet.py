"""Which experiments and which checkpoints does the model sheet ask for?"""

import csv
from dataclasses import dataclass
from pathlib import Path

from veff.errors import InputError

REQUIRED = ("experiment", "checkpoint")
OPTIONAL = ("output_length",)
OUTPUT_LENGTH = 1000  # what Cherimoya is trained with; a checkpoint does not state it


@dataclass(frozen=True)
class Experiment:
    """One answer of the run: the checkpoints (folds) that are averaged into it."""

    name: str
    checkpoints: tuple[str, ...]
    output_length: int = OUTPUT_LENGTH


def read(path: str | Path) -> list[Experiment]:
    """The experiments of a sheet, in the order of their first rows.

    The sheet is tab-separated with a header: `experiment`, `checkpoint` (a path) and, where it
    is not 1,000, `output_length` (bp). Rows of one experiment are its folds, in that order.

    Raises `InputError` that names the sheet, the line and what is wrong with it.
    """
    folds: dict[str, list[str]] = {}
    lengths: dict[str, int] = {}
    with open(path, newline="", encoding="utf-8-sig") as handle:
        rows = csv.DictReader(handle, delimiter="\t")
        _check_header(path, rows.fieldnames)
        for row in rows:
            here = f"{path}, line {rows.line_num}"
            if None in row or None in row.values():
                raise InputError(f"{here}: expected {len(rows.fieldnames)} tab-separated values")
            values = {key: value.strip() for key, value in row.items()}
            name, checkpoint = values["experiment"], values["checkpoint"]
            if not name or not checkpoint:
                raise InputError(f"{here}: experiment and checkpoint must both be given")
            if not Path(checkpoint).is_file():
                raise InputError(f"{here}: there is no checkpoint {checkpoint!r}; give its path")
            if checkpoint in folds.setdefault(name, []):
                raise InputError(f"{here}: {name} has {checkpoint!r} twice; remove one row")
            folds[name].append(checkpoint)
            length = _output_length(here, values.get("output_length", ""))
            if lengths.setdefault(name, length) != length:
                raise InputError(f"{here}: output_length differs between the folds of {name}")
    if not folds:
        raise InputError(f"{path}: no models; add a row with an experiment and a checkpoint")
    return [Experiment(name, tuple(paths), lengths[name]) for name, paths in folds.items()]


def batches(experiments: list[Experiment], models_per_job: int) -> list[list[Experiment]]:
    """Runs of experiments with at most `models_per_job` checkpoints in all, none parted."""
    groups: list[list[Experiment]] = []
    size = 0
    for experiment in experiments:
        n = len(experiment.checkpoints)
        if not groups or size + n > models_per_job:
            groups.append([])
            size = 0
        groups[-1].append(experiment)
        size += n
    return groups


def _check_header(path: str | Path, names: list[str] | None) -> None:
    names = names or []
    missing = [name for name in REQUIRED if name not in names]
    unknown = [name for name in names if name not in REQUIRED + OPTIONAL]
    if missing or unknown:
        fault = f"no column {missing[0]!r}" if missing else f"unknown column {unknown[0]!r}"
        raise InputError(
            f"{path}, line 1: {fault}; expected tab-separated columns {', '.join(REQUIRED)} "
            f"and, if needed, {', '.join(OPTIONAL)}"
        )


def _output_length(here: str, text: str) -> int:
    if not text:
        return OUTPUT_LENGTH
    if not text.isdecimal() or int(text) == 0:
        raise InputError(f"{here}: output_length is {text!r}; expected a number of base pairs")
    return int(text)
