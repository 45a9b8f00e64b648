"""Which alleles are in the input, and which of them can be scored.

Alleles are judged in blocks, in the order of the input, and go to disk in two streams: the rows
of all, and the trimmed form of those that can be scored, cut by region of the genome. Then
region after region is sorted, which finds the duplicates and gives the order of the scores;
last, the rows of all are completed with what that showed. Memory does not grow with the input.
"""

import functools
import gc
import itertools
import logging
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import tables
from veff.errors import InputError
from veff.inputs import records
from veff.inputs.records import Malformed, Record
from veff.inputs.reference import FIRST_BASE, Reference

STATUSES = (
    "ok",
    "duplicate",
    "ref_mismatch",
    "ref_alt_swapped",
    "unknown_contig",
    "out_of_contig",
    "no_alt",
    "symbolic",
    "breakend",
    "spanning_deletion",
    "not_acgt",
    "too_long",
    "malformed",
)

ALLELES = pa.schema(
    {
        "allele_id": pa.int64(),
        "record": pa.int64(),
        "chrom": pa.string(),
        "pos": pa.int64(),
        "id": pa.string(),
        "ref": pa.string(),
        "alt": pa.string(),
        "status": pa.string(),
        "reason": pa.string(),
        "scored_as": pa.int64(),
    }
)
SCOREABLE = pa.schema(
    {
        "allele_id": pa.int64(),
        "contig": pa.int32(),
        "start": pa.int64(),
        "ref_len": pa.int32(),
        "alt": pa.string(),
    }
)
_JUDGED = pa.schema(list(ALLELES)[:-1])
_KEYS = pa.schema(list(ALLELES)[1:5])
# On the way there, contig and start are one number, in which contigs stand one base apart: an
# insertion after the last base of a contig is not one before the first of the next.
_SITES = pa.schema(
    {"allele_id": pa.int64(), "site": pa.int64(), "ref_len": pa.int32(), "alt": pa.string()}
)

BLOCK_RECORDS = 1 << 16  # records that are in memory at once, at most,
BLOCK_BASES = 1 << 26  # and about how many bases of them
REGION_BITS = 24  # regions that are sorted at once have 2**24 bases

# Fewer wrong REF than this say nothing about the file, unless no REF at all is right.
MIN_REF_MISMATCHES = 10

FILLED = "the list has no REF: taken from the reference"
SETTLED = "allele order settled by the reference"
UNSETTLED = "allele order not settled, as both alleles fit the reference: taken as listed"

_IS_BASE = np.isin(np.arange(256), list(b"ACGT"))
_is_sequence = re.compile("[ACGTacgt]+|-").fullmatch  # '-': the empty allele of lists
_is_number = re.compile(r"-?\d{1,18}").fullmatch


def prepare(
    variants: Path,
    reference: Reference,
    alleles: Path,
    scoreable: Path,
    *,
    chunk_size: int,
    max_allele_length: int = 500,
    max_ref_mismatch: float = 0.01,
    malformed_rows: str = "error",
) -> dict:
    """Read variants, give each allele a status, and write two Parquet files in one folder.

    ``alleles``: every allele of the input, in its order and with its keys: allele_id (0, 1, ...),
    record, chrom, pos (null if no number), id, ref, alt, status (one of `STATUSES`), reason (one
    line; for ``ok`` empty or a remark), scored_as (the allele_id under which its scores stand:
    its own, or of a ``duplicate`` the first; null if it has none). REF and ALT are the input's,
    but for lists: a missing REF is filled in, an order of alleles settled by the reference.
    ``scoreable``: the alleles to score, trimmed (common suffix first, then common prefix), in
    the order of contig, start, ref_len, alt; start is 0-based; each row group is a chunk of
    ``chunk_size`` alleles, the last one smaller.

    Returns records, alleles, statuses (counts), scoreable, chunks, ref_checked (alleles whose
    REF was compared), contigs_unmatched (alleles by name of contig).

    Raises `InputError` when no contig of the input is in the reference, when more than
    ``max_ref_mismatch`` of the alleles have another REF than the reference, and for rows that
    cannot be parsed unless ``malformed_rows`` is ``'skip'``.
    """
    return prepare_records(
        records.read(variants, malformed_rows),
        str(variants),
        reference,
        alleles,
        scoreable,
        chunk_size=chunk_size,
        max_allele_length=max_allele_length,
        max_ref_mismatch=max_ref_mismatch,
    )


def prepare_records(
    rows: Iterable[Record | Malformed],
    source: str,
    reference: Reference,
    alleles: Path,
    scoreable: Path,
    *,
    chunk_size: int,
    max_allele_length: int = 500,
    max_ref_mismatch: float = 0.01,
) -> dict:
    """Do what `prepare` does with records that were read already; `source` names them."""
    with tempfile.TemporaryDirectory(dir=alleles.parent, prefix=".prepare-") as scratch:
        scratch = Path(scratch)
        judge = _Judge(reference, max_allele_length)
        with _no_collector():
            regions = _judge_all(rows, judge, scratch / "judged", scratch / "sites")
        if judge.contigs_unmatched and not judge.contigs_matched:
            raise InputError(_no_contig(source, judge, reference))
        if judge.too_many_wrong(max_ref_mismatch):
            raise InputError(_wrong_ref(source, judge, reference, max_ref_mismatch))
        duplicates, n_scoreable = _write_scoreable(
            scratch / "sites", regions, reference, scratch / "scoreable", chunk_size
        )
        statuses = _write_alleles(scratch / "judged", duplicates, scratch / "alleles")
        if sum(statuses.values()) != judge.alleles or statuses["ok"] != n_scoreable:
            raise RuntimeError(
                f"{source}: {judge.alleles} alleles, {n_scoreable} of them scoreable, but the "
                f"statuses are {dict(statuses)}; this is a fault of the program"
            )
        logging.info("%s: %d records, %d alleles", source, judge.records, judge.alleles)
        for status in filter(statuses.get, STATUSES):
            logging.info("%12d %s", statuses[status], status)
        tables.put(scratch / "scoreable", scoreable)
        tables.put(scratch / "alleles", alleles)
    return {
        "records": judge.records,
        "alleles": judge.alleles,
        "statuses": {status: statuses[status] for status in STATUSES},
        "scoreable": n_scoreable,
        "chunks": -(-n_scoreable // chunk_size),
        "ref_checked": judge.ref_checked,
        "contigs_unmatched": dict(judge.contigs_unmatched),
    }


def trim(start: int, ref: str, alt: str) -> tuple[int, str, str]:
    """The minimal form of an allele: common suffix cut first, then common prefix.

    So ``GAC>G`` at 0 is ``AC>-`` at 1. The sequence that results is the same; where a deletion or
    insertion could stand at several places of a repeat, it is not moved beyond the given REF.
    """
    suffix = _n_shared(ref[::-1], alt[::-1])
    ref, alt = ref[: len(ref) - suffix], alt[: len(alt) - suffix]
    prefix = _n_shared(ref, alt)
    return start + prefix, ref[prefix:], alt[prefix:]


def _n_shared(one: str, other: str) -> int:
    """Length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


class Verdict(NamedTuple):
    """A status with its reason and, for ``ok``, the trimmed allele."""

    status: str
    reason: str = ""
    site: int = -1
    ref_len: int = -1
    alt: str = ""


class _Judge:
    """Gives alleles their statuses, and counts what says whether the input fits the reference."""

    def __init__(self, reference: Reference, max_allele_length: int):
        self.reference = reference
        self.max_allele_length = max_allele_length
        self.index_of = functools.cache(self.index_of)
        self.first_site = _first_sites(reference)
        self.contigs_matched = False
        self.contigs_unmatched = Counter()
        self.records = self.alleles = 0
        self.ref_checked = self.ref_wrong = self.swapped = self.one_on = 0

    def index_of(self, contig: str) -> int:
        """Index of a contig in the reference, -1 where it has none; cached."""
        index = self.reference.contig(contig)
        return -1 if index is None else index

    def block(self, rows: list[Record | Malformed]) -> tuple[pa.Table, pa.Table]:
        """The alleles of records, as `_JUDGED` has them, and those that are ok, as `_SITES` has.

        SNVs that fit the reference are recognised all at once, the others judged one by one.
        """
        malformed = {i: row.reason for i, row in enumerate(rows) if isinstance(row, Malformed)}
        for i in malformed:
            rows[i] = _as_record(rows[i])
        number, _, chrom, pos, name, ref, alts, note = zip(*rows, strict=True)
        row_of = np.repeat(np.arange(len(rows)), [len(several) or 1 for several in alts])
        ref = [ref[i] for i in row_of.tolist()]
        alt = [one for several in alts for one in several or (".",)]
        contig = np.fromiter(map(self.index_of, chrom), np.int64)[row_of]

        parsed = ~np.isin(row_of, list(malformed))
        self.contigs_matched |= bool((contig >= 0)[parsed].any())
        self.contigs_unmatched.update(chrom[i] for i in row_of[parsed & (contig < 0)].tolist())

        remarks = {}
        for i in np.flatnonzero(np.fromiter(map(bool, note), bool)[row_of]).tolist():
            row = rows[row_of[i]]
            ref[i], alt[i], remarks[i] = self.complete(
                int(contig[i]), row.pos - 1, ref[i], alt[i], row.note
            )

        keys = _table((number, chrom, pos, name), _KEYS).take(row_of)
        ref_column, alt_column = pa.array(ref, pa.string()), pa.array(alt, pa.string())
        start = keys.column("pos").fill_null(0).to_numpy() - 1
        ok = self.snvs_that_fit(contig, start, ref_column, alt_column) & parsed
        self.ref_checked += int(ok.sum())

        status, reason = ["ok"] * len(alt), [""] * len(alt)
        site, ref_len = self.first_site[contig] + start, np.ones(len(alt), np.int32)
        trimmed = [one.upper() for one in alt]
        for i in np.flatnonzero(~ok).tolist():
            row = int(row_of[i])
            verdict = (
                Verdict("malformed", malformed[row])
                if row in malformed
                else self.allele(int(contig[i]), chrom[row], pos[row], ref[i], alt[i])
            )
            status[i], reason[i], site[i], ref_len[i], trimmed[i] = verdict
            ok[i] = verdict.status == "ok"
        for i, remark in remarks.items():
            if ok[i]:
                reason[i] = remark

        allele_id = np.arange(self.alleles, self.alleles + len(alt))
        self.records += len(rows)
        self.alleles += len(alt)
        judged = (allele_id, *keys.columns, ref_column, alt_column, status, reason)
        sites = _table((allele_id, site, ref_len, trimmed), _SITES).filter(pa.array(ok))
        return _table(judged, _JUDGED), sites

    def snvs_that_fit(
        self, contig: np.ndarray, start: np.ndarray, ref: pa.StringArray, alt: pa.StringArray
    ) -> np.ndarray:
        """Which alleles replace a base, that the reference has, by another one: bool[n]."""
        genome = self.reference
        ref, alt = _only_letter(ref), _only_letter(alt)
        fits = _IS_BASE[ref] & _IS_BASE[alt] & (ref != alt) & (contig >= 0) & (start >= 0)
        fits[fits] = start[fits] < genome.lengths[contig[fits]]
        fits[fits] = genome.at(contig[fits], start[fits]) == ref[fits]
        return fits

    def complete(
        self, contig: int, start: int, ref: str, alt: str, note: str
    ) -> tuple[str, str, str]:
        """REF, ALT and a remark, where a list leaves open which allele is the reference's."""
        if note == records.NO_REF:
            there = b"" if contig < 0 else self.reference.fetch(contig, start, start + 1)
            return there.translate(FIRST_BASE).decode() or "N", alt, FILLED
        if contig < 0:
            return ref, alt, ""
        listed, other = (
            bool(_is_sequence(allele)) and self.matches(contig, start, _sequence(allele))
            for allele in (ref, alt)
        )
        if listed and other:
            return ref, alt, UNSETTLED
        return (alt, ref, SETTLED) if other else (ref, alt, SETTLED)

    def allele(self, contig: int, chrom: str, pos: int, ref: str, alt: str) -> Verdict:
        """The status of one allele; contig is -1 where the reference lacks it."""
        if not _is_sequence(alt):
            return _without_bases(alt)
        if contig < 0:
            return Verdict("unknown_contig", f"the reference has no contig {chrom!r}")
        start, bases = pos - 1, 0 if ref == "-" else len(ref)
        length = int(self.reference.lengths[contig])
        if start < 0 or start + bases > length:
            last = f" to {pos + bases - 1}" if bases > 1 else ""
            return Verdict(
                "out_of_contig", f"{chrom!r} has positions 1 to {length}, not {pos}{last}"
            )
        if not _is_sequence(ref):
            return Verdict("not_acgt", f"REF is {_short(ref)!r}; only A, C, G, T can be scored")
        ref, alt = _sequence(ref), _sequence(alt)
        self.ref_checked += 1
        if not self.matches(contig, start, ref):
            return self.wrong_ref(contig, start, ref, alt)
        if ref == alt:
            return Verdict("no_alt", "ALT is the same as REF")
        if len(ref) != 1 or len(alt) != 1:
            start, ref, alt = trim(start, ref, alt)
            changed = max(len(ref), len(alt))
            if changed > self.max_allele_length:
                return Verdict(
                    "too_long", f"changes {changed} bases, more than {self.max_allele_length}"
                )
        return Verdict("ok", "", int(self.first_site[contig]) + start, len(ref), alt)

    def matches(self, contig: int, start: int, bases: str) -> bool:
        """Whether the reference has these bases, its IUPAC codes read as VCF does."""
        there = self.reference.fetch(contig, start, start + len(bases))
        return there == bases.encode() or there.translate(FIRST_BASE) == bases.encode()

    def wrong_ref(self, contig: int, start: int, ref: str, alt: str) -> Verdict:
        self.ref_wrong += 1
        self.one_on += self.matches(contig, start + 1, ref)
        if alt and self.matches(contig, start, alt):
            self.swapped += 1
            return Verdict(
                "ref_alt_swapped",
                f"REF is {_short(ref)!r}, but the reference has ALT there, {_short(alt)!r}",
            )
        there = self.reference.fetch(contig, start, start + len(ref)).decode()
        return Verdict(
            "ref_mismatch", f"REF is {_short(ref)!r}, but the reference has {_short(there)!r}"
        )

    def too_many_wrong(self, share: float) -> bool:
        none_right = 1 < self.ref_checked == self.ref_wrong
        return self.ref_wrong > share * self.ref_checked and (
            none_right or self.ref_wrong >= MIN_REF_MISMATCHES
        )


def _as_record(row: Malformed) -> Record:
    """What can be told of a malformed row; pos is None where it is no number."""
    chrom, pos, name, ref, alt = row.fields
    pos = int(pos) if _is_number(pos) else None
    return Record(row.number, row.line, chrom, pos, name, ref, (alt,))


def _only_letter(column: pa.StringArray) -> np.ndarray:
    """The letter of each string that is one letter long, in upper case, else 0: uint8[n]."""
    _, offsets, data = column.buffers()
    offsets = np.frombuffer(offsets, np.int32)[: len(column) + 1]
    letters = np.zeros(len(column), np.uint8)
    single = np.diff(offsets) == 1
    letters[single] = np.frombuffer(data, np.uint8)[offsets[:-1][single]] & ~np.uint8(32)
    return letters


def _sequence(allele: str) -> str:
    return "" if allele == "-" else allele.upper()


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}... ({len(text)} long)"


def _without_bases(alt: str) -> Verdict:
    """The status of an ALT that is no sequence of A, C, G, T."""
    if alt in (".", "<*>", "<NON_REF>"):
        return Verdict("no_alt", f"ALT is {alt!r}: no alternate allele")
    if alt in ("*", "<*:DEL>"):
        return Verdict("spanning_deletion", f"ALT is {alt!r}: deleted by another record's allele")
    if alt.startswith("<"):
        return Verdict("symbolic", f"ALT is {_short(alt)!r}: symbolic, without a sequence")
    if "[" in alt or "]" in alt or (alt != "" and "." in (alt[0], alt[-1])):
        return Verdict("breakend", f"ALT is {_short(alt)!r}: a breakend")
    return Verdict("not_acgt", f"ALT is {_short(alt)!r}; only A, C, G, T can be scored")


def _first_sites(reference: Reference) -> np.ndarray:
    """The number of each contig's first base when contigs stand one base apart, int64[contigs]."""
    return reference.offsets + np.arange(len(reference.offsets))


@contextmanager
def _no_collector() -> Iterator[None]:
    """Without Python's garbage collector, which would look for cycles among all the records that
    are held, again and again: they make none, and that takes a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _judge_all(
    rows: Iterable[Record | Malformed], judge: _Judge, judged: Path, sites: Path
) -> dict[int, list[int]]:
    """Write the alleles with their statuses to `judged`, those that can be scored to `sites`.

    Returns which record batches of `sites` hold each region of the genome.
    """
    regions = defaultdict(list)
    n_batches = 0
    lz4 = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        pa.ipc.new_stream(str(judged), _JUDGED, options=lz4) as every,
        pa.ipc.new_file(str(sites), _SITES) as scoreable,
    ):
        for block in _blocks(rows):
            judged_block, ok = judge.block(block)
            every.write_table(judged_block)
            ok = ok.sort_by("site")
            region = ok.column("site").to_numpy() >> REGION_BITS
            for start, end in itertools.pairwise(
                [0, *(np.flatnonzero(np.diff(region)) + 1).tolist(), len(region)]
            ):
                if start < end:
                    scoreable.write_table(ok.slice(start, end - start).combine_chunks())
                    regions[int(region[start])].append(n_batches)
                    n_batches += 1
    return regions


def _blocks(rows: Iterable[Record | Malformed]) -> Iterator[list[Record | Malformed]]:
    """As many records at once as memory is meant for."""
    block, size = [], 0
    for row in rows:
        block.append(row)
        if isinstance(row, Record):
            size += len(row.ref) * len(row.alts) + sum(map(len, row.alts))
        if len(block) == BLOCK_RECORDS or size > BLOCK_BASES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _table(columns: Iterable, schema: pa.Schema) -> pa.Table:
    return pa.table(
        [
            column if isinstance(column, pa.ChunkedArray) else pa.array(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )


def _write_scoreable(
    sites: Path, regions: dict[int, list[int]], reference: Reference, out: Path, chunk_size: int
) -> tuple[np.ndarray, int]:
    """Sort region after region, write each distinct allele, and return the others.

    Returns the duplicates, int64[2, n], their allele_id in its order and the one that is scored
    for each; and the number of alleles written.
    """
    first_site = _first_sites(reference)
    duplicates, n_scoreable = [np.zeros((2, 0), np.int64)], 0
    pending = SCOREABLE.empty_table()
    with (
        pa.OSFile(str(sites)) as file,
        pa.ipc.open_file(file) as batches,
        pq.ParquetWriter(out, SCOREABLE, compression="zstd") as writer,
    ):
        for region in sorted(regions):
            table = pa.Table.from_batches(map(batches.get_batch, regions[region]))
            order = [(key, "ascending") for key in ("site", "ref_len", "alt", "allele_id")]
            table = table.sort_by(order).combine_chunks()
            allele_id, site, ref_len = (table.column(i).to_numpy() for i in range(3))
            alt = table.column("alt")
            first = np.ones(len(table), bool)
            first[1:] = (np.diff(site) != 0) | (np.diff(ref_len) != 0)
            first[1:] |= pc.not_equal(alt.slice(1), alt.slice(0, len(alt) - 1)).to_numpy()
            scored_as = allele_id[first][np.cumsum(first) - 1]
            duplicates.append(np.stack([allele_id, scored_as])[:, ~first])
            contig = np.searchsorted(first_site, site, "right") - 1
            distinct = pa.table(
                [allele_id, contig, site - first_site[contig], ref_len, alt], SCOREABLE.names
            )
            pending = pa.concat_tables([pending, distinct.cast(SCOREABLE).filter(first)])
            n_scoreable += int(first.sum())
            whole = len(pending) - len(pending) % chunk_size
            if whole:
                writer.write_table(pending.slice(0, whole), row_group_size=chunk_size)
                pending = pending.slice(whole).combine_chunks()
        if len(pending):
            writer.write_table(pending, row_group_size=chunk_size)
    duplicates = np.concatenate(duplicates, axis=1)
    return duplicates[:, np.argsort(duplicates[0])], n_scoreable


def _write_alleles(judged: Path, duplicates: np.ndarray, out: Path) -> Counter:
    """Write all alleles with what the sort has shown, and count their statuses."""
    statuses = Counter()
    duplicate, first = duplicates
    with (
        pa.OSFile(str(judged)) as file,
        pa.ipc.open_stream(file) as batches,
        pq.ParquetWriter(out, ALLELES, compression="zstd") as writer,
    ):
        for batch in batches:
            allele_id = batch.column("allele_id").to_numpy()
            status, reason = batch.column("status"), batch.column("reason")
            scored_as = pa.array(allele_id, mask=pc.not_equal(status, "ok").to_numpy(False))
            here = slice(*np.searchsorted(duplicate, [allele_id[0], allele_id[-1] + 1]))
            repeated = pa.array(np.isin(allele_id, duplicate[here], assume_unique=True))
            same = [
                f"the same change as allele {original}" + (f"; {remark}" if remark else "")
                for original, remark in zip(
                    first[here], reason.filter(repeated).to_pylist(), strict=True
                )
            ]
            status = pc.if_else(repeated, "duplicate", status)
            reason = pc.replace_with_mask(reason, repeated, pa.array(same, pa.string()))
            scored_as = pc.replace_with_mask(scored_as, repeated, pa.array(first[here]))
            for counted in pc.value_counts(status).to_pylist():
                statuses[counted["values"]] += counted["counts"]
            keys = batch.columns[: len(_JUDGED) - 2]
            writer.write_batch(pa.record_batch([*keys, status, reason, scored_as], schema=ALLELES))
    return statuses


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:5])) + (f", ... ({len(names)})" if len(names) > 5 else "")


def _no_contig(source: str, judge: _Judge, reference: Reference) -> str:
    return (
        f"{source}: none of its contigs is in the reference; it has "
        f"{_some(judge.contigs_unmatched)}, the reference has {_some(reference.names)}; give the "
        "reference that it was called on, or contig_aliases if the names differ only"
    )


def _wrong_ref(source: str, judge: _Judge, reference: Reference, share: float) -> str:
    """The error about REF alleles, with each likely cause as far as the data shows it."""
    wrong = judge.ref_wrong
    if judge.swapped > 0.75 * wrong:
        cause = "REF and ALT look swapped"
    elif judge.one_on > 0.75 * wrong:
        cause = "positions look 0-based"
    else:
        known = f", which is {reference.assembly}" if reference.assembly else ""
        cause = f"it may be called on another assembly than the reference{known}"
    return (
        f"{source}: {wrong} of {judge.ref_checked} alleles ({wrong / judge.ref_checked:.1%}) have "
        f"another REF than the reference, more than max_ref_mismatch ({share:.1%}): {cause}; of "
        f"the {wrong}, {judge.swapped} fit with REF and ALT swapped (by chance about a third), "
        f"{judge.one_on} fit one base further on, as 0-based positions would (by chance a quarter)"
    )
