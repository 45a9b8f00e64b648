"""What does the annotated VCF say of an allele, and how is it defined in the header?"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import veff
from veff.inputs.record import Record
from veff.models.experiment import Experiment
from veff.names import cut, distinct
from veff.scoring import columns
from veff.tables import dataset

DIGITS = 5
BATCH = 1 << 16  # alleles whose texts are made at once
# Of the largest effect over the experiments: field, column of the summary, type, meaning.
MAX = (
    ("CHERI_STATUS", "status", "String", "ok or duplicate where scored, else why not"),
    ("CHERI_MAX_LOGFC", "max_logfc", "Float", "logfc with the largest absolute value: {logfc}"),
    ("CHERI_MAX_JSD", "max_jsd", "Float", "jsd in that experiment: {jsd}"),
    (
        "CHERI_PVAL",
        "max_experiment_pval",
        "Float",
        "abs_logfc.pval in that experiment, not corrected for having chosen it: {abs_logfc.pval}",
    ),
    (
        "CHERI_MAX_PVAL",
        "max_pval",
        "Float",
        "how often the largest absolute logfc over all experiments of a random allele of the "
        "class is as large",
    ),
    ("CHERI_MAX_EXP", "max_experiment", "String", "the experiment of the largest absolute logfc"),
)
# Of the allele's haplotypes the one with the largest interaction (`largest.ALLELES`).
HAPLOTYPE = (
    ("CHERI_HAP", "haplotype", "String", "its number in haplotypes.parquet"),
    ("CHERI_HAP_LOGFC", "logfc", "Float", "logfc of all its alleles at once: {logfc}"),
    (
        "CHERI_HAP_INTERACTION",
        "interaction",
        "Float",
        "what its alleles do together beyond the sum of each alone, the largest over experiments",
    ),
    (
        "CHERI_HAP_PVAL",
        "interaction_pval",
        "Float",
        "of that among pairs of random SNVs at a like distance, not corrected for being chosen",
    ),
    ("CHERI_HAP_EXP", "experiment", "String", "the experiment of the largest interaction"),
)
# One set an experiment: the field, the column of the scores.
FIELDS = {"LOGFC": "logfc", "JSD": "jsd", "PVAL": "abs_logfc.pval"}
FORMULAS = {name: column.formula for name, column in {**columns.SCORES, **columns.NULL}.items()}
SOURCE = f'Source="cherimoya-veff",Version="{veff.__version__}"'


# VEP and bcftools split INFO at these.
UNSAFE = str.maketrans({c: "_" for c in " ,;=\t"})


class PerExperiment:
    """The scores of the first experiments of the sheet, as fields of their own.

    Of several signal groups, that of the largest effect speaks for its experiment, as in the
    summary. `experiments` are all, in order; `n_alleles` the alleles of the input.
    """

    def __init__(self, scores: Path, experiments: list[Experiment], n: int, n_alleles: int):
        self._hashes = {
            one.name: [sha256[:12] for sha256 in one.sha256] for one in experiments[:n]
        }
        data = dataset(scores)
        self._columns = {
            field: column for field, column in FIELDS.items() if column in data.schema.names
        }
        keys = [re.sub(r"[^0-9A-Za-z_.]", "_", cut(name)) for name in self._hashes]
        # (field, experiment, column), in the order of the values.
        self._fields = [
            (f"CHERI_{field}_{key}", name, column)
            for key, name in zip(distinct(keys, "{}_{}"), self._hashes, strict=True)
            for field, column in self._columns.items()
        ]
        shape = (len(self._hashes), len(self._columns), n_alleles)
        self._values = np.full(shape, np.nan, np.float32)
        numbers = {name: i for i, name in enumerate(self._hashes)}
        wanted = ds.field("experiment").isin(list(numbers))
        names = ["allele_id", "experiment", *self._columns.values()]
        for batch in data.to_batches(columns=names, filter=wanted):
            for name in pc.unique(batch["experiment"]).to_pylist():
                rows = batch.filter(pc.equal(batch["experiment"], name))
                self._take(self._values[numbers[name]], rows)

    def _take(self, values: np.ndarray, rows) -> None:
        order = np.argsort(np.abs(rows["logfc"].to_numpy()), kind="stable")
        allele = rows["allele_id"].to_numpy()[order]
        # Of an allele's groups the last one written, that of the largest effect, stays.
        larger = ~(np.abs(rows["logfc"].to_numpy()[order]) <= np.abs(values[0, allele]))
        for row, column in zip(values, self._columns.values(), strict=True):
            row[allele[larger]] = rows[column].to_numpy()[order][larger]

    def header(self) -> list[str]:
        """Lines that define the fields."""
        return [
            _definition(
                field,
                "Float",
                f"{column} = {FORMULAS[column]} under experiment {cut(name)}, models "
                f"{' '.join(self._hashes[name])} (sha256)",
            )
            for field, name, column in self._fields
        ]

    def texts(self, first: int, n: int) -> list[tuple[str, pa.Array]]:
        """The fields, each with its values as text, of `n` alleles from `first` on."""
        values = self._values[:, :, first : first + n].reshape(-1, n)
        return [
            (name, _texts(pa.array(row)))
            for (name, *_), row in zip(self._fields, values, strict=True)
        ]


class PerHaplotype:
    """What the haplotypes of an allele say of it, as fields of its own: of a table as
    `haplotypes.largest.ALLELES` has it, or of None, no field."""

    def __init__(self, of_alleles: Path | None):
        self._table = pq.read_table(of_alleles) if of_alleles else None

    def header(self) -> list[str]:
        """Lines that define the fields."""
        return [] if self._table is None else _definitions(HAPLOTYPE)

    def texts(self, first: int, n: int) -> list[tuple[str, pa.Array]]:
        """The fields, each with its values as text, of `n` alleles from `first` on."""
        if self._table is None:
            return []
        (rows,) = self._table.slice(first, n).combine_chunks().to_batches()
        return [
            (field, _texts(rows[column].cast(pa.string()) if kind == "String" else rows[column]))
            for field, column, kind, _ in HAPLOTYPE
        ]


def header(*more: PerExperiment | PerHaplotype) -> list[str]:
    """Lines that define what `texts` adds: formula, models, precision, version."""
    return [*_definitions(MAX), *(line for one in more for line in one.header())]


def _definitions(fields: Iterable[tuple[str, str, str, str]]) -> list[str]:
    lines = []
    for field, _, kind, meaning in fields:
        for name, formula in FORMULAS.items():
            meaning = meaning.replace(f"{{{name}}}", formula)
        lines.append(_definition(field, kind, meaning))
    return lines


def texts(
    summary: Path, *more: PerExperiment | PerHaplotype
) -> Iterator[tuple[Record | None, str]]:
    """For each record of the input, in order, what it was prepared as, and the text to add to its
    INFO column; None for a malformed row.

    Every field has one value an ALT; a record without ALT gets none.
    """
    keys = ["allele_id", "record", "chrom", "pos", "id", "ref", "alt"]
    for alleles in _records(summary, [*keys, *(column for _, column, *_ in MAX)]):
        first = alleles["allele_id"][0].as_py()
        fields = [(field, _texts(alleles[column])) for field, column, *_ in MAX]
        fields += [field for one in more for field in one.texts(first, len(alleles))]
        starts = _starts(alleles["record"])
        ends = np.append(starts, len(alleles))
        several = pa.array(ends, pa.int32())
        # One value an ALT in each field, one text a record.
        joined = [
            pc.binary_join_element_wise(
                f"{field}=", pc.binary_join(pa.ListArray.from_arrays(several, values), ","), ""
            )
            for field, values in fields
        ]
        texts = pc.binary_join_element_wise(*joined, ";").to_pylist()
        alts = alleles["alt"].to_pylist()
        rows = alleles.select([*keys[1:6], "status"]).take(starts)
        columns = (column.to_pylist() for column in rows.columns)
        for (start, end), text, number, chrom, pos, id, ref, status in zip(
            pairwise(ends.tolist()), texts, *columns, strict=True
        ):
            if status == "malformed" and end - start == 1:
                yield None, ""
                continue
            of_record = tuple(alts[start:end])
            if of_record == (".",):
                of_record, text = (), ""
            yield Record(number, 0, chrom, pos, id, ref, of_record), text


def _definition(field: str, kind: str, meaning: str) -> str:
    if kind == "Float":
        meaning += f"; {DIGITS} significant digits"
    meaning = re.sub(r'["\\]', "'", meaning)
    return f'##INFO=<ID={field},Number=A,Type={kind},Description="{meaning}",{SOURCE}>'


def _records(path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Rows, many at a time, those of one record together."""
    rest = []
    for batch in pq.ParquetFile(path).iter_batches(BATCH, columns=names):
        alleles = pa.concat_batches([*rest, batch])
        last = _starts(alleles["record"])[-1]
        if last:
            yield alleles.slice(0, last)
        rest = [alleles.slice(last)]
    yield from rest


def _starts(records: pa.Array) -> np.ndarray:
    """Where the rows of each record begin."""
    numbers = records.to_numpy()
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))


def _texts(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        kept = values.fill_null(".").dictionary_encode()
        texts = [text.translate(UNSAFE) for text in kept.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(kept.indices)
    numbers = tuple(values.to_numpy(zero_copy_only=False).tolist())  # NaN where one is missing
    texts = f"%.{DIGITS}g\n" * len(numbers) % numbers  # all at once: many times faster
    return pa.array(texts.replace("nan", ".").split("\n")[:-1], pa.string())
