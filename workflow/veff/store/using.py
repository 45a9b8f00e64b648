"""What does a run take from the store, what is left to score, and what does it add?"""

import logging
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veff import tables
from veff.inputs.identity import sha256
from veff.models.experiment import Experiment
from veff.outputs import provenance
from veff.store import Store, Wanted, identity, part

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
    missing = alleles.filter(pa.array(~found))
    size = file.metadata.row_group(0).num_rows if len(alleles) else 1
    tables.write_parquet(
        to_score, (missing.slice(i, size) for i in range(0, max(1, len(missing)), size))
    )
    logging.info("store: %d alleles found, %d to score", found.sum(), len(missing))
    return {
        "found": int(found.sum()),
        "to_score": len(missing),
        "chunks": -(-len(missing) // size),
        "experiments": len(experiments),
        "devices": dict(store.taken),
        "parts": {provenance.part(path): sha256(path) for path in (answers, folds)},
    }


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
