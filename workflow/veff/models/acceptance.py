"""Which checkpoints can be scored together on this reference, and what is said of them?"""

import csv
from pathlib import Path

from veff.atomic import aside, read_json
from veff.errors import InputError
from veff.models import catv1
from veff.models.architecture import SHAPE
from veff.models.experiment import Checkpoint, Unusable, experiments
from veff.models.sheet import Request


def accept(
    inspected: list[Checkpoint | Unusable],
    max_allele_length: int,
    assemblies: dict[str, str | None],
    reference_assembly: str | None,
) -> list[Checkpoint]:
    """What `checkpoint.inspect` found, if all of it can be scored.

    `assemblies` are those that the sheet gives its experiments. Raises `InputError` that names
    each checkpoint that cannot be used, and the first one that does not fit: to the other folds
    of its experiment, to alleles that may be longer than half of its output, to the reference.
    """
    if broken := [one.error for one in inspected if isinstance(one, Unusable)]:
        raise InputError("; ".join(broken))
    for experiment in experiments(inspected):
        first = experiment.architecture
        for fold in experiment.folds:
            mine = fold.architecture
            differing = [
                key
                for key in (*SHAPE, "input_length")
                if getattr(mine, key) != getattr(first, key)
            ]
            if differing:
                key = differing[0]
                raise InputError(
                    f"{fold.path}: {key} is {mine.plain()[key]}, but the first fold of "
                    f"{experiment.name} has {first.plain()[key]}; folds must be alike"
                )
            if mine.output_length < 2 * max_allele_length:
                raise InputError(
                    f"{fold.path}: its output of {mine.output_length} bp is too short for "
                    f"alleles of {max_allele_length} bp; set max_allele_length to at most "
                    f"{mine.output_length // 2}"
                )
            if (fold.group or 0) >= len(mine.signal_groups):
                raise InputError(
                    f"{fold.path}: has {len(mine.signal_groups)} signal groups, so there "
                    f"is no group {fold.group} (they count from 0)"
                )
        assembly = assemblies[experiment.name]
        if assembly and reference_assembly and assembly != reference_assembly:
            raise InputError(
                f"{experiment.name}: a model of {assembly}, but the reference is "
                f"{reference_assembly}; give that genome and variants on it, or set "
                "allow_assembly_mismatch: true"
            )
    return inspected


def duplicates(checkpoints: list[Checkpoint]) -> list[list[str]]:
    """Checkpoints with the same content, each group as `experiment: path`."""
    same: dict[str, list[str]] = {}
    for one in checkpoints:
        same.setdefault(one.sha256, []).append(f"{one.experiment}: {one.path}")
    return [names for names in same.values() if len(names) > 1]


def stranded(checkpoints: list[Checkpoint]) -> list[str]:
    """The experiments from the user's files that report a group of several strands or channels.

    Before Cherimoya 0.2.0 such groups could be trained channel by channel, which leaves open how
    large one is beside the other; and no checkpoint says what trained it.
    """
    return [
        one.name
        for one in experiments(checkpoints)
        if not one.folds[0].file
        and any(one.architecture.signal_groups[group] > 1 for group in one.groups)
    ]


def write_experiments(path: Path, requests: list[Request], checkpoints: list[Checkpoint]) -> None:
    """A table to join to the scores by `experiment`: what the sheet says of each, a row each."""
    about = [dict(one.about) for one in requests]
    columns = list(dict.fromkeys(key for one in about for key in one))
    n_models = {one.name: len(one.folds) for one in experiments(checkpoints)}
    with aside(path) as temporary, open(temporary, "w", newline="") as handle:
        rows = csv.writer(handle, delimiter="\t", lineterminator="\n")
        rows.writerow(["experiment", "n_models", "assembly", "peaks", *columns])
        for one, said in zip(requests, about, strict=True):
            fixed = (one.name, n_models[one.name], one.assembly or "", one.peaks or "")
            rows.writerow([*fixed, *(said.get(column, "") for column in columns)])


def origin(checkpoints: list[Checkpoint]) -> dict | None:
    """Where the models from the hub come from, and under which licence; None without any."""
    commits = sorted({one.commit for one in checkpoints if one.commit})
    if not commits:
        return None
    return {"repository": catv1.REPOSITORY, "commits": commits, "licence": catv1.LICENCE}


def bundles(folder: Path) -> dict[str, list[str]]:
    """The experiments of each bundle that a run has already accepted, by bundle name."""
    found = {}
    for path in sorted(folder.glob("*/models.json")):
        names = [one["experiment"] for one in read_json(path)]
        found[path.parent.name] = list(dict.fromkeys(names))
    return found
