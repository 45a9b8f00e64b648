"""What is known of a run's models, and can they be scored together on this reference?"""

import csv
from pathlib import Path

from veff.errors import InputError
from veff.models import catv1
from veff.tables import aside, read_json

GEOMETRY = ("n_filters", "n_layers", "expansion", "signal_groups", "n_control_tracks")


def accept(
    inspected: list[dict],
    max_allele_length: int,
    assemblies: dict[str, str | None],
    reference_assembly: str | None,
) -> list[dict]:
    """The descriptions that `models.inspect` made, if all of them can be scored.

    `assemblies` are those that the sheet gives its experiments. Raises `InputError` that names
    each checkpoint that cannot be used, and the first one that does not fit: to the other folds
    of its experiment, to alleles that may be longer than half of its output, to the reference.
    """
    if broken := [one["error"] for one in inspected if "error" in one]:
        raise InputError("; ".join(broken))
    for one in inspected:
        first = next(d for d in inspected if d["experiment"] == one["experiment"])
        differing = [k for k in (*GEOMETRY, "input_length") if one[k] != first[k]]
        if differing:
            raise InputError(
                f"{one['checkpoint']}: {differing[0]} is {one[differing[0]]}, but the first fold "
                f"of {one['experiment']} has {first[differing[0]]}; folds must be alike"
            )
        if one["output_length"] < 2 * max_allele_length:
            raise InputError(
                f"{one['checkpoint']}: its output of {one['output_length']} bp is too short for "
                f"alleles of {max_allele_length} bp; set max_allele_length to at most "
                f"{one['output_length'] // 2}"
            )
        if (one["group"] or 0) >= len(one["signal_groups"]):
            raise InputError(
                f"{one['checkpoint']}: has {len(one['signal_groups'])} signal groups, so there "
                f"is no group {one['group']} (they count from 0)"
            )
        assembly = assemblies[one["experiment"]]
        if assembly and reference_assembly and assembly != reference_assembly:
            raise InputError(
                f"{one['experiment']}: a model of {assembly}, but the reference is "
                f"{reference_assembly}; give that genome and variants on it, or set "
                "allow_assembly_mismatch: true"
            )
    return inspected


def duplicates(descriptions: list[dict]) -> list[list[str]]:
    """Checkpoints with the same content, each group as `experiment: path`."""
    same: dict[str, list[str]] = {}
    for one in descriptions:
        same.setdefault(one["sha256"], []).append(f"{one['experiment']}: {one['checkpoint']}")
    return [names for names in same.values() if len(names) > 1]


def write_experiments(path: Path, experiments: list[dict], descriptions: list[dict]) -> None:
    """A table to join to the scores by `experiment`: what the sheet says of each, a row each."""
    about = [dict(one["about"]) for one in experiments]
    columns = list(dict.fromkeys(key for one in about for key in one))
    folds: dict[str, int] = {}
    for one in descriptions:
        folds[one["experiment"]] = folds.get(one["experiment"], 0) + 1
    with aside(path) as temporary, open(temporary, "w", newline="") as handle:
        rows = csv.writer(handle, delimiter="\t", lineterminator="\n")
        rows.writerow(["experiment", "n_models", "assembly", "peaks", *columns])
        for one, said in zip(experiments, about, strict=True):
            fixed = (one["name"], folds[one["name"]], one["assembly"] or "", one["peaks"] or "")
            rows.writerow([*fixed, *(said.get(column, "") for column in columns)])


def origin(descriptions: list[dict]) -> dict | None:
    """Where the models from the hub come from, and under which licence; None without any."""
    commits = sorted({one["catv1"]["commit"] for one in descriptions if "catv1" in one})
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
