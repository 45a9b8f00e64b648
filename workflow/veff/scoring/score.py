"""What are the scores of one chunk of alleles under one bundle of experiments?"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import torch

from veff.cherimoya import checkpoint, engine
from veff.errors import InputError
from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.models.experiment import Experiment
from veff.scoring import edits, effects, ensemble, heldout, windows
from veff.scoring.how import How
from veff.scoring.predict import Folds

PREFETCH = 4  # batches of windows, or models, that wait for the device
PROGRESS_S = 5
T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """Windows for one forward pass, and which of them make up which allele.

    `bases` is uint8 [batch_size, L], ASCII; rows from `n_rows` on, which no allele uses, are all
    N. `ref_row` and `alt_row` are the rows of each of the `n` alleles. They, `breakpoint` and
    `shift`, or the `index` of virtual alleles (`edits.paired`, int64 [n, 2, T]), are padded with
    zeros to whole pieces of `batch_size // 2`, so that scores too are made in one shape. These are
    None where no allele changes the length.
    """

    n: int
    n_rows: int
    bases: np.ndarray
    ref_row: np.ndarray
    alt_row: np.ndarray
    breakpoint: np.ndarray | None
    shift: np.ndarray | None
    n_padded: np.ndarray
    index: np.ndarray | None = None


def score(
    alleles: pa.Table,
    reference: Reference,
    experiments: list[Experiment],
    how: How,
    *,
    batch_size: int,
    threads: int = 1,
    proofs: Path | None = None,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Score alleles with the models of these experiments.

    `alleles` are rows of the prepared table (`allele_id`, `contig`, `start`, `ref_len`, `alt`),
    in genome order, or virtual alleles, as `edits.VIRTUAL` has them. For each experiment in order
    yields two tables, which are made when they are asked for: its answers and its folds'. Both
    have `allele_id`, `experiment`, `group`, `n_padded` and the scores of `effects.score`; the
    folds' have `fold` too, the answers what `columns.SPREAD` names, and in their metadata the
    `engine` of all models. `proofs` is a folder, see `engine.Predictor`.
    """
    torch.set_num_threads(threads)
    device = engine.device(how.device)
    scored: dict[str, _Scored] = {}
    # Experiments of one geometry share the windows while these are on the device.
    for geometry, group in groupby(sorted(experiments, key=_lengths), lambda one: one.geometry):
        alike = list(group)
        cut = _virtual_batches if "edits" in alleles.column_names else _batches
        batches = cut(alleles, reference, geometry, batch_size)
        starting = _starting(alike, how, device, batch_size, proofs)
        runs = _over_all(batches, device, starting, len(alleles), len(alike))
        scored |= {run.name: run for run in runs}
    for one in experiments:
        answering = None
        if how.ensemble == "heldout":
            answering = heldout.answering(one, reference, alleles)
        yield scored.pop(one.name).tables(alleles["allele_id"], answering)


def _starting(
    experiments: list[Experiment],
    how: How,
    device: torch.device,
    batch_size: int,
    proofs: Path | None,
) -> Iterator["_Scored"]:
    """The experiments, each with its models on the device."""
    # The next model is read from disk while one is moved to the device and tried there.
    loaded = _prefetched(
        checkpoint.load(fold.path, fold.sha256) for one in experiments for fold in one.folds
    )
    for one in experiments:
        models = islice(loaded, len(one.folds))
        yield _Scored(Folds(one, models, how, device, batch_size, proofs))


def _over_all(
    batches: Iterator[Batch],
    device: torch.device,
    starting: Iterator["_Scored"],
    n_alleles: int,
    n_experiments: int,
) -> list["_Scored"]:
    """The experiments when they have seen all batches."""
    # Moved to the device in that thread too: here nothing waits for a copy.
    there = _prefetched(_moved(batches, device))
    runs: list[_Scored] = []
    with torch.no_grad():
        # The first windows are made while a model starts, and scored while the next one loads.
        for run in starting:
            if not runs:
                first, progress = next(there), _Progress(n_alleles, n_experiments)
            run.start(first)()
            runs.append(run)
        progress.say(first.n)
        finish = None
        for batch in there:
            for run in runs:
                # The GPU predicts one batch while the one before it is waited for and scored.
                started = run.start(batch)
                if finish:
                    finish()
                finish = started
            progress.say(batch.n)
        if finish:
            finish()
    return runs


class _Scored:
    """What the folds of one experiment said so far."""

    def __init__(self, folds: Folds):
        self.name = folds.experiment.name
        self.folds = folds
        # For each group and batch, the scores of what `Folds.predict` gives, each
        # [len(effects.SCORES), n].
        self.scores: dict[int, list[torch.Tensor]] = {
            group: [] for group in folds.experiment.groups
        }
        self.n_padded: list[np.ndarray] = []

    def start(self, batch: Batch) -> Callable[[], None]:
        """Predict a batch: a function that scores its alleles under each fold and under their
        ensemble."""
        started = self.folds.start(batch.bases, batch.n_rows)

        def finish() -> None:
            self.n_padded.append(batch.n_padded)
            for group, predicted in started().items():
                self.scores[group].append(torch.stack([_score(*one, batch) for one in predicted]))

        return finish

    def tables(
        self, allele_id: pa.ChunkedArray, answering: np.ndarray | None
    ) -> tuple[pa.Table, pa.Table]:
        """The experiment's table and its folds' table. `answering`: which folds make the answer
        to which alleles, bool [folds, n], None for all."""
        by_group = [self._tables(group, allele_id, answering) for group in self.scores]
        *folds, answer = (pa.concat_tables(tables) for tables in zip(*by_group, strict=True))
        engines = {one.engine for one in self.folds.predictors}
        said = {"engine": "fast" if engines == {"fast"} else "cherimoya"}
        return answer.replace_schema_metadata(said), pa.concat_tables(folds)

    def _tables(
        self, group: int, allele_id: pa.ChunkedArray, answering: np.ndarray | None
    ) -> list[pa.Table]:
        """The tables of one signal group: each fold's, and last the experiment's."""
        n, n_folds = len(allele_id), len(self.folds.predictors)
        keys = {
            "allele_id": allele_id,
            "experiment": pa.repeat(self.name, n),
            "group": pa.array(np.full(n, group, np.int32)),
            "n_padded": pa.array(np.concatenate(self.n_padded)),
        }
        folds = [keys | {"fold": pa.array(np.full(n, fold, np.int32))} for fold in range(n_folds)]
        answer = keys | {"n_folds": pa.array(np.full(n, n_folds, np.int32))}
        for i, name in enumerate(effects.SCORES):
            scores = torch.cat([batch[:, i] for batch in self.scores[group]], 1)
            _check_finite(scores, name, self.folds.experiment)
            among = None if answering is None else torch.from_numpy(answering).to(scores.device)
            of_folds, own = self.folds.answer(scores, among)
            for table, values in zip((*folds, answer), (*of_folds, own), strict=True):
                table[name] = pa.array(values.cpu().numpy())
            sd, agree = ensemble.spread(of_folds, own)
            # A spread that one fold does not have is NaN here, and missing in the table.
            answer[f"{name}_sd"] = pa.array(sd.cpu().numpy(), from_pandas=True)
            if name == "logfc":
                answer["folds_agree"] = pa.array(agree.cpu().numpy())
        return [pa.table(table) for table in (*folds, answer)]


def _check_finite(scores: torch.Tensor, name: str, experiment: Experiment) -> None:
    """Raise InputError that names the first model whose scores are not all finite.

    `scores` [K, n] are those of the experiment's folds and, last, perhaps of their average.
    """
    models = [*(fold.path for fold in experiment.folds), "the average of its folds"]
    for model, bad in zip(models, (~scores.isfinite()).sum(1).tolist(), strict=False):
        if bad:
            raise InputError(
                f"{experiment.name}: {model} gives {bad} of {scores.shape[1]} alleles a {name} "
                "that is not a finite number: its weights cannot predict; train it again, or take "
                "it out of the model sheet"
            )


def _score(h: torch.Tensor, p: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The scores [len(effects.SCORES), n] of a batch, from what was predicted for its rows."""
    half = len(h) // 2
    pieces = []
    for first in range(0, batch.n, half):
        piece = slice(first, first + half)
        ref, alt = batch.ref_row[piece], batch.alt_row[piece]
        index = None
        if batch.index is not None:
            index = batch.index[piece].transpose(0, 1)
        elif batch.shift is not None:
            index = effects.shared(batch.breakpoint[piece], batch.shift[piece], p.shape[-1])
        scores = effects.score(h[ref], p[ref], h[alt], p[alt], index)
        pieces.append(torch.stack([scores[name] for name in effects.SCORES]))
    return torch.cat(pieces, 1)[:, : batch.n]


def _lengths(one: Experiment) -> tuple[int, int]:
    return one.geometry.input_length, one.geometry.output_length


def _batches(
    alleles: pa.Table, reference: Reference, geometry: Geometry, batch_size: int
) -> Iterator[Batch]:
    """Batches of exactly `batch_size` windows; alleles of one site share a reference window."""
    contig, start, ref_len = (alleles[c].to_numpy() for c in ("contig", "start", "ref_len"))
    alt = alleles["alt"].to_pylist()
    alt_len = np.fromiter(map(len, alt), np.int64, len(alt))
    breakpoint_, shift = windows.alignment(ref_len, alt_len, geometry)
    new_site = np.ones(len(alt), bool)
    new_site[1:] = (np.diff(contig) != 0) | (np.diff(start) != 0) | (np.diff(ref_len) != 0)
    sites = np.cumsum(new_site)
    i = 0
    while i < len(alt):
        # Rows that alleles i .. j-1 need: their own, and one a site, of which i's is the first.
        ahead = slice(i, i + batch_size)
        rows = np.arange(1, len(sites[ahead]) + 1) + sites[ahead] - sites[i] + 1
        n = int(np.searchsorted(rows, batch_size, side="right"))
        here = slice(i, i + n)
        ref, alts, n_padded = windows.windows(
            reference, contig[here], start[here], ref_len[here], alt[here], geometry.input_length
        )
        ref_row = sites[here] - sites[i]
        n_sites = int(ref_row[-1]) + 1
        bases = np.full((batch_size, geometry.input_length), ord("N"), np.uint8)
        bases[:n_sites] = ref[np.unique(ref_row, return_index=True)[1]]
        bases[n_sites : n_sites + n] = alts

        def pad(values: np.ndarray, n: int = n) -> np.ndarray:
            return np.pad(values.astype(np.int64), (0, -n % (batch_size // 2)))

        indels = shift[here].any()
        yield Batch(
            n=n,
            n_rows=n_sites + n,
            bases=bases,
            ref_row=pad(ref_row),
            alt_row=pad(n_sites + np.arange(n)),
            breakpoint=pad(breakpoint_[here]) if indels else None,
            shift=pad(shift[here]) if indels else None,
            n_padded=n_padded,
        )
        i += n


def _virtual_batches(
    alleles: pa.Table, reference: Reference, geometry: Geometry, batch_size: int
) -> Iterator[Batch]:
    """The same of virtual alleles; those that follow each other share a reference window."""
    identity = np.arange(geometry.output_length)
    rows: list[bytes] = []
    here: list[tuple[int, int, edits.Pair]] = []  # of each allele its rows, and its windows

    def batch() -> Batch:
        bases = np.full((batch_size, geometry.input_length), ord("N"), np.uint8)
        bases[: len(rows)] = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
        padded = [*here, *[(0, 0, None)] * (-len(here) % (batch_size // 2))]
        index = None
        if any(pair.index is not None for *_, pair in here):
            index = np.zeros((len(padded), 2, geometry.output_length), np.int64)
            for i, (*_, pair) in enumerate(here):
                index[i] = identity if pair.index is None else pair.index
        return Batch(
            n=len(here),
            n_rows=len(rows),
            bases=bases,
            ref_row=np.array([ref for ref, *_ in padded]),
            alt_row=np.array([alt for _, alt, _ in padded]),
            breakpoint=None,
            shift=None,
            n_padded=np.array([pair.n_padded for *_, pair in here], np.int32),
            index=index,
        )

    for pair in edits.pairs(alleles, reference, geometry):
        shared = bool(here) and here[-1][2].ref == pair.ref
        if len(rows) + 2 - shared > batch_size:
            yield batch()
            rows, here, shared = [], [], False
        if not shared:
            rows.append(pair.ref)
            ref_row = len(rows) - 1
        rows.append(pair.alt)
        here.append((ref_row, len(rows) - 1, pair))
    if here:
        yield batch()


def _moved(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """The batches with their arrays as tensors on the device."""
    names = ("bases", "ref_row", "alt_row", "breakpoint", "shift", "index")
    on_gpu = engine.on_gpu(device)
    # On a stream of its own: on that of the kernels a copy would wait for all of them.
    copies = torch.cuda.Stream(device) if on_gpu else None
    for batch in batches:
        arrays = {name: getattr(batch, name) for name in names}
        with torch.cuda.stream(copies):
            tensors = {
                name: torch.from_numpy(array).to(device)
                for name, array in arrays.items()
                if array is not None
            }
        if on_gpu:
            for tensor in tensors.values():  # their memory is not free before the kernels are done
                tensor.record_stream(torch.cuda.default_stream(device))
        yield replace(batch, **tensors)


def _prefetched(items: Iterator[T]) -> Iterator[T]:
    """The items, made from now on in a thread of their own, so that the device need not wait."""
    waiting: queue.Queue = queue.Queue(PREFETCH)
    end = object()

    def fill():
        try:
            for item in items:
                waiting.put(item)
            waiting.put(end)
        except BaseException as error:
            waiting.put(error)

    def made() -> Iterator[T]:
        while (item := waiting.get()) is not end:
            if isinstance(item, BaseException):
                raise item
            yield item

    threading.Thread(target=fill, daemon=True).start()
    return made()


class _Progress:
    """Says how many alleles are done, how fast, and how long the rest takes."""

    def __init__(self, n_alleles: int, n_experiments: int):
        self.n_alleles, self.n_experiments = n_alleles, n_experiments
        self.done = 0
        self.began = self.last = time.monotonic()

    def say(self, n: int) -> None:
        """That `n` more are done."""
        self.done += n
        now = time.monotonic()
        if now - self.last < PROGRESS_S and self.done < self.n_alleles:
            return
        self.last = now
        rate = self.done / max(now - self.began, 1e-9)
        logging.info(
            "%d of %d alleles under %d experiments, %.0f alleles/s, %.0f s left",
            self.done,
            self.n_alleles,
            self.n_experiments,
            rate,
            (self.n_alleles - self.done) / rate,
        )
