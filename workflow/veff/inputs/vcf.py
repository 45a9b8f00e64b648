"""The rows of a VCF, each as parsed and as it stands.

VCF text is read here rather than through pysam, which gives no line numbers, gives up on a
whole file for one bad row, cannot open plain gzip, and is lenient where it must not be (an
empty POS becomes 0, ALT ``A,,T`` becomes ``A``, ``.``, ``T``). Only the five columns that
say what the variants are get parsed: genotypes are never looked at.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from veff.errors import InputError
from veff.inputs import formats
from veff.inputs.formats import VCF_COLUMNS
from veff.inputs.record import (
    MOST_ALTS,
    Columns,
    Malformed,
    Record,
    decode,
    parse,
    printable,
    quote,
)

# CHROM to ALT where nothing can be wrong; of others `Vcf._parse` and `record.parse` tell what is.
_BASES = "[ACGTNacgtn]+"
_is_plain = re.compile(
    rf"([0-9A-Za-z._]+)\t([0-9]{{1,9}})\t([!-~]+)\t({_BASES})\t({_BASES}(?:,{_BASES})*)(?:\t|$)"
).match

BLOCK_LINES = 1 << 16  # lines that are parsed at once, at most,
BLOCK_BYTES = 1 << 24  # and about how many bytes of them
BLOCK_BASES = 1 << 22  # and how many bases they may have, REF counted for each ALT
MOST_COLUMNS = 40  # with more samples it is faster to look at the first columns alone, row by row
# What may stand in the columns of a record that needs no second look.
_PLAIN = {
    "chrom": b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz.",
    "pos": b"0123456789",
    "id": bytes(range(0x21, 0x7F)),
    "ref": bytes(range(0x21, 0x7F)),
    "alts": bytes(range(0x21, 0x7F)),
}
_PLAIN = {name: np.isin(np.arange(256), list(letters)) for name, letters in _PLAIN.items()}


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
        self._others: list[int] = []  # lines of rows that have other columns than the header
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
        yield from self._rows(self._lines, 0)
        self._warn()

    def pieces(self) -> Iterator[Columns | list[Record | Malformed]]:
        """The records alone, many at once: by columns wherever all of them are plain."""
        number = 0
        for lines in _blocks(self._lines):
            piece = self._columns(number, b"".join(line for _, line in lines))
            if piece is None:
                piece = [record for record, _ in self._rows(lines, number)]
                number += len(piece)
            else:
                number += len(piece.chrom)
            yield piece
        self._warn()

    def _columns(self, number: int, text: bytes) -> Columns | None:
        """The records of a text, many times faster than `_rows`; None where it would not do."""
        if b"\r" in text or len(self.columns) > MOST_COLUMNS:
            return None
        names = [*_PLAIN, *map(str, range(5, len(self.columns)))]
        try:
            table = csv.read_csv(
                pa.BufferReader(text),
                csv.ReadOptions(column_names=names),
                csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False),
                csv.ConvertOptions(
                    include_columns=list(_PLAIN), column_types=dict.fromkeys(_PLAIN, pa.string())
                ),
            )
        except pa.ArrowInvalid:  # a row with more or fewer columns, or with other text
            return None
        chrom, pos, id, ref, alt = (column.combine_chunks() for column in table.columns)
        if not all(map(_has_only, (chrom, pos, id, ref, alt), _PLAIN.values())):
            return None
        alts = pc.split_pattern(alt, ",")
        length, several = pc.binary_length(alts.values), pc.list_value_length(alts)
        bases = (
            pc.sum(length).as_py() + pc.sum(pc.multiply(pc.binary_length(ref), several)).as_py()
        )
        if (
            pc.max(pc.binary_length(pos)).as_py() > 9
            or pc.min(length).as_py() == 0
            or pc.max(several).as_py() > MOST_ALTS
            or bases > BLOCK_BASES
            or pc.any(pc.equal(ref, "-")).as_py()
            or pc.any(pc.equal(alts.values, "-")).as_py()
        ):
            return None
        return Columns(number, chrom, pc.cast(pos, pa.int64()), id, ref, alts)

    def _rows(
        self, lines: Iterable[tuple[int, bytes]], number: int
    ) -> Iterator[tuple[Record | Malformed, bytes]]:
        """The rows of numbered lines; `number` is that of the first row."""
        columns = len(self.columns)
        for line_number, line in lines:
            row = line.rstrip(b"\r\n")
            if not row or row.isspace():
                continue
            found = row.count(b"\t") + 1
            while found > columns and row.endswith(b"\t"):
                row, found = row[:-1], found - 1
            whole = found >= columns or (found > 5 and line.endswith(b"\n"))
            record = self._parse(number, line_number, row, found, whole)
            if found != columns and not found == 8 < columns and type(record) is Record:
                self._others.append(line_number)
                row = b"\t".join((row.split(b"\t") + [b"."] * (columns - found))[:columns])
            yield record, row
            number += 1

    def _warn(self) -> None:
        if self._others:
            logging.warning(
                "%s: %d rows, the first in line %d, have other columns than the header's %d; what "
                "is beyond these is left out, what is missing is '.'",
                self.path,
                len(self._others),
                self._others[0],
                len(self.columns),
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


def _blocks(lines: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    block, size = [], 0
    for line in lines:
        block.append(line)
        size += len(line[1])
        if len(block) == BLOCK_LINES or size > BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _has_only(texts: pa.StringArray, letters: np.ndarray) -> bool:
    """Whether no text is empty or has another letter than these, bool[256]."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    there = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    return bool((np.diff(ends) > 0).all() and letters[there].all())
