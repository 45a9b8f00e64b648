"""What else does a person carry around each allele, and what is to be scored for it there?

Of each allele both sequences are the person's own: the chromosome as ``bcftools consensus`` gives
it, without the allele and with it.
"""

import logging
import tempfile
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import tables
from veff.errors import InputError
from veff.haplotypes import carrying, genotypes
from veff.haplotypes.carrying import Allele
from veff.inputs import preparing
from veff.inputs.reference import Reference
from veff.plan import enough
from veff.scoring.columns import ALLELE
from veff.scoring.edits import VIRTUAL, Edit, in_words, sequence

OK, OVERLAPPED, ONE_COPY = "ok", "overlapped", "one_copy"
# Two rows an allele of the input that is scored, in its order. `window` is the number of what is
# scored for it, null where the allele is alone: then it has its scores on the reference.
PLANNED = pa.schema(
    {name: column.kind for name, column in ALLELE.items()}
    | {
        "haplotype": pa.int32(),
        "carried": pa.bool_(),
        "background": pa.string(),
        "n_unphased": pa.int32(),
        "status": pa.string(),
        "window": pa.int64(),
    }
)
# Of the person's alleles; of a whole genome they are millions.
NEEDED = ["allele_id", "record", "contig", "pos", "ref", "alt", "scored_pos", "scored_as"]
BASES = 1 << 13  # as far beyond a window the person's alleles are looked at; more is not deleted


@dataclass(frozen=True)
class _Placed:
    """An allele on one of the person's chromosomes: its edit there, and what else stands in its
    windows."""

    status: str
    carried: bool | None = None
    edit: Edit | None = None
    background: tuple[Edit, ...] = ()


def plan(
    alleles: Path,
    scoreable: Path,
    person: Path,
    reference: Reference,
    *,
    sample: str | None,
    input_length: int,
    chunk_size: int,
    most_chunks: int | None = None,
    virtual: Path,
    planned: Path,
    **how,
) -> dict:
    """Write what there is to score, `virtual` (`VIRTUAL`, a row group a chunk), and what it is
    for, `planned` (`PLANNED`).

    `alleles` and `scoreable` are what `preparing.prepare` wrote of the input; `person` is a VCF or
    BCF, of which `sample` counts, or its only one. `chunk_size` and `most_chunks` are as in
    `preparing.prepare`, and so is `how`, by which the person's alleles are judged.

    Returns what to say of it: sample, alleles, windows, chunks, statuses of the planned rows,
    alone (how many have nothing else in their windows), left_out (the person's alleles, by why
    they are in no background). Raises `InputError` where the sample is not clear or has no
    genotypes.
    """
    place, sample = _sample(person, sample)
    rows = pq.read_table(scoreable)
    contigs, left_out = _person(person, place, rows, reference, input_length, planned.parent, how)
    windows: list[tuple[int, int, tuple[Edit, ...], Edit]] = []
    found = []
    for contig, edit in _edits(rows):
        both, n_unphased = [_Placed(OK, False)] * 2, 0
        if contig in contigs:
            both, n_unphased = contigs[contig].place(edit)
        numbers: dict[tuple, int] = {}
        for haplotype, one in enumerate(both, 1):
            seen = one.edit, one.background
            if one.background and seen not in numbers:
                numbers[seen] = len(windows)
                windows.append((contig, one.edit.start, one.background, one.edit))
            others = ",".join(in_words(reference, contig, other) for other in one.background)
            found.append(
                (haplotype, one.carried, others, n_unphased, one.status, numbers.get(seen))
            )
    table = _for_each(alleles, rows["allele_id"].to_numpy(), found)
    tables.write_parquet(planned, [table])
    step = enough(len(windows), chunk_size, most_chunks)
    chunks = [_virtual(windows, i, i + step) for i in range(0, len(windows), step)]
    tables.write_parquet(virtual, chunks or [VIRTUAL.empty_table()])
    status = table["status"]
    summary = {
        "sample": sample,
        "alleles": len(table) // 2,
        "windows": len(windows),
        "chunks": len(chunks),
        "statuses": Counter(status.to_pylist()),
        "alone": pc.sum(pc.and_(pc.equal(status, OK), table["window"].is_null())).as_py() or 0,
        "left_out": left_out,
    }
    logging.info("%s", words(summary))
    return summary


def words(summary: dict) -> str:
    """The plan, a line."""
    statuses, left_out = summary["statuses"], summary["left_out"]
    return (
        f"plan: {summary['alleles']:,} alleles on both haplotypes of {summary['sample']}: "
        f"{summary['windows']:,} windows to score; {summary['alone']:,} times nothing else is "
        f"carried in the window, {statuses.get(OVERLAPPED, 0):,} times another allele stands in "
        f"the allele's place, {statuses.get(ONE_COPY, 0):,} times there is no second copy; in no "
        f"background are {left_out.get('unphased', 0):,} unphased alleles, "
        f"{left_out.get('overlapped', 0):,} behind others, {left_out.get('polyploid', 0):,} of "
        f"more than two copies"
    )


def _sample(person: Path, wanted: str | None) -> tuple[int, str]:
    """The place and the name of the sample that is meant."""
    names = genotypes.samples_of(person, "background")
    some = genotypes.some(names)
    if wanted is None:
        if len(names) > 1:
            raise InputError(
                f"{person}: background: which of its samples is the person? Name it as sample; "
                f"there are {some}"
            )
        wanted = names[0]
    if wanted not in names:
        raise InputError(
            f"{person}: background: sample: {wanted!r} is no sample of it; there are {some}"
        )
    return names.index(wanted), wanted


def _person(
    person: Path,
    place: int,
    rows: pa.Table,
    reference: Reference,
    input_length: int,
    folder: Path,
    how: dict,
) -> tuple[dict[int, "_Contig"], dict[str, int]]:
    """What the person carries around the rows, by contig, and how many alleles are left out, by
    why."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".background-") as scratch:
        every, near, aligned = (Path(scratch, name) for name in ("every", "near", "aligned"))
        preparing.prepare(person, reference, every, aligned, chunk_size=1 << 20, **how)
        judged = pq.read_table(every, columns=NEEDED)
        pq.write_table(_near(judged, rows, reference, input_length + BASES), near)
        by_contig, phasing = carrying.carried(person, near, reference, [place])
        known = by_contig or any(one.known for one in genotypes.read(person, [place]))
        if len(judged) and not known:
            raise InputError(
                f"{person}: background: it has no genotypes of the sample; give a VCF or BCF with "
                "phased genotypes (GT), or leave background out"
            )
        wanted = {one.scored_as for here in by_contig.values() for one in here}
        edits = pq.read_table(aligned)
        edits = edits.filter(pc.is_in(edits["allele_id"], pa.array(wanted, pa.int64())))
    names = dict(zip(edits["allele_id"].to_pylist(), (e for _, e in _edits(edits)), strict=True))
    statuses = Counter(phasing["status"].to_pylist())
    contigs = {
        contig: _Contig(reference, contig, here, names, input_length)
        for contig, here in by_contig.items()
    }
    return contigs, {key: statuses[key] for key in ("unphased", "overlapped", "polyploid")}


def _edits(rows: pa.Table) -> Iterator[tuple[int, Edit]]:
    """Contig and edit of each row of a table as `preparing.SCOREABLE` has it."""
    for batch in rows.select(["contig", *Edit._fields]).to_batches(1 << 16):
        for contig, *edit in zip(*batch.to_pydict().values(), strict=True):
            yield contig, Edit(*edit)


def _near(every: pa.Table, rows: pa.Table, reference: Reference, reach: int) -> pa.Table:
    """The person's alleles, of which those count that stand near rows."""
    counts = np.zeros(len(every), bool)
    contig, start = every["contig"], every["scored_pos"].fill_null(0).to_numpy()
    for number in np.unique(rows["contig"].to_numpy()).tolist():
        here = np.flatnonzero(pc.equal(contig, reference.names[number]).fill_null(False))
        at = np.sort(rows.filter(pc.equal(rows["contig"], number))["start"].to_numpy())
        next_one = np.searchsorted(at, start[here] - reach)
        counts[here] = at[np.minimum(next_one, len(at) - 1)] <= start[here] + reach
        counts[here[next_one == len(at)]] = False
    scored_as = pc.if_else(pa.array(counts), every["scored_as"], None)
    return every.set_column(every.schema.get_field_index("scored_as"), "scored_as", scored_as)


class _Contig:
    """What the person's two chromosomes carry of a contig; `alleles` by their edits, `aligned` the
    edit of each as the input's are written."""

    def __init__(
        self,
        reference: Reference,
        contig: int,
        alleles: list[Allele],
        aligned: dict[int, Edit],
        length: int,
    ):
        self._reference, self._contig, self._length = reference, contig, length
        self._alleles = alleles
        self._starts = [one.edit.start for one in alleles]
        self._longest = max(one.edit.ref_len for one in alleles)
        self._same = defaultdict(list)
        for one in alleles:
            self._same[aligned[one.scored_as]].append(one)

    def place(self, edit: Edit) -> tuple[list[_Placed], int]:
        """The allele on each of both chromosomes, and how many others in its window are carried
        on an unknown one."""
        same = self._same.get(edit, [])
        near = self._near(edit)
        kept = _one_phase_set(near, same)
        both = [
            self._on(edit, same, [one for one in near if copy in kept[id(one)]], copy)
            for copy in (0, 1)
        ]
        if self._one_copy(edit.start):
            both[1] = _Placed(ONE_COPY)
        half = self._length // 2
        others = [
            one
            for one in near
            if one not in same
            and (len(one.unphased) or len(kept[id(one)]) < len(one.chromosome))
            and edit.start - half <= one.edit.end
            and one.edit.start < edit.start + half
        ]
        return both, len(others)

    def _on(self, edit: Edit, same: list[Allele], here: list[Allele], copy: int) -> _Placed:
        """The allele on one chromosome, which has `here` around."""
        unknown = any(len(one.unphased) for one in same)
        own = [one for one in here if one in same]
        carried = True if own else None if unknown else False
        others = sorted(one.edit for one in here if one not in same)
        if own:
            edit = own[0].edit
        elif any(_overlap(edit, one) for one in others):
            return _Placed(OVERLAPPED, carried)
        return _Placed(OK, carried, edit, self._within(edit, others))

    def _within(self, edit: Edit, others: list[Edit]) -> tuple[Edit, ...]:
        """Those that stand in either window of the allele."""
        if not others:
            return ()
        both = (
            sequence(self._reference, self._contig, edit.start, edits, self._length).edits
            for edits in (others, sorted([*others, edit]))
        )
        return tuple(sorted({one for there in both for one in there} - {edit}))

    def _near(self, edit: Edit) -> list[Allele]:
        """Those that may stand in its windows: what is deleted there makes these reach further."""
        half, deleted, before = self._length // 2, edit.ref_len, -1
        near: list[Allele] = []
        while deleted != before:
            before = deleted
            first = bisect_left(self._starts, edit.start - half - deleted - self._longest)
            last = bisect_left(self._starts, edit.start + half + deleted + 1)
            near = self._alleles[first:last]
            deleted = edit.ref_len + sum(one.edit.ref_len for one in near)
        return near

    def _one_copy(self, at: int) -> bool:
        """Whether the genotype that is nearest has one copy only, as on a male's X."""
        i = bisect_left(self._starts, at)
        beside = self._alleles[max(i - 1, 0) : i + 1]
        return bool(len(min(beside, key=lambda one: abs(one.edit.start - at)).haploid))


def _overlap(one: Edit, other: Edit) -> bool:
    """Whether a chromosome cannot have both, as ``bcftools consensus`` sees it: an insertion may
    stand before a base that is another one, but not where one is deleted."""
    if one.start == other.start:
        insertion = 0 in (one.ref_len, other.ref_len)
        return not insertion or one.ref_len == other.ref_len or not (one.alt and other.alt)
    return one.start < other.end and other.start < one.end


def _one_phase_set(near: list[Allele], same: list[Allele]) -> dict[int, np.ndarray]:
    """Of each allele its chromosomes, as far as these are known beside the others': of several
    phase sets the allele's own counts, else the one with most alleles."""
    if not near:
        return {}
    chromosome, phase_set = (
        np.concatenate([getattr(one, key) for one in near]) for key in ("chromosome", "phase_set")
    )
    n = [len(one.chromosome) for one in near]
    own = np.repeat([one in same for one in near], n) & (phase_set >= 0)
    decides = own if own.any() else np.ones(len(own), bool)
    kept = carrying.one_phase_set(np.zeros(len(own), int), phase_set, decides)
    edges = np.cumsum(n)[:-1]
    both = zip(np.split(chromosome, edges), np.split(kept, edges), strict=True)
    return {id(one): copies[known] for one, (copies, known) in zip(near, both, strict=True)}


def _for_each(alleles: Path, numbers: np.ndarray, found: list[tuple]) -> pa.Table:
    """`PLANNED`, of what was found for each number, for duplicates too."""
    table = pq.read_table(alleles, columns=[*ALLELE, "scored_as"])
    table = table.filter(table["scored_as"].is_valid())
    order = np.argsort(numbers)
    of = order[np.searchsorted(numbers, table["scored_as"].to_numpy(), sorter=order)]
    both = np.arange(2)
    keys = table.take(np.repeat(np.arange(len(table)), 2))
    kinds = [field.type for field in PLANNED if field.name not in ALLELE]
    own = (
        pa.array(column, kind).take(pa.array((2 * of[:, None] + both).ravel()))
        for column, kind in zip(zip(*found, strict=True), kinds, strict=True)
    )
    columns = own if found else [[]] * len(kinds)
    return pa.table([*keys.select(list(ALLELE)).columns, *columns], schema=PLANNED)


def _virtual(windows: list[tuple], first: int, last: int) -> pa.Table:
    rows = [
        {
            "allele_id": number,
            "contig": contig,
            "centre": centre,
            "background": [one._asdict() for one in background],
            "edits": [edit._asdict()],
        }
        for number, (contig, centre, background, edit) in enumerate(windows[first:last], first)
    ]
    return pa.Table.from_pylist(rows, VIRTUAL)
