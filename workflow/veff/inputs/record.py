"""What is one record, and what keeps a row from being one?"""

import re
from typing import NamedTuple

import pyarrow as pa

NO_REF = "no REF in list"
ORDER_UNKNOWN = "allele order unknown"

MAX_POS = 2**31 - 1  # a VCF's integers have 32 bits
MOST_ALTS = 2**16 - 2  # htslib counts alleles, REF among them, in 16 bits
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Record(NamedTuple):
    """One record, its strings as the input has them (case kept, nothing trimmed).

    ``ref`` and ``alts`` are what a VCF may hold, so also ``N``, ``*``, ``<DEL>``, breakends and
    any other text: whether an allele can be scored is not decided here. ``alts`` is empty for
    ALT ``.``; of several, one that is no text at all is ``''``. In records from a list, and only
    there, ``-`` is the empty allele: ``pos`` is then the first base that is deleted, or the base
    before which something is inserted.

    ``note`` is ``''``, or one of two for lists:
    ``NO_REF``: the list names no reference allele; ``ref`` is ``''``, to be filled with what
    the reference has at ``pos``.
    ``ORDER_UNKNOWN``: the list (a plink ``.bim``, effect and other allele of a GWAS) does not
    say which allele is the reference's; ``ref`` is allele 2 or the other allele, ``alts`` the
    one remaining, to be swapped where only that one matches the reference.

    ``effect``: in the table of a tool that says so, ``'alt'`` or ``'ref'``: of which of the two,
    as they stand in the record, an effect is.
    """

    number: int  # 0-based, malformed rows counted
    line: int  # 1-based line of the file; in a BCF, which has none, number + 1
    chrom: str
    pos: int  # 1-based, 0 to 2**31 - 1
    id: str  # '.' for none
    ref: str
    alts: tuple[str, ...]
    note: str = ""
    effect: str = ""


class Columns(NamedTuple):
    """Records with nothing to note, one after another, by columns.

    ``alts`` is what stands there, ``.`` where a record has none, as a list a record.
    """

    number: int  # of the first
    chrom: pa.StringArray
    pos: pa.Int64Array
    id: pa.StringArray
    ref: pa.StringArray
    alts: pa.ListArray


class Malformed(NamedTuple):
    """A row that is no record, counted in the same sequence as the records."""

    number: int
    line: int
    reason: str
    fields: tuple[str, str, str, str, str]  # chrom, pos, id, ref, alt where they can be told
    stops: bool = True  # not where a tool says so itself that the variant has no place


def parse(
    number: int,
    line: int,
    chrom: str,
    pos: str,
    id: str,
    ref: str,
    alt: str,
    in_list: bool = False,
    note: str = "",
    effect: str = "",
) -> Record | Malformed:
    """A record of five strings, or what is wrong with them.

    A list may have '-' for an empty allele.
    """
    alts = () if alt == "." else tuple(alt.split(","))
    # Not int() alone, which also reads '+5', ' 5', '1_000' and digits of other scripts.
    digits = pos.isdigit() and pos.isascii() and len(pos) <= 10
    if not digits or (position := int(pos)) > MAX_POS:
        what = f"position {quote(pos)} is not a whole number from 0 to {MAX_POS}"
    elif not _is_contig(chrom):
        what = f"{quote(chrom)} is no name of a contig"
    elif (alts and not any(alts)) or (not ref and note != NO_REF):
        what = f"an allele is missing: REF {quote(ref)}, ALT {quote(alt)}"
    elif not in_list and (ref == "-" or "-" in alts):
        what = "'-' is no allele of a VCF; write it with the base before it"
    elif found := _CONTROL.search(text := chrom + id + ref + alt):
        what = f"{found[0]!r}, a control character, which no VCF can hold"
    elif not text.isascii() and text != printable(text):
        what = "bytes that are not UTF-8"
    elif len(alts) > MOST_ALTS:
        what = f"{len(alts):,} alternate alleles; a VCF or BCF that htslib reads has {MOST_ALTS:,}"
    else:
        return Record(number, line, chrom, position, id or ".", ref, alts, note, effect)
    return Malformed(number, line, what, tuple(map(printable, (chrom, pos, id, ref, alt))))


def _is_contig(name: str) -> bool:
    """Whether htslib can take it, symbolic contigs (``<1>``) among them."""
    if name.isalnum():
        return True
    inner = name[1:-1] if name.startswith("<") and name.endswith(">") else name
    # One that starts with '#' would make a header of its row.
    return bool(inner) and not inner.startswith("#") and not any(c in inner for c in ",<>")


def decode(line: bytes) -> str:
    return line.decode(errors="surrogateescape")


def printable(text: str) -> str:
    """Text that any table can hold: bytes that are no UTF-8, and control characters, become
    U+FFFD."""
    return _CONTROL.sub("\ufffd", _utf8(text))


def quote(text: str | bytes) -> str:
    """A piece of the input for a message: one line, not long."""
    text = text.decode(errors="replace") if isinstance(text, bytes) else _utf8(text)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _utf8(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")
