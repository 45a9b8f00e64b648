"""What are the scores of one chunk of alleles under one bundle of experiments?"""

import logging
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TypeVar

import numpy as np
import pyarrow as pa
import torch
from cherimoya import Cherimoya

from veff.cherimoya import checkpoint
from veff.cherimoya.engine import Predictor
from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.scoring import effects, ensemble, windows

PREFETCH = 4  # batches of windows, or models, that wait for the device
PROGRESS_S = 5
T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """Windows for one forward pass, and which of them make up which allele.

    `bases` is uint8 [batch_size, L], ASCII; rows from `n_rows` on, which no allele uses, are all
    N. `ref_row` and `alt_row` are the rows of each of the `n` alleles. They, `breakpoint` and
    `shift` are padded with zeros to whole pieces of `batch_size // 2`, so that scores too are
    made in one shape. The last two are None where no allele changes the length.
    """

    n: int
    n_rows: int
    bases: np.ndarray
    ref_row: np.ndarray
    alt_row: np.ndarray
    breakpoint: np.ndarray | None
    shift: np.ndarray | None
    n_padded: np.ndarray


@dataclass(frozen=True)
class How:
    """How a run predicts, and how an experiment's folds become its answer.

    `ensemble`: 'mean_prediction' averages the folds' predictions and scores the average,
    'mean_score' averages the folds' scores. `reverse_complement`: predict for both strands of
    each window and average (`ensemble.both_strands`).
    """

    device: torch.device
    batch_size: int
    threads: int = 1
    precision: str = "fp32"
    engine: str = "fast"
    ensemble: str = "mean_prediction"
    reverse_complement: bool = False


def score(
    alleles: pa.Table, reference: Reference, descriptions: list[dict], how: How
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Score alleles with the models described.

    `alleles` are rows of the prepared table (`allele_id`, `contig`, `start`, `ref_len`, `alt`),
    in genome order. For each experiment, in the order of `descriptions`, yields two tables, which
    are made when they are asked for: its answers and its folds'. Both have `allele_id`,
    `experiment`, `group`, `n_padded` and the scores of `effects.score`; the folds' have `fold`
    too, the answers what `columns.SPREAD` names.
    """
    torch.set_num_threads(how.threads)
    experiments = [list(folds) for _, folds in groupby(descriptions, lambda d: d["experiment"])]
    scored: dict[str, _Experiment] = {}
    # Experiments of one geometry share the windows while these are on the device.
    for lengths, group in groupby(sorted(experiments, key=_lengths), _lengths):
        runs = _over_all_alleles(alleles, reference, Geometry(*lengths), list(group), how)
        scored |= {run.name: run for run in runs}
    for folds in experiments:
        yield scored.pop(folds[0]["experiment"]).tables(alleles["allele_id"])


def _over_all_alleles(
    alleles: pa.Table,
    reference: Reference,
    geometry: Geometry,
    experiments: list[list[dict]],
    how: How,
) -> list["_Experiment"]:
    """The experiments, which all have this geometry, when they have seen all alleles."""
    # The next model is read from disk while one is moved to the device and tried there.
    loaded = _prefetched(
        checkpoint.load(fold["checkpoint"]) for folds in experiments for fold in folds
    )
    starting = (
        _Experiment(folds, islice(loaded, len(folds)), geometry, how) for folds in experiments
    )
    # Moved to the device in that thread too: here nothing waits for a copy.
    batches = _prefetched(
        _to(how.device, batch) for batch in _batches(alleles, reference, geometry, how.batch_size)
    )
    runs: list[_Experiment] = []
    progress = _Progress(len(alleles), len(experiments))
    with torch.no_grad():
        for batch in batches:
            # The first windows are scored by one experiment while the next one loads.
            for run in runs or _kept(starting, runs):
                run.add(batch)
            progress.say(batch.n)
    return runs


class _Experiment:
    """The folds of one experiment, and what they said so far."""

    def __init__(
        self, folds: list[dict], loaded: Iterator[Cherimoya], geometry: Geometry, how: How
    ):
        self.name = folds[0]["experiment"]
        self.groups = folds[0]["signal_groups"]
        chosen = folds[0].get("group")
        reported = range(len(self.groups)) if chosen is None else [chosen]
        self.how = how
        self.predictors = [
            Predictor(
                model,
                geometry,
                device=how.device,
                precision=how.precision,
                engine=how.engine,
                batch_size=how.batch_size,
            )
            for model in loaded
        ]
        # For each group and batch, the scores of the folds [K, len(effects.SCORES), n]; last, as
        # one more, the experiment's where they are not the mean of these.
        self.scores: dict[int, list[torch.Tensor]] = {group: [] for group in reported}
        self.n_padded: list[np.ndarray] = []

    def add(self, batch: Batch) -> None:
        """Score the alleles of a batch under each fold and under their ensemble."""
        self.n_padded.append(batch.n_padded)
        outputs = [self._predict(predictor, batch) for predictor in self.predictors]
        for group, scores in self.scores.items():
            predicted = [output[group] for output in outputs]
            if len(predicted) > 1 and self.how.ensemble == "mean_prediction":
                h, p = (torch.stack(heads) for heads in zip(*predicted, strict=True))
                predicted.append(ensemble.mean_prediction(h, p))
            scores.append(torch.stack([_score(*one, batch) for one in predicted]))

    def _predict(self, predictor: Predictor, batch: Batch) -> list[tuple]:
        """For each group, log-counts [N] and profile [N, channels, T] of a batch of windows."""

        def strand(bases: torch.Tensor) -> list[tuple]:
            logits, log_counts = predictor.predict(bases, batch.n_rows)
            profiles = map(effects.profile, logits.split(self.groups, 1))
            return list(zip(log_counts.unbind(1), profiles, strict=True))

        forward = strand(batch.bases)
        if not self.how.reverse_complement:
            return forward
        reverse = strand(_reverse_complement(batch.bases))
        return [ensemble.both_strands(*pair) for pair in zip(forward, reverse, strict=True)]

    def tables(self, allele_id: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
        """The experiment's table and its folds' table."""
        by_group = [self._tables(group, allele_id) for group in self.scores]
        *folds, answer = (pa.concat_tables(tables) for tables in zip(*by_group, strict=True))
        return answer, pa.concat_tables(folds)

    def _tables(self, group: int, allele_id: pa.ChunkedArray) -> list[pa.Table]:
        """The tables of one signal group: each fold's, and last the experiment's."""
        n, n_folds = len(allele_id), len(self.predictors)
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
            of_folds, rest = scores[:n_folds], scores[n_folds:]
            own = rest[0] if len(rest) else ensemble.mean_score(of_folds)
            for table, values in zip((*folds, answer), (*of_folds, own), strict=True):
                table[name] = pa.array(values.cpu().numpy())
            sd, agree = ensemble.spread(of_folds, own)
            # A spread that one fold does not have is NaN here, and missing in the table.
            answer[f"{name}_sd"] = pa.array(sd.cpu().numpy(), from_pandas=True)
            if name == "logfc":
                answer["folds_agree"] = pa.array(agree.cpu().numpy())
        return [pa.table(table) for table in (*folds, answer)]


def _score(h: torch.Tensor, p: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The scores [len(effects.SCORES), n] of a batch, from what was predicted for its rows."""
    half = len(h) // 2
    pieces = []
    for first in range(0, batch.n, half):
        piece = slice(first, first + half)
        ref, alt = batch.ref_row[piece], batch.alt_row[piece]
        where = () if batch.shift is None else (batch.breakpoint[piece], batch.shift[piece])
        scores = effects.score(h[ref], p[ref], h[alt], p[alt], *where)
        pieces.append(torch.stack([scores[name] for name in effects.SCORES]))
    return torch.cat(pieces, 1)[:, : batch.n]


def _reverse_complement(bases: torch.Tensor) -> torch.Tensor:
    """The other strand of windows, uint8 [N, L] of ASCII; what is not A, C, G or T becomes N."""
    complement = torch.full((256,), windows.N, dtype=torch.uint8)
    complement[list(b"ACGT")] = torch.tensor(list(b"TGCA"), dtype=torch.uint8)
    return complement.to(bases.device)[bases.long()].flip(1)


def _lengths(folds: list[dict]) -> tuple[int, int]:
    return folds[0]["input_length"], folds[0]["output_length"]


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


def _to(device: torch.device, batch: Batch) -> Batch:
    """The batch with its arrays as tensors on the device."""
    names = ("bases", "ref_row", "alt_row", "breakpoint", "shift")
    arrays = {name: getattr(batch, name) for name in names}
    tensors = {
        name: torch.from_numpy(array).to(device)
        for name, array in arrays.items()
        if array is not None
    }
    return replace(batch, **tensors)


def _kept(items: Iterator[T], kept: list[T]) -> Iterator[T]:
    """The items, each added to `kept` on its way."""
    for item in items:
        kept.append(item)
        yield item


def _prefetched(items: Iterator[T]) -> Iterator[T]:
    """The items, made in a thread of their own so that the device need not wait for them."""
    waiting: queue.Queue = queue.Queue(PREFETCH)
    end = object()

    def fill():
        try:
            for item in items:
                waiting.put(item)
            waiting.put(end)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=fill, daemon=True).start()
    while (item := waiting.get()) is not end:
        if isinstance(item, BaseException):
            raise item
        yield item


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
