"""Which families of motifs does an allele touch, and does a random allele change any as much?"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import tables
from veff.inputs import classes
from veff.inputs.reference import Reference
from veff.motifs.motifset import MotifSet
from veff.motifs.scan import Best, Scanner
from veff.scoring import columns, sampling
from veff.scoring.columns import Column
from veff.scoring.null import p_value

HIT = 1e-4  # p-value below which a placement is a hit, as in FIMO
N_NULL = 10_000  # random SNVs: scanning them needs no model
N_OF_OTHERS = 1_000  # random alleles of each other class, which take longer
COLUMNS = {
    "allele_id": columns.ALLELE["allele_id"],
    "motif": Column(pa.string(), "the family's motif that fits one of the two sequences best"),
    "family": Column(pa.string(), "family of alike motifs, named by the first of them"),
    "strand": Column(pa.string(), "of the motif where it fits best"),
    "start": Column(pa.int64(), "first base of that place on the reference, from 0", "bp"),
    "end": Column(pa.int64(), "behind its last base on the reference", "bp"),
    "ref_score": Column(
        pa.float64(),
        "of the motif's best fit to the reference, of the placements that hold the allele",
        "log2 odds",
    ),
    "alt_score": Column(pa.float64(), "the same for the alternate", "log2 odds"),
    "change": Column(pa.float64(), "of the score", "log2 odds", "alt_score - ref_score"),
    "ref_pval": Column(pa.float64(), "FIMO's p-value of ref_score", "0 to 1"),
    "alt_pval": Column(pa.float64(), "FIMO's p-value of alt_score", "0 to 1"),
    "evidence": Column(
        pa.float64(),
        "change of FIMO's p-value in orders of magnitude, which compares between motifs",
        "log10",
        "log10(ref_pval / alt_pval)",
    ),
    "pval": Column(
        pa.float64(),
        "how often a random allele of its class changes a hit of the family by as much evidence; "
        "missing without nulls",
        "0 to 1",
        columns.ONE_SIDED_P,
    ),
    "max_pval": Column(
        pa.float64(),
        "how often a random allele of its class changes a hit of any family by as much evidence; "
        "missing without nulls",
        "0 to 1",
        columns.ONE_SIDED_P,
    ),
}
# Where each sequence's own best fit is.
PLACES = {
    "ref_offset": Column(pa.int32(), "from the allele to the best fit's first base, reference"),
    "alt_offset": Column(pa.int32(), "the same along the alternate"),
    "width": Column(pa.int32(), "of the motif", "bp"),
}
SCHEMA = columns.schema(COLUMNS, PLACES)


@dataclass(frozen=True)
class Null:
    """How much evidence random alleles of a class change: float64 [families, n], 0 where they
    touch no hit."""

    evidence: np.ndarray

    @cached_property
    def largest(self) -> np.ndarray:
        return self.evidence.max(0)


def write(
    out: Path,
    scoreable: Path,
    reference: Reference,
    motifs: MotifSet,
    *,
    ids: Sequence[int] | None,
    nulls: dict | None,
    threads: int = 1,
) -> None:
    """Write the hits of the alleles with these ids, or of all, to a Parquet table.

    `scoreable` is the prepared table; `nulls` has how random alleles are drawn: `seed`, `scheme`,
    `regions`.
    """
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    finder = Finder(motifs, reference)
    alleles = pq.read_table(scoreable)
    if ids is not None:
        alleles = alleles.filter(pc.is_in(alleles["allele_id"], pa.array(ids, pa.int64())))
    drawn = finder.nulls(alleles, **nulls) if nulls else None
    tables.write_parquet(out, chain([SCHEMA.empty_table()], finder.hits(alleles, drawn)))
    logging.info("%d alleles scanned for %d motifs", len(alleles), len(motifs.names))


class Finder:
    """Looks for the motifs of a set, which are collapsed by family, in one reference."""

    def __init__(self, motifs: MotifSet, reference: Reference):
        self.motifs, self.reference = motifs, reference
        self._scanner = Scanner(motifs)
        self._families = list(dict.fromkeys(motifs.families))
        names = np.array(motifs.families)
        self._members = [np.flatnonzero(names == name) for name in self._families]
        self._widths = np.array([matrix.shape[1] for matrix in motifs.matrices])

    def nulls(self, alleles: pa.Table, **how) -> dict[int, Null]:
        """Those of the classes that these alleles are of, by number (`classes.NAMES`)."""
        return {
            kind: self.null(classes.NAMES[kind], **how)
            for kind in np.unique(_kinds(alleles)).tolist()
        }

    def null(self, kind: str, *, seed: int, scheme: str, regions: Path | None) -> Null:
        """Of random alleles drawn as those are that scores are judged by (`sampling.sample`)."""
        snvs = kind == classes.SNV
        # The flanks of a substitution too are longer than a motif.
        length = 4 * self.motifs.widest + (0 if snvs else 2 * classes.bounds(kind)[1])
        how = {"n": N_NULL if snvs else N_OF_OTHERS, "seed": seed, "scheme": scheme}
        genome, alleles = sampling.sample(
            self.reference, length, **how, regions=regions, kind=kind
        )
        blocks = []
        for best in self._scanner.scan(alleles, genome):
            motif, column = self._chosen(best)
            touched = np.abs(_evidence(best)[motif, column])
            blocks.append(np.where(motif >= 0, touched, 0))
        return Null(np.concatenate(blocks, axis=1))

    def hits(self, alleles: pa.Table, nulls: dict[int, Null] | None) -> Iterator[pa.Table]:
        """A row for each allele and family with a hit to one of its sequences, or both; for an
        allele without any, one that has no more than its `allele_id`. Block by block.

        `alleles` are rows of the prepared table. Of a family that motif speaks which fits best.
        """
        first = 0
        for best in self._scanner.scan(alleles, self.reference):
            here = alleles.slice(first, best.score.shape[2])
            first += len(here)
            rows = self._rows(here, best, nulls)
            without = here.filter(
                pc.invert(pc.is_in(here["allele_id"], rows["allele_id"].combine_chunks()))
            )
            rest = pa.table({"allele_id": without["allele_id"].cast(pa.int64())})
            yield pa.concat_tables([rows, rest], promote_options="default")

    def _chosen(self, best: Best) -> tuple[np.ndarray, np.ndarray]:
        """The motif that speaks for each family and allele, [families, n], -1 where none hits;
        and the alleles' columns, which go with it."""
        lowest = best.log_p.min(0)
        column = np.arange(lowest.shape[1])
        chosen = np.empty((len(self._members), len(column)), np.int64)
        for family, members in enumerate(self._members):
            motif = members[lowest[members].argmin(0)]
            chosen[family] = np.where(lowest[motif, column] < np.log2(HIT), motif, -1)
        return chosen, column[None]

    def _rows(self, alleles: pa.Table, best: Best, nulls: dict[int, Null] | None) -> pa.Table:
        chosen, _ = self._chosen(best)
        allele, family = np.nonzero(chosen.T >= 0)
        motif = chosen[family, allele]
        (score, log_p, offset, reverse) = (
            values[:, motif, allele]
            for values in (best.score, best.log_p, best.offset, best.reverse)
        )
        better = (log_p[1] < log_p[0]).astype(int)
        rows = np.arange(len(motif))
        evidence = _evidence(best)[motif, allele]
        pval, max_pval = _judged(np.abs(evidence), family, _kinds(alleles)[allele], nulls)
        width = self._widths[motif]
        start, end = _on_reference(alleles.take(allele), offset[better, rows], width, better == 1)
        names = pa.array(self.motifs.names, pa.string())
        found = {
            "allele_id": alleles["allele_id"].take(allele),
            "motif": names.take(pa.array(motif)),
            "family": pa.array(self._families, pa.string()).take(pa.array(family)),
            "strand": np.where(reverse[better, rows], "-", "+"),
            "start": start,
            "end": end,
            "ref_score": score[0],
            "alt_score": score[1],
            "change": score[1] - score[0],
            "ref_pval": 2.0 ** log_p[0],
            "alt_pval": 2.0 ** log_p[1],
            "evidence": evidence,
            "pval": pval,
            "max_pval": max_pval,
            "ref_offset": offset[0],
            "alt_offset": offset[1],
            "width": width,
        }
        return pa.table({name: pa.array(values) for name, values in found.items()}).cast(SCHEMA)


def _evidence(best: Best) -> np.ndarray:
    """[motifs, n], float64."""
    return (best.log_p[0] - best.log_p[1]) * np.log10(2)


def _kinds(alleles: pa.Table) -> np.ndarray:
    """The class of each allele, by number."""
    alt_len = pc.utf8_length(alleles["alt"]).to_numpy()
    return classes.number(alleles["ref_len"].to_numpy().astype(np.int64), alt_len)


def _judged(
    evidence: np.ndarray, family: np.ndarray, kind: np.ndarray, nulls: dict[int, Null] | None
) -> tuple[pa.Array, pa.Array]:
    """`pval` and `max_pval` of so much evidence."""
    pval, max_pval = np.full((2, len(evidence)), np.nan)
    for one in np.unique(kind) if nulls else ():
        alike = kind == one
        max_pval[alike] = p_value(evidence[alike], nulls[one].largest, one_sided=True)
        for number in np.unique(family[alike]):
            rows = alike & (family == number)
            pval[rows] = p_value(evidence[rows], nulls[one].evidence[number], one_sided=True)
    return tuple(pa.array(p, from_pandas=True) for p in (pval, max_pval))


def _on_reference(
    alleles: pa.Table, offset: np.ndarray, width: np.ndarray, of_alt: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of placements on the reference.

    What lies right of the alternate allele stands further on or back by the change of length;
    a base that the reference has no partner for stands at the end of its allele.
    """
    start, ref_len = alleles["start"].to_numpy(), alleles["ref_len"].to_numpy().astype(np.int64)
    alt_len = np.fromiter(map(len, alleles["alt"].to_pylist()), np.int64, len(alleles))

    def place(x: np.ndarray) -> np.ndarray:
        behind = x >= alt_len
        moved = np.where(behind, x - alt_len + ref_len, np.minimum(x, ref_len))
        return start + np.where(of_alt & (x > 0), moved, x)

    return place(offset.astype(np.int64)), place(offset.astype(np.int64) + width)
