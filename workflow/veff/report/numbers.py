"""What does the report show: a run's tables, reduced to numbers that do not grow with the run?"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from veff import tables
from veff.inputs.reference import Reference
from veff.names import cut, label
from veff.report.kept import PVAL, Kept, shown_names

N_ROWS = 30  # alleles of the comparison of folds
LISTS = ("max_qval", "max_fwer")  # of alleles over all experiments
LEVEL = 0.05  # of both, as the page says
N_HISTOGRAMS = 12
N_UNSCORED = 2000  # rows of the table to download
BINS = 60
GENOME_BINS = 500
AGREEMENT = np.array([0, 0.01, 0.03, 0.1, 0.3, 1, np.inf])  # classes of abs(logfc)


@dataclass
class Answers:
    """What is kept of one experiment and signal group."""

    experiment: str
    group: int
    histogram: np.ndarray
    null: np.ndarray
    name: str = ""  # as the page prints it
    short: str = ""
    largest: float = 0.0
    n: int = 0
    n_in_class: np.ndarray = field(default_factory=lambda: np.zeros(len(AGREEMENT) - 1, int))
    agree_in_class: np.ndarray = field(default_factory=lambda: np.zeros(len(AGREEMENT) - 1, int))

    @property
    def agreement(self) -> Iterator[tuple[float, float, int, float]]:
        """Lower and upper bound of a class, its alleles, and the share on which folds agree."""
        classes = zip(
            AGREEMENT[:-1], AGREEMENT[1:], self.n_in_class, self.agree_in_class, strict=True
        )
        return ((low, high, n, agree / n) for low, high, n, agree in classes if n)


@dataclass
class Numbers:
    """All that the page is drawn from."""

    n_alleles: int
    n_scored: int
    unscored: list[dict]
    n_unscored: int
    kept: Kept
    top: list[dict]
    edges: np.ndarray
    near_zero: float
    answers: list[Answers]
    volcano: list[dict]
    genome: list[dict]
    contigs: list[dict]
    folds: list[dict]
    listed: dict[str, int]


def numbers(
    alleles: Path,
    summary: Path,
    scores: Path,
    folds: Path,
    reference: Reference,
    nulls: dict[str, tuple[Path, int]],
) -> Numbers:
    """Read a run's tables once, a batch of rows at a time.

    `scores` and `folds` are a Parquet file or a folder of them; `nulls` says of each experiment
    in which file, and which row group of it, its null is.
    """
    table = ds.dataset(summary).to_table()
    scored = table.filter(pc.is_valid(table["max_logfc"]))
    effect = scored["max_logfc"].to_numpy()
    near_zero, edges = _classes(float(np.abs(effect).max(initial=0)) or 1.0)
    n_answers = tables.dataset(scores).count_rows() // max(len(scored), 1)
    kept = Kept(scored, n_answers)
    answers, volcano = _stream(scores, edges, kept, nulls)
    kept.add_folds(_of_folds(folds, kept, answers))
    top = kept.top(N_ROWS)
    places, contigs = _along(scored, reference)
    n_unscored, unscored = _unscored(alleles)
    return Numbers(
        n_alleles=len(table),
        n_scored=len(scored),
        unscored=unscored,
        n_unscored=n_unscored,
        kept=kept,
        top=top,
        edges=edges,
        near_zero=near_zero,
        answers=answers,
        volcano=volcano,
        genome=places,
        contigs=contigs,
        folds=_folds(kept, top),
        listed={
            name: len(scored.filter((pc.field("status") == "ok") & (pc.field(name) <= LEVEL)))
            for name in LISTS
            if name in scored.column_names
        },
    )


def _classes(largest: float) -> tuple[float, np.ndarray]:
    """The effect below which classes of effects are about equally wide, and the classes' bounds.

    Further out they grow with the effect, as on Vega's axis of type symlog: most effects are so
    much smaller than the largest that they would lie in one class of equal ones.
    """
    near_zero = 10.0 ** np.floor(np.log10(largest / 100))
    last = np.log1p(largest / near_zero)
    place = np.linspace(-last, last, BINS + 1)
    edges = np.sign(place) * near_zero * np.expm1(np.abs(place))
    edges[[0, -1]] = -largest, largest
    return float(near_zero), edges


def _stream(scores: Path, edges, kept: Kept, nulls) -> tuple[list[Answers], list[dict]]:
    """Histograms and agreement of each experiment and group, the volcano of all; fills `kept`."""
    data = tables.dataset(scores)
    columns = ["allele_id", "experiment", "group", "logfc", "jsd", "folds_agree", "n_folds"]
    has_p = PVAL in data.schema.names
    if has_p:
        columns.append(PVAL)
    found: dict[tuple, Answers] = {}
    volcano = None
    for batch in data.to_batches(columns=columns):
        rows = pa.Table.from_batches([batch])
        keys = rows.select(["experiment", "group"]).group_by(["experiment", "group"]).aggregate([])
        for key in keys.to_pylist():
            name, group = key["experiment"], key["group"]
            same = pc.and_(pc.equal(rows["experiment"], name), pc.equal(rows["group"], group))
            here = rows.filter(same)
            if (name, group) not in found:
                null = _null(nulls.get(name), group, edges)
                found[name, group] = Answers(name, group, np.zeros(BINS, int), null)
            _add(found[name, group], here, edges)
            kept.add(list(found).index((name, group)), here)
            if has_p:
                p = np.minimum(-np.log10(here[PVAL].to_numpy()), _P_EDGES[-1])
                counts = np.histogram2d(here["logfc"].to_numpy(), p, [edges, _P_EDGES])[0]
                volcano = counts if volcano is None else volcano + counts
    several = {name for name, group in found if group}
    names = [f"{n} {g}" if n in several else n for n, g in found]
    for one, full, short in zip(found.values(), *shown_names(names), strict=True):
        one.name, one.short = full, short
    return list(found.values()), _cells(volcano, edges)


_P_EDGES = np.linspace(0, 6, 61)


def _null(place: tuple[Path, int] | None, group: int, edges: np.ndarray) -> np.ndarray:
    """The histogram of a null's log fold changes; what lies beyond the edges is left out."""
    if place is None:
        return np.zeros(BINS, int)
    path, row_group = place
    rows = pq.ParquetFile(path).read_row_group(row_group, columns=["group", "logfc"])
    logfc = rows.filter(pc.equal(rows["group"], group))["logfc"].to_numpy()
    return np.histogram(logfc, edges)[0]


def _add(one: Answers, rows: pa.Table, edges: np.ndarray) -> None:
    logfc = rows["logfc"].to_numpy()
    size = np.abs(logfc)
    one.n += len(logfc)
    one.largest = max(one.largest, float(size.max(initial=0)))
    one.histogram += np.histogram(logfc, edges)[0]
    agree, n_folds = rows["folds_agree"].to_numpy(), rows["n_folds"].to_numpy()
    one.n_in_class += np.histogram(size[n_folds > 1], AGREEMENT)[0]
    one.agree_in_class += np.histogram(size[(n_folds > 1) & (agree == n_folds)], AGREEMENT)[0]


def _cells(counts: np.ndarray | None, edges: np.ndarray) -> list[dict]:
    """The filled cells of the volcano."""
    if counts is None:
        return []
    return [
        {
            "x": float(edges[i]),
            "x2": float(edges[i + 1]),
            "y": float(_P_EDGES[j]),
            "y2": float(_P_EDGES[j + 1]),
            "n": int(counts[i, j]),
        }
        for i, j in np.argwhere(counts)
    ]


def _along(scored: pa.Table, reference: Reference) -> tuple[list[dict], list[dict]]:
    """The largest effects along the genome, and where its contigs begin and end on that axis.

    In each of `GENOME_BINS` parts of what the alleles span stand the largest and the smallest
    effect. A contig that an input names and the reference orders has the room of its span.
    """
    spans = scored.group_by("chrom").aggregate([("pos", "min"), ("pos", "max")]).to_pylist()
    spans.sort(key=lambda one: reference.contig(one["chrom"]))
    total = sum(one["pos_max"] - one["pos_min"] + 1 for one in spans)
    places, contigs = [], []
    at = 0.0
    for one in spans:
        rows = scored.filter(pc.equal(scored["chrom"], one["chrom"]))
        first, last = one["pos_min"], one["pos_max"]
        pos, effect = rows["pos"].to_numpy(), rows["max_logfc"].to_numpy()
        bins = ((pos - first) * GENOME_BINS // total).astype(int)
        order = np.lexsort((effect, bins))
        new = np.flatnonzero(np.diff(bins[order], prepend=-1))
        ends = np.append(new[1:], len(order)) - 1
        for row in np.unique(np.concatenate([order[new], order[ends]])) if len(order) else ():
            places.append(
                {
                    "x": at + int(pos[row]) - first,
                    "logfc": float(effect[row]),
                    "allele": label(rows.slice(row, 1).to_pylist()[0]),
                    "experiment": cut(rows["max_experiment"][int(row)].as_py()),
                }
            )
        contigs.append(
            {"name": cut(one["chrom"], 20), "first": first, "x": at, "x2": at + last - first}
        )
        at += last - first + 1 + total / 100
    return places, contigs


def _unscored(alleles: Path) -> tuple[int, list[dict]]:
    """How many alleles have no scores, and the first of them with the reason."""
    columns = ["chrom", "pos", "id", "ref", "alt", "status", "reason"]
    without = ds.dataset(alleles).scanner(columns=columns, filter=ds.field("scored_as").is_null())
    rows = without.head(N_UNSCORED).to_pylist()
    texts = [{key: cut(value, 120) for key, value in row.items()} for row in rows]
    return without.count_rows(), texts


def _of_folds(folds: Path, kept: Kept, answers: list[Answers]) -> Iterator[tuple]:
    """What the folds say of the first alleles, as `Kept.add_folds` takes it."""
    place = {(one.experiment, one.group): i for i, one in enumerate(answers)}
    ids = kept.alleles["allele_id"].slice(0, kept.n_folded)
    columns = ["allele_id", "experiment", "group", "fold", "logfc"]
    wanted = ds.field("allele_id").isin(ids.combine_chunks())
    for batch in tables.dataset(folds).to_batches(columns=columns, filter=wanted):
        rows = pa.Table.from_batches([batch])
        keys = rows.select(columns[1:4]).group_by(columns[1:4]).aggregate([]).to_pylist()
        for key in keys:
            same = [pc.equal(rows[name], value) for name, value in key.items()]
            part = rows.filter(pc.and_(pc.and_(*same[:2]), same[2]))
            yield place[key["experiment"], key["group"]], key["fold"], part


def _folds(kept: Kept, top: list[dict]) -> list[dict]:
    """What each fold says of the top alleles, in the experiment of their largest effect."""
    return [
        {"rank": i, "logfc": float(logfc)}
        for i, row in enumerate(top[: kept.n_folded])
        for logfc in kept.folds[row["best"]["column"], :, i]
        if not np.isnan(logfc)
    ]
