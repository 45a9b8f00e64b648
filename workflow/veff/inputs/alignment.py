"""Where does a change stand, in its one shortest and leftmost form?

By the algorithm of vt (Tan, Abecasis, Kang 2015) and ``bcftools norm``: bases that both alleles
end with are cut; an insertion or a deletion moves to the left as long as the sequence that it
gives stays the same; bases that both alleles begin with are cut. Here for many alleles at once.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from veff.inputs.reference import Reference

# Bases that are compared at once, after the first one: of each allele at least, of all about.
LEAST_STEPS = 16
CELLS = 1 << 18


class Texts(NamedTuple):
    """n texts as their letters: the i-th is ``letters[begin[i] : begin[i] + length[i]]``."""

    letters: np.ndarray  # uint8
    begin: np.ndarray  # int64[n]
    length: np.ndarray  # int64[n]

    @classmethod
    def of(cls, column: pa.StringArray) -> "Texts":
        """Of a column without nulls, in upper case; '-', the empty allele of lists, is empty."""
        _, offsets, data = column.buffers()
        first = column.offset
        begin = np.frombuffer(offsets, np.int32)[first : first + len(column) + 1].astype(np.int64)
        letters = np.frombuffer(data or b"", np.uint8)
        length = np.diff(begin)
        if len(letters):
            length[
                (length == 1) & (letters[np.minimum(begin[:-1], len(letters) - 1)] == ord("-"))
            ] = 0
        return cls(letters & ~np.uint8(32), begin[:-1], length)

    def __getitem__(self, rows) -> "Texts":
        return Texts(self.letters, self.begin[rows], self.length[rows])

    def all_in(self, wanted: np.ndarray) -> np.ndarray:
        """Which texts have letters of `wanted`, bool[256], only: bool[n]."""
        others = np.flatnonzero(~wanted[self.letters])
        before = (np.searchsorted(others, at) for at in (self.begin, self.begin + self.length))
        return np.equal(*before)

    def turned(self, by: np.ndarray) -> pa.StringArray:
        """The texts, each beginning with its last `by` letters, modulo its length."""
        ends = np.cumsum(self.length)
        row = np.repeat(np.arange(len(ends)), self.length)
        place = np.arange(len(row)) - (ends - self.length)[row]
        place = (place - by[row]) % self.length[row]
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        letters = self.letters[self.begin[row] + place]
        return pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(letters))


class Aligned(NamedTuple):
    """n changes: ``ref`` at ``start``, 0-based, becomes ``alt``; either may be empty."""

    start: np.ndarray  # int64[n]
    ref: pa.StringArray
    alt: pa.StringArray
    ref_len: np.ndarray  # int64[n]
    alt_len: np.ndarray  # int64[n]

    def filter(self, kept: np.ndarray) -> "Aligned":
        return self if kept.all() else Aligned(*(_filter(column, kept) for column in self))


def _filter(column, kept: np.ndarray):
    return column.filter(pa.array(kept)) if isinstance(column, pa.Array) else column[kept]


def align(
    genome: Reference,
    contig: np.ndarray,
    start: np.ndarray,
    ref: Texts,
    alt: Texts,
    exact: np.ndarray,
) -> Aligned:
    """The shortest and leftmost form of n alleles that lie within their contigs.

    `exact`: whether the genome has REF to the letter; where it has IUPAC codes instead, another
    place would give another sequence, so the allele is trimmed and not moved.
    """
    shared = np.minimum(ref.length, alt.length)
    suffix = _count(
        shared,
        lambda i, k: (
            ref.letters[(ref.begin + ref.length)[i] - 1 - k]
            == alt.letters[(alt.begin + alt.length)[i] - 1 - k]
        ),
    )
    prefix = _count(
        shared - suffix,
        lambda i, k: ref.letters[ref.begin[i] + k] == alt.letters[alt.begin[i] + k],
    )
    start = start + prefix
    ref, alt = (
        Texts(one.letters, one.begin + prefix, one.length - prefix - suffix) for one in (ref, alt)
    )
    moved = np.zeros(len(start), np.int64)
    for one, other in ((ref, alt), (alt, ref)):
        rows = np.flatnonzero(exact & (one.length > 0) & (other.length == 0))
        moved[rows] = _steps_to_the_left(genome, contig[rows], start[rows], one[rows])
    return Aligned(start - moved, ref.turned(moved), alt.turned(moved), ref.length, alt.length)


def _steps_to_the_left(
    genome: Reference, contig: np.ndarray, start: np.ndarray, bases: Texts
) -> np.ndarray:
    """How far the insertion or deletion of these bases can move: int64[n].

    One step to the left is one more base of the genome before it that equals the last of its
    bases, which then becomes the first.
    """

    def same(i, k):
        before = genome.at(contig[i[:, 0]], start[i] - 1 - k)
        return (
            before == bases.letters[bases.begin[i] + (bases.length[i] - 1 - k) % bases.length[i]]
        )

    return _count(start, same)


def has(genome: Reference, contig: np.ndarray, start: np.ndarray, bases: Texts) -> np.ndarray:
    """Whether the genome has exactly these bases, which lie within their contigs: bool[n]."""

    def same(i, k):
        return genome.at(contig[i[:, 0]], start[i] + k) == bases.letters[bases.begin[i] + k]

    return _count(bases.length, same) == bases.length


def _count(limit: np.ndarray, same: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """For each row, how many of the steps 0, 1, ..., limit - 1 are true before one is not.

    ``same(rows, steps)``, of rows int64[m, 1] and their steps int64[m, s], tells which are.
    """
    count = np.zeros(len(limit), np.int64)
    rows = np.flatnonzero(limit > 0)
    width = 1  # nearly all alleles are SNVs
    while len(rows):
        steps = count[rows, None] + np.arange(width)
        last = limit[rows, None] - 1
        true = same(rows[:, None], np.minimum(steps, last)) & (steps <= last)
        all_true = true.all(axis=1)
        count[rows] += np.where(all_true, width, true.argmin(axis=1))
        rows = rows[all_true & (count[rows] < limit[rows])]
        if len(rows):
            most = int((limit[rows] - count[rows]).max())
            width = min(most, max(LEAST_STEPS, CELLS // len(rows)))
    return count
