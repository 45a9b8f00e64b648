"""What does the store say of alleles, and of which does it say nothing?"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import names, tables
from veff.models.experiment import Experiment
from veff.outputs.collect import Stack
from veff.scoring import columns
from veff.scoring.columns import Column
from veff.store import Store, Wanted, part

MISSING = {
    **columns.ALLELE,
    "n_missing": Column(pa.int32(), "experiments whose scores are not in the store"),
}


def lookup(
    store: Store,
    alleles: Path,
    scoreable: Path,
    contigs: list[str],
    experiments: list[Experiment],
    *,
    found: Path,
    missing: Path,
) -> str:
    """Write the answers that the store has, and the alleles that it lacks, as text.

    `found` is a table as scores.tsv.gz without what needs nulls, `missing` has a row for each
    allele that could be scored and lacks an experiment. Returns both in words.
    """
    every = pq.read_table(alleles)
    every = every.filter(pc.is_valid(every["scored_as"]))
    wanted = Wanted(pq.read_table(scoreable), contigs)
    lacking = np.zeros(len(every), np.int32)
    schema = columns.answers(nulls=False, fdr=False)
    with tables.tsv_gz(found, schema) as write:
        for one in experiments:
            answer = _answer(store, one, wanted)
            there = pc.is_in(every["scored_as"], pc.unique(answer["allele_id"]))
            lacking += ~there.to_numpy()
            write(Stack(every.filter(there)).rows(answer, schema))
    rows = every.append_column("n_missing", pa.array(lacking)).filter(pa.array(lacking > 0))
    schema = columns.schema(MISSING)
    with tables.tsv_gz(missing, schema) as write:
        write(rows.select(schema.names).cast(schema))
    n = len(every) * len(experiments)
    said = [f"store: {n - lacking.sum():,} of {n:,} scores found ({found})"]
    if len(rows):
        first = ", ".join(map(names.label, rows.slice(0, 3).to_pylist()))
        more = f" and {len(rows) - 3:,} more" if len(rows) > 3 else ""
        said.append(f"store: not there, under some experiment: {first}{more} ({missing})")
    return "\n".join(said)


def _answer(store: Store, experiment: Experiment, wanted: Wanted) -> pa.Table:
    while True:
        try:
            return store.scores(experiment, wanted, store.has(experiment, wanted))[0]
        except part.Damaged:  # dropped, which the log says
            continue
