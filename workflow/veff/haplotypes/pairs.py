"""How unusual is an interaction? What do pairs of random SNVs do beyond their sum?"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from veff.inputs.reference import Reference
from veff.scoring import sampling
from veff.scoring.edits import Edit


class Random(NamedTuple):
    """Which pairs to draw: how many, from a BED file of regions or everywhere."""

    n: int
    seed: int
    regions: Path | None


def draw(
    reference: Reference, input_length: int, span: int, how: Random
) -> Iterator[tuple[int, list[Edit]]]:
    """Pairs of random SNVs, by their contig, up to `span` bp apart: each doubling of the distance
    is as likely. The second may miss, where the genome has none of A, C, G and T; then there is
    a pair less."""
    length = input_length + 2 * span
    _, first = sampling.sample(reference, length, **how._asdict())
    contig, start = first["contig"].to_numpy(), first["start"].to_numpy()
    rng = np.random.default_rng([how.seed, *b"pairs"])
    distance = np.exp(rng.uniform(0, np.log(span), how.n)).astype(np.int64)
    base = reference.at(contig, start + distance)
    known = np.isin(base, sampling.ACGT)
    alt = sampling.ACGT[(np.searchsorted(sampling.ACGT, base) + rng.integers(1, 4, how.n)) % 4]
    for i in np.flatnonzero(known).tolist():
        one = Edit(int(start[i]), 1, first["alt"][i].as_py())
        yield int(contig[i]), [one, Edit(int(start[i] + distance[i]), 1, chr(alt[i]))]


def p_values(
    interaction: np.ndarray, distance: np.ndarray, null: np.ndarray, null_distance: np.ndarray
) -> np.ndarray:
    """Of interactions, (1 + #{|null| >= |interaction|}) / (1 + n), over the n random pairs whose
    distance has the same power of two below it; NaN where there are none."""
    found = np.full(len(interaction), np.nan)
    doubling, null_doubling = (
        np.log2(np.maximum(d, 1)).astype(int) for d in (distance, null_distance)
    )
    for one in np.unique(null_doubling):
        like = np.sort(np.abs(null[null_doubling == one]))
        mine = doubling == one
        larger = len(like) - np.searchsorted(like, np.abs(interaction[mine]), side="left")
        found[mine] = (1 + larger) / (1 + len(like))
    return found
