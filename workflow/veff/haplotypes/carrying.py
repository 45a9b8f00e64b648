"""Which of the input's alleles does each chromosome have, one beside the other?

Which records a chromosome has, and which are skipped since they overlap one before, is decided as
``bcftools consensus -H 1`` and ``-H 2`` do.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.haplotypes import genotypes
from veff.inputs import alignment
from veff.inputs.alignment import Texts
from veff.inputs.reference import Reference
from veff.scoring.edits import Edit

PHASING = pa.schema(
    {
        "allele_id": pa.int64(),
        "status": pa.string(),
        "chromosomes": pa.int64(),
        "unphased": pa.int64(),
    }
)


@dataclass(eq=False)
class Allele:
    """One that is scored: as it is written, and trimmed; and who has it (`genotypes.Carriers`)."""

    allele_id: int
    scored_as: int
    pos: int  # 0-based, of REF as written
    last: int  # the last base of REF as written
    anchored: bool  # an insertion or deletion behind the base that both alleles begin with
    longer: bool
    edit: Edit
    chromosome: np.ndarray
    phase_set: np.ndarray
    unphased: np.ndarray
    haploid: np.ndarray
    known: int


def carried(
    variants: Path, alleles: Path, reference: Reference, samples: list[int]
) -> tuple[dict[int, list[Allele]], pa.Table]:
    """By contig, the alleles that the samples have, in the order of the genome; and what became of
    each allele of the input, as `PHASING` has it.

    `alleles` is what `preparing.prepare` wrote of `variants`, `samples` are places among the
    input's. A status is ``phased``, where a chromosome is known that has the allele; else
    ``unphased``, ``overlapped`` (behind others on each of its chromosomes), ``not_carried``,
    ``polyploid`` (a sample of the record has more than two copies) or ``not_scored``.
    """
    columns = ["allele_id", "record", "contig", "pos", "ref", "alt", "scored_as"]
    table = pq.read_table(alleles, columns=columns)
    record = table["record"].to_numpy()
    first = np.searchsorted(record, np.arange(record[-1] + 2 if len(record) else 1))
    scored = np.flatnonzero(table["scored_as"].is_valid().to_numpy())
    place = np.full(len(record), -1)
    place[scored] = np.arange(len(scored))
    contig, written = _trimmed(table.take(scored), reference)
    status = np.full(len(record), "not_scored", object)
    status[scored] = "not_carried"
    found: dict[int, list[Allele]] = defaultdict(list)
    for one in genotypes.read(variants, samples):
        for k, carriers in enumerate(one.carriers):
            row = int(first[one.record]) + k
            at = int(place[row])
            if at < 0:
                continue
            if one.polyploid:
                status[row] = "polyploid"
            elif len(carriers.chromosome) or len(carriers.unphased):
                found[int(contig[at])].append(
                    Allele(
                        allele_id=row,
                        **written[at],
                        **vars(carriers),
                        haploid=one.haploid,
                        known=one.known,
                    )
                )
    counts = np.zeros((2, len(record)), np.int64)
    for here in found.values():
        here.sort(key=lambda one: one.pos)  # of one position, in the order of the input
        _skip_overlapping(here, 2 * len(samples))
        for one in here:
            counts[:, one.allele_id] = len(one.chromosome), len(one.unphased)
            known = "unphased" if len(one.unphased) else "overlapped"
            status[one.allele_id] = "phased" if len(one.chromosome) else known
        here[:] = [one for one in here if len(one.chromosome) or len(one.unphased)]
        here.sort(key=lambda one: (one.edit, one.allele_id))
    phasing = [table["allele_id"], pa.array(status.tolist(), pa.string()), *counts]
    return found, pa.table(phasing, schema=PHASING)


def one_phase_set(sample: np.ndarray, phase_set: np.ndarray, decides: np.ndarray) -> np.ndarray:
    """Which entries, an allele on a chromosome of a sample each, count beside the others, bool.

    Of a sample's several phase sets it is the one with most entries that decide; the first of
    equal ones. `phase_set` is as in `genotypes.Carriers`.
    """
    kept = np.ones(len(sample), bool)
    sets = defaultdict(Counter)
    for one, number, counts in zip(
        sample.tolist(), phase_set.tolist(), decides.tolist(), strict=True
    ):
        if number >= 0:
            sets[one][number] += counts
    for one, counts in sets.items():
        if len(counts) > 1:
            best = min(counts, key=lambda number: (-counts[number], number))
            kept &= (sample != one) | (phase_set < 0) | (phase_set == best)
    return kept


def _trimmed(table: pa.Table, reference: Reference) -> tuple[np.ndarray, list[dict]]:
    """Of each row the contig, and what `Allele` says of how it is written."""
    index = {name: i for i, name in enumerate(reference.names)}
    contig = np.array([index[name] for name in table["contig"].to_pylist()], np.int64)
    pos = table["pos"].to_numpy() - 1
    ref, alt = (
        pc.ascii_upper(pa.concat_arrays([pa.array([], pa.string()), *table[name].chunks]))
        for name in ("ref", "alt")
    )
    refs, alts = Texts.of(ref), Texts.of(alt)
    # The base before comes off first: an earlier record of the chromosome may have changed it.
    same = (refs.length > 0) & (alts.length > 0)
    same[same] = refs.letters[refs.begin[same]] == alts.letters[alts.begin[same]]
    inner = (Texts(one.letters, one.begin + same, one.length - same) for one in (refs, alts))
    unmoved = np.zeros(len(pos), bool)
    edits = alignment.align(reference, contig, pos + same, *inner, unmoved)
    edits = map(Edit, edits.start.tolist(), edits.ref_len.tolist(), edits.alt.to_pylist())
    written = [
        {
            "scored_as": scored_as,
            "pos": pos,
            "last": pos + ref_len - 1,
            "anchored": anchored and (edit.ref_len == 0) != (not edit.alt),
            "longer": alt_len > ref_len,
            "edit": edit,
        }
        for scored_as, pos, ref_len, alt_len, anchored, edit in zip(
            table["scored_as"].to_pylist(),
            pos.tolist(),
            refs.length.tolist(),
            alts.length.tolist(),
            same.tolist(),
            edits,
            strict=True,
        )
    ]
    return contig, written


def _skip_overlapping(here: list[Allele], n_chromosomes: int) -> None:
    """Take from each allele the chromosomes that have an earlier one there.

    As ``bcftools consensus`` 1.16: a record is skipped whose POS is not behind the last base of
    the last record's REF, unless it is just that base, the record an insertion or deletion behind
    it, and the last one no insertion.
    """
    last = np.full(n_chromosomes, -1)
    inserted = np.zeros(n_chromosomes, bool)
    for one in here:
        mine = one.chromosome
        free = one.pos > last[mine]
        if one.anchored:
            free |= (one.pos == last[mine]) & ~inserted[mine]
        one.chromosome, one.phase_set = mine[free], one.phase_set[free]
        last[one.chromosome], inserted[one.chromosome] = one.last, one.longer
