"""Which random SNVs make up a null, and which windows a reference set of activity?"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from veff.errors import InputError
from veff.inputs import intervals
from veff.inputs.reference import Reference
from veff.scoring import windows

ACGT = np.frombuffer(b"ACGT", np.uint8)
BLOCK = 1000  # SNVs whose flanks are shuffled at once
ROUNDS = 100  # draws of n positions, after which regions count as free of A, C, G and T


def sample(
    reference: Reference,
    input_length: int,
    *,
    n: int,
    seed: int,
    scheme: str = "uniform",
    regions: Path | None = None,
) -> tuple[Reference, pa.Table]:
    """Draw `n` random SNVs: the genome that they stand in, and a table for `score.score`.

    Positions are uniform over the reference, or over the union of the regions of a BED file, as
    far as they hold A, C, G or T and have the whole window of `input_length` within their contig;
    each of the three other bases is as likely. They are drawn with replacement and depend on
    nothing but the arguments. With scheme 'shuffled', the two flanks of each window are
    dinucleotide-shuffled, each on its own; the genome has then one contig of `input_length` a SNV.

    Raises `InputError` where there is no such position, or the BED file does not fit.
    """
    if regions is None:
        where = "the reference"
        contig = np.arange(len(reference.names))
        start, end = np.zeros_like(reference.lengths), reference.lengths
    else:
        where = str(regions)
        contig, start, end = read_bed(regions, reference)
    half = input_length // 2
    start = np.maximum(start, half)
    end = np.minimum(end, reference.lengths[contig] - input_length + half + 1)
    kept = end > start
    rng = np.random.default_rng(seed)
    contig, start = _positions(rng, reference, contig[kept], start[kept], end[kept], n)
    if len(contig) < n:
        raise InputError(
            f"nulls: {where} has too few bases A, C, G or T with a window of {input_length} bp "
            "around them; give other regions or set nulls: none"
        )
    base = np.searchsorted(ACGT, reference.at(contig, start))
    alt = (base + rng.integers(1, 4, n)) % 4
    order = np.lexsort((alt, start, contig))
    contig, start, alt = contig[order], start[order], alt[order]
    alts = ["ACGT"[i] for i in alt]
    if scheme == "shuffled":
        seeds = rng.integers(0, 2**31, (2, n))
        reference = _shuffled(reference, contig, start, input_length, seeds)
        contig, start = np.arange(n), np.full(n, half)
    table = {
        "allele_id": np.arange(n),
        "contig": contig.astype(np.int32),
        "start": start,
        "ref_len": np.ones(n, np.int32),
        "alt": pa.array(alts, pa.string()),
    }
    return reference, pa.table(table)


def centres(
    peaks: Path, reference: Reference, input_length: int, *, n: int, seed: int
) -> pa.Table:
    """Draw `n` peaks of a BED file with replacement: a table for `score.score`.

    Its alleles change nothing. Windows are centred on the summit (column 10, as in narrowPeak),
    or else on the peak's middle; peaks whose window passes their contig's end are not drawn.
    Raises `InputError` where none is left, or the BED file does not fit.
    """
    rows = [(*row[:3], _summit(row.more)) for row in intervals.bed(peaks, reference)]
    contig, start, end, summit = np.array(rows, np.int64).T
    start = np.where(summit >= 0, start + summit, (start + end) // 2)
    first = start - input_length // 2
    kept = np.flatnonzero((first >= 0) & (first + input_length <= reference.lengths[contig]))
    if not len(kept):
        raise InputError(
            f"{peaks}: no peak has a window of {input_length} bp within its contig; "
            "give other peaks"
        )
    drawn = np.sort(np.random.default_rng(seed).choice(kept, n))
    drawn = drawn[np.lexsort((start[drawn], contig[drawn]))]
    table = {
        "allele_id": np.arange(n),
        "contig": contig[drawn].astype(np.int32),
        "start": start[drawn],
        "ref_len": np.zeros(n, np.int32),
        "alt": [""] * n,
    }
    return pa.table(table)


def _positions(
    rng: np.random.Generator,
    reference: Reference,
    contig: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    n: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Contigs and positions of up to `n` bases A, C, G or T, uniform over intervals."""
    before = np.cumsum(end - start) - (end - start)
    contigs, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for _ in range(ROUNDS if len(contig) else 0):
        drawn = rng.integers(0, before[-1] + end[-1] - start[-1], n)
        interval = np.searchsorted(before, drawn, side="right") - 1
        here, position = contig[interval], start[interval] + drawn - before[interval]
        known = np.isin(reference.at(here, position), ACGT)
        contigs.append(here[known])
        positions.append(position[known])
        if sum(map(len, contigs)) >= n:
            break
    return np.concatenate(contigs)[:n], np.concatenate(positions)[:n]


def _shuffled(
    reference: Reference,
    contig: np.ndarray,
    start: np.ndarray,
    input_length: int,
    seeds: np.ndarray,
) -> Reference:
    """A genome of the windows around positions, each a contig, their two flanks shuffled."""
    # Not at the top: these bring torch, and only scoring needs them.
    import torch
    from tangermeme.ersatz import dinucleotide_shuffle

    n, half = len(contig), input_length // 2
    flanks = slice(0, half), slice(half + 1, input_length)
    bases = np.empty((n, input_length), np.uint8)
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        alt = ["A"] * (rows.stop - first)  # of no matter
        ref_len = np.ones(len(alt), np.int32)
        own = windows.windows(reference, contig[rows], start[rows], ref_len, alt, input_length)[0]
        one_hot = torch.from_numpy((own[:, None, :] == ACGT[:, None]).astype(np.int8))
        for flank, flank_seeds in zip(flanks, seeds, strict=True):
            one_hot[:, :, flank] = dinucleotide_shuffle(
                one_hot[:, :, flank], n=1, random_state=flank_seeds[rows], allow_N=True
            )[:, 0]
        known, base = (values.numpy() for values in one_hot.max(1))
        bases[rows] = np.where(known == 1, ACGT[base], np.uint8(windows.N))
    names, lengths = [f"null{i}" for i in range(n)], np.full(n, input_length)
    offsets = np.arange(n) * input_length
    return Reference(bases.ravel(), names, lengths, offsets, reference.sha256, None)


def read_bed(path: Path, reference: Reference) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The union of a BED file's regions: contig, start and end, int64 [m], sorted and disjoint.

    Plain or gzip. Regions on contigs that the reference does not have are left out with a
    warning. Raises `InputError` that names the line that is no region of this reference.
    """
    rows = sorted(row[:3] for row in intervals.bed(path, reference))
    contig, start, end = np.array(rows, np.int64).T
    # In coordinates along the whole reference, contigs cannot touch: each is given one bp more.
    shift = (reference.offsets + np.arange(len(reference.offsets)))[contig]
    furthest = np.maximum.accumulate(end + shift)
    first = np.flatnonzero(np.r_[True, (start + shift)[1:] > furthest[:-1]])
    last = np.r_[first[1:], len(contig)] - 1
    return contig[first], start[first], (furthest - shift)[last]


def _summit(more: list[str]) -> int:
    """From the peak's start; -1 where its row has none."""
    return int(more[6]) if len(more) > 6 and more[6].isdecimal() else -1
