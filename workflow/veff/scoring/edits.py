"""What do models see of a chromosome with several changes, and which bases of it are the same?

A virtual allele is the centre of a window, edits, and a background: further edits, which the
reference that it is compared with has too. A haplotype is one, and so is one of its alleles alone
on the same background. The alternate sequence is the chromosome with all edits, the reference that
with the background alone; both stand in their windows so that the base at `centre` is in the same
column. An allele alone, centred on its start, has the windows of `windows.windows`.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from veff.inputs.reference import FIRST_BASE, Reference
from veff.models.architecture import Geometry


class Edit(NamedTuple):
    """Bases [start, start + ref_len) of a contig, 0-based, become `alt`; trimmed."""

    start: int
    ref_len: int
    alt: str

    @property
    def end(self) -> int:
        return self.start + self.ref_len


def in_words(reference: Reference, contig: int, edit: Edit) -> str:
    """An edit for tables: position:reference>alternate, 1-based, - for nothing."""
    ref = reference.fetch(contig, edit.start, edit.end).decode()
    return f"{edit.start + 1}:{ref or '-'}>{edit.alt or '-'}"


_EDITS = pa.list_(
    pa.struct([("start", pa.int64()), ("ref_len", pa.int32()), ("alt", pa.string())])
)
VIRTUAL = pa.schema(
    {
        "allele_id": pa.int64(),
        "contig": pa.int32(),
        "centre": pa.int64(),
        "background": _EDITS,
        "edits": _EDITS,
    }
)


def keyed(virtual: pa.Table) -> pa.Table:
    """Virtual alleles by what decides their windows, as alleles that the store can hold.

    `start` is the centre, and `alt`, as of no other allele, the edits as start:ref_len:alt, and
    behind a bar those of the background.
    """

    def text(changes: list[dict]) -> str:
        return ",".join(
            f"{start}:{n}:{alt}" for start, n, alt in sorted(Edit(**one) for one in changes)
        )

    both = zip(virtual["edits"].to_pylist(), virtual["background"].to_pylist(), strict=True)
    return pa.table(
        {
            "allele_id": virtual["allele_id"],
            "contig": virtual["contig"],
            "start": virtual["centre"],
            "ref_len": pa.array(np.zeros(len(virtual), np.int32)),
            "alt": pa.array(
                [f"{text(edits)}|{text(background)}" for edits, background in both], pa.string()
            ),
        }
    )


class Pair(NamedTuple):
    """Both windows of a virtual allele.

    ref, alt: L bases of ASCII; n_padded: those beyond the contig's ends, in the window that has
    more; index: int64[2, T], see `paired`, or None where every column of one window is the same
    column of the other.
    """

    ref: bytes
    alt: bytes
    n_padded: int
    index: np.ndarray | None


def pairs(alleles: pa.Table, reference: Reference, geometry: Geometry) -> Iterator[Pair]:
    """The windows of each row of a table as `VIRTUAL` has it."""
    for batch in alleles.to_batches(1 << 12):
        for row in batch.to_pylist():
            background, edits = (
                sorted(Edit(**one) for one in row[key]) for key in ("background", "edits")
            )
            yield _pair(reference, row["contig"], row["centre"], background, edits, geometry)


def centre(edits: list[Edit]) -> int:
    """Where a window is centred: midway between the first and the last edit's start, or at the
    start of the edit that this would be inside."""
    middle = (edits[0].start + edits[-1].start) // 2
    return next((one.start for one in edits if one.start < middle < one.end), middle)


class Window(NamedTuple):
    """Bases of a chromosome, ASCII, N past the contig's ends; the range of the reference that they
    come from, 0-based, half-open; and the edits that stand in them, if in part."""

    bases: bytes
    first: int
    last: int
    edits: list[Edit]


def sequence(
    reference: Reference, contig: int, centre: int, edits: list[Edit], length: int
) -> Window:
    """The window of a chromosome with these edits, sorted and disjoint, none across the centre:
    `length` bases, that at `centre` in column ``length // 2``."""
    there: list[Edit] = []
    half = length // 2
    # No window reaches further than what is deleted in it.
    deleted = sum(one.ref_len for one in edits)
    begin = centre - half - deleted
    genome = _bases(reference, contig, begin, centre + length - half + deleted)
    need = half
    first, left = centre, []
    for one in reversed([one for one in edits if one.start < centre]):
        gap = first - one.end
        if gap >= need:
            break
        left += [genome[one.end - begin : first - begin], one.alt.encode()[gap - need :]]
        there.append(one)
        first, need = one.start, need - gap - len(left[-1])
        if not need:
            break
    left.append(genome[first - need - begin : first - begin])
    first -= need

    need = length - half
    last, right = centre, []
    for one in (one for one in edits if one.start >= centre):
        gap = one.start - last
        if gap >= need:
            break
        right += [genome[last - begin : one.start - begin], one.alt.encode()[: need - gap]]
        there.append(one)
        last, need = one.end, need - gap - len(right[-1])
        if not need:
            break
    right.append(genome[last - begin : last + need - begin])
    bases = b"".join([*reversed(left), *right])
    return Window(bases, first, last + need, sorted(there))


def _bases(reference: Reference, contig: int, start: int, end: int) -> bytes:
    """Bases [start, end) of a contig, N past its ends."""
    found = reference.fetch(contig, start, end)
    before = min(max(-start, 0), end - start)
    return (b"N" * before + found).ljust(end - start, b"N")


def _pair(
    reference: Reference,
    contig: int,
    centre: int,
    background: list[Edit],
    edits: list[Edit],
    geometry: Geometry,
) -> Pair:
    length = geometry.input_length
    # IUPAC codes under an allele are resolved, as in `windows.windows`.
    kept = [
        one._replace(
            alt=reference.fetch(contig, one.start, one.end).translate(FIRST_BASE).decode()
        )
        for one in edits
    ]
    ref = sequence(reference, contig, centre, sorted(background + kept), length)
    alt = sequence(reference, contig, centre, sorted(background + edits), length)
    first, last = min(ref.first, alt.first), max(ref.last, alt.last)
    n_padded = max(-first, 0) + max(last - int(reference.lengths[contig]), 0)
    moved = any(one.ref_len != len(one.alt) for one in edits)
    index = paired(centre, background, edits, geometry) if moved else None
    return Pair(ref.bases, alt.bases, n_padded, index)


def paired(
    centre: int, background: Iterable[Edit], edits: Iterable[Edit], geometry: Geometry
) -> np.ndarray:
    """Which columns of the two output profiles are the same base: int64[2, T], -1 at the end.

    Column ``index[0, t]`` of the reference's profile and ``index[1, t]`` of the alternate's are
    the same base of the genome or of the background, or paired bases of an edit's two alleles, in
    order. What exists in one sequence only, or was pushed out of the other's window, is left out.
    """
    half, length = geometry.input_length // 2, geometry.output_length
    every = sorted([(one, False) for one in background] + [(one, True) for one in edits])
    blocks = []

    at, ref, alt = centre, half, half
    for one, changed in reversed([both for both in every if both[0].start < centre]):
        gap = at - one.end
        blocks.append((ref - gap, alt - gap, gap))
        in_ref, in_alt = one.ref_len if changed else len(one.alt), len(one.alt)
        at, ref, alt = one.start, ref - gap - in_ref, alt - gap - in_alt
        blocks.append((ref, alt, min(in_ref, in_alt)))
    reach = geometry.input_length + max(abs(ref), abs(alt))
    blocks.append((ref - reach, alt - reach, reach))
    blocks.reverse()

    at, ref, alt = centre, half, half
    for one, changed in (both for both in every if both[0].start >= centre):
        gap = one.start - at
        in_ref, in_alt = one.ref_len if changed else len(one.alt), len(one.alt)
        blocks += [(ref, alt, gap), (ref + gap, alt + gap, min(in_ref, in_alt))]
        at, ref, alt = one.end, ref + gap + in_ref, alt + gap + in_alt
    blocks.append((ref, alt, reach))

    index = np.full((2, length), -1, np.int64)
    filled = 0
    for ref, alt, n in blocks:
        ref, alt = ref - geometry.trimming, alt - geometry.trimming
        first, last = max(0, -ref, -alt), min(n, length - ref, length - alt)
        if first < last:
            step = np.arange(first, last)
            here = slice(filled, filled + len(step))
            index[0, here], index[1, here] = ref + step, alt + step
            filled = here.stop
    return index
