"""Which variants does a list name: a table, with headings or without, or one notation a line?"""

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from veff.errors import InputError
from veff.inputs import formats, headings, notations, positions
from veff.inputs.positions import Positions, Span
from veff.inputs.record import (
    MAX_POS,
    NO_REF,
    ORDER_UNKNOWN,
    Malformed,
    Record,
    decode,
    parse,
    printable,
    quote,
)
from veff.inputs.reference import FIRST_BASE, Reference

_ALLELE = r"[ACGTUNRYKMSWBDHVacgtunrykmswbdhv]+|-"
_CELLS = {
    "chrom": r".+",
    "pos": r"\d+",
    "start": r"\d+",
    "end": r"\d+(\.0)?",
    "cm": r"-?\d+(\.\d*)?([eE][-+]?\d+)?",
    "id": r".*\D.*",
    "ref": _ALLELE,
    "alt": rf"({_ALLELE})(,({_ALLELE}))*|<[A-Z:]+>",
    "a1": _ALLELE + "|0",
    "a2": _ALLELE,
    "alleles": rf"({_ALLELE})(/({_ALLELE}))+",
    "score": r"[-\d.eE]+",
    "strand": r"[+-]|-?1",
    "orientation": r"[+.-]",
}
# Lists without headings: variant-scorer's schemas (https://github.com/kundajelab/variant-scorer),
# PLINK's .bim, ANNOVAR's and Ensembl VEP's input, and BED with the alleles as its name.
_LAYOUTS = {
    "original": ("chrom", "pos", "id", "ref", "alt"),
    "chrombpnet": ("chrom", "pos", "ref", "alt", "id"),
    "bed": ("chrom", "start", "end", "ref", "alt"),
    "plink": ("chrom", "id", "cm", "pos", "a1", "a2"),
    "plink2": ("chrom", "id", "pos", "ref", "alt"),
    "VEP": ("chrom", "start", "end", "alleles", "strand"),
    "BED, alleles as names": ("chrom", "start", "end", "alleles", "score", "orientation"),
    "chrom, pos, ref, alt": ("chrom", "pos", "ref", "alt"),
}
_NAMES_BEHIND = {"bed": "id", "VEP": "id"}  # which may have one more column
# What a value is that tables do not have, in lower case.
MISSING = ("", ".", "na", "#na", "n/a", "nan", "null", "none")
_NOT_KNOWN = ("NA", "#NA", "N/A", "NaN", "nan", "null", "NULL", "None")
_ASK = "give the table a header line: chrom, pos, ref, alt (and id)"
_WANTED = (
    "chrom, pos, ref and alt, or chrom, pos, effect_allele and other_allele, or a column of "
    "notations such as chr1:123:A:G"
)
_SAMPLE = 1000  # rows from which a list without headings is recognised
_MAKE_VCF = {
    notations.RS_ID: "rsIDs, which say neither place nor alleles; make a VCF of them: "
    "`bcftools view -i 'ID=@ids.txt' dbsnp.vcf.gz -Oz -o mine.vcf.gz`, with dbSNP's VCF of the "
    "reference's assembly",
    notations.TRANSCRIPT: "positions in transcripts or proteins; make a VCF of them with Ensembl "
    "VEP (`vep --format hgvs --vcf`) or VariantValidator (https://variantvalidator.org)",
}
_COMPLEMENT = str.maketrans("ACGTacgt", "TGCAtgca")


@dataclass(frozen=True)
class Layout:
    """What kind of list it is, and which column holds what.

    header: the line of the headings, 0 without; width: the most cells that a row may have, None
    if any number; effect: the meaning of the column that holds the effect allele, '' for none;
    headings: as they are written.
    """

    name: str
    source: str
    delimiter: str
    columns: dict[str, int]
    header: int = 0
    width: int | None = None
    effect: str = ""
    headings: tuple[str, ...] = ()


class Row(NamedTuple):
    """A row as listed: the record with its position as it stands there, its cells, its end."""

    record: Record | Malformed
    cells: list[str]
    end: int | None = None
    convention: str = ""  # of its position, where the notation defines one


class List:
    """A list of variants: how it is read, and its records.

    `reference`: for what rows leave to it. `where`: ``'auto'``, or one of
    `positions.CONVENTIONS`, which overrides what is decided.
    """

    def __init__(self, path: Path, reference: Reference | None = None, where: str = "auto"):
        self.path, self.reference = path, reference
        self._where = where
        self.layout = _layout(path)
        self.positions = self._positions(where)

    def _positions(self, where: str) -> Positions:
        if where != "auto":
            return Positions(where, "as the configuration says")
        if "variant" in self.layout.columns:
            return Positions("as notations have them", "SPDI's count from 0, all others from 1")
        if "start" not in self.layout.columns:
            return Positions("1-based", "as such lists have them")
        spans = (
            Span(row.record.chrom, row.record.pos, row.end, _candidates(row.record))
            for row in self._rows()
            if type(row.record) is Record
        )
        return positions.decide(str(self.path), spans, self.reference)

    def __iter__(self) -> Iterator[Record | Malformed]:
        return (record for record, _ in self.rows())

    def rows(self) -> Iterator[tuple[Record | Malformed, list[str]]]:
        """The records, each with the cells of its row."""
        shift = self.positions.shift
        for record, cells, end, convention in self._rows():
            if type(record) is not Malformed:
                pos = min(self._first(record, end, convention, shift), MAX_POS)
                record = record._replace(pos=pos)
            yield record, cells

    def column(self, heading: str) -> int:
        """Which cell of a row has this heading; spelled as there, or as `headings.normal` has it.

        Raises `InputError` where there is none.
        """
        written = self.layout.headings
        behind = (self.layout.width or 0) - len(written)  # R's names of rows come first
        alike = list(map(headings.normal, written))
        for names, name in ((written, heading), (alike, headings.normal(heading))):
            if name in names:
                return names.index(name) + behind
        there = f"has {', '.join(map(quote, written))}" if written else "has no line of headings"
        raise InputError(f"{self.path}: no column {quote(heading)}; it {there}")

    def _first(self, record: Record, end: int | None, convention: str, shift: int) -> int:
        """The 1-based position of a record, of an insertion the base behind it."""
        if convention == "HGVS" or (convention == "SPDI" and self._where == "auto"):
            return record.pos
        if convention == "SPDI":
            return record.pos - 1 + shift
        if record.ref != "-" or record.note == ORDER_UNKNOWN:
            return record.pos + shift
        if end is not None:  # VEP writes the base behind it first; all others that before it
            return record.pos + (end >= record.pos)
        # MAF and ANNOVAR insert behind a position, variant-scorer and PLINK before it.
        return record.pos + (1 if self.layout.header and not convention else shift)

    def _rows(self) -> Iterator[Row]:
        read = self._notation if "variant" in self.layout.columns else self._listed
        assembly, which = None, self.layout.columns.get("assembly")
        for number, (line, text) in enumerate(self._body()):
            cells = _split(text, self.layout.delimiter)
            if (what := self._no_row(cells)) is not None:
                fields = (_cell(cells, 0), "", "", "", "")
                yield Row(Malformed(number, line, what, fields), cells)
                continue
            if which is not None:
                assembly = assembly or cells[which]
                if cells[which] != assembly:
                    raise InputError(
                        f"{self.path}, line {line}: {quote(cells[which])}, but rows before are of "
                        f"{quote(assembly)}; keep those of the reference's assembly"
                    )
            yield read(number, line, cells)

    def _body(self) -> Iterator[tuple[int, str]]:
        """Line and text of each row: no headings, no comments, no blank lines."""
        for number, text in _texts(self.path):
            if number > self.layout.header and text.strip() and not _is_comment(text):
                yield number, text

    def _no_row(self, cells: list[str]) -> str | None:
        width, needed = self.layout.width, max(self.layout.columns.values()) + 1
        while width is not None and len(cells) > width and not cells[-1]:
            cells.pop()
        if width is not None and len(cells) > width:
            return (
                f"{len(cells)} cells where there are {width} headings; a cell with "
                f"{quote(self.layout.delimiter)} in it must be quoted"
            )
        if len(cells) < needed:
            return f"{len(cells)} columns, expected {needed}"
        return None

    def _notation(self, number: int, line: int, cells: list[str]) -> Row:
        text = cells[self.layout.columns["variant"]]
        found = notations.parse(text)
        if found is None:
            what = f"{quote(text)} names no allele as chrom:pos:ref:alt, SPDI or genomic HGVS do"
            fields = (printable(text), "", "", "", "")
            row = Malformed(number, line, what, fields, stops=text not in _NOT_KNOWN)
            return Row(row, cells)
        pos, ref, alt = found.complete(self._bases)
        effect = "alt" if self.layout.effect else ""
        id = cells[self.layout.columns["id"]] if "id" in self.layout.columns else text
        record = parse(number, line, found.chrom, str(pos), id, ref, alt, True, effect=effect)
        return Row(record, cells, None, found.convention)

    def _bases(self, chrom: str, pos: int, n: int) -> str:
        """What the reference has there, N where it has nothing."""
        contigs = () if self.reference is None else self.reference.meaning(chrom).contigs
        there = (
            self.reference.fetch(contigs[0], pos - 1, pos - 1 + n) if len(contigs) == 1 else b""
        )
        return there.translate(FIRST_BASE).decode().ljust(n, "N")

    def _listed(self, number: int, line: int, cells: list[str]) -> Row:
        at = self.layout.columns
        cell = {meaning: cells[i] for meaning, i in at.items()}
        if "place" in cell:
            chrom, _, pos = cell["place"].rpartition(":")
        else:
            chrom, pos = cell["chrom"], cell.get("pos", cell.get("start"))
        ref, alt, note = _alleles(cell)
        if chrom in _NOT_KNOWN or pos in _NOT_KNOWN:
            what = f"no place: chromosome {quote(chrom)}, position {quote(pos)}"
            fields = tuple(map(printable, (chrom, pos, cell.get("id", "."), ref, alt)))
            return Row(Malformed(number, line, what, fields, stops=False), cells)
        pos, end = _number(pos), _number(cell.get("end", ""))
        id = cell.get("id", ".")
        id = "." if id in _NOT_KNOWN else id
        effect = _effect(self.layout.effect, cell, ref, alt)
        record = parse(number, line, chrom, pos, id, ref, alt, True, note, effect)
        return Row(record, cells, int(end) if end.isdigit() and end.isascii() else None)


def _alleles(cell: dict[str, str]) -> tuple[str, str, str]:
    """REF, ALT and the note of a row."""
    if "alleles" in cell:
        text = cell["alleles"].strip("()[] ")
        if cell.get("strand") in ("-", "-1"):
            text = text.translate(_COMPLEMENT)
            first, *others = ("/".join(part[::-1] for part in text.split("/"))).split("/")
        else:
            first, *others = text.split("/")
        order = "" if "strand" in cell or len(others) != 1 else ORDER_UNKNOWN
        return first, ",".join(others), order
    if "tumour2" in cell:
        ref = cell["ref"]
        both = dict.fromkeys((cell.get("tumour1", ref), cell["tumour2"]))
        return ref, ",".join(one for one in both if one not in (ref, "")) or ".", ""
    if "a1" in cell:
        first, second = cell["a2"], cell["a1"]
        if cell.get("a1_is_ref") == "EA":
            first, second = second, first
        second = "." if second in ("0", *_NOT_KNOWN) else second  # PLINK's missing allele
        return first, second, ORDER_UNKNOWN
    ref, alt = cell.get("ref", "."), cell["alt"]
    alt = "." if alt in _NOT_KNOWN else ",".join(one.strip() for one in alt.split(","))
    if ref in (".", *_NOT_KNOWN):
        return "", alt, NO_REF
    if "/" in alt and alt.split("/")[0] == ref:
        alt = alt.removeprefix(f"{ref}/").replace("/", ",")
    return ref, alt, ORDER_UNKNOWN if cell.get("provisional") == "Y" and "," not in alt else ""


def _effect(meaning: str, cell: dict[str, str], ref: str, alt: str) -> str:
    """Which allele, as listed, an effect is of; '' where the tool does not say."""
    return which(cell.get(meaning, ""), ref, alt)


def which(allele: str, ref: str, alt: str) -> str:
    """``'ref'`` or ``'alt'``, whichever this allele is; '' for neither."""
    allele = allele.upper()
    if allele in ("", ref.upper()):
        return "ref" if allele else ""
    return "alt" if allele == alt.upper() else ""


def _candidates(record: Record) -> tuple[str, ...]:
    """The alleles of a record that may be the reference's."""
    return (record.ref, *record.alts) if record.note == ORDER_UNKNOWN else (record.ref,)


def _number(text: str) -> str:
    """A position as digits, however spreadsheets, pandas and R write whole numbers."""
    if text.isdigit():
        return text
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text):
        return text.replace(",", "")
    if re.fullmatch(r"\d+\.0+", text):
        return text.partition(".")[0]
    if re.fullmatch(r"\d(\.\d+)?e\+\d\d", text) and float(text).is_integer():
        return str(int(float(text)))  # R's; a spreadsheet's, in capitals, is rounded
    return text


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(formats.lines(path), 1):
        yield number, decode(line).strip("\r\n")


def _split(text: str, delimiter: str) -> list[str]:
    """The cells of a line, quotes taken off; none where it is no CSV."""
    if delimiter in ",;":
        try:
            cells = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
        except csv.Error:
            return []
    else:
        cells = text.split(None if delimiter == " " else delimiter)
    cells = [cell.strip() for cell in cells]
    return [
        cell[1:-1].strip() if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell
        for cell in cells
    ]


def _cell(cells: list[str], i: int) -> str:
    return printable(cells[i]) if i < len(cells) else ""


def _layout(path: Path) -> Layout:
    """What a list is, from its headings or else from its first rows."""
    sample = [(n, text) for n, text in itertools.islice(_texts(path), _SAMPLE) if text.strip()]
    comments = itertools.takewhile(lambda line: line[1].startswith("#"), sample)
    first = len(list(comments))
    for place, (number, text) in enumerate(sample[: first + 1]):
        rows = [row for _, row in sample[max(first, place + 1) :] if not row.startswith("#")]
        for delimiter in _delimiters(text):
            layout = _headed(path, number, text, delimiter, rows)
            if layout is not None:
                return layout
    if first == len(sample):
        raise InputError(f"{path}: only comments; {_ASK}")
    return _bare(path, sample[first][0], [t for _, t in sample[first:] if not t.startswith("#")])


def _delimiters(text: str) -> list[str]:
    return [one for one in ("\t", ",", ";", " ") if one in text.strip()] or ["\t"]


def _headed(path: Path, number: int, text: str, delimiter: str, rows: list[str]) -> Layout | None:
    """The layout that a line of headings describes; None where it is no such line."""
    where = f"{path}, line {number}"
    written = _split(text.lstrip("#"), delimiter)
    normal = [headings.normal(one) for one in written]
    cells = [_split(row, delimiter) for row in rows]
    found = headings.known(normal)
    name, source, effect = "table", "", ""
    if found is not None:
        form, columns = found
        if form.refused:
            raise InputError(f"{where}: {quote(text)}, as {form.name} has it: {form.refused}")
        name, source, effect = form.name, form.source, form.effect
    else:
        columns = _common(where, written, normal, cells, text.startswith("#"))
        if columns and "a1" in columns and normal[columns["a1"]] in headings.EFFECT:
            effect = "a1"
    if columns is None:
        return None
    layout = Layout(name, source, delimiter, columns, number, len(written), effect, tuple(written))
    if "variant" in columns:
        texts = [row[columns["variant"]] for row in cells if len(row) > columns["variant"]]
        if "a1" in columns and texts and all(map(_is_place, texts)):
            layout = replace(
                layout, columns=_without(columns, "variant", place=columns["variant"])
            )
        else:
            layout = replace(layout, columns=_without(columns, "a1", "a2"))
            _check_notations(str(path), texts)
    columns = layout.columns
    if cells and all(len(row) == len(written) + 1 for row in cells):  # R's names of rows
        later = {meaning: i + 1 for meaning, i in columns.items()}
        if all(_plausible(later, row) and not _plausible(columns, row) for row in cells):
            layout = replace(layout, columns=later, width=len(written) + 1)
    _refuse_genotypes(where, layout, cells)
    return layout


# GWAS-SSF writes "#NA" for what is not known, and may begin a row with it.
_is_comment = re.compile(r"#(?!NA\b)").match
_is_place = re.compile(r"\S+:\d+").fullmatch


def _without(columns: dict[str, int], *meanings: str, **others: int) -> dict[str, int]:
    return {m: i for m, i in columns.items() if m not in meanings} | others


def _plausible(columns: dict[str, int], cells: list[str]) -> bool:
    return all(
        re.fullmatch(
            _CELLS.get(meaning, ".*"), _number(cells[i]) if meaning == "pos" else cells[i]
        )
        for meaning, i in columns.items()
        if meaning != "id"
    )


def _refuse_genotypes(where: str, layout: Layout, cells: list[list[str]]) -> None:
    """Two alleles that are often the same are a genotype."""
    at = layout.columns
    if "a1" in at and "a2" in at:
        full = [row for row in cells if len(row) > max(at.values())]
        same = sum(row[at["a1"]] == row[at["a2"]] != "" for row in full)
        same -= sum(row[at["a1"]] == row[at["a2"]] in _NOT_KNOWN for row in full)
        if 10 * same >= len(full) > 0:
            raise InputError(
                f"{where}: both alleles are the same in {same} of {len(full)} rows: "
                f"{headings.GENOTYPES}"
            )


def _common(
    where: str, written: list[str], normal: list[str], cells: list[list[str]], comment: bool
) -> dict[str, int] | None:
    """The columns of a table of no known tool, by the usual headings; None without any, and of a
    comment, which may hold such words too, without all."""
    found = {
        meaning: [i for name in names for i, one in enumerate(normal) if one == name]
        for meaning, names in headings.COMMON.items()
    }
    found = {meaning: which for meaning, which in found.items() if which}
    if "chrom" not in found or not ("pos" in found or "start" in found):
        for i in found.get("variant", ()):
            texts = [row[i] for row in cells if len(row) > i]
            if any(map(notations.parse, texts)) or any(map(_without_place, texts)):
                return {"variant": i}
        return None
    for meaning, which in found.items():
        if len(which) > 1 and meaning not in ("id", "variant"):
            both = " and ".join(repr(written[i].lower()) for i in which[:2])
            raise InputError(f"{where}: columns {both} could both be {meaning}; rename one")
    at = {meaning: which[0] for meaning, which in found.items()}
    place = ("chrom", "pos", "id") if "pos" in at else ("chrom", "start", "end", "id")
    columns = {meaning: at[meaning] for meaning in place if meaning in at}
    if "alt" in at:
        return columns | {meaning: at[meaning] for meaning in ("ref", "alt") if meaning in at}
    for a1, a2 in (("a1", "a2"), ("allele2", "allele1"), ("allele1", "a2")):
        if a1 in at and a2 in at:
            return columns | {"a1": at[a1], "a2": at[a2]}
    if "alleles" in at:
        return columns | {"alleles": at["alleles"]}
    if comment:
        return None
    raise InputError(
        f"{where}: no column of alternate alleles (alt) among {_some(written)}; {_ASK}"
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(quote(name) for name in names[:20])
    return f"{shown}, … ({len(names)})" if len(names) > 20 else shown


def _bare(path: Path, number: int, texts: list[str]) -> Layout:
    """The layout of a list without headings."""
    where = f"{path}, line {number}"
    if all(len(text.split()) == 1 and "\t" not in text for text in texts):
        texts = [text.strip('"') for text in texts]
        if any(map(notations.parse, texts)) or any(map(_without_place, texts)):
            _check_notations(f"{path}", texts)
            return Layout("notations", "", "\n", {"variant": 0})
    fitting, used = Counter(), ""
    for delimiter in _delimiters(texts[0]):
        rows = [_split(text, delimiter) for text in texts]
        fits = Counter({name: sum(_fits(name, row) for row in rows) for name in _LAYOUTS})
        if fits.total() > fitting.total():
            fitting, used = fits, delimiter
        elif any(notations.parse(row[0]) for row in rows if row):
            return Layout("notations", "", delimiter, {"variant": 0})
    most = max(fitting.values(), default=0)
    first = _split(texts[0], used or _delimiters(texts[0])[0])
    if not any(map(str.isdigit, map(_number, first))):
        raise InputError(
            f"{where}: {quote(texts[0])} names no columns that are known: it has {_some(first)}; "
            f"wanted are {_WANTED}"
        )
    if 2 * most <= len(texts):
        raise InputError(
            f"{where}: {quote(texts[0])} and the rows after it match no list without headings "
            f"that is read ({'; '.join(_LAYOUTS)}); give the table a header line with "
            f"{_WANTED}"
        )
    names = [name for name, count in fitting.items() if count == most]
    if len(names) > 1:
        raise InputError(f"{where}: {quote(texts[0])} reads as {' and as '.join(names)}; {_ASK}")
    columns = {meaning: i for i, meaning in enumerate(_LAYOUTS[names[0]])}
    behind = _NAMES_BEHIND.get(names[0])
    if behind and all(len(_split(text, used)) > len(columns) for text in texts):
        columns[behind] = len(columns)
    kept = {m: i for m, i in columns.items() if m not in ("cm", "score", "orientation")}
    return Layout(names[0], "", used, kept)


def _fits(name: str, cells: list[str]) -> bool:
    layout = _LAYOUTS[name]
    if name == "chrom, pos, ref, alt" and len(cells) > len(layout):
        return False
    return len(cells) >= len(layout) and all(
        re.fullmatch(_CELLS[meaning], cell) for meaning, cell in zip(layout, cells, strict=False)
    )


def _without_place(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in _MAKE_VCF)


def _check_notations(path: str, texts: list[str]) -> None:
    """Raise `InputError` for names that are not of a place on the genome."""
    for pattern, what in _MAKE_VCF.items():
        which = [text for text in texts if pattern.fullmatch(text)]
        if which and 2 * len(which) >= len(texts):
            raise InputError(f"{path}: {quote(which[0])} and others are {what}")
