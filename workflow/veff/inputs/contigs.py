"""Which contig of the reference does a name mean?"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from veff.errors import InputError
from veff.inputs.assemblies import ACCESSIONS

# PLINK's numbers of human chromosomes, and its name of the part of X that Y has too.
CODES = {"23": ("X",), "24": ("Y",), "25": ("X",), "XY": ("X",), "26": ("MT", "M")}
_MITOCHONDRION = ("MT", "M")
# chrM of UCSC's hg19 is NC_001807; what everyone calls MT is another sequence, of 16,569 bp.
HG19_CHRM = 16571


class Meaning(NamedTuple):
    """The contigs, by index, that a name may mean: none, one, or several that fit as well.

    ``certain``: the name is one of the contig's own, with or without ``chr``, or an alias. If
    not, it is that of a mitochondrion or a code, and only its alleles show whether it fits.
    """

    contigs: tuple[int, ...]
    certain: bool


class Contigs:
    """The names of a reference's contigs, and what else they are called.

    The most specific reading of a name wins: a row of `aliases`; the name itself; the name with
    or without ``chr``; for an accession of RefSeq the chromosome of that length, and so of that
    assembly; for a mitochondrion (``M``, ``MT``) its other name; for a code of PLINK (23 to 26,
    XY) what it stands for.
    """

    def __init__(self, names: Sequence[str], lengths: Sequence[int], aliases: Path | None = None):
        self._names = names
        self._lengths = lengths
        self._index = {name: i for i, name in enumerate(names)}
        self._aliases: dict[str, int] = {}
        if aliases is not None:
            self._aliases = self._read(aliases)

    def meaning(self, name: str) -> Meaning:
        if name in self._aliases:
            return Meaning((self._aliases[name],), True)
        bare = name.removeprefix("chr")
        for spelling in (name, f"chr{name}" if bare == name else bare):
            if spelling in self._index:
                return Meaning((self._index[spelling],), True)
        if name in ACCESSIONS:
            return Meaning(self._of_length(*ACCESSIONS[name]), True)
        others = _MITOCHONDRION if bare in _MITOCHONDRION else CODES.get(bare, ())
        spellings = (name for other in others for name in (other, f"chr{other}"))
        found = [self._index[spelling] for spelling in spellings if spelling in self._index]
        if bare in ("MT", "26"):
            found = [i for i in found if self._lengths[i] != HG19_CHRM]
        return Meaning(tuple(found), not found)

    def _of_length(self, chromosome: str, length: int) -> tuple[int, ...]:
        """The contig of a chromosome, by any of its names, that is that long."""
        names = _MITOCHONDRION if chromosome in _MITOCHONDRION else (chromosome,)
        spellings = (name for one in names for name in (one, f"chr{one}"))
        found = (self._index.get(spelling) for spelling in spellings)
        return tuple(i for i in found if i is not None and self._lengths[i] == length)[:1]

    def without(self, name: str) -> str:
        """Why no contig is meant by this name."""
        bare = name.removeprefix("chr")
        reason = f"the reference has no contig {name!r}"
        if name in ACCESSIONS:
            chromosome, length = ACCESSIONS[name]
            return f"{reason}, nor a chromosome {chromosome} of its {length} bp"
        if bare == "0":
            return f"{reason}: PLINK's code for variants without a place"
        if bare in CODES:
            return f"{reason}, nor {' or '.join(CODES[bare])}, for which PLINK writes {bare}"
        if bare in _MITOCHONDRION:
            other = next((n for n in ("chrM", "M", "MT", "chrMT") if n in self._index), None)
            return f"{reason}; its {other!r} is another sequence" if other else reason
        return reason

    def _read(self, path: Path) -> dict[str, int]:
        """The contig that each name of the table means; `Reference.open` says what it holds."""
        try:
            with path.open(encoding="utf-8") as file:
                lines = file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot read the contig aliases ({error})") from error
        aliases: dict[str, int] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = [cell.strip() for cell in line.split("\t")]
            if len(cells) < 2:
                raise InputError(
                    f"{path}, line {number}: one column; expected a contig's names, separated by "
                    "tabs"
                )
            names = {cell for cell in cells if cell not in ("", "na")}
            # Names of contigs as they are; only in a row without, what its names mean.
            contigs = {self._index[name] for name in names if name in self._index} or {
                i for name in names for i in self.meaning(name).contigs
            }
            contigs |= {aliases[name] for name in names if name in aliases}
            if len(contigs) > 1:
                both = " and ".join(repr(self._names[i]) for i in sorted(contigs)[:2])
                raise InputError(
                    f"{path}, line {number}: its names are those of {both}, two contigs of the "
                    "reference; a row must be about one (to move variants from one to the other: "
                    "bcftools annotate --rename-chrs)"
                )
            aliases |= dict.fromkeys(names, *contigs) if contigs else {}
        return aliases
