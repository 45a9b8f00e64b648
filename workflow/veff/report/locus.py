"""What lies around the alleles of the largest effects, and what is predicted there?"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from veff.inputs import intervals
from veff.inputs.intervals import Interval
from veff.inputs.reference import Reference
from veff.names import cut
from veff.report.kept import Kept
from veff.report.numbers import Answers

REACH = 10_000  # bp on each side of an allele
N_LOCI = 10_000  # alleles, of the largest effects, around which genes and peaks are kept
_CONTIG = 1 << 40  # bp, more than any contig has


def around(
    kept: Kept,
    answers: list[Answers],
    reference: Reference,
    *,
    genes: Path | None,
    peaks: Path | None,
    peaks_of: Mapping[str, Path],
) -> dict[str, dict[str, list]]:
    """The intervals within `REACH` of the first `N_LOCI` alleles, by kind.

    `genes`, `peaks` and `peaks_of` are as `veff.outputs.nearby.write` takes them. The peaks of an
    experiment are kept around the alleles whose largest effect is under it; their kind is the
    number of its column. Of each kind there are lists of equal length: contig (its number in the
    reference), start, end (0-based) and name. Raises `InputError` for a file that `intervals`
    cannot read.
    """
    loci = kept.contigs(reference)[:N_LOCI] * _CONTIG + kept.alleles["pos"].to_numpy()[:N_LOCI]
    found = {}
    if genes:
        found["genes"] = _near(intervals.genes(genes, reference), loci)
    if peaks:
        found["peaks"] = _near(intervals.bed(peaks, reference), loci)
    for column, one in enumerate(answers):
        under = loci[kept.best_column[:N_LOCI] == column]
        if len(under) and one.experiment in peaks_of:
            rows = intervals.bed(peaks_of[one.experiment], reference)
            found[str(column)] = _near(rows, under)
    return found


def _near(rows: Iterable[Interval], loci: np.ndarray) -> dict[str, list]:
    """Those of the rows that lie around one of the loci."""
    rows = list(rows)
    loci = np.sort(loci)
    contig, start, end = (
        np.fromiter((row[k] for row in rows), np.int64, len(rows)) for k in range(3)
    )
    first = np.searchsorted(loci, contig * _CONTIG + start - REACH)
    last = np.searchsorted(loci, contig * _CONTIG + end + REACH, "right")
    here = np.flatnonzero(last > first)
    return {
        "contig": contig[here].tolist(),
        "start": start[here].tolist(),
        "end": end[here].tolist(),
        "name": [cut(rows[k].more[0]) if rows[k].more else "" for k in here],
    }


def profiles(kept: Kept, path: Path | None) -> dict[int, dict]:
    """What is predicted for both alleles, by the allele's place on the page."""
    if path is None:
        return {}
    place = {allele: i for i, allele in enumerate(kept.alleles["allele_id"].to_pylist())}
    columns = ["allele_id", "start", "reference", "alternate"]
    return {
        place[row["allele_id"]]: {
            "start": row["start"],
            **{name: [_three(x) for x in row[name]] for name in columns[2:]},
        }
        for row in pq.read_table(path, columns=columns).to_pylist()
        if row["allele_id"] in place
    }


def _three(x: float | None) -> float | None:
    """With three significant digits, as much as is seen."""
    return None if x is None else float(f"{x:.3g}")
