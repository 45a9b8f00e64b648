"""Which scores were computed before?

A store is a folder that runs share: a folder a device, in it one for each identity (what decides
a score to the bit, `identity`), in that the parts (`part`) that scoring jobs added. Parts never
change and none depends on another, so that any number of runs may add and read at once, and
nothing is locked.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veff.autotune import gpus
from veff.errors import InputError
from veff.models.experiment import Experiment
from veff.scoring.how import How
from veff.store import identity, part

__all__ = ["Store", "Wanted"]


class Wanted:
    """Alleles to look for.

    `alleles` are rows of the prepared table, in its order; `contigs` the hashes of the
    reference's contigs, by number.
    """

    def __init__(self, alleles: pa.Table, contigs: list[str]):
        self.allele_id = alleles["allele_id"].to_numpy()
        self._start = alleles["start"].to_numpy()
        self._texts = part.texts(alleles)
        contig = alleles["contig"].to_numpy()
        # By the hash of a contig, where its alleles begin and end; there may be two such contigs.
        self._places: dict[str, list[tuple[int, int]]] = {}
        for number in np.unique(contig):
            place = np.searchsorted(contig, [number, number + 1])
            self._places.setdefault(contigs[number], []).append(tuple(place.tolist()))
        # What was found in a row group: experiments that one job scored have the same alleles.
        self._found: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self.allele_id)

    def may_be(self, first: str, last: str, least: int, largest: int) -> bool:
        """Whether any may stand among alleles from one contig to another, or, on a single one,
        from one start to another."""
        if first != last:
            return any(first <= contig <= last for contig in self._places)
        return any(b > a for a, b in self._between(first, least, largest))

    def found(self, opened: part.Part, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Which are among the alleles of a row group, and in which rows of it."""
        place = opened.place(group)
        if place not in self._found:
            self._found[place] = self._find(opened.alleles(group))
        return self._found[place]

    def _between(self, contig: str, least: int, largest: int) -> Iterator[tuple[int, int]]:
        for begin, end in self._places.get(contig, ()):
            starts = self._start[begin:end]
            yield (
                begin + int(np.searchsorted(starts, least, "left")),
                begin + int(np.searchsorted(starts, largest, "right")),
            )

    def _find(self, alleles: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        texts, start = part.texts(alleles), alleles["start"].to_numpy()
        wanted, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        runs = pc.run_end_encode(alleles["contig"].combine_chunks())
        ends = runs.run_ends.to_pylist()
        for contig, first, end in zip(runs.values.to_pylist(), [0, *ends], ends, strict=False):
            for a, b in self._between(contig, start[first], start[end - 1]):
                row = pc.index_in(self._texts.slice(a, b - a), texts.slice(first, end - first))
                wanted.append(a + np.flatnonzero(row.is_valid().to_numpy(zero_copy_only=False)))
                rows.append(first + row.drop_null().to_numpy().astype(np.int64))
        return np.concatenate(wanted), np.concatenate(rows)


class Store:
    """A store in `folder`, for what scores: GPUs (`on_gpu`), those of `how.gpu_model` if it names
    one, or this machine's CPU. `taken` counts the alleles that `scores` gave, by device."""

    def __init__(self, folder: Path | None, how: How, on_gpu: bool):
        if folder is None:
            raise InputError("config: store: missing; name the folder of the scores: store=…")
        self._folder = Path(folder)
        self._how = how
        self._on_gpu = on_gpu
        self._passed_over: set[Path] = set()
        self.taken: Counter[str] = Counter()

    def has(self, experiment: Experiment, wanted: Wanted) -> np.ndarray:
        """Which alleles have scores of this experiment, bool[n]."""
        found = np.zeros(len(wanted), bool)

        def look(device: str, opened: part.Part) -> None:
            there = [where for _, where, _ in _places(opened, wanted)]
            found[np.concatenate([np.zeros(0, np.int64), *there])] = True

        self._each_part(experiment, look)
        return found

    def scores(
        self, experiment: Experiment, wanted: Wanted, which: np.ndarray
    ) -> tuple[pa.Table, pa.Table]:
        """What `scoring.score` said of the alleles `which`, bool[n], of those that `has` found:
        the answers and the folds'.

        Raises `part.Damaged` where a part was damaged in what `has` did not read: it is then
        dropped, and `has` says what is left.
        """
        left = which.copy()
        pieces = [(0, part.schema(experiment).empty_table(), np.zeros(0, np.int64))]

        def take(device: str, opened: part.Part) -> None:
            for group, where, row in _places(opened, wanted):
                new = left[where]
                if new.any():
                    ids = wanted.allele_id[where[new]]
                    pieces.append((where[new][0], _taken(opened.rows(group), row[new]), ids))
                    left[where] = False
                    self.taken[device] += int(new.sum())

        if not self._each_part(experiment, take) or left.any():
            raise part.Damaged("what was found is not there any more")
        # By their alleles, not by their parts' names: so all experiments mostly have one order.
        _, rows, ids = zip(*sorted(pieces, key=lambda piece: piece[0]), strict=True)
        return part.parted(pa.concat_tables(rows), np.concatenate(ids), experiment)

    def places(self, experiment: Experiment) -> list[tuple]:
        """Where an experiment's alleles are, for `region`: of each row group its span, the device,
        the part and the number."""
        found = []

        def look(device: str, opened: part.Part) -> None:
            found.extend((opened.span(one), device, opened.path, one) for one in opened.groups)

        self._each_part(experiment, look)
        return found

    def region(
        self, experiment: Experiment, places: list[tuple], contig: str, start: int, end: int
    ) -> pa.Table:
        """The rows of parts on that contig from one start up to another; of an allele that stands
        in several parts each."""
        rows = [part.schema(experiment).empty_table()]
        for (first, last, least, largest), device, path, group in places:
            outside = first == last and (largest < start or least >= end)
            if outside or not first <= contig <= last:
                continue

            def take(_, opened: part.Part, group: int = group) -> None:
                rows.append(opened.rows(group))

            self._use(path, device, experiment, take)
        table = pa.concat_tables(rows)
        here = pc.and_(pc.greater_equal(table["start"], start), pc.less(table["start"], end))
        return table.filter(pc.and_(here, pc.equal(table["contig"], contig)))

    def add(
        self,
        experiment: Experiment,
        device: str,
        alleles: pa.Table,
        contigs: list[str],
        answer: pa.Table,
        folds: pa.Table,
    ) -> None:
        """Keep what `scoring.score` says of alleles on a device (as `identity.name` has it).

        What cannot be kept is said in the log, and stops no job.
        """
        said = identity.of(experiment, self._how, device)
        folder = self._folder / device / identity.digest(said)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for one in (folder, folder.parent):
                if one.is_symlink():
                    raise OSError(f"{one} is a link")
            part.write(part.joined(alleles, contigs, experiment, answer, folds), said, folder)
        except OSError as error:
            logging.warning("store: the scores of %s are not kept: %s", experiment.name, error)

    def _devices(self) -> list[str]:
        """Those whose scores count, by the names of their folders."""
        if not self._on_gpu:
            return [identity.CPU]
        model = self._how.gpu_model
        there = sorted(path.name for path in self._folder.glob("*") if path.name != identity.CPU)
        return [name for name in there if model is None or gpus.is_model(name, model)]

    def _each_part(self, experiment: Experiment, use: Callable[[str, part.Part], None]) -> bool:
        """Have all parts of an experiment used that can be, each with its device.

        One that proves damaged is dropped, with a line; then the answer is False.
        """
        whole = True
        for device in self._devices():
            said = identity.of(experiment, self._how, device)
            folder = self._folder / device / identity.digest(said)
            for path in sorted(folder.glob("*.parquet")):
                if part.NAME.fullmatch(path.name):
                    whole &= self._use(path, device, experiment, use)
        return whole

    def _use(
        self,
        path: Path,
        device: str,
        experiment: Experiment,
        use: Callable[[str, part.Part], None],
    ) -> bool:
        """Have one part used, unless it cannot be; False where it proves damaged."""
        if path in self._passed_over:
            return True
        said = identity.of(experiment, self._how, device)
        try:
            with part.opened(path, said, part.schema(experiment)) as opened:
                use(device, opened)
            return True
        except FileNotFoundError:
            return True  # another run dropped it just now
        except part.Damaged as error:
            logging.warning("store: %s is dropped: %s", path, error)
            with suppress(OSError):
                path.unlink()
        except OSError as error:
            logging.warning("store: %s is not used: %s", path, error)
            self._passed_over.add(path)
            return True
        self._passed_over.add(path)
        return False


def _places(opened: part.Part, wanted: Wanted) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The row groups that have wanted alleles: number, which alleles, in which rows."""
    for group in opened.groups:
        if wanted.may_be(*opened.span(group)):
            where, row = wanted.found(opened, group)
            if len(where):
                yield group, where, row


def _taken(rows: pa.Table, which: np.ndarray) -> pa.Table:
    every = np.array_equal(which, np.arange(len(rows)))
    return rows if every else rows.take(which)
