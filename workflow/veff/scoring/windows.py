"""The reference and the alternate sequence of an allele, as a model sees them."""

from collections.abc import Sequence

import numpy as np

from veff.inputs.reference import FIRST_BASE, Reference
from veff.models.architecture import Geometry

N = ord("N")

_FIRST_BASE = np.frombuffer(FIRST_BASE, np.uint8)


def windows(
    reference: Reference,
    contig: np.ndarray,
    start: np.ndarray,
    ref_len: np.ndarray,
    alt: Sequence[str],
    input_length: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both sequences of n alleles, uint8[n, L] of ASCII, and how many bases were missing.

    contig, start, ref_len: integers[n], 0-based, of trimmed alleles; alt: n strings, maybe empty.
    Both windows start at ``start - L // 2``. Reference: L bases from there. Alternate: the same
    left flank, the ALT, then the genome from ``start + ref_len`` on until L bases are full.
    IUPAC codes of the genome under the allele are resolved as ``reference.FIRST_BASE`` says.
    Past a contig's ends stands N; the third array, int32[n], counts these in that window of the
    two which has more of them.
    """
    half = input_length // 2
    ref_len = np.asarray(ref_len, np.int64)
    alt_len = np.fromiter(map(len, alt), np.int64, len(alt))
    contig, first = np.asarray(contig), np.asarray(start, np.int64) - half

    reference_windows = _cut(reference, contig, first, input_length)
    rows, columns, _ = _under_allele(ref_len, half, input_length)
    reference_windows[rows, columns] = _FIRST_BASE[reference_windows[rows, columns]]

    alternate_windows = reference_windows.copy()
    # Right of an indel stands the genome of a window that starts that much further on.
    shift = ref_len - alt_len
    moved = np.flatnonzero(shift)
    right = _cut(reference, contig[moved], first[moved] + shift[moved], input_length)
    alternate_windows[moved, half:] = right[:, half:]
    rows, columns, kept = _under_allele(alt_len, half, input_length)
    alternate_windows[rows, columns] = np.frombuffer("".join(alt).encode(), np.uint8)[kept]

    last = first + input_length + np.maximum(shift, 0)
    n_padded = np.maximum(-first, 0) + np.maximum(last - reference.lengths[contig], 0)
    return reference_windows, alternate_windows, n_padded.astype(np.int32)


def _cut(reference: Reference, contig: np.ndarray, first: np.ndarray, length: int) -> np.ndarray:
    """Bases [first, first + length) of contigs, uint8[n, length], N past their ends."""
    inside = (first >= 0) & (first + length <= reference.lengths[contig])
    bases = np.full((len(first), length), N, np.uint8)
    if inside.any():
        all_windows = np.lib.stride_tricks.sliding_window_view(np.asarray(reference.bases), length)
        begin = reference.offsets[contig[inside]] + first[inside]
        reference.check(begin)
        reference.check(begin + length - 1)  # a window is shorter than what has a checksum
        bases[inside] = all_windows[begin]
    for row in np.flatnonzero(~inside):
        begin = int(first[row])
        piece = reference.fetch(int(contig[row]), begin, begin + length)
        left = min(max(-begin, 0), length)
        bases[row, left : left + len(piece)] = np.frombuffer(piece, np.uint8)
    return bases


def _under_allele(
    lengths: np.ndarray, half: int, input_length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the alleles' bases in their windows, and which bases have a column."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = half + np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = columns < input_length
    return rows[kept], columns[kept], kept


def alignment(
    ref_len: np.ndarray, alt_len: np.ndarray, geometry: Geometry
) -> tuple[np.ndarray, np.ndarray]:
    """How two output profiles are compared in reference coordinates: int64[n] breakpoint, shift.

    With s = shift and, for t from 0 to T - abs(s), step = 1 where t >= breakpoint and else 0,
    ``ref[t + max(s, 0) * step]`` and ``alt[t + max(-s, 0) * step]`` are the same base of the
    genome, or paired bases of the two alleles. What is left out of both exists under one allele
    only, or was pushed out of the other's window at the right end.
    """
    ref_len, alt_len = np.asarray(ref_len, np.int64), np.asarray(alt_len, np.int64)
    paired = np.minimum(ref_len, alt_len)
    return geometry.input_length // 2 + paired - geometry.trimming, ref_len - alt_len
