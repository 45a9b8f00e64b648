"""What kind of file is this, and which lines does its text have?"""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from veff.errors import InputError

VCF_COLUMNS = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]

_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_NO_TEXT = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
}
_NAMED_VCF = re.compile(r"\.(vcf|bcf)(\.b?gzf?|\.bgz)?$", re.IGNORECASE)


def kind(path: Path) -> str:
    """``'vcf'``, ``'bcf'`` or ``'list'``, told from the first lines; ``InputError`` if none."""
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
    first = next((line for line in lines(path) if line.strip()), b"")
    if first.startswith(b"BCF\2"):
        return "bcf"
    if not first:
        raise InputError(f"{path}: empty; expected a VCF, a BCF or a table of variants")
    if b"\0" in first:
        raise InputError(f"{path}: neither text nor BCF; expected a VCF, a BCF or a table")
    if first.startswith((b"##fileformat", b"##format")) or _NAMED_VCF.search(path.name):
        return "vcf"
    heading = next((line for line in lines(path) if not line.startswith(b"##")), b"")
    columns = heading.decode(errors="replace").split()
    is_vcf = len(columns) >= 5 and columns[:9] == VCF_COLUMNS[: len(columns)]
    return "vcf" if is_vcf else "list"


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a text file, plain, gzip or bgzip, in UTF-8, a byte order mark taken off."""
    with path.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
    number = 0
    try:
        with path.open("rb") as raw:
            stream = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if compressed else raw
            if stream.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                stream = (
                    line.encode() for line in io.TextIOWrapper(stream, "utf-16", newline="\n")
                )
            for number, line in enumerate(stream, 1):
                if number == 1 and not line.endswith(b"\n") and b"\r" in line.rstrip(b"\r"):
                    raise InputError(
                        f"{path}: lines end with a carriage return (CR) alone, as on a Mac of "
                        "old; write them with newlines: tr '\\r' '\\n'"
                    )
                yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    except (EOFError, zlib.error, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}, after line {number}: truncated, damaged or not readable ({error}); copy or "
            "make it again"
        ) from error
