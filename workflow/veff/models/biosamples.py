"""Which experiments are of the same biosample, and which of them are replicates?"""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Biosample:
    """A cell type or tissue, its experiments in order, and the assay of each ('' if unknown)."""

    name: str
    experiments: tuple[str, ...]
    assays: tuple[str, ...]
    organ: str | None = None
    life_stage: str | None = None

    @property
    def weights(self) -> list[float]:
        """Of each experiment, 1 in all: assays weigh the same, and so do the replicates of one."""
        replicates = Counter(self.assays)
        return [1 / (len(replicates) * replicates[assay]) for assay in self.assays]


def read(path: Path) -> list[Biosample]:
    """The biosamples of an experiments.tsv (`acceptance.write_experiments`), in its order.

    They are told apart by the column `biosample`. An experiment without one is a biosample of its
    own, with the experiment's name.
    """
    found: dict[str, list[dict]] = {}
    with open(path, newline="") as handle:
        for row in csv.DictReader(handle, delimiter="\t"):
            found.setdefault(row.get("biosample") or row["experiment"], []).append(row)
    return [
        Biosample(
            name,
            tuple(row["experiment"] for row in rows),
            tuple(row.get("assay") or "" for row in rows),
            organ=_facet(rows, "organ"),
            life_stage=_facet(rows, "life_stage"),
        )
        for name, rows in found.items()
    ]


def _facet(rows: list[dict], key: str) -> str | None:
    """What the experiments say of it, each value once."""
    return ",".join(dict.fromkeys(row[key] for row in rows if row.get(key))) or None
