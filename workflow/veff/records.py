"""The records of a variant file, one after another, as its lines say.

VCF text is read here rather than through pysam, which gives no line numbers, gives up on a
whole file for one bad row, cannot open plain gzip, and is lenient where it must not be (an
empty POS becomes 0, ALT ``A,,T`` becomes ``A``, ``.``, ``T``). Only the five columns that
say what the variants are get parsed: genotypes are never looked at. BCF goes through pysam.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NO_REF = "no REF in list"
ORDER_UNKNOWN = "allele order unknown"


class Record(NamedTuple):
    """One record, its strings as the input has them (case kept, nothing trimmed).

    ``ref`` and ``alts`` are what a VCF may hold, so also ``N``, ``*``, ``<DEL>``, breakends and
    any other text: whether an allele can be scored is not decided here. ``alts`` is empty for
    ALT ``.``. In records from a list, and only there, ``-`` is the empty allele: ``pos`` is
    then the first base that is deleted, or the base before which something is inserted.

    ``note`` is ``''``, or one of two for lists:
    ``NO_REF``: the list names no reference allele; ``ref`` is ``''``, to be filled with what
    the reference has at ``pos``.
    ``ORDER_UNKNOWN``: the list (a plink ``.bim``, effect and other allele of a GWAS) does not
    say which allele is the reference's; ``ref`` is allele 2 or the other allele, ``alts`` the
    one remaining, to be swapped where only that one matches the reference.
    """

    number: int  # 0-based, malformed rows counted
    line: int  # 1-based line of the file; in a BCF, which has none, number + 1
    chrom: str
    pos: int  # 1-based, 0 to 2**31 - 1
    id: str  # '.' for none
    ref: str
    alts: tuple[str, ...]
    note: str = ""


class Malformed(NamedTuple):
    """A row that is no record, counted in the same sequence as the records."""

    number: int
    line: int
    reason: str
    fields: tuple[str, str, str, str, str]  # chrom, pos, id, ref, alt where they can be told


def read(path: Path, malformed_rows: str = "error") -> Iterator[Record | Malformed]:
    """Stream the records of a VCF, a BCF or a list of variants, in the file's order.

    What the file is follows from its content, whatever its suffix, with one exception: a file
    called ``.vcf`` or ``.bcf`` is never taken for a list. Text may be plain, gzip or bgzip.

    ``malformed_rows``: ``'error'`` raises at the first row that cannot be parsed, ``'skip'``
    yields a ``Malformed`` in its place.

    Raises ``InputError`` naming file and line: as above, or when the file as a whole is not
    what it must be (no header, truncated, not a file, standard input, an unknown layout).
    """
    raise NotImplementedError
