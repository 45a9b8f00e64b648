"""How do the parts that the scoring jobs wrote become the tables of the run?"""

import json
import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.atomic import damaged, read_json
from veff.inputs import classes, identity
from veff.models.biosamples import Biosample
from veff.outputs import biosamples, finemapping
from veff.outputs.provenance import part
from veff.outputs.summary import Summary
from veff.scoring import columns
from veff.scoring.null import Nulls, judge
from veff.tables import parquet, tsv_gz, write_parquet

KEYS = list(columns.ALLELE)


def check(parts: Iterable[str], records: Iterable[str]) -> None:
    """Raise `InputError` that names the parts that are not as their jobs wrote them.

    `records` are what these jobs say of themselves, with the SHA-256 of their parts. What is
    damaged is removed, so that the next run makes it again.
    """
    written, wrong = {}, []
    for record in records:
        try:
            written |= read_json(record)["parts"]
        except (ValueError, KeyError, TypeError):
            wrong.append(record)
    parts = list(parts)
    found = zip(parts, identity.sums(parts), strict=True)
    wrong += [path for path, own in found if own != written.get(part(path))]
    if wrong:
        raise damaged(*wrong)


def collect(
    alleles: Path,
    answers: list[list[Path]],
    folds: list[list[Path]],
    experiments: list[str],
    *,
    partitioned: bool = False,
    nulls: Nulls | None = None,
    fdr: float | None = None,
    annotations: Path | None = None,
    members: Path | None = None,
    metadata: dict | None = None,
    samples: list[Biosample],
    scores: Path,
    folds_out: Path,
    biosamples_out: Path,
    summary: Path,
    summary_tsv: Path,
) -> None:
    """Stack the experiments' answers, and their folds', over all chunks.

    `answers` and `folds` are the part files, a list a bundle, each in the order of the
    chunks; a part has one row group an experiment. Written are `scores` (the answers),
    `folds_out`, `biosamples_out` (what `biosamples.write` makes of the experiments of each of the
    `samples`), and `summary` and `summary_tsv`, one row an allele. `experiments` says in which
    order they come. Alleles come in input order within an experiment; a duplicate has the scores
    of the allele that it repeats. `partitioned` makes `scores` and `folds_out` folders with one
    file an experiment (`tables.parquet`). `annotations` is a table that `nearby.write`
    wrote, for the summary to have its columns too; so is `members`, of `finemapping.write`.
    `nulls` and `fdr` are for `null.judge`; `metadata` (`provenance.of_scores`) goes into the
    Parquet files' schemas, into a file of one experiment what is about that one. The answers
    of one experiment, the folds of one and what `biosamples.write` holds are in memory at a time.

    Raises `RuntimeError` if an experiment does not have every scoreable allele exactly once.
    """
    table = pq.read_table(alleles)
    kinds = classes.numbers(table)
    stack = Stack(table)
    best = Summary(table, kinds, fdr)
    metadata = metadata or {"experiments": {}}

    def described(schema: pa.Schema, names: list[str]) -> pa.Schema:
        """With what the metadata say of these experiments."""
        own = {name: metadata["experiments"].get(name) for name in names}
        return schema.with_metadata({"veff": json.dumps(metadata | {"experiments": own})})

    def write_folds() -> None:
        schema = columns.FOLDS
        with parquet(
            folds_out, described(schema, experiments), partitioned, columns.DISTINCT
        ) as write:
            for experiment in by_experiment(folds, experiments):
                name = experiment["experiment"][0].as_py()
                write(stack.rows(experiment, described(schema, [name])))

    def write_scores() -> None:
        schema = columns.answers(nulls is not None, fdr is not None)
        with parquet(
            scores, described(schema, experiments), partitioned, columns.DISTINCT
        ) as write:
            for experiment in by_experiment(answers, experiments):
                name = experiment["experiment"][0].as_py()
                if nulls is not None:
                    own = {kind: nulls[name, kind] for kind in nulls.classes}
                    experiment = judge(experiment, own, kinds[experiment["allele_id"]], fdr)
                    for kind, null in own.items():
                        best.add_null(nulls.identity((name, kind)), null)
                rows = stack.rows(experiment, described(schema, [name]))
                write(rows)
                best.add(rows)
                logging.info("%s: %d rows", name, len(rows))

    def write_biosamples() -> pa.Table:
        by_sample = [name for sample in samples for name in sample.experiments]
        read = columns.answers(nulls=False, fdr=False)
        read = pa.schema([read.field(name) for name in biosamples.NEEDED])
        return biosamples.write(
            biosamples_out,
            described(biosamples.SCHEMA, experiments),
            samples,
            (stack.rows(one, read) for one in by_experiment(answers, by_sample, read.names)),
            table,
            nulls=nulls,
            fdr=fdr,
        )

    with ThreadPoolExecutor(2) as pool:
        in_the_meantime = [pool.submit(write) for write in (write_folds, write_biosamples)]
        write_scores()
        _, of_biosamples = (one.result() for one in in_the_meantime)
    more = [of_biosamples]
    if annotations:
        more.append(pq.read_table(annotations).drop_columns("allele_id"))
    rows = best.table(*more)
    if members:
        own = finemapping.ranked(pq.read_table(members), rows["max_logfc"])
        for field in own.schema:
            rows = rows.append_column(field, own[field.name])
    rows = rows.cast(described(rows.schema, experiments))
    with ThreadPoolExecutor(1) as pool, tsv_gz(summary_tsv, rows.schema) as write:
        in_the_meantime = pool.submit(write_parquet, summary, [rows])
        write(rows)
        in_the_meantime.result()


def by_experiment(
    bundles: list[list[Path]], order: list[str], names: list[str] | None = None
) -> Iterator[pa.Table]:
    """For each experiment in order, its rows over all chunks, or these columns of them; nothing
    where no chunk is."""
    where = {}
    for parts in filter(None, bundles):
        first = pq.ParquetFile(parts[0])
        for group in range(first.num_row_groups):
            one = next(first.iter_batches(1, [group], ["experiment"]))
            where[one["experiment"][0].as_py()] = parts, group
    for name in order if where else ():
        parts, group = where[name]
        yield pa.concat_tables(pq.ParquetFile(part).read_row_group(group, names) for part in parts)


class Stack:
    """Puts what was scored beside the alleles that it is about."""

    def __init__(self, alleles: pa.Table):
        scored = alleles.filter(pc.is_valid(alleles["scored_as"]))
        self._keys = scored.select(KEYS).combine_chunks()
        self._direction = columns.towards_effect(scored["effect_is"])
        self._scored_as = scored["scored_as"].to_numpy()
        self._expected, self._place = np.unique(self._scored_as, return_inverse=True)
        # What `_order` said last, and of which numbers: mostly all experiments have the same.
        self._last = None, None

    def rows(self, experiment: pa.Table, schema: pa.Schema) -> pa.Table:
        """The rows of one experiment, for duplicates too, by allele and then as they came."""
        ids = experiment["allele_id"].to_numpy()
        keys, direction, scores = self._keys, self._direction, experiment.combine_chunks()
        if not np.array_equal(ids, self._scored_as):  # mostly each comes once, in order
            rows, n = self._order(ids, experiment)
            scores = scores.take(rows)
            if n > 1:
                of_row = np.repeat(np.arange(len(keys)), n)
                keys, direction = keys.take(of_row), direction.take(of_row)
        towards = pc.multiply(scores["logfc"], direction)
        scores = scores.append_column("logfc_effect", towards)
        parts = {name: keys[name] if name in KEYS else scores[name] for name in schema.names}
        return pa.table(parts, schema=schema)

    def _order(self, ids: np.ndarray, experiment: pa.Table) -> tuple[np.ndarray, int]:
        """Which of an experiment's rows come one after the other, and how many each allele has."""
        last, known = self._last
        if np.array_equal(ids, last):
            return known
        order = np.argsort(ids, kind="stable")
        found, per_allele = np.unique(ids, return_counts=True)
        n = int(per_allele[0]) if len(per_allele) else 1
        if not np.array_equal(found, self._expected) or not np.all(per_allele == n):
            raise RuntimeError(
                f"{experiment['experiment'][0]}: scored {len(found)} alleles, expected "
                f"{len(self._expected)}, each the same number of times; remove the parts and "
                "run again, and report this"
            )
        rows = order[(self._place[:, None] * n + np.arange(n)).ravel()]
        self._last = ids, (rows, n)
        return rows, n


def by_bundle(parts: list[str]) -> list[list[str]]:
    """The parts of all jobs, `CHUNK.BUNDLE.parquet`, as a list a bundle."""
    bundles: dict[str, list[str]] = {}
    for path in parts:
        bundles.setdefault(Path(path).name.split(".")[1], []).append(path)
    return list(bundles.values())
