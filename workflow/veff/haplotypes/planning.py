"""Which combinations of alleles do chromosomes carry, and what is to be scored for each?

Alleles that stand close together make a locus, at most `span` bp from the first to the last start:
where more follow each other, it ends at the widest gap. What a chromosome carries of a locus is a
haplotype; what else it carries within the models' window is the haplotype's background.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veff import atomic, tables
from veff.haplotypes import carrying, genotypes
from veff.haplotypes.carrying import Allele
from veff.inputs.reference import Reference
from veff.plan import enough
from veff.scoring.edits import VIRTUAL, Edit, Window, centre, in_words, sequence

SAMPLES = 50  # so many are named of those that carry a haplotype

HAPLOTYPES = pa.schema(
    {
        "haplotype": pa.int64(),
        "locus": pa.int64(),
        "contig": pa.string(),
        "start": pa.int64(),
        "end": pa.int64(),
        "distance": pa.int64(),
        "alleles": pa.list_(pa.int64()),
        "variants": pa.string(),
        "background": pa.list_(pa.int64()),
        "chromosomes": pa.int64(),
        "unphased": pa.int64(),
        "frequency": pa.float64(),
        "n_samples": pa.int64(),
        "samples": pa.list_(pa.string()),
        # What is scored for it (`VIRTUAL`): all of its alleles at once, and each alone.
        "joint": pa.int64(),
        "singles": pa.list_(pa.int64()),
    }
)
# A sample's two chromosomes at a locus, where they differ: their haplotypes, null where there is
# no allele, and what is scored for each in the window of the locus, null for the reference. Of one
# beyond the most frequent both are `UNSCORED`.
SAMPLED = pa.schema(
    {
        "locus": pa.int64(),
        "sample": pa.dictionary(pa.int32(), pa.string()),
        "n_unphased": pa.int32(),
        "haplotype_1": pa.int64(),
        "haplotype_2": pa.int64(),
        "whole_1": pa.int64(),
        "whole_2": pa.int64(),
    }
)
UNSCORED, NONE = -1, -2
ROWS = 1 << 20  # of these that are in memory at once


@dataclass(eq=False)
class _Haplotype:
    """Alleles of a locus, maybe none, on a background, and which chromosomes have them, or which
    samples on one of two, who knows which; `nearby`: all that chromosomes carry there, beyond the
    window too, and which ones."""

    alleles: list[Allele]
    background: list[Allele]
    chromosomes: list[int] = field(default_factory=list)
    unphased: list[int] = field(default_factory=list)
    nearby: list[tuple[list[Edit], list[int]]] = field(default_factory=list)

    @property
    def edits(self) -> list[Edit]:
        return [one.edit for one in self.alleles]

    @property
    def carriers(self) -> int:
        return len(self.chromosomes) + len(self.unphased)

    @property
    def order(self) -> tuple:
        """The most frequent first."""
        return -self.carriers, self.edits, [one.edit for one in self.background]


@dataclass(frozen=True)
class _Locus:
    """`haplotypes`, the most frequent first; `others`, with a background alone, of chromosomes
    whose sample has a haplotype on the other one; n_unphased: int32[samples], how many alleles
    of the locus each has of which the chromosome is not known; `start` and `centre` of windows."""

    contig: int
    centre: int
    haplotypes: list[_Haplotype]
    others: list[_Haplotype]
    n_unphased: np.ndarray
    haploid: list[int]
    known: int


class _Virtual:
    """The virtual alleles to score, each once."""

    def __init__(self, aligned: dict[int, Edit]):
        self._rows: dict[tuple, int] = {}
        self._aligned = aligned

    def add(self, one: _Haplotype, contig: int) -> tuple[int, list[int]]:
        """The numbers of a haplotype's: all of its alleles, and each alone."""
        edits, background = one.edits, [allele.edit for allele in one.background]
        if len(edits) == 1 and not background:  # the very windows that it is scored in alone
            edits = [self._aligned[one.alleles[0].scored_as]]
        at = centre(edits)
        singles = [self._number(contig, at, background, [edit]) for edit in edits]
        return self._number(contig, at, background, edits), singles

    def whole(self, edits: list[Edit], locus: "_Locus", windows: "_Windows") -> int:
        """The number of all of the edits that stand in the window of the locus."""
        there = windows.sequence(locus.centre, edits).edits
        return self._number(locus.contig, locus.centre, [], there)

    def _number(self, contig: int, at: int, background: list[Edit], edits: list[Edit]) -> int:
        key = contig, at, tuple(sorted(background)), tuple(sorted(edits))
        return self._rows.setdefault(key, len(self._rows))

    def table(self) -> pa.Table:
        """As `VIRTUAL` has them, those of one reference window beside each other."""
        if not self._rows:
            return VIRTUAL.empty_table()
        rows = sorted(self._rows.items())
        contig, centre, background, edits = zip(*(key for key, _ in rows), strict=True)
        columns = [[n for _, n in rows], contig, centre, _edits(background), _edits(edits)]
        return pa.table(columns, schema=VIRTUAL)


def _edits(lists: tuple[tuple[Edit, ...], ...]) -> pa.ListArray:
    ends = np.cumsum([0, *map(len, lists)])
    columns = list(zip(*chain(*lists), strict=True)) or [[]] * 3
    kind = VIRTUAL.field("edits").type.value_type
    of = [pa.array(one, kind.field(i).type) for i, one in enumerate(columns)]
    structs = pa.StructArray.from_arrays(of, fields=list(kind))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs)


@dataclass(frozen=True)
class Out:
    """The files that a plan writes, as `VIRTUAL` (a row group a chunk), `HAPLOTYPES`, `SAMPLED`
    and `carrying.PHASING` have them."""

    virtual: Path
    haplotypes: Path
    sampled: Path
    phasing: Path


def plan(
    variants: Path,
    alleles: Path,
    scoreable: Path,
    reference: Reference,
    *,
    samples: str | list[str],
    max_haplotypes: int,
    span: int,
    input_length: int,
    chunk_size: int,
    most_chunks: int | None = None,
    out: Out,
) -> dict:
    """Find the haplotypes of the samples, and write what there is to score.

    `alleles` and `scoreable` are what `preparing.prepare` wrote of `variants`; `samples` is as
    `genotypes.chosen` takes it. Loci are at most `span` bp long, half an output window, so that
    all of it is seen; backgrounds reach as far as windows of `input_length`. Of each
    locus the `max_haplotypes` most frequent are kept. `chunk_size` and `most_chunks` are as in
    `preparing.prepare`.

    Returns what to say of it: haplotypes, several (those of two or more alleles), loci, samples,
    windows, chunks, carriers (how often a chromosome carries some allele of a locus), covered (how
    often one that is kept), statuses of alleles.
    """
    places = genotypes.chosen(variants, samples)
    every = genotypes.samples_of(variants)
    names = [every[one] for one in places]
    by_contig, phasing = carrying.carried(variants, alleles, reference, places)
    virtual = _Virtual(_aligned(scoreable))
    rows: list[dict] = []
    n_loci = carriers = covered = 0
    with _writer(out.sampled, names) as write:
        for contig, carried in sorted(by_contig.items()):
            windows = _Windows(reference, contig, input_length, carried)
            for i, j in _loci([one.edit.start for one in carried], span):
                locus = _of_locus(windows, carried, i, j, len(names))
                kept = locus.haplotypes[:max_haplotypes]
                ids = {one: len(rows) + k for k, one in enumerate(kept)}
                rows += [
                    _row(one, ids[one], n_loci, locus, virtual, windows, names) for one in kept
                ]
                whole = [
                    (virtual.whole(edits, locus, windows), of)
                    for one in (*kept, *locus.others[:max_haplotypes])
                    for edits, of in one.nearby
                ]
                write(n_loci, *_both(locus, ids, whole))
                n_loci += 1
                carriers += sum(one.carriers for one in locus.haplotypes)
                covered += sum(one.carriers for one in kept)
    table = virtual.table()
    tables.write_parquet(out.haplotypes, [pa.Table.from_pylist(rows, HAPLOTYPES)])
    tables.write_parquet(out.phasing, [phasing])
    chunks = range(0, len(table), enough(len(table), chunk_size, most_chunks))
    tables.write_parquet(out.virtual, [table.slice(i, chunks.step) for i in chunks] or [table])
    summary = {
        "haplotypes": len(rows),
        "several": sum(len(row["alleles"]) > 1 for row in rows),
        "loci": n_loci,
        "samples": len(names),
        "windows": len(table),
        "chunks": len(chunks),
        "carriers": carriers,
        "covered": covered,
        "statuses": Counter(phasing["status"].to_pylist()),
    }
    logging.info("%s", words(summary))
    return summary


def words(summary: dict) -> str:
    """The plan, a line."""
    share = summary["covered"] / summary["carriers"] if summary["carriers"] else 1
    return (
        f"plan: {summary['haplotypes']:,} distinct haplotypes at {summary['loci']:,} loci of "
        f"{summary['samples']:,} samples, {summary['windows']:,} windows to score for them; they "
        f"cover {share:.1%} of the {summary['carriers']:,} times that a chromosome carries one"
    )


def _aligned(scoreable: Path) -> dict[int, Edit]:
    """The alleles as they are scored alone, by their number."""
    table = pq.read_table(scoreable, columns=["allele_id", "start", "ref_len", "alt"])
    number, *edits = (column.to_pylist() for column in table.columns)
    return dict(zip(number, map(Edit, *edits), strict=True))


@contextmanager
def _writer(path: Path, names: list[str]) -> Iterator[Callable]:
    """A function that writes the rows of a locus: its number, and what `_both` gives."""
    waiting: list[pa.Table] = []
    with atomic.aside(path) as temporary, pq.ParquetWriter(temporary, SAMPLED) as writer:

        def write(locus: int, sample: np.ndarray, *columns: np.ndarray) -> None:
            n_unphased, *ids = columns
            sample = pa.DictionaryArray.from_arrays(pa.array(sample, pa.int32()), names)
            ids = [pa.array(one, mask=one == NONE) for one in ids]
            n = np.full(len(sample), locus)
            waiting.append(pa.table([n, sample, n_unphased, *ids], schema=SAMPLED))
            if sum(map(len, waiting)) > ROWS:
                flush()

        def flush() -> None:
            writer.write_table(pa.concat_tables(waiting))
            waiting.clear()

        yield write
        if waiting:
            flush()


def _loci(starts: list[int], span: int) -> Iterator[tuple[int, int]]:
    """Cut sorted starts at their widest gaps until none spans more than so many bp."""
    at = np.array(starts)
    waiting = [(0, len(at))] if len(at) else []
    while waiting:
        i, j = waiting.pop()
        if at[j - 1] - at[i] <= span:
            yield i, j
            continue
        gaps = np.diff(at[i:j])
        # All that are wider than a locus at once; else the widest.
        cuts = np.flatnonzero(gaps > span) if gaps.max() > span else [gaps.argmax()]
        edges = [i, *(i + 1 + int(cut) for cut in cuts), j]
        waiting += list(pairwise(edges))[::-1]


class _Windows:
    """What stands in the windows of a contig."""

    def __init__(self, reference: Reference, contig: int, length: int, carried: list[Allele]):
        self.reference, self.contig, self.length = reference, contig, length
        self.longest = max((one.edit.ref_len for one in carried), default=0)

    def of(
        self, middle: int, mine: list[Allele], others: list[Allele]
    ) -> tuple[tuple, list[Allele]]:
        """A key of both sequences of alleles on a background; and which of the others stand in
        them."""
        background = [one.edit for one in others]
        edits = sorted(background + [one.edit for one in mine])
        both = self.sequence(middle, background), self.sequence(middle, edits)
        there = {edit for one in both for edit in one.edits}
        hashes = (blake2b(one.bases, digest_size=16).digest() for one in both)
        return (middle, *hashes), [one for one in others if one.edit in there]

    def sequence(self, middle: int, edits: list[Edit]) -> Window:
        """As `edits.sequence`."""
        return sequence(self.reference, self.contig, middle, edits, self.length)


def _of_locus(windows: _Windows, carried: list[Allele], i: int, j: int, n_samples: int) -> _Locus:
    """The locus of alleles i to j - 1."""
    lo, hi = _reach(carried, i, j, windows.length // 2, windows.longest)
    here = np.zeros((n_samples, 2), bool)
    n_unphased = np.zeros(n_samples, np.int32)
    for one in carried[i:j]:
        here.ravel()[one.chromosome] = True
        n_unphased[one.unphased] += 1
    either = here.any(1)
    chromosome = np.concatenate([one.chromosome for one in carried[lo:hi]])
    phase_set = np.concatenate([one.phase_set for one in carried[lo:hi]])
    allele = np.repeat(np.arange(lo, hi), [len(one.chromosome) for one in carried[lo:hi]])
    kept = either[chromosome // 2]
    chromosome, phase_set, allele = chromosome[kept], phase_set[kept], allele[kept]
    if (phase_set > 0).any():
        in_locus = (allele >= i) & (allele < j)
        kept = carrying.one_phase_set(chromosome // 2, phase_set, in_locus)
        np.add.at(n_unphased, (chromosome // 2)[~kept & in_locus], 1)
        chromosome, allele = chromosome[kept], allele[kept]
    order = np.lexsort((allele, chromosome))
    chromosome, allele = chromosome[order], allele[order]
    edges = np.flatnonzero(np.diff(chromosome, prepend=-1, append=-1))
    groups = defaultdict(list)
    for a, b in pairwise(edges.tolist()):
        groups[allele[a:b].tobytes()].append(int(chromosome[a]))
    middle = _middle(carried[i:j], carried[lo:hi])
    distinct: dict[tuple, _Haplotype] = {}

    def known(mine: list[Allele], others: list[Allele]) -> _Haplotype:
        at = centre([one.edit for one in mine]) if mine else middle
        key, within = windows.of(at, mine, others)
        return distinct.setdefault((bool(mine), *key), _Haplotype(mine, within))

    ordered = sorted(
        ((np.frombuffer(key, np.int64).tolist(), of) for key, of in groups.items()),
        key=lambda group: (-len(group[1]), [carried[one].edit for one in group[0]]),
    )
    for numbers, of in ordered:
        mine = [carried[one] for one in numbers if i <= one < j]
        others = [carried[one] for one in numbers if not i <= one < j]
        one = known(mine, others)
        one.chromosomes += of
        one.nearby.append(([carried[one].edit for one in numbers], of))
    for one in carried[i:j]:
        if len(one.unphased):
            known([one], []).unphased += one.unphased.tolist()
    every = sorted(distinct.values(), key=lambda one: one.order)
    return _Locus(
        contig=windows.contig,
        centre=middle,
        haplotypes=[one for one in every if one.alleles],
        others=[one for one in every if not one.alleles],
        n_unphased=n_unphased,
        haploid=sorted({one for allele in carried[i:j] for one in allele.haploid.tolist()}),
        known=max(allele.known for allele in carried[i:j]),
    )


def _middle(alleles: list[Allele], nearby: list[Allele]) -> int:
    """The centre of the window of a locus: its middle, or where a deletion across that begins."""
    middle = (alleles[0].edit.start + alleles[-1].edit.start) // 2
    for one in reversed(nearby):  # by their starts
        if one.edit.start < middle < one.edit.end:
            middle = one.edit.start
    return middle


def _reach(carried: list[Allele], i: int, j: int, half: int, longest: int) -> tuple[int, int]:
    """Which alleles may stand in a window around alleles i to j - 1: what is deleted within it
    makes it reach further. `longest` is the most that one allele deletes."""
    first, last = carried[i].edit.start, carried[j - 1].edit.end
    lo, hi, deleted, before = i, j, 0, -1
    while deleted != before:
        before = deleted
        while lo and carried[lo - 1].edit.start >= first - half - deleted - longest:
            lo -= 1
        while hi < len(carried) and carried[hi].edit.start < last + half + deleted:
            hi += 1
        deleted = sum(max(one.edit.ref_len - len(one.edit.alt), 0) for one in carried[lo:hi])
    return lo, hi


def _row(
    one: _Haplotype,
    number: int,
    locus: int,
    of: _Locus,
    virtual: _Virtual,
    windows: _Windows,
    names: list[str],
) -> dict:
    """A row of `HAPLOTYPES`."""
    joint, singles = virtual.add(one, of.contig)
    edits = one.edits
    carriers = sorted({*(chromosome // 2 for chromosome in one.chromosomes), *one.unphased})
    return {
        "haplotype": number,
        "locus": locus,
        "contig": windows.reference.names[of.contig],
        "start": edits[0].start + 1,
        "end": max(edits[0].start + 1, *(edit.end for edit in edits)),
        "distance": edits[-1].start - edits[0].start,
        "alleles": [allele.scored_as for allele in one.alleles],
        "variants": ",".join(in_words(windows.reference, of.contig, edit) for edit in edits),
        "background": [allele.scored_as for allele in one.background],
        "chromosomes": len(one.chromosomes),
        "unphased": len(one.unphased),
        "frequency": one.carriers / of.known,
        "n_samples": len(carriers),
        "samples": sorted(names[sample] for sample in carriers)[:SAMPLES],
        "joint": joint,
        "singles": singles,
    }


def _both(
    locus: _Locus, ids: dict[_Haplotype, int], whole: list[tuple[int, list[int]]]
) -> tuple[np.ndarray, ...]:
    """Of the samples with two different haplotypes, the columns of `SAMPLED` from `sample` on."""
    haplotype, of_window = np.full((2, len(locus.n_unphased), 2), NONE)
    for one in (*locus.haplotypes, *locus.others):
        if one.alleles:
            haplotype.ravel()[one.chromosomes] = ids.get(one, UNSCORED)
        of_window.ravel()[one.chromosomes] = UNSCORED
    for number, chromosomes in whole:
        of_window.ravel()[chromosomes] = number
    differ = haplotype[:, 0] != haplotype[:, 1]
    differ[locus.haploid] = False
    sample = np.flatnonzero(differ)
    return sample, locus.n_unphased[sample], *haplotype[sample].T, *of_window[sample].T
