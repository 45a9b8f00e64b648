"""What is known of a run's checkpoints, and which of them make one answer?"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from veff.atomic import read_json
from veff.models.architecture import Architecture, Geometry


@dataclass(frozen=True)
class Checkpoint:
    """One fold of an experiment, loaded once and found to be a model.

    `group` is the signal group that is reported, None for all. One from CATv1 has the name of
    its `file` there, and the `commit`. `test_chroms` are the contigs that it did not train on, as
    far as the sheet says it.
    """

    experiment: str
    fold: int
    path: str
    sha256: str
    n_parameters: int
    architecture: Architecture
    group: int | None = None
    file: str | None = None
    commit: str | None = None
    test_chroms: tuple[str, ...] = ()

    @classmethod
    def of(cls, plain: dict) -> "Checkpoint":
        """From a row of models.json."""
        return cls(
            plain["experiment"],
            plain["fold"],
            plain["checkpoint"],
            plain["sha256"],
            plain["n_parameters"],
            Architecture.of(plain),
            plain["group"],
            **plain.get("catv1", {}),
            test_chroms=tuple(plain.get("test_chroms", ())),
        )

    def plain(self) -> dict:
        """As models.json has it."""
        published = {"catv1": {"file": self.file, "commit": self.commit}} if self.file else {}
        return {
            "experiment": self.experiment,
            "fold": self.fold,
            "checkpoint": self.path,
            "group": self.group,
            **published,
            **({"test_chroms": list(self.test_chroms)} if self.test_chroms else {}),
            "sha256": self.sha256,
            "n_parameters": self.n_parameters,
            **self.architecture.plain(),
        }


@dataclass(frozen=True)
class Unusable:
    """A checkpoint that cannot score, and the one line that says why."""

    experiment: str
    fold: int
    checkpoint: str
    error: str

    def plain(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Experiment:
    """The checkpoints (folds) of one answer of the run, which are alike."""

    name: str
    folds: tuple[Checkpoint, ...]

    @property
    def architecture(self) -> Architecture:
        return self.folds[0].architecture

    @property
    def geometry(self) -> Geometry:
        return self.architecture.geometry

    @property
    def group(self) -> int | None:
        return self.folds[0].group

    @property
    def groups(self) -> list[int]:
        """The signal groups that are reported."""
        every = range(len(self.architecture.signal_groups))
        return list(every) if self.group is None else [self.group]

    @property
    def sha256(self) -> list[str]:
        """Of each fold's file."""
        return [fold.sha256 for fold in self.folds]


def experiments(checkpoints: Iterable[Checkpoint]) -> list[Experiment]:
    """The experiments that checkpoints are of, in the order of the first of each."""
    folds: dict[str, list[Checkpoint]] = {}
    for one in checkpoints:
        folds.setdefault(one.experiment, []).append(one)
    return [Experiment(name, tuple(those)) for name, those in folds.items()]


def read(path: str | Path) -> list[Checkpoint]:
    """The checkpoints of a models.json."""
    return [Checkpoint.of(row) for row in read_json(path)]


def usable(path: str | Path) -> list[Experiment]:
    """The experiments of an inspected.json; none where one of its checkpoints cannot be used."""
    found = read_inspected(path)
    good = [one for one in found if isinstance(one, Checkpoint)]
    return experiments(good) if len(good) == len(found) else []


def read_inspected(path: str | Path) -> list[Checkpoint | Unusable]:
    """The checkpoints of an inspected.json, those that cannot be used too."""
    rows = read_json(path)
    return [Unusable(**row) if "error" in row else Checkpoint.of(row) for row in rows]
