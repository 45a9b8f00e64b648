"""Which random alleles make up a null, and which windows a reference set of activity?"""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa

from veff.errors import InputError
from veff.inputs import classes, intervals
from veff.inputs.reference import Reference
from veff.scoring import windows

ACGT = np.frombuffer(b"ACGT", np.uint8)
BLOCK = 1000  # alleles whose flanks are shuffled at once
ROUNDS = 100  # draws of n positions, after which regions count as free of A, C, G and T


def sample(
    reference: Reference,
    input_length: int,
    *,
    n: int,
    seed: int,
    scheme: str = "uniform",
    regions: Path | None = None,
    kind: str = classes.SNV,
) -> tuple[Reference, pa.Table]:
    """Draw `n` random alleles of a class: the genome they stand in, and a table for `score.score`.

    Positions are uniform over the reference, or over the union of the regions of a BED file, as
    far as they hold A, C, G or T and have the whole window of `input_length` within their contig;
    for a SNV each of the three other bases is as likely. Of the classes with more than one length
    each doubling of it is as likely, since long alleles are rare; the bases of an ALT are those
    of another such position, but for both ends of a substitution, where REF's would be no change.
    All is drawn with replacement and depends on nothing but the arguments. With scheme
    'shuffled', the two flanks of each window are dinucleotide-shuffled, each on its own; the
    genome has then a contig for each allele.

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
    longest = classes.bounds(kind)[1]
    # So much further than REF's goes the window of an ALT that is a deletion.
    whole = input_length + (0 if kind == classes.SNV else longest)
    start = np.maximum(start, half)
    end = np.minimum(end, reference.lengths[contig] - whole + half + 1)
    kept = end > start
    there = reference, contig[kept], start[kept], end[kept]
    # Each class by itself, so that none depends on which others a run has.
    rng = np.random.default_rng(seed if kind == classes.SNV else [seed, *kind.encode()])
    contig, start = _positions(rng, *there, n, longest)
    if len(contig) < n:
        raise InputError(
            f"nulls: {where} has too few bases A, C, G or T with a window of {whole} bp "
            "around them; give other regions or set nulls: none"
        )
    if kind == classes.SNV:
        ref_len, alts = np.ones(n, np.int64), _other(rng, reference, contig, start)
    else:
        donors = _positions(rng, *there, n, longest)
        ref_len, alts = _longer(rng, kind, reference, (contig, start), donors)
    order = np.lexsort((alts, ref_len, start, contig))
    contig, start, ref_len, alts = (values[order] for values in (contig, start, ref_len, alts))
    if scheme == "shuffled":
        seeds = rng.integers(0, 2**31, (2, n))
        replaced = np.minimum(ref_len, np.char.str_len(alts)).min()
        right = input_length - half - int(replaced)
        reference = _shuffled(reference, contig, start, ref_len, (half, right), seeds)
        contig, start = np.arange(n), np.full(n, half)
    table = {
        "allele_id": np.arange(n),
        "contig": contig.astype(np.int32),
        "start": start,
        "ref_len": ref_len.astype(np.int32),
        "alt": [alt.decode() for alt in alts.tolist()],
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
    span: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Contigs and positions of up to `n` stretches of `span` bases A, C, G or T, whose first
    bases are uniform over intervals."""
    before = np.cumsum(end - start) - (end - start)
    contigs, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for _ in range(ROUNDS if len(contig) else 0):
        drawn = rng.integers(0, before[-1] + end[-1] - start[-1], n)
        interval = np.searchsorted(before, drawn, side="right") - 1
        here, position = contig[interval], start[interval] + drawn - before[interval]
        for i in range(span):
            known = np.isin(reference.at(here, position + i), ACGT)
            here, position = here[known], position[known]
        contigs.append(here)
        positions.append(position)
        if sum(map(len, contigs)) >= n:
            break
    return np.concatenate(contigs)[:n], np.concatenate(positions)[:n]


def _other(
    rng: np.random.Generator, reference: Reference, contig: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """A base other than the reference's, S1 [n]."""
    base = np.searchsorted(ACGT, reference.at(contig, start))
    return ACGT[(base + rng.integers(1, 4, len(base))) % 4].view("S1")


def _longer(
    rng: np.random.Generator,
    kind: str,
    reference: Reference,
    places: tuple[np.ndarray, np.ndarray],
    donors: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """REF's lengths, int64 [n], and ALTs, S [n], of a class of more than one length."""
    contig, start = places
    low, high = classes.bounds(kind)
    length = np.exp(rng.uniform(np.log(low), np.log(high + 1), len(start))).astype(np.int64)
    length = np.clip(length, low, high)  # what was rounded over a bound
    none = np.zeros_like(length)
    if kind.startswith("del"):
        return length, np.full(len(length), b"")
    ends = donors[1] + length
    alts = [reference.fetch(*place) for place in zip(*donors, ends, strict=True)]
    if kind.startswith("ins"):
        return none, np.array(alts)
    first = _other(rng, reference, contig, start)
    last = _other(rng, reference, contig, start + length - 1)
    edged = zip(first, alts, last, strict=True)
    return length, np.array([one + middle[1:-1] + other for one, middle, other in edged])


def _shuffled(
    reference: Reference,
    contig: np.ndarray,
    start: np.ndarray,
    ref_len: np.ndarray,
    flanks: tuple[int, int],
    seeds: np.ndarray,
) -> Reference:
    """A genome of alleles between their flanks of these lengths, which are shuffled: a contig for
    each."""
    left, right = flanks
    before = _shuffled_bases(reference, contig, start - left, left, seeds[0])
    behind = _shuffled_bases(reference, contig, start + ref_len, right, seeds[1])
    places = zip(contig, start, start + ref_len, strict=True)
    alleles = [np.frombuffer(reference.fetch(*place), np.uint8) for place in places]
    parts = zip(before, alleles, behind, strict=True)
    bases = np.concatenate(list(itertools.chain.from_iterable(parts)))
    names, lengths = [f"null{i}" for i in range(len(start))], left + ref_len + right
    offsets = np.cumsum(lengths) - lengths
    return Reference(bases, names, lengths, offsets, reference.sha256, None)


def _shuffled_bases(
    reference: Reference, contig: np.ndarray, start: np.ndarray, length: int, seeds: np.ndarray
) -> np.ndarray:
    """Dinucleotide shuffles of stretches of the reference, uint8 [n, length]."""
    # Not at the top: these bring torch, and only scoring needs them.
    import torch
    from tangermeme.ersatz import dinucleotide_shuffle

    bases = np.empty((len(start), length), np.uint8)
    for first in range(0, len(start), BLOCK):
        rows = slice(first, first + BLOCK)
        own = reference.at(contig[rows], start[rows, None] + np.arange(length))
        one_hot = torch.from_numpy((own[:, None, :] == ACGT[:, None]).astype(np.int8))
        shuffled = dinucleotide_shuffle(one_hot, n=1, random_state=seeds[rows], allow_N=True)[:, 0]
        known, base = (values.numpy() for values in shuffled.max(1))
        bases[rows] = np.where(known == 1, ACGT[base], np.uint8(windows.N))
    return bases


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
