"""What does each edit do, and what does that look like along a region?"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.edited.planning import DELETION, SUBSTITUTION
from veff.outputs import collect
from veff.scoring.columns import EXPERIMENT, SCORES, SPREAD, Column
from veff.tables import parquet

COLUMNS = {
    "edit": Column(pa.int64(), "number of the edit, from 0"),
    "region": Column(pa.string(), "name or place of the region, or number or group in the list"),
    "kind": Column(pa.string(), "substitution, deletion, tiled_deletion; or edit, of the list"),
    "contig": Column(pa.string(), "contig, as the reference names it"),
    "start": Column(pa.int64(), "first base that is changed, 1-based", "bp"),
    "end": Column(pa.int64(), "last base that is changed, 1-based", "bp"),
    "ref": Column(pa.string(), "what stands there, of several edits with commas between"),
    "alt": Column(pa.string(), "what comes in its place, of several edits with commas between"),
    **{name: EXPERIMENT[name] for name in ("experiment", "group", "n_padded")},
    **SCORES,
    **SPREAD,
}
SCHEMA = pa.schema({name: column.kind for name, column in COLUMNS.items()})


def write(
    planned: Path,
    answers: list[list[str]],
    experiments: list[str],
    out: Path,
    *,
    partitioned: bool = False,
    metadata: dict | None = None,
) -> None:
    """Write `out`, a row an edit, experiment and signal group, experiment after experiment.

    `planned` is what `planning.plan` wrote, `answers` the part files, a list a bundle, each in the
    order of the chunks; `partitioned` is as in `tables.parquet`.
    """
    edits = pq.read_table(planned)
    said = SCHEMA.with_metadata({"veff": json.dumps(metadata or {})})
    with parquet(out, said, partitioned) as put:
        for answer in collect.by_experiment(answers, experiments):
            order = [("group", "ascending"), ("allele_id", "ascending")]
            answer = answer.sort_by(order)
            groups, left = divmod(len(answer), len(edits))
            rows = edits.take(np.tile(np.arange(len(edits)), groups))
            if left or rows["edit"].to_pylist() != answer["allele_id"].to_pylist():
                raise RuntimeError(
                    f"{answer['experiment'][0]}: edits are missing among the parts; remove the "
                    "parts and run again, and report this"
                )
            columns = {
                name: (rows if name in edits.column_names else answer)[name] for name in COLUMNS
            }
            put(pa.table(columns, schema=said))


@dataclass(frozen=True)
class Region:
    """A region under one experiment, from `start` on, 0-based. `logfc`, float [5, n], is what it
    does that each base becomes A, C, G, T or nothing; NaN where that is no change."""

    name: str
    contig: str
    start: int
    logfc: np.ndarray


def regions(table: pa.Table) -> Iterator[Region]:
    """The regions of the rows of one experiment and group, in order."""
    kept = pc.is_in(table["kind"], pa.array([SUBSTITUTION, DELETION]))
    names = ["region", "contig", "start", "alt", "logfc"]
    rows = table.filter(kept).sort_by("edit").select(names).to_pylist()
    for (name, contig), of in groupby(rows, key=lambda row: (row["region"], row["contig"])):
        of = list(of)
        first = min(row["start"] for row in of)
        logfc = np.full((5, max(row["start"] for row in of) - first + 1), np.nan)
        for row in of:
            logfc[("ACGT".find(row["alt"]) if row["alt"] else 4), row["start"] - first] = row[
                "logfc"
            ]
        yield Region(name, contig, first - 1, logfc)


def along(found: Iterable[Region]) -> dict[str, dict[int, float]]:
    """By contig and base, 0-based, the mean of what its substitutions do; of regions that overlap
    the first one counts."""
    values: dict[str, dict[int, float]] = {}
    for one in found:
        here = values.setdefault(one.contig, {})
        known = np.isfinite(one.logfc[:4]).any(0)
        for i in np.flatnonzero(known).tolist():
            here.setdefault(one.start + i, float(np.nanmean(one.logfc[:4, i])))
    return values
