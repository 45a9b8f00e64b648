"""What bases stand at (contig, start, end), under which names, and which assembly this is."""

import gzip
import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from veff import sums
from veff.atomic import aside, damaged, read_json, write_json
from veff.errors import InputError
from veff.inputs.assemblies import assembly
from veff.inputs.contigs import Contigs, Meaning
from veff.inputs.identity import Input

IUPAC = b"ACGTUNRYSWKMBDHV"
BLOCK = 1 << 24  # bytes of FASTA that are in memory at once
READS = 1 << 12  # reads after which mapped pages are released; each may map 64 kB
PIECE = 20  # pieces of 2**20 bases have a checksum each

# Letters to upper case; what no FASTA of nucleotides holds to 0, which is then looked for.
_UPPER = bytes(i & ~32 if i & ~32 in IUPAC and i >= 64 else 0 for i in range(256))

# Line ends, and the position numbers that some databases write among the bases.
_BETWEEN = b"\r\n0123456789"

# The VCF specification has an IUPAC code of the reference written as the first in the alphabet of
# the bases that it stands for.
FIRST_BASE = bytes.maketrans(b"UMRWSYKVHDB", b"TAAACCGAAAC")


def build(fasta: Path, folder: Path) -> None:
    """Write a FASTA file's bases and contigs into `folder`, for `Reference.open`.

    ``bases.u8`` holds all contigs back to back as upper-case ASCII (IUPAC codes kept);
    ``contigs.json`` their names, lengths and offsets, the sha256 of the FASTA file as it is on
    disk, the assembly that the lengths tell, or null, and the CRC-32 of each 2**20 bases. The
    FASTA may be plain, gzip or bgzip, and needs no index. Memory stays at a few blocks of 16 MB.

    Raises `InputError` where the file is no FASTA of nucleotides, is truncated, or names a
    contig twice.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fasta = fasta if isinstance(fasta, Input) else Input(fasta)
    names, lengths = [], []
    with aside(folder / "bases.u8") as bases:
        with bases.open("wb") as out:
            for name, piece in _contigs(fasta):
                if name is not None:
                    names.append(name)
                    lengths.append(0)
                lengths[-1] += out.write(piece)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{fasta}: contig {twice!r} occurs twice; names must differ")
        contigs = {
            "names": names,
            "lengths": lengths,
            "offsets": [0, *np.cumsum(lengths[:-1]).tolist()],
            "sha256": fasta.sha256,
            "assembly": assembly(names, lengths),
            "crc32": _crc32(bases),
        }
    write_json(folder / "contigs.json", contigs)
    sums.write(folder / "contigs.json")


def _crc32(bases: Path) -> list[int]:
    with bases.open("rb") as file:
        return [zlib.crc32(piece) for piece in iter(lambda: file.read(1 << PIECE), b"")]


def _contigs(fasta: Path) -> Iterator[tuple[str | None, bytes]]:
    """Pieces of contigs in order: the name with a contig's first piece, None with the others."""
    if not fasta.is_file():
        raise InputError(f"{fasta}: no such file; the reference must be a FASTA file")
    with fasta.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
    name = None
    try:
        with fasta.open("rb") as raw, gzip.open(raw) if compressed else raw as stream:
            for block in _blocks(stream, fasta):
                rest, *starting = block.split(b"\n>")
                if name is None and rest.strip():
                    raise InputError(
                        f"{fasta}: starts with {rest.split()[0][:20]!r}, where a FASTA file has "
                        "'>' and a contig's name"
                    )
                if name is not None:
                    yield None, _upper(rest, name, fasta)
                for contig in starting:
                    header, _, lines = contig.partition(b"\n")
                    if b"\r" in header.rstrip(b"\r"):
                        raise _bare_returns(fasta)
                    words = header.decode(errors="replace").split()
                    if not words or header[:1].isspace():
                        raise InputError(f"{fasta}: a '>' without a contig's name after it")
                    name = words[0]
                    yield name, _upper(lines, name, fasta)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{fasta}: truncated or damaged gzip data ({error})") from error
    if name is None:
        raise InputError(f"{fasta}: holds no contig; expected a FASTA file")


def _bare_returns(fasta: Path) -> InputError:
    return InputError(
        f"{fasta}: lines end with a carriage return alone, as on a Mac of old; write them with "
        "newlines: tr '\\r' '\\n'"
    )


def _blocks(stream: BinaryIO, fasta: Path) -> Iterator[bytes]:
    """Blocks of a stream, no header cut in two; one that starts a line has a newline before."""
    line_starts = True
    while block := stream.read(BLOCK):
        if block.rfind(b">") > block.rfind(b"\n"):
            if b"\r" in block[block.rfind(b">") : -1]:
                raise _bare_returns(fasta)  # or the rest of the file is one header
            block += stream.readline()
        yield b"\n" + block if line_starts else block
        line_starts = block.endswith(b"\n")


def _upper(lines: bytes, name: str, fasta: Path) -> bytes:
    bases = lines.translate(_UPPER, _BETWEEN)
    if 0 in bases:
        wrong = next(chr(i) for i in lines if i not in _BETWEEN and not _UPPER[i])
        raise InputError(
            f"{fasta}: {wrong!r} in the sequence of {name!r}; only nucleotides may stand there, "
            f"{IUPAC.decode()} in either case"
        )
    return bases


class Reference:
    """A genome on disk, mapped into memory; contigs are known by their index in FASTA order.

    names: list of contigs; lengths, offsets: int64[contigs]; bases: uint8[sum of lengths], ASCII;
    assembly: 'hg19', 'hg38', 'T2T-CHM13', 'mm10', 'mm39' or None; sha256: of the FASTA file;
    crc32: of each 2**20 bases, which are checked when they are first read.
    """

    def __init__(self, bases, names, lengths, offsets, sha256, assembly, crc32=None, aliases=None):
        self.bases = bases
        self.names = list(names)
        self.lengths = np.asarray(lengths, np.int64)
        self.offsets = np.asarray(offsets, np.int64)
        self.sha256 = sha256
        self.assembly = assembly
        self._crc32 = crc32
        # Of each piece, whether it is yet to be checked.
        self._unread = bytearray(b"\1" * len(crc32 or ()))
        self._view = memoryview(self.bases)
        self._n_read = 0
        self._spans = list(zip(self.offsets.tolist(), self.lengths.tolist(), strict=True))
        self._contigs = Contigs(self.names, self.lengths.tolist(), aliases)

    @classmethod
    def open(cls, folder: Path, aliases: Path | None = None) -> "Reference":
        """Open what `build` wrote; `aliases` is a table with other names of one contig a row.

        Two or more tab-separated columns, each a naming scheme (UCSC, Ensembl, RefSeq, as in
        UCSC's chromAlias.txt); lines that start with ``#`` are skipped, as are empty cells and
        ``na``. Rows without a contig of this reference are not used. Raises `InputError` where a
        row names two contigs of the reference, or a name stands in the rows of two.
        """
        sums.check(folder / "contigs.json")
        contigs = read_json(folder / "contigs.json")
        size = sum(contigs["lengths"])
        path = folder / "bases.u8"
        if path.stat().st_size != size:
            raise damaged(path)
        bases = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
        return cls(bases, **contigs, aliases=aliases)

    def meaning(self, name: str) -> Meaning:
        """The contigs that a name may mean, as `contigs.Contigs` reads it."""
        return self._contigs.meaning(name)

    def without(self, name: str) -> str:
        """Why a name means no contig."""
        return self._contigs.without(name)

    def contig(self, name: str) -> int | None:
        """Index of the contig that a name means; raises `InputError` where it may mean two."""
        contigs = self.meaning(name).contigs
        if len(contigs) > 1:
            both = " or ".join(repr(self.names[i]) for i in contigs)
            raise InputError(
                f"contig {name!r} may be {both} of the reference; say which in contig_aliases"
            )
        return contigs[0] if contigs else None

    def fetch(self, contig: int, start: int, end: int) -> bytes:
        """Bases of [start, end), 0-based, clipped to the contig; upper-case ASCII."""
        self._n_read += 1
        if self._n_read % READS == 0:
            self._release()
        offset, length = self._spans[contig]
        first, end = offset + max(start, 0), offset + min(end, length)
        if end <= first:
            return b""
        if 1 in self._unread[first >> PIECE : (end - 1 >> PIECE) + 1]:
            self.check(np.arange(first >> PIECE, (end - 1 >> PIECE) + 1) << PIECE)
        return bytes(self._view[first:end])

    def at(self, contig: np.ndarray, start: np.ndarray) -> np.ndarray:
        """The bases at places within contigs, uint8 in the shape of `start`: [n] or [n, m].

        The m places of a row are on its contig, int64[n], and close together.
        """
        offset = self.offsets[contig].reshape(-1, *[1] * (start.ndim - 1))
        bases = np.empty(start.shape, np.uint8)
        for first in range(0, len(start), READS):
            here = slice(first, first + READS)
            places = offset[here] + start[here]
            self.check(places)
            bases[here] = self.bases[places]
            self._release()
        return bases

    def check(self, places: np.ndarray) -> None:
        """Raise `InputError` if a piece of `bases` that has one of these places was damaged since
        it was written; it is then removed, to be built again."""
        if not self._unread:
            return
        pieces = places >> PIECE
        unread = np.frombuffer(self._unread, bool)
        for piece in np.unique(pieces[unread[pieces]]).tolist():
            if zlib.crc32(self.bases[piece << PIECE : piece + 1 << PIECE]) != self._crc32[piece]:
                raise damaged(self.bases.filename)
            self._unread[piece] = 0

    def has(self, contig: int, start: int, bases: str) -> bool:
        """Whether these bases stand there, the genome's IUPAC codes read as VCF does."""
        there = self.fetch(contig, start, start + len(bases))
        return there == bases.encode() or there.translate(FIRST_BASE) == bases.encode()

    def _release(self) -> None:
        """Let go of the pages read so far; else in the end the whole genome is resident."""
        if isinstance(self.bases, np.memmap):
            self.bases.base.madvise(mmap.MADV_DONTNEED)
