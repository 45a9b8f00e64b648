"""The input's records again, with something added to INFO, as a VCF that others can read."""

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import pysam

from veff.atomic import put
from veff.errors import InputError
from veff.inputs import bcf, formats, records
from veff.inputs.formats import VCF_COLUMNS
from veff.inputs.records import Malformed, Record
from veff.inputs.reference import FIRST_BASE, Reference
from veff.inputs.vcf import Vcf

_DEFINITION = re.compile(rb'##(INFO|FORMAT|FILTER|contig)=<(?:[^">]*,)?ID=([^,>]+)')
# Contigs that can be defined. Others, such as '<1>', are read as they come.
_CONTIG = re.compile(rb"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
OURS = b"CHERI_"  # how the names of the fields begin that a run adds, whatever its experiments
# What htslib cannot take in the name of a FILTER, or a key of INFO or FORMAT.
_SAFE = bytes.maketrans(b",<>", b"___")

_PLACE = slice(Record._fields.index("chrom"), Record._fields.index("id") + 1)

_BGZF_END = 28  # bytes of the empty block that ends a bgzip file


def annotate(
    variants: Path,
    out: Path,
    header_lines: list[str],
    info: Iterable[tuple[Record | None, str]],
    reference: Reference,
    positions: str = "auto",
) -> bool:
    """Write all records of `variants` to `out`, in order, with more in their INFO column.

    ``out``: a bgzipped VCF, with a CSI index beside it where the input is sorted.
    ``header_lines``: whole lines that define what is added; whatever INFO fields the input has
    from an earlier run, ``CHERI_…``, are left out.
    ``info``: for each row of the input, as `records.read` counts them, the record as it was
    prepared, None for a malformed one, and the text to add, such as
    ``CHERI_STATUS=ok,duplicate;CHERI_LOGFC=0.1,.``, or ``''``.
    ``reference``: for ``##contig`` lines that the input lacks; for the empty alleles of a list,
    which a VCF cannot hold as they are; and, with ``positions``, for reading it, as in
    `records.Variants`.

    All else of a VCF is kept to the byte, but for line ends, empty columns, which become ``.``,
    and what would keep others from reading it: no ``##fileformat``, names that are used and not
    defined, names of filters and fields with one of ``,<>``, which become ``_``, two samples of
    one name, rows without the samples' columns, and malformed rows, which are left out and
    counted in the log. Genotypes are not looked at. A BCF is written as htslib writes it, a list
    as records without QUAL, FILTER and samples.

    Returns whether the output is indexed: not where records are out of order, as the log says.
    Raises `InputError` where the records are not those that were prepared.
    """
    header, columns, rows = _source(variants, reference, positions)
    added = _Added(columns)
    left_out = 0
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
        body, whole = Path(scratch, "body.gz"), Path(scratch, "whole.vcf.gz")
        with pysam.BGZFile(str(body), "wb") as file:
            for number, (row, said) in enumerate(zip_longest(rows, info)):
                if row is None or said is None or not _is_same(row[0], said[0]):
                    raise InputError(
                        f"{variants}: record {number + 1} is not the one that was prepared, so "
                        "the file changed since; run again, and it is prepared and scored anew"
                    )
                prepared, text = said
                if prepared is None:
                    left_out += 1
                else:
                    line = _listed(prepared, reference) if row[1] is None else row[1]
                    file.write(added.to(line, text.encode()))
        with pysam.BGZFile(str(whole), "wb") as file:
            kept = [line for line in header if not _is_ours(_define(line))]
            contigs = dict(zip(reference.names, reference.lengths.tolist(), strict=True))
            file.write(_header(kept, columns, header_lines, added, contigs))
        os.truncate(whole, whole.stat().st_size - _BGZF_END)
        with whole.open("ab") as file, body.open("rb") as rest:
            shutil.copyfileobj(rest, file)
        index = out.with_name(out.name + ".csi")
        if added.sorted:
            pysam.tabix_index(str(whole), preset="vcf", csi=True)
            put(Path(f"{whole}.csi"), index)
        else:
            index.unlink(missing_ok=True)
        put(whole, out)
    if left_out:
        logging.warning("%s: %d malformed rows are not in %s", variants, left_out, out)
    if not added.sorted:
        logging.warning("%s: not sorted, so %s has no index", variants, out)
    return added.sorted


def _source(
    variants: Path, reference: Reference, positions: str
) -> tuple[list[bytes], list[bytes], Iterator[tuple[Record | Malformed, bytes | None]]]:
    """Header lines, names of columns, and the rows, parsed and as VCF text; None in a list."""
    match formats.kind(variants):
        case "vcf":
            vcf = Vcf(variants)
            return vcf.header, vcf.columns, iter(vcf)
        case "bcf":
            with pysam.VariantFile(str(variants)) as file:
                *header, columns = str(file.header).encode().splitlines()
            rows = (
                (record, str(row).rstrip("\n").encode())
                for record, row in bcf.rows(variants, samples=True)
            )
            return header, columns.split(b"\t"), rows
        case "list":
            columns = [name.encode() for name in VCF_COLUMNS[:8]]
            rows = records.read(variants, "skip", reference, positions)
            return [], columns, ((row, None) for row in rows)


def _is_same(row: Record | Malformed, prepared: Record | None) -> bool:
    """Whether a row is the one that was prepared, where a list's alleles may be settled."""
    if not isinstance(row, Record) or prepared is None:
        return not isinstance(row, Record) and prepared is None
    if row[_PLACE] != prepared[_PLACE] or len(row.alts) != len(prepared.alts):
        return False
    return bool(row.note) or (row.ref, row.alts) == (prepared.ref, prepared.alts)


def _listed(row: Record, reference: Reference) -> bytes:
    """A list's record, as it was prepared, as a VCF's: no allele is empty."""
    pos, ref, alts = row.pos, row.ref, row.alts
    if "-" in (ref, *alts):
        pos, ref, alts = _completed(row, reference)
    columns = (row.chrom, str(pos), row.id, ref, ",".join(alts) or ".", ".", ".", ".")
    return "\t".join(columns).encode()


def _completed(row: Record, reference: Reference) -> tuple[int, str, list[str]]:
    """Position, REF and ALTs of a list's record with an empty allele, as VCF writes it."""
    contigs = reference.meaning(row.chrom).contigs

    def there(pos: int, n: int) -> str:
        bases = reference.fetch(contigs[0], pos - 1, pos - 1 + n) if len(contigs) == 1 else b""
        return bases.translate(FIRST_BASE).decode().ljust(n, "N")

    pos, alleles = row.pos, ["" if allele == "-" else allele for allele in (row.ref, *row.alts)]
    # VCF puts the base before in front, or at a contig's start the one after behind.
    if pos > 1:
        pos -= 1
        alleles = [there(pos, 1) + allele for allele in alleles]
    else:
        after = there(pos + len(alleles[0]), 1)
        alleles = [allele + after for allele in alleles]
    return pos, alleles[0], alleles[1:]


class _Added:
    """Adds to the INFO of rows, and keeps what the header must define for them."""

    def __init__(self, columns: list[bytes]):
        self.columns = max(len(columns), 8)
        self.sorted = True
        self.contigs: dict[bytes, None] = {}
        self.filters: dict[bytes, None] = {}
        self.keys: dict[bytes, bool] = {}  # of INFO: whether one has a value
        self.formats: dict[bytes, None] = {}
        self._before = (b"", 0)

    def to(self, row: bytes, text: bytes) -> bytes:
        """A row of at least eight columns, with line end, `text` added to its INFO."""
        fields = row.replace(b"\0", b"_").split(b"\t", 9)  # the genotypes stay one piece
        if len(fields) <= 8:
            fields += [b"."] * (self.columns - len(fields))
        for i in (2, 5, 6, 7):
            fields[i] = fields[i] or b"."
        self._see(fields[0], int(fields[1]))
        fields[6] = fields[6].translate(_SAFE)
        self.filters.update(dict.fromkeys(fields[6].split(b";")))
        fields[7] = self._info(fields[7], text)
        if len(fields) > 8:
            fields[8] = fields[8].translate(_SAFE)
            self.formats.update(dict.fromkeys(fields[8].split(b":")))
        return b"\t".join(fields) + b"\n"

    def _see(self, contig: bytes, pos: int) -> None:
        before, last = self._before
        if pos < last if contig == before else contig in self.contigs:
            self.sorted = False
        self._before = contig, pos
        self.contigs[contig] = None

    def _info(self, info: bytes, text: bytes) -> bytes:
        entries = []
        for entry in info.split(b";"):
            key, equals, value = entry.partition(b"=")
            if entry not in (b"", b".") and not key.startswith(OURS):
                key = key.translate(_SAFE)
                self.keys[key] = bool(equals) or self.keys.get(key, False)
                entries.append(key + equals + value)
        if text:
            entries.append(text)
        return b";".join(entries) or b"."


def _define(line: bytes) -> tuple[bytes, bytes] | None:
    """Which kind of thing a header line defines, and its name."""
    found = _DEFINITION.match(line)
    return found and (found[1], found[2])


def _is_ours(definition: tuple[bytes, bytes] | None) -> bool:
    """Whether a header line defines a field that a run of ours adds."""
    return definition is not None and definition[0] == b"INFO" and definition[1].startswith(OURS)


def _header(
    header: list[bytes],
    columns: list[bytes],
    header_lines: list[str],
    added: _Added,
    contigs: dict[str, int],
) -> bytes:
    """The header of the output: the input's, what it lacks for its rows, and the new lines."""
    version = next((line for line in header if line.startswith(b"##fileformat=")), None)
    lines = [version or b"##fileformat=VCFv4.2"]
    lines += [line for line in header if line != version]
    lines += _missing(lines, added, contigs)
    lines += [line.encode() for line in header_lines]
    columns = [*columns, *(name.encode() for name in VCF_COLUMNS[len(columns) : 8])]
    lines.append(b"\t".join([*columns[:9], *_distinct(columns[9:])]))
    return b"\n".join(lines) + b"\n"


def _missing(lines: list[bytes], added: _Added, contigs: dict[str, int]) -> Iterator[bytes]:
    """Definitions of what the rows use and the header does not define."""
    defined = {_define(line) for line in lines}
    said = b',Description="Not defined in the input">'
    for name in added.contigs:
        if (b"contig", name) not in defined and _CONTIG.fullmatch(name):
            length = contigs.get(name.decode())
            yield b"##contig=<ID=%s%s>" % (name, b"" if length is None else b",length=%d" % length)
    for name in added.filters:
        if (b"FILTER", name) not in defined and name not in (b".", b"PASS"):
            yield b"##FILTER=<ID=%s" % name + said
    for name, has_value in added.keys.items():
        if (b"INFO", name) not in defined:
            how = b".,Type=String" if has_value else b"0,Type=Flag"
            yield b"##INFO=<ID=%s,Number=%s" % (name, how) + said
    for name in added.formats:
        if (b"FORMAT", name) not in defined and name != b".":
            number = b"1" if name == b"GT" else b"."
            yield b"##FORMAT=<ID=%s,Number=%s,Type=String" % (name, number) + said


def _distinct(samples: list[bytes]) -> Iterator[bytes]:
    """Names of samples, with a number after one that stands there again: htslib refuses those."""
    seen = set()
    for name in samples:
        new, n = name, 1
        while new in seen:
            n += 1
            new = b"%s_%d" % (name, n)
        if n > 1:
            logging.warning("sample %s is in the header again: called %s", name, new)
        seen.add(new)
        yield new
