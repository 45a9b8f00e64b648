"""Which edits do regions and a list ask for?"""

import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from veff import tables
from veff.errors import InputError
from veff.inputs import intervals
from veff.inputs.reference import Reference
from veff.names import cut
from veff.plan import enough
from veff.scoring.edits import VIRTUAL, Edit, centre

SUBSTITUTION, DELETION, TILED, LISTED = "substitution", "deletion", "tiled_deletion", "edit"
EDITS = pa.schema(
    {
        "edit": pa.int64(),
        "region": pa.string(),
        "kind": pa.string(),
        "contig": pa.string(),
        "start": pa.int64(),
        "end": pa.int64(),
        "ref": pa.string(),
        "alt": pa.string(),
    }
)


@dataclass(frozen=True)
class _Change:
    """One that is scored: edits at once, in the window around `at`."""

    region: str
    kind: str
    contig: int
    at: int
    edits: tuple[Edit, ...]


def plan(
    regions: Path | None,
    listed: Path | None,
    reference: Reference,
    *,
    tile: int,
    span: int,
    chunk_size: int,
    most_chunks: int | None = None,
    virtual: Path,
    planned: Path,
) -> dict:
    """Write what there is to score, `virtual` (`VIRTUAL`, a row group a chunk), and what it is,
    `planned` (`EDITS`, in the same order).

    `regions` is a BED file: each base becomes each other one, and is deleted; and so are tiles of
    `tile` bases, if any. What is within `span` bp stands in one window. `listed` is a BED file
    whose fourth column is what comes in place of an interval, `-` for nothing, and whose fifth, if
    it has one, names edits that are made at once.

    Returns how many edits there are, each a window to score, and how many chunks. Raises
    `InputError` for a list that cannot be.
    """
    changes: list[_Change] = []
    if regions:
        known: set[str] = set()
        for one in intervals.bed(regions, reference):
            place = f"{reference.names[one.contig]}:{one.start + 1}-{one.end}"
            name = cut(one.more[0].strip()) if one.more else ""
            name = place if name in ("", ".", *known) else name
            known.add(name)
            changes += _of_region(one, name, reference, tile, span)
    if listed:
        changes += _of_list(listed, reference, span)
    rows, windows = [], []
    for number, one in enumerate(changes):
        first, last = one.edits[0], one.edits[-1]
        refs = (reference.fetch(one.contig, edit.start, edit.end) for edit in one.edits)
        rows.append(
            {
                "edit": number,
                "region": one.region,
                "kind": one.kind,
                "contig": reference.names[one.contig],
                "start": first.start + 1,
                "end": last.end,
                "ref": ",".join(ref.decode() for ref in refs),
                "alt": ",".join(edit.alt for edit in one.edits),
            }
        )
        windows.append(
            {
                "allele_id": number,
                "contig": one.contig,
                "centre": one.at,
                "background": [],
                "edits": [edit._asdict() for edit in one.edits],
            }
        )
    table = pa.Table.from_pylist(windows, VIRTUAL)
    chunks = range(0, len(table), enough(len(table), chunk_size, most_chunks))
    tables.write_parquet(virtual, [table.slice(i, chunks.step) for i in chunks] or [table])
    tables.write_parquet(planned, [pa.Table.from_pylist(rows, EDITS)])
    logging.info("%d edits, in %d chunks", len(table), len(chunks))
    return {"windows": len(table), "chunks": len(chunks)}


def words(summary: dict) -> str:
    """The plan, a line."""
    return f"plan: {summary['windows']:,} edits to be scored"


def _of_region(
    region: intervals.Interval, name: str, reference: Reference, tile: int, span: int
) -> Iterator[_Change]:
    """Every change of a region; those of a piece of it stand in one window, but for deletions
    across its middle."""
    for first in range(region.start, region.end, span):
        last = min(first + span, region.end)
        middle = (first + last) // 2
        bases = reference.fetch(region.contig, first, last).decode()
        found = [
            (SUBSTITUTION, Edit(first + i, 1, alt))
            for i, base in enumerate(bases)
            for alt in "ACGT"
            if base in "ACGT" and alt != base
        ]
        found += [(DELETION, Edit(i, 1, "")) for i in range(first, last)]
        if tile:
            tiles = [*range(first, last, tile), last]
            found += [(TILED, Edit(i, j - i, "")) for i, j in pairwise(tiles)]
        for kind, edit in found:
            across = edit.start < middle < edit.end
            at = edit.start if across else middle
            yield _Change(name, kind, region.contig, at, (edit,))


def _of_list(path: Path, reference: Reference, span: int) -> Iterator[_Change]:
    """The edits of a list, and those of a group at once, in the order of their first ones."""
    groups: dict[str, list[tuple[int, Edit]]] = defaultdict(list)
    for number, row in enumerate(intervals.named(path, reference)):
        sequence, *more = (text.strip() for text in row.more)
        alt = "" if sequence == "-" else sequence.upper()
        place = f"{reference.names[row.contig]}:{row.start + 1}-{row.end}"
        if set(alt) - set("ACGT") or max(len(alt), row.end - row.start) > span:
            raise InputError(
                f"{path}: {place}: {cut(repr(sequence))}: expected up to {span} of A, C, G and T "
                "in place of as many bases at most, or - for none"
            )
        group = f"group {more[0]}" if more and more[0] else f"edit {number + 1}"
        groups[group].append((row.contig, Edit(row.start, row.end - row.start, alt)))
    for name, of in groups.items():
        edits = tuple(sorted(edit for _, edit in of))
        far = edits[-1].start - edits[0].start > span
        overlap = any(one.end > other.start for one, other in pairwise(edits))
        if far or overlap or len({contig for contig, _ in of}) > 1:
            raise InputError(
                f"{path}: {cut(name)}: edits that are made at once stand on one contig, within "
                f"{span} bp, and do not overlap"
            )
        yield _Change(cut(name), LISTED, of[0][0], centre(list(edits)), edits)
