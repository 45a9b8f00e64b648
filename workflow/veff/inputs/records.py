"""The records of a variant file, one after another, as its lines say.

VCF text is read here rather than through pysam, which gives no line numbers, gives up on a
whole file for one bad row, cannot open plain gzip, and is lenient where it must not be (an
empty POS becomes 0, ALT ``A,,T`` becomes ``A``, ``.``, ``T``). Only the five columns that
say what the variants are get parsed: genotypes are never looked at. BCF goes through pysam.
"""

import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pysam

from veff.errors import InputError

NO_REF = "no REF in list"
ORDER_UNKNOWN = "allele order unknown"

VCF_COLUMNS = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
MAX_POS = 2**31 - 1  # a VCF's integers have 32 bits

_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_NO_TEXT = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
# A row in which nothing can be wrong; of others `Vcf._parse` and `_record` tell what is.
_BASES = "[ACGTNacgtn]+"
_is_plain = re.compile(
    rf"([0-9A-Za-z._]+)\t([0-9]{{1,9}})\t([!-~]+)\t({_BASES})\t({_BASES}(?:,{_BASES})*)(?:\t[^\0]*)?"
).fullmatch
_NAMED_VCF = re.compile(r"\.(vcf|bcf)(\.b?gzf?|\.bgz)?$", re.IGNORECASE)


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
    place = "line"
    match kind(path):
        case "bcf":
            rows, place = map(itemgetter(0), bcf(path)), "record"
        case "vcf":
            rows = map(itemgetter(0), Vcf(path))
        case "list":
            rows = _list(path)
    for row in rows:
        if malformed_rows == "error" and type(row) is Malformed:
            raise InputError(
                f"{path}, {place} {row.line}: {row.reason} (malformed_rows: skip counts such "
                "rows and goes on)"
            )
        yield row


def kind(path: Path) -> str:
    """``'vcf'``, ``'bcf'`` or ``'list'``, told from the first line; ``InputError`` if none."""
    if str(path) in ("-", "/dev/stdin"):
        raise InputError(
            f"{path}: variants cannot come from standard input, they are read more than once; "
            "give a file"
        )
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: not a regular file; variants are read more than once")
    try:
        with path.open("rb") as raw:
            start = raw.read(18)
            raw.seek(-min(len(_BGZF_END), path.stat().st_size), io.SEEK_END)
            end = raw.read()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    bgzip = start[:2] == b"\x1f\x8b" and start[3:4] == b"\x04" and start[12:14] == b"BC"
    if bgzip and end != _BGZF_END:
        raise InputError(
            f"{path}: the end block of bgzip is missing, the file may be truncated; copy or make "
            "it again"
        )
    for magic, what in _NO_TEXT.items():
        if start.startswith(magic):
            raise InputError(
                f"{path}: {what}; expected a VCF, a BCF or a table, plain, gzip or bgzip"
            )
    first = next((line for line in _lines(path) if line.strip()), b"")
    if first.startswith(b"BCF\2"):
        return "bcf"
    if not first:
        raise InputError(f"{path}: empty; expected a VCF, a BCF or a table of variants")
    if b"\0" in first:
        raise InputError(f"{path}: neither text nor BCF; expected a VCF, a BCF or a table")
    if first.startswith(b"##") or first.split()[:3] == [b"#CHROM", b"POS", b"ID"]:
        return "vcf"
    return "vcf" if _NAMED_VCF.search(path.name) else "list"


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a text file, plain, gzip or bgzip, a byte order mark taken off."""
    with path.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
    number = 0
    try:
        with io.BufferedReader(gzip.open(path)) if compressed else path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                yield line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(
            f"{path}, after line {number}: truncated, damaged or not readable ({error}); copy or "
            "make it again"
        ) from error


class Vcf:
    """The text of a VCF: header, then rows, each as parsed and as it stands.

    header: the ``##`` lines, without line ends; columns: those of the ``#CHROM`` line.
    Iterating gives ``(Record or Malformed, the row's bytes without its line end)``. Blank lines
    are passed over, as are tabs after the last column.

    A row has as many columns as the header, or the eight fixed ones where a header names
    samples. Raises ``InputError`` without a header, or with one of VCF 3.
    """

    def __init__(self, path: Path):
        self.path = path
        self.header: list[bytes] = []
        self._lines = enumerate(_lines(path), 1)
        self.columns = self._read_header()

    def _read_header(self) -> list[bytes]:
        for number, line in self._lines:
            where, line = f"{self.path}, line {number}", line.rstrip(b"\r\n")
            version = re.match(rb"##(?:file)?format=(.*)", line)
            if version and not version[1].startswith(b"VCFv4"):
                raise InputError(
                    f"{where}: {_quote(version[1])}; only VCF 4 is read, earlier ones write "
                    "insertions and deletions in other ways"
                )
            if line.startswith(b"##"):
                self.header.append(line)
            elif line.startswith(b"#"):
                self._check_columns(where, line)
                return line.split(b"\t")
            elif line.strip():
                raise InputError(
                    f"{where}: {_quote(line)} before any #CHROM line; a VCF needs its header. "
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
            f"{where}: {_quote(line)}; expected #CHROM, POS, ID, REF, ALT, QUAL, FILTER, INFO "
            "(and FORMAT and samples), separated by tabs"
        )

    def __iter__(self) -> Iterator[tuple[Record | Malformed, bytes]]:
        columns, number = len(self.columns), 0
        for line_number, line in self._lines:
            row = line.rstrip(b"\r\n")
            if not row or row.isspace():
                continue
            extra = row.count(b"\t") + 1 - columns
            while extra > 0 and row.endswith(b"\t"):
                row, extra = row[:-1], extra - 1
            yield self._parse(number, line_number, row, extra), row
            number += 1

    def _parse(self, number: int, line: int, row: bytes, extra: int) -> Record | Malformed:
        text = _decode(row)
        if not extra and (plain := _is_plain(text)):  # nearly every row, at a third of the cost
            chrom, pos, id, ref, alt = plain.groups()
            return Record(number, line, chrom, int(pos), id, ref, tuple(alt.split(",")))
        fields = text.split("\t", 5)[:5]
        columns = len(self.columns)
        if text.startswith("#"):
            what = "a header line among the records; join files with bcftools concat"
        elif extra and not columns + extra == 8 < columns:
            what = f"{columns + extra} columns where the header has {columns}"
        elif "\0" in text:
            what = "a NUL byte"
        else:
            return _record(number, line, *fields)
        return Malformed(number, line, what, tuple(map(_printable, (*fields, *[""] * 4)[:5])))


def bcf(
    path: Path, samples: bool = False
) -> Iterator[tuple[Record | Malformed, pysam.VariantRecord]]:
    """The rows of a BCF, each as parsed here and as pysam has it, with its samples if wanted.

    Raises ``InputError`` where htslib cannot go on.
    """
    number = 0
    loudness = pysam.set_verbosity(0)  # what htslib has to say is in the exception
    try:
        with pysam.VariantFile(str(path), drop_samples=not samples) as file:
            for number, row in enumerate(file):
                id, alt = row.id or ".", ",".join(row.alts or ".")
                record = _record(
                    number, number + 1, row.chrom, str(row.pos), id, row.ref or "", alt
                )
                yield record, row
    except (OSError, ValueError, NotImplementedError) as error:
        raise InputError(
            f"{path}, after record {number}: truncated or damaged ({error}); copy or make it again"
        ) from error
    finally:
        pysam.set_verbosity(loudness)


# Lists. A column is called by what it holds: `start` is a 0-based position, and `a1` and `a2`
# are alleles of which it is not said which is the reference's.
_LAYOUTS = {  # of kundajelab/variant-scorer, by its names
    "original": ("chrom", "pos", "id", "ref", "alt"),
    "chrombpnet": ("chrom", "pos", "ref", "alt", "id"),
    "bed": ("chrom", "start", "end", "ref", "alt", "id"),
    "plink": ("chrom", "id", "cm", "pos", "a1", "a2"),
    "plink2": ("chrom", "id", "pos", "ref", "alt"),
}
_ALLELE = r"[ACGTUNRYKMSWBDHVacgtunrykmswbdhv]+|-"
_CELLS = {
    "chrom": r".+",
    "pos": r"\d+",
    "start": r"\d+",
    "end": r"\d+",
    "cm": r"-?\d+(\.\d*)?([eE][-+]?\d+)?",
    "id": r".*\D.*",
    "ref": _ALLELE,
    "alt": _ALLELE,
    "a1": _ALLELE + "|0",
    "a2": _ALLELE,
}
_HEADINGS = {
    "chrom": ("chrom", "chr", "chromosome", "contig", "hm_chrom"),
    "pos": ("pos", "position", "bp", "base_pair_location", "hm_pos"),
    "id": ("id", "variant_id", "rsid", "rs_id", "snp", "snp_id", "variant"),
    "ref": ("ref", "reference", "ref_allele", "reference_allele", "allele1"),
    "alt": ("alt", "alternate", "alt_allele", "alternate_allele", "alternative_allele", "allele2"),
    "a1": ("effect_allele", "ea", "a1", "hm_effect_allele"),
    "a2": ("other_allele", "non_effect_allele", "nea", "a2", "hm_other_allele"),
}
_ASK = "give the table a header line: chrom, pos, ref, alt (and id)"
_SAMPLE = 1000  # rows from which a list without header is recognised


class _Layout(NamedTuple):
    delimiter: str
    columns: dict[str, int]  # what it holds: which column
    header: int  # line of the header, 0 for none


def _list(path: Path) -> Iterator[Record | Malformed]:
    layout = _layout(path)
    columns = layout.columns
    wanted = [i for name, i in columns.items() if name not in ("end", "cm")]
    where, offset = (columns["start"], 1) if "start" in columns else (columns["pos"], 0)
    for number, (line, cells) in enumerate(_cells(path, layout)):
        if len(cells) <= max(wanted):
            what = f"{len(cells)} columns, expected {max(wanted) + 1}"
            yield Malformed(number, line, what, (_printable("".join(cells[:1])), "", "", "", ""))
            continue
        chrom, pos = cells[columns["chrom"]], cells[where]
        id = cells[columns["id"]] if "id" in columns else "."
        if "a1" in columns:
            ref, alt, note = cells[columns["a2"]], cells[columns["a1"]], ORDER_UNKNOWN
            alt = "." if alt == "0" else alt  # plink's missing allele
        else:
            ref, alt, note = cells[columns["ref"]] if "ref" in columns else ".", "", ""
            alt = cells[columns["alt"]]
            if ref in (".", "NA"):
                ref, note = "", NO_REF
        yield _record(number, line, chrom, pos, id, ref, alt, True, note, offset)


def _cells(path: Path, layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of each row: no header, no comments, no blank lines."""
    for number, line in enumerate(_lines(path), 1):
        text = _decode(line).strip("\r\n")
        if number > layout.header and text.strip() and not text.startswith("#"):
            yield number, [cell.strip() for cell in _split(text, layout.delimiter)]


def _split(line: str, delimiter: str) -> list[str]:
    """The cells of a line; none where it is no CSV."""
    if delimiter == "\t":
        return line.split("\t")
    try:
        return next(csv.reader([line]))
    except csv.Error:
        return []


def _layout(path: Path) -> _Layout:
    """Which column of a list holds what, from its header line or else from its first rows."""
    lines = enumerate((_decode(line.rstrip(b"\r\n")) for line in _lines(path)), 1)
    sample = list(itertools.islice(((n, line) for n, line in lines if line.strip()), _SAMPLE))
    comments = itertools.takewhile(lambda line: line[1].startswith("#"), sample)
    first = len(list(comments))
    for number, line in sample[: first + 1]:
        delimiter = "\t" if "\t" in line else ","
        cells = _split(line.lstrip("#"), delimiter)
        if columns := _headed(f"{path}, line {number}", cells):
            return _Layout(delimiter, columns, number)
    if first == len(sample):
        raise InputError(f"{path}: only comments; {_ASK}")
    number, line = sample[first]
    if len(cells) < 2:
        raise InputError(
            f"{path}, line {number}: {_quote(line)}; columns must be separated by tabs or commas"
        )
    if not any(cell.strip().isdigit() for cell in cells):
        raise InputError(
            f"{path}, line {number}: {_quote(line)} names no columns that are known; {_ASK}"
        )
    rows = [_split(line, delimiter) for _, line in sample[first:] if not line.startswith("#")]
    fitting = {name: sum(_fits(layout, row) for row in rows) for name, layout in _LAYOUTS.items()}
    most = max(fitting.values())
    names = [name for name, count in fitting.items() if count == most]
    if 2 * most <= len(rows):
        raise InputError(
            f"{path}, line {number}: {_quote(line)} and the rows after it are none of "
            f"variant-scorer's {', '.join(_LAYOUTS)}; {_ASK}"
        )
    if len(names) > 1:
        raise InputError(
            f"{path}, line {number}: {_quote(line)} reads as {' and as '.join(names)}; {_ASK}"
        )
    return _Layout(delimiter, {name: i for i, name in enumerate(_LAYOUTS[names[0]])}, 0)


def _fits(layout: tuple[str, ...], cells: list[str]) -> bool:
    return len(cells) >= len(layout) and all(
        re.fullmatch(_CELLS[name], cell.strip()) for name, cell in zip(layout, cells, strict=False)
    )


def _headed(where: str, cells: list[str]) -> dict[str, int] | None:
    """The columns that a header line names; None where this is no header line."""
    headings = [cell.strip().lower().replace(" ", "_") for cell in cells]
    found = {
        name: [i for heading in known for i, cell in enumerate(headings) if cell == heading]
        for name, known in _HEADINGS.items()
    }
    if not (found["chrom"] and found["pos"]):
        return None
    for name, which in found.items():
        if len(which) > 1 and name != "id":
            both = " and ".join(repr(headings[i]) for i in which[:2])
            raise InputError(f"{where}: columns {both} could both be {name}; rename one")
    columns = {name: which[0] for name, which in found.items() if which}
    if "alt" in columns:
        return {name: i for name, i in columns.items() if name not in ("a1", "a2")}
    if "a1" in columns and "a2" in columns:
        return {name: i for name, i in columns.items() if name != "ref"}
    raise InputError(
        f"{where}: no column of alternate alleles (alt) among {_quote(', '.join(cells))}; {_ASK}"
    )


def _record(
    number: int,
    line: int,
    chrom: str,
    pos: str,
    id: str,
    ref: str,
    alt: str,
    in_list: bool = False,
    note: str = "",
    offset: int = 0,
) -> Record | Malformed:
    """A record of five strings, or what is wrong with them.

    A list may have '-' for an empty allele; `offset` makes its `pos` 1-based.
    """
    alts = () if alt == "." else tuple(alt.split(","))
    # Not int() alone, which also reads '+5', ' 5', '1_000' and digits of other scripts.
    digits = pos.isdigit() and pos.isascii() and len(pos) <= 10
    if not digits or (position := int(pos) + offset) > MAX_POS:
        what = f"position {_quote(pos)} is not a whole number from 0 to {MAX_POS}"
    elif not _is_contig(chrom):
        what = f"{_quote(chrom)} is no name of a contig"
    elif "" in alts or (not ref and note != NO_REF):
        what = f"an allele is missing: REF {_quote(ref)}, ALT {_quote(alt)}"
    elif not in_list and (ref == "-" or "-" in alts):
        what = "'-' is no allele of a VCF; write it with the base before it"
    elif not (text := chrom + id + ref + alt).isascii() and text != _printable(text):
        what = "bytes that are not UTF-8"
    else:
        return Record(number, line, chrom, position, id or ".", ref, alts, note)
    return Malformed(number, line, what, tuple(map(_printable, (chrom, pos, id, ref, alt))))


def _is_contig(name: str) -> bool:
    """Whether htslib can take it, symbolic contigs (``<1>``) among them."""
    if name.isalnum():
        return True
    inner = name[1:-1] if name.startswith("<") and name.endswith(">") else name
    return bool(inner) and not any(c in inner for c in ",<>")


def _decode(line: bytes) -> str:
    return line.decode(errors="surrogateescape")


def _printable(text: str) -> str:
    """Text that can be written as UTF-8: bytes that are none become U+FFFD."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _quote(text: str | bytes) -> str:
    """A piece of the input for a message: one line, not long."""
    text = text.decode(errors="replace") if isinstance(text, bytes) else _printable(text)
    return repr(text if len(text) <= 40 else text[:37] + "...")
