"""Which chromosomes of which samples carry an allele, as far as their genotypes are phased?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pysam

from veff.errors import InputError
from veff.inputs import bcf, formats
from veff.inputs.records import Malformed
from veff.inputs.vcf import Vcf

MISSING, ABSENT = -1, -2  # a copy whose allele is not known; one that the sample does not have


@dataclass(frozen=True)
class Carriers:
    """Of one allele, by sample: chromosome ``2 * sample + copy``, copy 0 or 1.

    chromosome: int32[n], those that carry it, in order; phase_set: int32[n], of each the set in
    which it is phased, 0 where the whole contig is one, -1 where the sample has the allele twice,
    so that it is in every set; unphased: int32[m], samples that have it on one of two, who knows
    which.
    """

    chromosome: np.ndarray
    phase_set: np.ndarray
    unphased: np.ndarray


@dataclass(frozen=True)
class Genotypes:
    """Of one record: the carriers of each ALT; how many chromosomes have a known allele; the
    samples with one copy only, int32.

    `polyploid` says that a sample has more than two copies: then nobody counts as a carrier.
    """

    record: int
    carriers: list[Carriers]
    known: int
    haploid: np.ndarray
    polyploid: bool


def samples_of(variants: Path, key: str = "haplotypes") -> list[str]:
    """The samples of a VCF or BCF, which this key of the configuration asks for. Raises
    `InputError` where there is none."""
    kind = formats.kind(variants)
    names: list[str] = []
    if kind == "vcf":
        names = [one.decode() for one in Vcf(variants).columns[9:]]
    elif kind == "bcf":
        with pysam.VariantFile(str(variants)) as file:
            names = list(file.header.samples)
    if not names:
        raise InputError(
            f"{variants}: {key}: there are no samples in it; give a VCF or BCF with phased "
            f"genotypes, or leave {key} out"
        )
    return names


def chosen(variants: Path, wanted: str | list[str]) -> list[int]:
    """Which of the samples are meant by `wanted`: 'all', names, or a file with a name a line.

    Returns their places in the order of the input. Raises `InputError` for an unknown name.
    """
    names = samples_of(variants)
    if wanted == "all":
        return list(range(len(names)))
    where = "samples" if isinstance(wanted, list) else wanted
    if isinstance(wanted, list):
        wanted = list(map(str, wanted))
    else:
        wanted = [line.strip() for line in Path(wanted).read_text().splitlines() if line.strip()]
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        what = repr(unknown[0]) if unknown else "no name"
        raise InputError(f"{where}: {what} is no sample of {variants}, which has {some(names)}")
    return sorted({names.index(name) for name in wanted})


def some(names: list[str]) -> str:
    """The first samples, for a message, and of many how many they are."""
    return ", ".join(names[:5]) + (f", … ({len(names)})" if len(names) > 5 else "")


def read(variants: Path, samples: list[int]) -> Iterator[Genotypes]:
    """The genotypes of each record, in order; malformed rows are counted and passed over.

    `samples` are places among those of the input; here they are numbered anew, from 0.
    """
    codes = _Codes()
    columns = [9 + one for one in samples]
    for number, row in _rows(variants):
        fields = row.split(b"\t")
        if len(fields) <= 9 or fields[8].split(b":")[0] != b"GT":
            yield _genotypes(number, fields[4], np.zeros((0, 4), np.int64), None)
            continue
        cells = [fields[one] for one in columns]
        sets = None
        if b":" in fields[8]:
            keys = fields[8].split(b":")
            parts = [cell.split(b":") for cell in cells]
            cells = [part[0] for part in parts]
            if b"PS" in keys:
                at = keys.index(b"PS")
                sets = np.array(
                    [_phase_set(part[at] if at < len(part) else b".") for part in parts]
                )
        rows = np.fromiter(map(codes.__getitem__, cells), np.int64, len(cells))
        yield _genotypes(number, fields[4], codes.table()[rows], sets)


def _rows(variants: Path) -> Iterator[tuple[int, bytes]]:
    """The number and the text of each row that is a record."""
    rows: Iterable = (
        ((record, str(row).encode()) for record, row in bcf.rows(variants, samples=True))
        if formats.kind(variants) == "bcf"
        else Vcf(variants)
    )
    for record, row in rows:
        if not isinstance(record, Malformed):
            yield record.number, row.rstrip(b"\n")


def _phase_set(text: bytes) -> int:
    """The number of a phase set, 0 for none."""
    return int(text) % (2**31 - 1) + 1 if text.isdigit() else 0


class _Codes(dict):
    """A number for each way to write a genotype, computed when it is first met."""

    def __init__(self):
        super().__init__()
        self._known: list[tuple[int, int, bool, bool]] = []
        self._table = np.zeros((0, 4), np.int64)

    def __missing__(self, text: bytes) -> int:
        self._known.append(_parsed(text))
        self[text] = code = len(self._known) - 1
        return code

    def table(self) -> np.ndarray:
        """int64[codes, 4]: the alleles of both copies, whether phased, whether more than two."""
        if len(self._table) < len(self._known):
            self._table = np.array(self._known, np.int64)
        return self._table


def _parsed(text: bytes) -> tuple[int, int, bool, bool]:
    phased = b"|" in text
    # VCF 4.4 may begin a genotype with the mark of its first allele.
    copies = [
        int(one) if one.isdigit() else MISSING
        for one in text.lstrip(b"|/").replace(b"|", b"/").split(b"/")
    ]
    if len(copies) > 2:
        return MISSING, MISSING, False, any(one > 0 for one in copies)
    # A lone dot is short for as many as there are.
    first, second = [*copies, MISSING if copies == [MISSING] else ABSENT][:2]
    # Of a genotype like 1/1 or 1 both phases are the same.
    return first, second, phased or first == second or second == ABSENT, False


def _genotypes(number: int, alt: bytes, rows: np.ndarray, sets: np.ndarray | None) -> Genotypes:
    polyploid = bool(rows[:, 3].any())
    copies, phased = rows[:, :2], rows[:, 2].astype(bool)
    carriers = []
    for k in range(1, alt.count(b",") + 2):
        has = copies == k
        sample, copy = np.nonzero(has & phased[:, None] & (not polyploid))
        twice = has.all(1)[sample] | (copies[sample, 1] == ABSENT)
        phase_set = np.zeros(len(sample), np.int32) if sets is None else sets[sample]
        unphased = np.flatnonzero(has.any(1) & ~phased & (not polyploid))
        carriers.append(
            Carriers(
                (2 * sample + copy).astype(np.int32),
                np.where(twice, -1, phase_set).astype(np.int32),
                unphased.astype(np.int32),
            )
        )
    known = 0 if polyploid else int((copies >= 0).sum())
    haploid = np.flatnonzero(copies[:, 1] == ABSENT).astype(np.int32)
    return Genotypes(number, carriers, known, haploid, polyploid)
