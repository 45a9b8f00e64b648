"""How good are the scores of a run against tables of measured effects?"""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from veff import tables
from veff.atomic import aside, write_json
from veff.evaluation import metrics, page
from veff.evaluation.aligning import ALIGNED, UNDIRECTED, align
from veff.evaluation.bootstrap import Blocks
from veff.evaluation.truth import Table, Truth
from veff.inputs.reference import Reference
from veff.scoring import columns

# Scores with a direction, whose size is a score too; and those that only have a size.
SIGNED = [name for name in columns.JUDGED if name.startswith("logfc")]
SIZES = [name for name in columns.JUDGED if name.startswith("jsd")]
ALL = "all"
BOOTSTRAP, EXACT = "block bootstrap", "exact binomial"
HEADINGS = (
    "truth", "experiment", "group", "ensemble", "score", "class", "measure", "n", "value", "low",
    "high", "interval",
)  # fmt: skip


class Result(NamedTuple):
    """One measure of the rows of `HEADINGS` from `measure` on."""

    measure: str
    n: int
    value: float
    low: float = np.nan
    high: float = np.nan
    interval: str = ""


def evaluate(
    truths: dict[str, Truth],
    reference: Reference,
    *,
    alleles: Path,
    scores: Path,
    folds: Path,
    max_allele_length: int,
    out: Path,
    aligned: Path,
    shown: Path,
) -> None:
    """Compare a run's scores with tables of measured effects, by name.

    `out` is a table with a row a measure (`HEADINGS`); `aligned` has a row for each row of the
    tables, with what became of it (`aligning.align`); `shown` is what the report draws.

    Raises `InputError` for a table that cannot be read, or of which no row is about an allele of
    the run.
    """
    names = _experiments(scores)
    lines, pages, parts = [], [], []
    for name, truth in truths.items():
        rows = align(Table(truth, reference), alleles, reference, max_allele_length, names)
        parts.append(rows.add_column(0, "truth", pa.repeat(pa.scalar(name), len(rows))))
        for measure, n in counts(rows).items():
            lines.append((name, "", "", "", "", ALL, measure, n, n, "", "", ""))
            logging.info("%s: %d %s", name, n, measure)
        for experiment in names:
            of_it = pc.fill_null(pc.equal(rows["experiment"], experiment), True)
            mine = rows.filter(pc.and_(of_it, pc.is_in(rows["fate"], pa.array(USED))))
            if not len(mine):
                continue
            against = Against(mine, truth.block)
            for group, ensemble, values in _ensembles(scores, folds, experiment, mine):
                for score, kind, result in against.results(values):
                    key = name, experiment, group, ensemble, score, kind
                    lines.append((*key, *map(_text, result)))
                if ensemble == "answer" and len(pages) < page.MOST:
                    pages.append(page.of(name, experiment, group, mine, values["logfc"]))
    tables.write_parquet(aligned, [pa.concat_tables(parts)])
    # The report has the answers' logfc alone.
    main = [line for line in lines if line[3] in ("", "answer") and line[4] in ("", "logfc")]
    rows = [dict(zip(HEADINGS, line, strict=True)) for line in main if line[5] == ALL]
    write_json(shown, {"rows": rows, "pages": pages})
    with aside(out) as temporary:
        text = ["\t".join(HEADINGS), *("\t".join(map(str, line)) for line in lines)]
        temporary.write_text("\n".join(text) + "\n")


USED = (ALIGNED, UNDIRECTED)


def counts(rows: pa.Table) -> dict[str, int]:
    """What became of a table's rows: those used, what was done to them, those lost and why."""
    fates = Counter(rows["fate"].to_pylist())
    used = rows.filter(pc.is_in(rows["fate"], pa.array(USED)))
    lost = {fate: n for fate, n in sorted(fates.items()) if fate not in USED}
    return {
        "rows": len(rows),
        "rows_aligned": fates[ALIGNED],
        "rows_undirected": fates[UNDIRECTED],
        **{
            f"rows_{name}": pc.sum(used[name]).as_py() or 0
            for name in ("flipped", "strand_flipped", "palindromic")
        },
        "rows_lost": sum(lost.values()),
        **{f"rows_lost_{fate}": n for fate, n in lost.items()},
    }


class Against:
    """Rows of a table to compare scores with, an array of scores for them at a time."""

    def __init__(self, rows: pa.Table, block: int | str):
        self.effect, self.as_written, self.positive = (
            rows[name].to_numpy() for name in ("effect", "as_written", "positive")
        )
        # Rows of no set come last, where any row is of one.
        sets = rows["matched"].combine_chunks().dictionary_encode()
        self.n_sets = len(sets.dictionary)
        self.matched = pc.fill_null(sets.indices, self.n_sets).to_numpy()
        kinds = rows["kind"].to_numpy(zero_copy_only=False)
        self.kinds = {kind: kinds == kind for kind in np.unique(kinds)}
        contig = rows["contig"].combine_chunks().dictionary_encode().indices.to_numpy()
        self.blocks = Blocks.of(contig, rows["scored_pos"].to_numpy(), block)

    def results(self, scores: dict[str, np.ndarray]) -> Iterator[tuple[str, str, Result]]:
        """For each score and class of variants, each measure."""
        for name, values in scores.items():
            everything = list(self._measures(values, name in SIGNED, np.ones(len(values), bool)))
            yield from ((name, ALL, one) for one in everything)
            for kind, rows in self.kinds.items():
                alone = everything if rows.all() else self._measures(values, name in SIGNED, rows)
                yield from ((name, kind, one) for one in alone)

    def _measures(self, values: np.ndarray, signed: bool, rows: np.ndarray) -> Iterator[Result]:
        if signed:
            yield from self._of_direction(values, rows & np.isfinite(self.effect))
        known = rows & np.isfinite(self.positive)
        if self.n_sets:
            known &= self._in_sets_of_both(known)
        positive = self.positive[known] > 0
        if not 0 < positive.sum() < len(positive):
            return
        size = np.abs(values[known])
        found = {"auroc": metrics.auroc(size, positive), "auprc": metrics.auprc(size, positive)}
        if self.n_sets:
            found["auroc_matched"] = metrics.auroc_matched(size, positive, self.matched[known])
        for name, measure in found.items():
            yield self._bootstrapped(name, measure, known, "logit")
        # What average precision comes to by chance.
        yield Result("positives", len(positive), float(positive.mean()))

    def _in_sets_of_both(self, known: np.ndarray) -> np.ndarray:
        """The rows of sets in which there are known positive rows and negative ones."""
        positives, negatives = (
            np.bincount(self.matched, known & (self.positive == kind)) for kind in (1, 0)
        )
        return ((positives > 0) & (negatives > 0))[self.matched] & (self.matched < self.n_sets)

    def _of_direction(self, values: np.ndarray, rows: np.ndarray) -> Iterator[Result]:
        x, y, raw = values[rows], self.effect[rows], self.as_written[rows]
        if len(x) < 3 or x.std() == 0 or y.std() == 0:
            return
        yield self._bootstrapped("pearson", metrics.pearson(x, y), rows, "fisher")
        yield self._bootstrapped("spearman", metrics.spearman(x, y), rows, "fisher")
        share, low, high, n = metrics.sign_concordance(x, y)
        yield Result("sign_concordance", n, share, low, high, EXACT)
        if raw.std():
            unaligned = metrics.pearson(x, raw)
            yield self._bootstrapped("pearson_not_aligned", unaligned, rows, "fisher")

    def _bootstrapped(self, name: str, measure: metrics.Measure, rows, link: str) -> Result:
        low, high = self.blocks.interval(measure, rows, link)
        return Result(name, int(rows.sum()), measure.value, low, high, BOOTSTRAP)


def _experiments(scores: Path) -> list[str]:
    """The experiments of a run, in their order."""
    found: dict[str, None] = {}
    for batch in tables.dataset(scores).to_batches(columns=["experiment"]):
        found |= dict.fromkeys(pc.unique(batch["experiment"]).to_pylist())
    return list(found)


def _ensembles(
    scores: Path, folds: Path, experiment: str, rows: pa.Table
) -> Iterator[tuple[int, str, dict[str, np.ndarray]]]:
    """For each signal group of an experiment, its answer, its folds, and the mean of the folds'
    scores: the scores of the rows' alleles by their name."""
    wanted = ds.field("experiment") == experiment
    allele = rows["allele_id"].to_numpy()
    data = tables.dataset(scores)
    names = [name for name in SIGNED + SIZES if name in data.schema.names]
    answers = data.to_table(columns=["allele_id", "group", *names], filter=wanted)
    for group, one in _by(answers, "group"):
        yield group, "answer", _of(one, allele, names)
    data = tables.dataset(folds)
    names = [name for name in names if name in data.schema.names]
    own = data.to_table(columns=["allele_id", "group", "fold", *names], filter=wanted)
    for group, of_group in _by(own, "group"):
        each = [(fold, _of(one, allele, names)) for fold, one in _by(of_group, "fold")]
        if len(each) < 2:
            continue
        for fold, values in each:
            yield group, f"fold {fold}", values
        mean = {name: np.mean([values[name] for _, values in each], 0) for name in names}
        yield group, "mean of folds", mean


def _by(table: pa.Table, column: str) -> Iterator[tuple[int, pa.Table]]:
    for value in sorted(pc.unique(table[column]).to_pylist()):
        yield value, table.filter(pc.equal(table[column], value))


def _of(table: pa.Table, allele: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """The scores of alleles, of a table with all of them in order."""
    ids = table["allele_id"].to_numpy()
    at = np.searchsorted(ids, allele)
    return {name: table[name].to_numpy()[at] for name in names}


def _text(value) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    return str(value)
