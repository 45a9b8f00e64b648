"""What are the scores of one chunk of alleles under one batch of experiments?"""

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

from veff import columns, effects, ensemble, models, predict, windows
from veff.reference import Reference
from veff.windows import Geometry

PREFETCH = 4  # batches of windows, or models, that wait for the device
PROGRESS_S = 5
T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """Windows for one forward pass, and which of them make up which allele.

    `bases` is uint8 [batch_size, L], ASCII; rows from `n_rows` on, which no allele uses, are all
    N. `ref_row` and `alt_row` are the rows of each of the `n` alleles. They, `breakpoint` and
    `shift` are padded with zeros to whole pieces of `batch_size // 2`, so that scores too are
    made in one shape.
    """

    n: int
    n_rows: int
    bases: np.ndarray
    ref_row: np.ndarray
    alt_row: np.ndarray
    breakpoint: np.ndarray
    shift: np.ndarray
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
        models.load(fold["checkpoint"]) for folds in experiments for fold in folds
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
            predict.Predictor(
                model,
                geometry,
                device=how.device,
                precision=how.precision,
                engine=how.engine,
                batch_size=how.batch_size,
            )
            for model in loaded
        ]
        # One list of score dictionaries a fold and group; the last row is the experiment's.
        self.scores = [{group: [] for group in reported} for _ in range(len(folds) + 1)]
        self.n_padded: list[np.ndarray] = []

    def add(self, batch: Batch) -> None:
        """Score the alleles of a batch under each fold and under their ensemble."""
        self.n_padded.append(batch.n_padded)
        outputs = [self._predict(predictor, batch) for predictor in self.predictors]
        for group in self.scores[-1]:
            h, p = (torch.stack(heads) for heads in zip(*(o[group] for o in outputs), strict=True))
            folds = [_score(*fold, batch) for fold in zip(h, p, strict=True)]
            per_fold = torch.stack([torch.stack(list(fold.values())) for fold in folds])
            if len(folds) == 1:
                answer = folds[0]
            elif self.how.ensemble == "mean_prediction":
                answer = _score(*ensemble.mean_prediction(h, p), batch)
            else:
                means = ensemble.mean_score(per_fold)
                answer = dict(zip(effects.SCORES, means, strict=True))
            # All scores at once: [folds, scores, n].
            sd, agree = ensemble.spread(per_fold, torch.stack(list(answer.values())))
            spread = {f"{name}_sd": one for name, one in zip(answer, sd, strict=True)}
            spread["folds_agree"] = agree[effects.SCORES.index("logfc")]
            for row, scores in zip(self.scores, (*folds, answer | spread), strict=True):
                row[group].append(scores)

    def _predict(self, predictor: predict.Predictor, batch: Batch) -> list[tuple]:
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
        per_fold = [self._table(fold, allele_id) for fold in range(len(self.scores))]
        answer = per_fold.pop()
        n_folds = pa.array(np.full(len(answer), len(per_fold), np.int32))
        folds = [
            table.add_column(2, "fold", pa.array(np.full(len(table), fold, np.int32)))
            for fold, table in enumerate(per_fold)
        ]
        return answer.append_column("n_folds", n_folds), pa.concat_tables(folds)

    def _table(self, row: int, allele_id: pa.ChunkedArray) -> pa.Table:
        tables = []
        for group, pieces in self.scores[row].items():
            parts = {
                "allele_id": allele_id,
                "experiment": pa.repeat(self.name, len(allele_id)),
                "group": pa.array(np.full(len(allele_id), group, np.int32)),
                "n_padded": pa.array(np.concatenate(self.n_padded)),
            }
            for name in pieces[0]:
                values = torch.cat([piece[name] for piece in pieces]).cpu().numpy()
                # A spread that one fold does not have is NaN here, and missing in the table.
                parts[name] = pa.array(values, from_pandas=name in columns.SPREAD)
            tables.append(pa.table(parts))
        return pa.concat_tables(tables)


def _score(h: torch.Tensor, p: torch.Tensor, batch: Batch) -> dict[str, torch.Tensor]:
    """The scores of the alleles of a batch, from what was predicted for its rows."""
    half = len(h) // 2
    pieces = []
    for first in range(0, batch.n, half):
        piece = slice(first, first + half)
        ref, alt = batch.ref_row[piece], batch.alt_row[piece]
        pieces.append(
            effects.score(
                h[ref], p[ref], h[alt], p[alt], batch.breakpoint[piece], batch.shift[piece]
            )
        )
    return {
        name: torch.cat([piece[name] for piece in pieces])[: batch.n] for name in effects.SCORES
    }


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

        yield Batch(
            n=n,
            n_rows=n_sites + n,
            bases=bases,
            ref_row=pad(ref_row),
            alt_row=pad(n_sites + np.arange(n)),
            breakpoint=pad(breakpoint_[here]),
            shift=pad(shift[here]),
            n_padded=n_padded,
        )
        i += n


def _to(device: torch.device, batch: Batch) -> Batch:
    """The batch with its arrays as tensors on the device."""
    names = ("bases", "ref_row", "alt_row", "breakpoint", "shift")
    tensors = {name: torch.from_numpy(getattr(batch, name)).to(device) for name in names}
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
