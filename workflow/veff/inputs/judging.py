"""Which alleles can be scored, where they stand, and why the others cannot be?"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veff.errors import InputError
from veff.inputs import alignment, records
from veff.inputs.alignment import Aligned, Texts
from veff.inputs.fit import Fit
from veff.inputs.records import Columns, Malformed, Record
from veff.inputs.reference import FIRST_BASE, Reference
from veff.inputs.settling import Settled

STATUSES = (
    "ok",
    "duplicate",
    "ref_mismatch",
    "ref_alt_swapped",
    "reference_n",
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

# An allele as the input has it, the reference's name of its contig, and, where it can be scored,
# as what: in upper case, trimmed and left-aligned, with the base before (at a contig's start the
# one after) if REF or ALT would be empty, as ``bcftools norm`` writes it.
JUDGED = pa.schema(
    {
        "allele_id": pa.int64(),
        "record": pa.int64(),
        "chrom": pa.string(),
        "pos": pa.int64(),
        "id": pa.string(),
        "ref": pa.string(),
        "alt": pa.string(),
        "effect_is": pa.string(),
        "status": pa.string(),
        "reason": pa.string(),
        "contig": pa.string(),
        "scored_pos": pa.int64(),
        "scored_ref": pa.string(),
        "scored_alt": pa.string(),
        "palindromic": pa.bool_(),
    }
)
# Contig and start are one number here, in which contigs stand one base apart: an insertion after
# the last base of a contig is not one before the first of the next.
SITES = pa.schema(
    {"allele_id": pa.int64(), "site": pa.int64(), "ref_len": pa.int32(), "alt": pa.string()}
)
_KEYS = pa.schema(list(JUDGED)[1:5])

FILLED = "the list has no REF: taken from the reference"
SETTLED = "allele order settled by the reference"
UNSETTLED = "allele order not settled, as both alleles fit the reference: taken as listed"

OTHER = {"alt": "ref", "ref": "alt", "unknown": "unknown"}

_IS_BASE = np.isin(np.arange(256), list(b"ACGT"))
_FIRST_BASE = np.frombuffer(FIRST_BASE, np.uint8)
_is_sequence = re.compile("[ACGTacgt]+|-").fullmatch  # '-': the empty allele of lists
_COMPLEMENT = str.maketrans("ACGT", "TGCA")
_is_number = re.compile(r"-?\d{1,18}").fullmatch


class Verdict(NamedTuple):
    """A status with its reason, or for ``ok`` nothing more."""

    status: str
    reason: str = ""


class _Several(NamedTuple):
    """Alleles before they are judged."""

    keys: pa.Table  # as _KEYS has them
    contig: np.ndarray  # int64, -1 for one that the reference lacks, or of a malformed row
    refs: pa.StringArray
    alts: pa.StringArray
    effect_is: pa.StringArray
    remarks: dict[int, str]  # by allele
    malformed: dict[int, str]  # why a row is, by allele


class Judge:
    """Gives alleles their statuses, and counts what says whether the input fits the reference.

    `rows` are all records of the input, which are read once more where a contig's name leaves open
    which of the reference's it means; `source` names it; `share` of its REF may be wrong.
    """

    def __init__(
        self,
        reference: Reference,
        rows: Iterable[Record | Malformed],
        source: str,
        max_allele_length: int,
        share: float,
    ):
        self.reference = reference
        self.max_allele_length = max_allele_length
        self.first_site = first_sites(reference)
        self._source, self._share = source, share
        self._names = pa.array(reference.names, pa.string())
        self._contigs = Settled(reference, rows, source, share)
        self.contigs_matched = False
        self.contigs_unmatched = Counter()
        self.records = self.alleles = 0
        self.fit = Fit()

    def check(self) -> None:
        """Raise `InputError` where the input as a whole does not fit the reference."""
        if self.contigs_unmatched and not self.contigs_matched:
            raise InputError(
                f"{self._source}: none of its contigs is in the reference; it has "
                f"{_some(self.contigs_unmatched)}, the reference has "
                f"{_some(self.reference.names)}; give the reference that it was called on, or "
                "contig_aliases if the names differ only"
            )
        if misfit := self.fit.misfit(self._share, self.reference.assembly):
            raise InputError(f"{self._source}: {misfit}")

    def block(self, rows: list[Record | Malformed] | Columns) -> tuple[pa.Table, pa.Table]:
        """The alleles of records, as `JUDGED` has them, and those that are ok, as `SITES` has.

        Sequences that the reference has to the letter are recognised all at once, the others
        judged one by one; then all that remain are aligned.
        """
        several = self._of_columns(rows) if isinstance(rows, Columns) else self._of_rows(rows)
        keys, contig, refs, alts, effect_is, remarks, malformed = several
        self.contigs_matched |= bool((contig >= 0).any())
        unmatched = contig < 0
        unmatched[list(malformed)] = False
        self.contigs_unmatched.update(keys["chrom"].filter(pa.array(unmatched)).to_pylist())

        start = keys.column("pos").fill_null(0).to_numpy() - 1
        texts = Texts.of(refs), Texts.of(alts)
        written = [pc.binary_length(column).to_numpy() > 0 for column in (refs, alts)]
        fits = self._fits(contig, start, *texts) & written[0] & written[1]
        self.fit.checked += int((fits & (texts[0].length > 0)).sum())
        status, reason = ["ok"] * len(alts), [""] * len(alts)
        ok = fits.copy()
        others = np.flatnonzero(~fits)
        written = (*keys.select(["chrom", "pos"]).columns, refs, alts)
        written = (column.take(pa.array(others)).to_pylist() for column in written)
        for i, *allele in zip(others.tolist(), *written, strict=True):
            status[i], reason[i] = (
                Verdict("malformed", malformed[i])
                if i in malformed
                else self._verdict(int(contig[i]), *allele)
            )
            ok[i] = status[i] == "ok"

        where = np.flatnonzero(ok)
        aligned = alignment.align(
            self.reference,
            contig[where],
            start[where],
            *(one[where] for one in texts),
            fits[where],
        )
        changed = np.maximum(aligned.ref_len, aligned.alt_len)
        kept = (changed > 0) & (changed <= self.max_allele_length)
        for i, n in zip(where[~kept].tolist(), changed[~kept].tolist(), strict=True):
            status[i], reason[i] = self._unfit(n)
        where, aligned = where[kept], aligned.filter(kept)
        for i in where[np.isin(where, list(remarks))].tolist():
            reason[i] = remarks[i]

        allele_id = np.arange(self.alleles, self.alleles + len(alts))
        self.records += len(rows.chrom) if isinstance(rows, Columns) else len(rows)
        self.alleles += len(alts)
        written = as_written(self.reference, contig[where], aligned)
        scored = _spread((*written, palindromic(*written[1:])), where, len(alts))
        names = self._names.take(pa.array(contig, mask=contig < 0))
        judged = (allele_id, *keys.columns, refs, alts, effect_is, status, reason, names, *scored)
        site = self.first_site[contig[where]] + aligned.start
        sites = (allele_id[where], site, aligned.ref_len, aligned.alt)
        return _table(judged, JUDGED), _table(sites, SITES)

    def _of_columns(self, rows: Columns) -> "_Several":
        row_of = pc.list_parent_indices(rows.alts)
        number = pa.array(np.arange(rows.number, rows.number + len(rows.chrom)))
        keys = pa.table([number, rows.chrom, rows.pos, rows.id], _KEYS).take(row_of)
        chrom = rows.chrom.dictionary_encode()
        contigs = [self._contigs[name] for name in chrom.dictionary.to_pylist()]
        contig = np.array(contigs, np.int64)[chrom.indices.to_numpy()][row_of.to_numpy()]
        unknown = pa.repeat("unknown", len(row_of))
        return _Several(keys, contig, rows.ref.take(row_of), rows.alts.values, unknown, {}, {})

    def _of_rows(self, rows: list[Record | Malformed]) -> "_Several":
        malformed = {i: row.reason for i, row in enumerate(rows) if isinstance(row, Malformed)}
        for i in malformed:
            rows[i] = _as_record(rows[i])
        number, _, chrom, pos, name, ref, alts, note, effect = zip(*rows, strict=True)
        row_of = np.repeat(np.arange(len(rows)), [len(several) or 1 for several in alts])
        ref = [ref[i] for i in row_of.tolist()]
        alt = [one for several in alts for one in several or (".",)]
        contig = np.fromiter(map(self._contigs.__getitem__, chrom), np.int64)[row_of]
        wrong = np.flatnonzero(np.isin(row_of, list(malformed)))
        contig[wrong] = -1
        remarks, effect_is = {}, [effect[i] or "unknown" for i in row_of.tolist()]
        for i in np.flatnonzero(np.fromiter(map(bool, note), bool)[row_of]).tolist():
            row = rows[row_of[i]]
            ref[i], alt[i], remarks[i] = self._completed(
                int(contig[i]), row.pos - 1, ref[i], alt[i], row.note
            )
            if row.note == records.ORDER_UNKNOWN and ref[i] != row.ref:
                effect_is[i] = OTHER[effect_is[i]]
        return _Several(
            _table((number, chrom, pos, name), _KEYS).take(row_of),
            contig,
            *(pa.array(column, pa.string()) for column in (ref, alt, effect_is)),
            remarks,
            {i: malformed[row_of[i]] for i in wrong.tolist()},
        )

    def _fits(self, contig: np.ndarray, start: np.ndarray, ref: Texts, alt: Texts) -> np.ndarray:
        """Which alleles replace bases, that the reference has to the letter, by bases: bool[n]."""
        fits = ref.all_in(_IS_BASE) & alt.all_in(_IS_BASE) & (contig >= 0) & (start >= 0)
        fits[fits] = (start + ref.length)[fits] <= self.reference.lengths[contig[fits]]
        fits[fits] = alignment.has(self.reference, contig[fits], start[fits], ref[fits])
        return fits

    def _completed(
        self, contig: int, start: int, ref: str, alt: str, note: str
    ) -> tuple[str, str, str]:
        """REF, ALT and a remark, where a list leaves open which allele is the reference's."""
        if note == records.NO_REF:
            there = b"" if contig < 0 else self.reference.fetch(contig, start, start + 1)
            return there.translate(FIRST_BASE).decode() or "N", alt, FILLED
        if contig < 0:
            return ref, alt, ""
        listed, other = (
            bool(_is_sequence(allele)) and self.reference.has(contig, start, _sequence(allele))
            for allele in (ref, alt)
        )
        if listed and other:
            return ref, alt, UNSETTLED
        return (alt, ref, SETTLED) if other else (ref, alt, SETTLED)

    def _verdict(self, contig: int, chrom: str, pos: int, ref: str, alt: str) -> Verdict:
        """The status of an allele that the reference does not have to the letter.

        `contig` is -1 for one that the reference lacks.
        """
        if not _is_sequence(alt):
            return _without_bases(alt)
        if contig < 0:
            return Verdict("unknown_contig", self._contigs.without(chrom))
        start, bases = pos - 1, 0 if ref == "-" else len(ref)
        length = int(self.reference.lengths[contig])
        if start < 0 or start + bases > length:
            last = f" to {pos + bases - 1}" if bases > 1 else ""
            return Verdict(
                "out_of_contig", f"{chrom!r} has positions 1 to {length}, not {pos}{last}"
            )
        there = self.reference.fetch(contig, start, start + bases).decode()
        if "N" in there and all(
            n == "N" or n == base for n, base in zip(there, ref.upper(), strict=True)
        ):
            return Verdict("reference_n", f"the reference has {_short(there)!r} there")
        if not _is_sequence(ref):
            return Verdict("not_acgt", f"REF is {_short(ref)!r}; only A, C, G, T can be scored")
        ref, alt = _sequence(ref), _sequence(alt)
        self.fit.checked += 1
        if self.reference.has(contig, start, ref):
            return Verdict("ok")
        self.fit.wrong += 1
        self.fit.too_small += self.reference.has(contig, start + 1, ref)
        self.fit.too_large += start > 0 and self.reference.has(contig, start - 1, ref)
        if alt and self.reference.has(contig, start, alt):
            self.fit.swapped += 1
            return Verdict(
                "ref_alt_swapped",
                f"REF is {_short(ref)!r}, but the reference has ALT there, {_short(alt)!r}",
            )
        reason = f"REF is {_short(ref)!r}, but the reference has {_short(there)!r}"
        if len(ref) == len(alt) == 1 and there in (ref + alt).translate(_COMPLEMENT):
            reason += f"; {ref} and {alt} would fit it on the other strand"
        return Verdict("ref_mismatch", reason)

    def _unfit(self, changed: int) -> Verdict:
        """The status of an allele that changes no base, or too many."""
        if not changed:
            return Verdict("no_alt", "ALT is the same as REF")
        return Verdict("too_long", f"changes {changed} bases, more than {self.max_allele_length}")


def palindromic(ref: pa.Array, alt: pa.Array) -> pa.Array:
    """Which alleles are SNVs whose REF and ALT pair with each other: A/T, T/A, C/G, G/C."""
    return pc.is_in(pc.binary_join_element_wise(ref, alt, ""), pa.array(["AT", "TA", "CG", "GC"]))


def first_sites(reference: Reference) -> np.ndarray:
    """The number of each contig's first base when contigs stand one base apart, int64[contigs]."""
    return reference.offsets + np.arange(len(reference.offsets))


def as_written(reference: Reference, contig: np.ndarray, aligned: Aligned) -> tuple:
    """Position, REF and ALT as a VCF has them: the base before in front where one is empty."""
    bare = (aligned.ref_len == 0) | (aligned.alt_len == 0)
    pos, ref, alt = aligned.start + 1, aligned.ref, aligned.alt
    if bare.any():
        first = bare & (aligned.start == 0)  # nothing is before it: the base after goes behind
        before = bare & ~first
        place = np.where(first, aligned.ref_len, aligned.start - 1)[bare]
        base = np.zeros(len(pos), np.uint8)
        base[bare] = _FIRST_BASE[reference.at(contig[bare], place)]
        ref, alt = (
            pc.binary_join_element_wise(_letters(base, before), one, _letters(base, first), "")
            for one in (ref, alt)
        )
        pos = pos - before
    return pa.array(pos), ref, alt


def _letters(letters: np.ndarray, wanted: np.ndarray) -> pa.StringArray:
    """The letter where it is wanted, else an empty text."""
    offsets = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int32)
    return pa.StringArray.from_buffers(
        len(wanted), pa.py_buffer(offsets), pa.py_buffer(letters[wanted])
    )


def _spread(columns: Iterable[pa.Array], where: np.ndarray, n: int) -> list[pa.Array]:
    """Columns of n rows that have the given values at `where` and null elsewhere."""
    if len(where) == n:
        return list(columns)
    place = np.zeros(n, np.int64)
    place[where] = np.arange(len(where))
    missing = np.ones(n, bool)
    missing[where] = False
    index = pa.array(place, mask=missing)
    return [column.take(index) for column in columns]


def _as_record(row: Malformed) -> Record:
    """What can be told of a malformed row; pos is None where it is no number."""
    chrom, pos, name, ref, alt = row.fields
    pos = int(pos) if _is_number(pos) else None
    return Record(row.number, row.line, chrom, pos, name, ref, (alt,))


def _sequence(allele: str) -> str:
    return "" if allele == "-" else allele.upper()


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}... ({len(text)} long)"


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:5])) + (f", ... ({len(names)})" if len(names) > 5 else "")


def _without_bases(alt: str) -> Verdict:
    """The status of an ALT that is no sequence of A, C, G, T."""
    if not alt:
        return Verdict("malformed", "ALT is empty")
    if alt in (".", "<*>", "<NON_REF>"):
        return Verdict("no_alt", f"ALT is {alt!r}: no alternate allele")
    if alt in ("*", "<*:DEL>"):
        return Verdict("spanning_deletion", f"ALT is {alt!r}: deleted by another record's allele")
    if alt.startswith("<"):
        return Verdict("symbolic", f"ALT is {_short(alt)!r}: symbolic, without a sequence")
    if "[" in alt or "]" in alt or "." in (alt[0], alt[-1]):
        return Verdict("breakend", f"ALT is {_short(alt)!r}: a breakend")
    return Verdict("not_acgt", f"ALT is {_short(alt)!r}; only A, C, G, T can be scored")


def _table(columns: Iterable, schema: pa.Schema) -> pa.Table:
    return pa.table(
        [
            column if isinstance(column, pa.ChunkedArray) else pa.array(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )
