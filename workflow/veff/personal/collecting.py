"""What does each allele do on the person's chromosomes, and how does that differ from what it does
on the reference?"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.atomic import write_json
from veff.outputs import collect
from veff.personal.planning import OK
from veff.scoring.columns import ALLELE, EXPERIMENT, SCORES, SPREAD, Column, schema
from veff.tables import dataset, parquet

PLACE = {
    **ALLELE,
    "haplotype": Column(pa.int32(), "1 or 2: the person's first or second chromosome"),
    "carried": Column(
        pa.bool_(), "whether it has the allele; null where that is not known, or there is no copy"
    ),
    "background": Column(
        pa.string(),
        "what else it has in the windows: position:reference>alternate, trimmed, - for nothing",
    ),
    "n_unphased": Column(
        pa.int32(), "others that the person has there on an unknown chromosome: left out"
    ),
    "status": Column(
        pa.string(),
        "ok; overlapped: another allele of the chromosome stands there; one_copy: there is no "
        "second chromosome",
    ),
}
COLUMNS = {
    **PLACE,
    **{name: EXPERIMENT[name] for name in ("experiment", "group", "n_padded")},
    **SCORES,
    "reference_logfc": Column(pa.float64(), "logfc on the reference genome", "log2"),
    "difference": Column(
        pa.float64(), "what the background changes", "log2", "logfc - reference_logfc"
    ),
    **SPREAD,
}
SCHEMA = schema(COLUMNS)
SHOWN = 20
SCORED = ["n_padded", *SCORES, *SPREAD]


def write(
    planned: Path,
    scores: Path,
    answers: list[list[str]],
    experiments: list[str],
    out: Path,
    shown: Path,
    *,
    partitioned: bool = False,
    metadata: dict | None = None,
) -> None:
    """Write `out`, two rows an allele, experiment and signal group, experiment after experiment,
    and `shown`, JSON for the report of the alleles with the largest differences.

    `planned` is what `planning.plan` wrote, `scores` the run's table of scores; `answers` are the
    part files of the planned windows, a list a bundle, each in the order of the chunks;
    `partitioned` is as in `tables.parquet`.
    """
    rows = pq.read_table(planned)
    said = SCHEMA.with_metadata({"veff": json.dumps(metadata or {})})
    windows = collect.by_experiment(answers, experiments)
    largest: list[dict] = []
    with parquet(out, said, partitioned) as put:
        for name in experiments:
            alone = dataset(scores).to_table(
                ["allele_id", "experiment", "group", *SCORED],
                filter=pc.field("experiment") == name,
            )
            if len(alone):
                table = pa.concat_tables(_groups(rows, alone, next(windows, None)))
                put(table)
                largest = _largest(largest, table)
    write_json(shown, largest)


def _groups(rows: pa.Table, alone: pa.Table, answer: pa.Table | None) -> Iterator[pa.Table]:
    """The rows of `COLUMNS` of each signal group."""
    kinds = pa.schema([SCHEMA.field(name) for name in SCORED])
    for group in sorted(pc.unique(alone["group"]).to_pylist()):
        on_reference = _of(alone, group)
        ids = np.repeat(on_reference["allele_id"].to_numpy(), 2)
        own = on_reference.slice(0, 0) if answer is None else _of(answer, group)
        n = (pc.max(rows["window"]).as_py() + 1) if rows["window"].null_count < len(rows) else 0
        numbers = own["allele_id"].to_numpy()
        if not np.array_equal(ids, rows["allele_id"]) or not np.array_equal(numbers, range(n)):
            raise RuntimeError(
                f"{alone['experiment'][0]}: windows of the background are missing among the "
                "parts; remove the parts and run again, and report this"
            )
        window = rows["window"].fill_null(-1).to_numpy()
        allele = np.arange(len(rows)) // 2
        at = np.where(window < 0, allele, len(on_reference) + window)
        nowhere = pc.not_equal(rows["status"], OK).to_numpy()
        scored = pa.concat_tables([one.select(SCORED).cast(kinds) for one in (on_reference, own)])
        scored = scored.take(pa.array(at, mask=nowhere))
        logfc = on_reference["logfc"].take(allele)
        more = {
            "experiment": pa.repeat(alone["experiment"][0], len(rows)),
            "group": pa.repeat(on_reference["group"][0], len(rows)),
            "reference_logfc": logfc,
            "difference": pc.subtract(scored["logfc"], logfc),
        }
        columns = {
            name: rows[name] if name in PLACE else more[name] if name in more else scored[name]
            for name in COLUMNS
        }
        yield pa.table(columns, schema=SCHEMA)


def _largest(known: list[dict], table: pa.Table) -> list[dict]:
    """Of each allele the row with the largest difference so far, the largest first."""
    size = pc.abs(table["difference"]).fill_null(0).to_numpy()
    order = np.argsort(-size, kind="stable")
    _, first = np.unique(table["allele_id"].to_numpy()[order], return_index=True)
    rows = known + table.take(order[np.sort(first)[:SHOWN]]).to_pylist()
    best: dict[int, dict] = {}
    for row in sorted(rows, key=lambda row: -abs(row["difference"] or 0)):
        if row["difference"]:
            best.setdefault(row["allele_id"], row)
    return list(best.values())[:SHOWN]


def _of(table: pa.Table, group: int) -> pa.Table:
    return table.filter(pc.equal(table["group"], group)).sort_by("allele_id")
