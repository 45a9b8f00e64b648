"""Which intervals of the reference does a BED or a GTF file hold?"""

import gzip
import io
import logging
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from veff.errors import InputError
from veff.inputs.reference import Reference

_NAMES = [re.compile(rf'\b{key} "([^"]+)"') for key in ("gene_name", "gene_id")]
# Of tables of links; where there are several, the first counts.
_SCORES = (
    "encode-re2g.score.qnorm",
    "encode-re2g.score",
    "e2g.score.qnorm",
    "e2g.score",
    "epiraction.score",
    "abc.score",
    "score",
)
_NO_ROWS = ("##", "track", "browser")  # in a table whose header may begin with one #
# Behind the gene in BEDPE: in scE2G's, ENCODE-rE2G's and ABC's older one with its class.
_ELEMENT = re.compile(r"(_(genic|intergenic|promoter))?\|[^|]+:\d+-\d+$")
_BOTH = re.compile(r":ENS[A-Z]*G\d+$")  # behind the element, in EPIraction's


class Interval(NamedTuple):
    """[start, end), 0-based, on a contig given by its index; `more` is what its line says else."""

    contig: int
    start: int
    end: int
    more: list[str]


def bed(path: Path, reference: Reference) -> Iterator[Interval]:
    """The intervals of a BED file, in its order, with the columns from the fourth on.

    Plain or gzip. Those on contigs that the reference does not have are left out with a
    warning. Raises `InputError` that names the line that is no interval of this reference.
    """
    return _placed(path, reference, _bed_rows(path))


def named(path: Path, reference: Reference) -> Iterator[Interval]:
    """As `bed`, of a file that must have names: they are the first of the further columns."""
    return _placed(path, reference, _with_names(path, _bed_rows(path)))


def genes(path: Path, reference: Reference) -> Iterator[Interval]:
    """As `named`, of a BED file or of the rows of feature ``gene`` of a GTF file.

    Which it is is told from its first row. A gene's name is its gene_name, or else its gene_id.
    Its strand, where it has one, is the third of the further columns, as in BED.
    """
    fields = next(_lines(path), (0, ""))[1].split("\t")
    is_gtf = len(fields) == 9 and not fields[1].isdecimal() and fields[3].isdecimal()
    rows = _gtf_rows(path) if is_gtf else _with_names(path, _bed_rows(path))
    return _placed(path, reference, rows)


def links(path: Path, reference: Reference) -> Iterator[Interval]:
    """The elements of predicted element-gene links; further columns are the gene and the score.

    The file is BEDPE, as ABC, ENCODE-rE2G and scE2G write it for browsers: the first place is the
    element, the name the gene's, perhaps with the element's behind it. Or it is a table with a
    header, as these and EPIraction have it: chr, start, end, TargetGene, and a score (`_SCORES`),
    and between the genes perhaps lines that begin with #. Which of the two it is is told from its
    first row. EPIraction's BEDPE is refused: it has the two places in the order of the genome.
    """
    _, first = next(_lines(path, skipped=_NO_ROWS), (0, ""))
    read = _linked if "targetgene" in first.lower().split("\t") else _bedpe_rows
    return _placed(path, reference, read(path))


def _linked(path: Path) -> Iterator[tuple[int, str, int, int, list[str]]]:
    """The rows of a table of links."""
    lines = _lines(path, skipped=_NO_ROWS)
    number, first = next(lines)
    names = first.lstrip("#").lower().split("\t")
    columns = [
        next((names.index(name) for name in one if name in names), None)
        for one in (("chr", "chrom", "#chr"), ("start",), ("end",), ("targetgene",), _SCORES)
    ]
    if None in columns:
        raise InputError(
            f"{path}, line {number}: expected the columns chr, start, end, TargetGene and one of "
            f"{', '.join(_SCORES)} (in any case)"
        )
    for number, line in lines:
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != len(names):
            raise InputError(
                f"{path}, line {number}: {len(fields)} columns, expected the {len(names)} of the "
                "header"
            )
        yield _link(path, number, *(fields[column] for column in columns))


def _bedpe_rows(path: Path) -> Iterator[tuple[int, str, int, int, list[str]]]:
    for number, line in _lines(path):
        fields = line.split("\t")
        if len(fields) < 8:
            raise InputError(
                f"{path}, line {number}: expected a BEDPE row: contig, start (from 0) and end of "
                "the element, those of the gene, the gene's name, and a score"
            )
        if _BOTH.search(fields[6]):
            raise InputError(
                f"{path}, line {number}: EPIraction's BEDPE does not say which place is the "
                "element's; give its table, ….pairs.bed.gz"
            )
        gene = _ELEMENT.sub("", fields[6])
        yield _link(path, number, *fields[:3], gene, fields[7])


def _link(
    path: Path, number: int, contig: str, start: str, end: str, gene: str, score: str
) -> tuple[int, str, int, int, list[str]]:
    if not (_is_place(start) and _is_place(end)):
        raise InputError(f"{path}, line {number}: {start} to {end}: expected start (from 0), end")
    if gene.strip() in ("", "."):
        raise InputError(f"{path}, line {number}: expected the name of a gene")
    try:
        finite = math.isfinite(float(score))
    except ValueError:
        finite = False
    if not finite:
        raise InputError(f"{path}, line {number}: {score!r} is no score: expected a number")
    return number, contig, int(start), int(end), [gene.strip(), score]


def _lines(path: Path, skipped: tuple = ("#", "track", "browser")) -> Iterator[tuple[int, str]]:
    """The rows of a file, plain or gzip, and their line numbers."""
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
        with path.open("rb") as raw:
            stream = gzip.GzipFile(fileobj=raw) if compressed else raw
            file = io.TextIOWrapper(stream, encoding="utf-8")
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith(skipped):
                    yield number, line.rstrip("\r\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text, plain or gzip ({error})") from error


def _bed_rows(path: Path) -> Iterator[tuple[int, str, int, int, list[str]]]:
    for number, line in _lines(path):
        name, *fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) < 2 or not (_is_place(fields[0]) and _is_place(fields[1])):
            raise InputError(
                f"{path}, line {number}: expected a BED row: contig, start (from 0), end"
            )
        yield number, name, int(fields[0]), int(fields[1]), fields[2:]


def _is_place(text: str) -> bool:
    """Whether it is a position: digits, and no more than any contig has."""
    return text.isascii() and text.isdecimal() and len(text) <= 12


def _with_names(path: Path, rows: Iterable[tuple]) -> Iterator[tuple]:
    for row in rows:
        number, *_, more = row
        if not more or not more[0].strip():
            raise InputError(f"{path}, line {number}: expected a name in the fourth column")
        yield row


def _gtf_rows(path: Path) -> Iterator[tuple[int, str, int, int, list[str]]]:
    found = False
    for number, line in _lines(path):
        fields = line.split("\t")
        if len(fields) != 9 or not (_is_place(fields[3]) and _is_place(fields[4])):
            raise InputError(
                f"{path}, line {number}: expected a GTF row: nine tab-separated columns, of which "
                "the fourth and fifth are start (from 1) and end"
            )
        if fields[2] != "gene":
            continue
        name = next(filter(None, (key.search(fields[8]) for key in _NAMES)), None)
        if name is None:
            raise InputError(
                f'{path}, line {number}: expected gene_name "…" or gene_id "…" in the ninth '
                "column, as GTF has them; GFF3 is not read"
            )
        found = True
        yield number, fields[0], int(fields[3]) - 1, int(fields[4]), [name[1], ".", fields[6]]
    if not found:
        raise InputError(
            f"{path}: no row of feature gene; give a GTF file that has some, or the genes as a "
            "BED file with names in its fourth column"
        )


def _placed(path: Path, reference: Reference, rows: Iterable[tuple]) -> Iterator[Interval]:
    """Rows on the reference's contigs."""
    contigs: dict[str, int | None] = {}
    n = unknown = 0
    for number, name, start, end, more in rows:
        if name not in contigs:
            try:
                contigs[name] = reference.contig(name)
            except InputError as error:
                raise InputError(f"{path}, line {number}: {error}") from None
        contig = contigs[name]
        if contig is None:
            unknown += 1
            continue
        if not 0 <= start < end <= reference.lengths[contig]:
            raise InputError(
                f"{path}, line {number}: {start} to {end} is no region of {name}, which has "
                f"{reference.lengths[contig]} bp; give a file of the reference's assembly"
            )
        n += 1
        yield Interval(contig, start, end, more)
    if not n:
        raise InputError(f"{path}: no region on a contig of the reference; give a file of it")
    if unknown:
        logging.warning("%s: %d regions are on contigs that the reference lacks", path, unknown)
