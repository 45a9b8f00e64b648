"""The rows of a VCF, each as parsed and as it stands.

VCF text is read here rather than through pysam, which gives no line numbers, gives up on a
whole file for one bad row, cannot open plain gzip, and is lenient where it must not be (an
empty POS becomes 0, ALT ``A,,T`` becomes ``A``, ``.``, ``T``). Only the five columns that
say what the variants are get parsed: genotypes are never looked at.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from veff.errors import InputError
from veff.inputs import formats
from veff.inputs.formats import VCF_COLUMNS
from veff.inputs.record import MOST_ALTS, Malformed, Record, decode, parse, printable, quote

# CHROM to ALT where nothing can be wrong; of others `Vcf._parse` and `record.parse` tell what is.
_BASES = "[ACGTNacgtn]+"
_is_plain = re.compile(
    rf"([0-9A-Za-z._]+)\t([0-9]{{1,9}})\t([!-~]+)\t({_BASES})\t({_BASES}(?:,{_BASES})*)(?:\t|$)"
).match


class Vcf:
    """The text of a VCF: header, then rows, each as parsed and as it stands.

    header: the ``##`` lines, without line ends; columns: those of the ``#CHROM`` line.
    Iterating gives ``(Record or Malformed, the row's bytes without its line end)``. Blank lines
    are passed over, as are tabs after the last column.

    Only CHROM to ALT say what is a record. A row that has more or fewer columns behind them than
    the header is one too: it is cut, or filled with ``.``, and how many were is in the log. Raises
    ``InputError`` without a header, or with one of VCF 3.
    """

    def __init__(self, path: Path):
        self.path = path
        self.header: list[bytes] = []
        self._lines = enumerate(formats.lines(path), 1)
        self.columns = self._read_header()

    def _read_header(self) -> list[bytes]:
        for number, line in self._lines:
            where, line = f"{self.path}, line {number}", line.rstrip(b"\r\n")
            version = re.match(rb"##(?:file)?format=(.*)", line)
            if version and not version[1].startswith(b"VCFv4"):
                raise InputError(
                    f"{where}: {quote(version[1])}; only VCF 4 is read, earlier ones write "
                    "insertions and deletions in other ways"
                )
            if line.startswith(b"##"):
                self.header.append(line)
            elif line.startswith(b"#"):
                self._check_columns(where, line)
                return line.split(b"\t")
            elif line.strip():
                raise InputError(
                    f"{where}: {quote(line)} before any #CHROM line; a VCF needs its header. "
                    "For a list of variants, name the file .tsv"
                )
        raise InputError(f"{self.path}: no #CHROM line; a VCF needs its header")

    def _check_columns(self, where: str, line: bytes) -> None:
        columns = line.decode(errors="replace").split("\t")
        if columns[:9] == VCF_COLUMNS[: len(columns)] and len(columns) >= 5:
            return
        if b"\t" not in line and line.startswith(b"#CHROM "):
            raise InputError(f"{where}: columns separated by spaces; a VCF's are by tabs")
        raise InputError(
            f"{where}: {quote(line)}; expected #CHROM, POS, ID, REF, ALT, QUAL, FILTER, INFO "
            "(and FORMAT and samples), separated by tabs"
        )

    def __iter__(self) -> Iterator[tuple[Record | Malformed, bytes]]:
        columns, number = len(self.columns), 0
        others = []  # lines of rows that have other columns than the header
        for line_number, line in self._lines:
            row = line.rstrip(b"\r\n")
            if not row or row.isspace():
                continue
            found = row.count(b"\t") + 1
            while found > columns and row.endswith(b"\t"):
                row, found = row[:-1], found - 1
            whole = found >= columns or (found > 5 and line.endswith(b"\n"))
            record = self._parse(number, line_number, row, found, whole)
            if found != columns and not found == 8 < columns and type(record) is Record:
                others.append(line_number)
                row = b"\t".join((row.split(b"\t") + [b"."] * (columns - found))[:columns])
            yield record, row
            number += 1
        if others:
            logging.warning(
                "%s: %d rows, the first in line %d, have other columns than the header's %d; what "
                "is beyond these is left out, what is missing is '.'",
                self.path,
                len(others),
                others[0],
                columns,
            )

    def _parse(
        self, number: int, line: int, row: bytes, found: int, whole: bool
    ) -> Record | Malformed:
        text = decode(row)
        if whole and (plain := _is_plain(text)):  # nearly every row, at a third of the cost
            chrom, pos, id, ref, alt = plain.groups()
            alts = tuple(alt.split(","))
            if len(alts) <= MOST_ALTS:
                return Record(number, line, chrom, int(pos), id, ref, alts)
        fields = text.split("\t", 5)[:5]
        if text.startswith("#"):
            what = "a header line among the records; join files with bcftools concat"
        elif not whole:  # then ALT may be cut too, or the file
            what = f"{found} columns where the header has {len(self.columns)}"
        elif "\0" in "".join(fields):
            what = "a NUL byte"
        else:
            return parse(number, line, *fields)
        return Malformed(number, line, what, tuple(map(printable, (*fields, *[""] * 4)[:5])))
