"""What do two random SNVs of one chromosome do, both at once and each alone?

That is a null of haplotypes, kept as those of alleles are (`scoring.null`).
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.scoring import sampling
from veff.scoring.edits import VIRTUAL, Edit, centre


def span(geometry: Geometry) -> int:
    """How far apart the first and the last allele of a haplotype may start, in bp: half an output
    window, so that models see all of it."""
    return geometry.output_length // 2


def draw(
    reference: Reference,
    geometry: Geometry,
    *,
    n: int,
    seed: int,
    scheme: str = "uniform",
    regions: Path | None = None,
) -> tuple[Reference, pa.Table]:
    """Draw `n` pairs of random SNVs, 1 bp to `span` apart, each doubling of the distance as
    likely: the genome that they stand in, and a table for `score.score` (`edits.VIRTUAL`).

    The first of a pair is drawn as `sampling.sample` draws SNVs; the second stands behind it in
    the same genome, which `scheme` may have shuffled. Where that has none of A, C, G and T there,
    there is a pair less. A pair has three rows in one window, both SNVs, the first, the second,
    all with its number as `allele_id`: that decides which fold answers in a null.
    """
    widest = span(geometry)
    # So that the window in the middle of the pair is within the contig too.
    length = geometry.input_length + 2 * widest
    how = {"n": n, "seed": seed, "scheme": scheme, "regions": regions}
    genome, snvs = sampling.sample(reference, length, **how)
    contig, start = snvs["contig"].to_numpy(), snvs["start"].to_numpy()
    rng = np.random.default_rng([seed, *b"pairs"])
    distance = np.exp(rng.uniform(0, np.log(widest + 1), n)).astype(np.int64)
    base = genome.at(contig, start + distance)
    known = np.isin(base, sampling.ACGT)
    alt = sampling.ACGT[(np.searchsorted(sampling.ACGT, base) + rng.integers(1, 4, n)) % 4]
    rows = []
    for i in np.flatnonzero(known).tolist():
        first = Edit(int(start[i]), 1, snvs["alt"][i].as_py())
        second = Edit(int(start[i] + distance[i]), 1, chr(alt[i]))
        place = {"allele_id": i, "contig": int(contig[i]), "centre": centre([first, second])}
        for edits in ([first, second], [first], [second]):
            rows.append(place | {"background": [], "edits": [one._asdict() for one in edits]})
    return genome, pa.Table.from_pylist(rows, VIRTUAL)


def together(pairs: pa.Table, answer: pa.Table) -> pa.Table:
    """The answers to both SNVs of each pair, with their `distance` in bp and `interaction`: the
    logfc of both less the sum of each alone. `answer` has the rows of `pairs` (`draw`), a signal
    group after the other."""
    both, one, other = (answer.take(np.arange(row, len(answer), 3)) for row in range(3))
    starts = [[edit["start"] for edit in two] for two in pairs["edits"].to_pylist()[::3]]
    distance = np.diff(np.reshape(starts, (-1, 2))).ravel()
    n_groups = len(both) // max(len(distance), 1)
    logfc, first, second = (rows["logfc"].to_numpy() for rows in (both, one, other))
    both = both.append_column("distance", pa.array(np.tile(distance, n_groups), pa.int64()))
    return both.append_column("interaction", pa.array(logfc - (first + second)))
