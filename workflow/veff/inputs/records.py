"""The records of what the user gave as variants, one after another."""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

import pyarrow.compute as pc

from veff.errors import InputError
from veff.inputs import bcf, formats
from veff.inputs.lists import List
from veff.inputs.record import NO_REF, ORDER_UNKNOWN, Columns, Malformed, Record, quote
from veff.inputs.reference import Reference
from veff.inputs.vcf import Vcf

__all__ = ["NO_REF", "ORDER_UNKNOWN", "Columns", "Malformed", "Record", "Variants", "read"]


class Variants:
    """The records of a VCF, a BCF or a list of variants.

    What a file is follows from its content, whatever its suffix, with one exception: a file
    called ``.vcf`` or ``.bcf`` is never taken for a list. Text may be plain, gzip or bgzip. It is
    read anew each time that this is iterated over.

    ``malformed_rows``: ``'error'`` raises at the first row that cannot be parsed, or at an ALT
    that is no text; ``'skip'`` yields a ``Malformed`` in a row's place, and such an ALT as ``''``.
    ``reference``: for what a list leaves to it. ``positions``: ``'auto'``, or how a list counts
    them, ``'1-based'`` or ``'0-based'``.

    ``read_as`` says what was read (form), how positions are counted (positions), and why.

    Raises ``InputError`` naming file and line: as above, or when the file as a whole is not
    what it must be (no header, truncated, not a file, standard input, an unknown layout).
    """

    def __init__(
        self,
        path: Path,
        malformed_rows: str = "error",
        reference: Reference | None = None,
        positions: str = "auto",
    ):
        self.path, self._strict = path, malformed_rows == "error"
        self._kind = formats.kind(path)
        self._list = List(path, reference, positions) if self._kind == "list" else None
        if self._list is not None:
            layout, where = self._list.layout, self._list.positions
            form = " ".join(filter(None, ("list:", layout.name, layout.source)))
            said = form, where.convention, where.why
        else:
            said = self._kind.upper(), "1-based", "by definition"
        self.read_as = dict(zip(("form", "positions", "why"), said, strict=True))
        if self._list is None and positions == "0-based":
            raise InputError(
                f"{path}: positions: 0-based, but those of a {said[0]} count from 1 by "
                "definition; leave it out, or give a list"
            )

    def __iter__(self) -> Iterator[Record | Malformed]:
        if self._list is not None:
            rows = iter(self._list)
        elif self._kind == "bcf":
            rows = map(itemgetter(0), bcf.rows(self.path))
        else:
            rows = map(itemgetter(0), Vcf(self.path))
        return self._checked(rows)

    def pieces(self) -> Iterator[Record | Malformed | Columns]:
        """The same; but of a VCF many at once as `Columns`, wherever all of them are plain."""
        if self._kind != "vcf":
            return iter(self)
        pieces = Vcf(self.path).pieces()
        return self._checked(
            row for piece in pieces for row in ([piece] if type(piece) is Columns else piece)
        )

    def _checked(self, rows: Iterable) -> Iterator:
        place = "record" if self._kind == "bcf" else "line"
        unknown = 0  # rows so far, while none of them has a REF
        for row in rows:
            if type(row) is Columns:
                if unknown is not None:
                    without = pc.all(pc.equal(row.ref, ".")).as_py()
                    unknown = unknown + len(row.ref) if without else None
            elif type(row) is Malformed or "" in row.alts:
                if self._strict and (what := _fault(row)):
                    raise InputError(
                        f"{self.path}, {place} {row.line}: {what} (malformed_rows: skip counts "
                        "such rows and goes on)"
                    )
            elif unknown is not None:
                unknown = unknown + 1 if row.ref == "." else None
            yield row
        if unknown:
            raise InputError(
                f"{self.path}: no record has a REF: these are names without alleles; look them up "
                "in a VCF that has these: `bcftools view -i 'ID=@ids.txt' dbsnp.vcf.gz`"
            )


def _fault(row: Record | Malformed) -> str:
    """What stops a run at this row, if something does."""
    if type(row) is Malformed:
        return row.reason if row.stops else ""
    return f"an allele is missing: ALT {quote(','.join(row.alts))}"


def read(
    path: Path,
    malformed_rows: str = "error",
    reference: Reference | None = None,
    positions: str = "auto",
) -> Iterator[Record | Malformed]:
    """Stream the records of `Variants`, in the file's order."""
    yield from Variants(path, malformed_rows, reference, positions)
