"""How well does each motif fit the two sequences of an allele, where these differ?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np
import pyarrow as pa

from veff.inputs.reference import Reference
from veff.motifs.motifset import MotifSet
from veff.scoring import windows

BLOCK = 1024  # alleles that are scanned at once
BIN = 0.1  # bits of a bin of scores, and
PSEUDO = 0.0001  # what is added to a probability: both as in memelite's fimo
_CODE = np.full(256, 4, np.uint8)
_CODE[np.frombuffer(b"ACGT", np.uint8)] = range(4)


@dataclass(frozen=True)
class Best:
    """For the alleles of a block, the best fit of each motif to both sequences.

    Arrays are [2, motifs, alleles], the first row for the reference. Only placements count that
    hold a base of the allele, or, where it has none there, the place between its neighbours.
    score: float64, log2 of the odds against 0.25 a base; log_p: float64, log2 of the p-value;
    offset: int32, from the allele's first base to the placement's, along that sequence;
    reverse: bool, on the other strand.
    """

    score: np.ndarray
    log_p: np.ndarray
    offset: np.ndarray
    reverse: np.ndarray


class Scanner:
    """Scores and p-values are those of FIMO as memelite has it, on both strands."""

    def __init__(self, motifs: MotifSet):
        widths = [matrix.shape[1] for matrix in motifs.matrices]
        forward = np.concatenate(motifs.matrices, axis=1)
        log_odds = np.log2(forward + PSEUDO) - np.log2(0.25)
        self.widest = max(widths)
        self._ends = np.cumsum([0, *widths])
        # A fifth row for N, which is worth 0.
        self._forward = np.pad(log_odds, ((0, 1), (0, 0))).T.copy()
        flipped = [one[::-1, ::-1] for one in np.split(log_odds, self._ends[1:-1], axis=1)]
        self._backward = np.pad(np.concatenate(flipped, axis=1), ((0, 1), (0, 0))).T.copy()
        from memelite.fimo import _pvalue_tables  # is compiled when imported, in half a second

        both = np.concatenate([log_odds, *flipped], axis=1)
        ends = np.cumsum([0, *widths, *widths]).astype(np.uint64)
        self._tables = _pvalue_tables(both, ends, BIN)

    def scan(self, alleles: pa.Table, reference: Reference) -> Iterator[Best]:
        """`alleles` are rows of the prepared table; a `Best` for each `BLOCK` of them."""
        for first in range(0, len(alleles), BLOCK):
            rows = alleles.slice(first, BLOCK)
            contig, start, ref_len = (rows[c].to_numpy() for c in ("contig", "start", "ref_len"))
            alt = rows["alt"].to_pylist()
            alt_len = np.fromiter(map(len, alt), np.int64, len(alt))
            half = self.widest + int(max(ref_len.max(), alt_len.max()))
            places = contig, start, ref_len
            bases = windows.windows(reference, *places, alt, 2 * half)[:2]
            yield self.best(np.stack(bases), half, np.stack([ref_len, alt_len]))

    def best(self, bases: np.ndarray, half: int, lengths: np.ndarray) -> Best:
        """bases: uint8 [2, n, L] of ASCII; their alleles start at `half`, lengths: [2, n]."""
        n_motifs = len(self._ends) - 1
        shape = (2, n_motifs, bases.shape[1])
        score, log_p = np.empty(shape), np.empty(shape)
        offset, reverse = np.empty(shape, np.int32), np.empty(shape, np.bool_)
        for i in range(2):
            _scan(
                _CODE[bases[i]],
                half,
                lengths[i].astype(np.int64),
                self._forward,
                self._backward,
                self._ends,
                *self._tables,
                BIN,
                score[i],
                log_p[i],
                offset[i],
                reverse[i],
            )
        return Best(score, log_p, offset, reverse)


@numba.njit(parallel=True, cache=True)
def _scan(
    codes, half, lengths, forward, backward, ends, smallest, tables_at, tables, bin_size,
    score, log_p, offset, reverse,
):  # fmt: skip
    n_motifs = len(ends) - 1
    for m in numba.prange(n_motifs):
        first, width = ends[m], ends[m + 1] - ends[m]
        for i in range(codes.shape[0]):
            best = -np.inf
            at, on_reverse = 0, False
            for s in range(half - width + 1, half + lengths[i]):
                plus, minus = 0.0, 0.0
                for j in range(width):
                    code = codes[i, s + j]
                    plus += forward[first + j, code]
                    minus += backward[first + j, code]
                if plus > best:
                    best, at, on_reverse = plus, s - half, False
                if minus > best:
                    best, at, on_reverse = minus, s - half, True
            table = m + n_motifs * on_reverse
            size = tables_at[table + 1] - tables_at[table]
            found = min(max(int(best / bin_size) - smallest[table], 0), size - 1)
            score[m, i] = best
            # Rounded to bins, the best score may lie above all: no sequence is rarer than one.
            log_p[m, i] = min(max(tables[tables_at[table] + found], -2.0 * width), 0.0)
            offset[m, i] = at
            reverse[m, i] = on_reverse
