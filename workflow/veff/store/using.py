"""What does a run take from the store, what is left to score, and what does it add?"""

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import tables
from veff.inputs.identity import sums
from veff.models.experiment import Experiment
from veff.outputs import provenance
from veff.scoring import edits
from veff.store import Store, Wanted, identity, part

# In which order `scoring.score` gives them.
IN_ANSWERS = [("group", "ascending"), ("allele_id", "ascending")]
IN_FOLDS = [("fold", "ascending"), *IN_ANSWERS]
NOTHING = [pa.table({"allele_id": pa.array([], pa.int64())})] * 2  # instead of scores


def split(
    store: Store,
    scoreable: Path,
    contigs: list[str],
    experiments: list[Experiment],
    *,
    to_score: Path,
    answers: Path,
    folds: Path,
) -> dict:
    """Divide the alleles into those that the store has and those that it lacks.

    Found are alleles that have scores of all these experiments. Their `answers` and `folds` are
    written as a scoring job writes them, and the others to `to_score`, in chunks as `scoreable`
    has them. One experiment is held in memory at a time.

    Returns `found`, `to_score` and `chunks`, how many there are of each, and of `experiments`; the
    scores by the `devices` that they come from, and the SHA-256 of the `parts` that were written.
    """
    file = pq.ParquetFile(scoreable)
    alleles = file.read()
    found = _take(store, alleles, contigs, experiments, answers, folds)
    parts = answers, folds
    missing = alleles.filter(pa.array(~found))
    size = file.metadata.row_group(0).num_rows if len(alleles) else 1
    tables.write_parquet(
        to_score, (missing.slice(i, size) for i in range(0, max(1, len(missing)), size))
    )
    return {
        "found": int(found.sum()),
        "to_score": len(missing),
        "chunks": -(-len(missing) // size),
        "experiments": len(experiments),
        "devices": dict(store.taken),
        "parts": dict(zip(map(provenance.part, parts), sums(parts), strict=True)),
    }


def reusing(
    score: Callable[[pa.Table], Iterator[tuple[pa.Table, pa.Table]]],
    store: Store,
    virtual: pa.Table,
    contigs: list[str],
    experiments: list[Experiment],
    gpu: str | None,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """As `adding`, of virtual alleles (`edits.VIRTUAL`): `score` those that the store lacks."""
    alleles = edits.keyed(virtual)
    order = pc.sort_indices(alleles, [("contig", "ascending"), ("start", "ascending")])
    with tempfile.TemporaryDirectory() as scratch:
        taken = [Path(scratch, name) for name in ("answers.parquet", "folds.parquet")]
        found = np.empty(len(alleles), bool)
        found[order] = _take(store, alleles.take(order), contigs, experiments, *taken)
        missing = pa.array(~found)
        rest = virtual.filter(missing)
        scored: Iterable = repeat(())
        if len(rest):
            left = alleles.filter(missing)
            scored = adding(score(rest), store, left, contigs, experiments, gpu)
        had = [pq.ParquetFile(path) for path in taken] if found.any() else []
        for i, new in zip(range(len(experiments)), scored, strict=False):
            both = zip(*filter(None, ([file.read_row_group(i) for file in had], new)), strict=True)
            answer, folds = map(pa.concat_tables, both)
            yield answer.sort_by(IN_ANSWERS), folds.sort_by(IN_FOLDS)


def _take(
    store: Store,
    alleles: pa.Table,
    contigs: list[str],
    experiments: list[Experiment],
    answers: Path,
    folds: Path,
) -> np.ndarray:
    """Which alleles the store has under all these experiments, bool[n]; their scores are written
    as a scoring job writes them."""
    wanted = Wanted(alleles, contigs)
    found = np.full(len(wanted), bool(experiments))
    while True:
        for one in experiments:
            if found.any():
                found &= store.has(one, wanted)
        try:
            store.taken.clear()
            taken = (store.scores(one, wanted, found) for one in experiments if found.any())
            tables.write_parquets([answers, folds], chain(taken, [] if found.any() else [NOTHING]))
            break
        except part.Damaged as error:
            logging.warning("store: looking again, since %s", error)
    logging.info("store: %d alleles found, %d to score", found.sum(), len(found) - found.sum())
    return found


def adding(
    scored: Iterable[tuple[pa.Table, pa.Table]],
    store: Store,
    alleles: pa.Table,
    contigs: list[str],
    experiments: list[Experiment],
    gpu: str | None,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """What `scoring.score` yields, each experiment's kept in the store on its way.

    `gpu` is the GPU that scored, None for the CPU. There, what Cherimoya's own kernels scored is
    not kept: its last bits depend on which of them a benchmark chose.
    """
    for one, (answer, folds) in zip(experiments, scored, strict=True):
        engine = answer.schema.metadata[b"engine"].decode()
        if gpu and engine != "fast":
            logging.info("store: the scores of %s are not kept: engine %s", one.name, engine)
        else:
            store.add(one, identity.name(gpu), alleles, contigs, answer, folds)
        yield answer, folds
