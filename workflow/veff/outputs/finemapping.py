"""Which alleles of a credible set are likely to be causal, and predicted to change chromatin?

The rule of the rank: an allele counts `pip_x_abs_logfc`, its probability times its largest
predicted effect, which is the effect to be expected of it. Neither factor is scaled by what the
other alleles of the run have, so an allele counts the same in any company.
"""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import tables
from veff.errors import InputError
from veff.inputs import formats
from veff.inputs.lists import MISSING, List
from veff.inputs.record import Record, quote
from veff.scoring import columns
from veff.scoring.columns import Column

BLOCK = 1 << 16  # rows whose cells are in memory at once
# How SuSiE's tables and PolyFun's number what is in no credible set.
NO_SET = (*MISSING, "-1", "0")
GIVEN = {
    "pip": Column(pa.float64(), "posterior inclusion probability, as the list has it", "0 to 1"),
    "credible_set": Column(
        pa.string(), "the credible set, as the list names it; missing in none of them"
    ),
}
RANKED = {
    "pip_x_abs_logfc": Column(
        pa.float64(), "what credible_set_rank goes by", "log2", "pip |max_logfc|"
    ),
    "credible_set_rank": Column(
        pa.int32(),
        "place of the allele within its credible set, 1 for the largest pip_x_abs_logfc; equal "
        "ones share the first; missing without that, or a set",
    ),
}
MEMBERS = pa.schema([("allele_id", pa.int64()), *columns.schema(GIVEN)])


@dataclass(frozen=True)
class Headings:
    """Which columns of the list hold the probability, and what names the credible set: several,
    such as a trait, a region and a number, make one name."""

    pip: str
    credible_set: str | list[str]


def write(out: Path, variants: Path, alleles: Path, headings: Headings) -> None:
    """Write what the list of variants says of each allele of the run: `MEMBERS`.

    Raises `InputError` for a VCF, a column that is not there, or a probability that is none.
    """
    if formats.kind(variants) != "list":
        raise InputError(
            f"{variants}: fine_mapping names columns of a list, and this is a VCF or BCF; give a "
            "table as variants (bcftools query -f makes one), or leave fine_mapping out"
        )
    # Where an allele stands is in `alleles`: only the cells are wanted.
    rows = List(variants, where="1-based")
    names = headings.credible_set
    at_pip = rows.column(headings.pip)
    at_set = [rows.column(name) for name in ([names] if isinstance(names, str) else names)]
    of_rows, pips, sets = rows.rows(), [np.empty(0)], [pa.array([], pa.string())]
    while block := list(islice(of_rows, BLOCK)):
        pips.append(np.array([_pip(variants, headings.pip, *row, at_pip) for row in block]))
        sets.append(pa.array([_set(*row, at_set) for row in block], pa.string()))
    run = pq.read_table(alleles, columns=["allele_id", "record"])
    pip, credible_set = pa.array(np.concatenate(pips), from_pandas=True), pa.concat_arrays(sets)
    members = [run["allele_id"], pip.take(run["record"]), credible_set.take(run["record"])]
    tables.write_parquet(out, [pa.table(members, schema=MEMBERS)])


def _pip(variants: Path, heading: str, row, cells: list[str], at: int) -> float:
    text = _cell(row, cells, at)
    if text.lower() in MISSING:
        return np.nan
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 <= value <= 1:
        raise InputError(
            f"{variants}, line {row.line}: {heading} is {quote(text)}; expected a probability, "
            "from 0 to 1, or NA"
        )
    return value


def _set(row, cells: list[str], at: list[int]) -> str | None:
    parts = [_cell(row, cells, one) for one in at]
    return None if any(part.lower() in NO_SET for part in parts) else " ".join(parts)


def _cell(row, cells: list[str], at: int) -> str:
    """A row that is no record, and may lack cells, has nothing in it."""
    return cells[at] if type(row) is Record and at < len(cells) else ""


def ranked(members: pa.Table, max_logfc: pa.ChunkedArray) -> pa.Table:
    """The members with the columns of `RANKED`, without `allele_id`."""
    product = pc.multiply(members["pip"], pc.abs(max_logfc)).to_numpy()
    credible_set = members["credible_set"].combine_chunks().dictionary_encode().indices
    code = pc.fill_null(credible_set, -1).to_numpy()
    rank = np.zeros(len(product), np.int32)
    known = np.flatnonzero((code >= 0) & np.isfinite(product))
    order = known[np.lexsort((-product[known], code[known]))]
    place = np.arange(len(order))
    new_set = np.diff(code[order], prepend=-1) != 0
    first = np.maximum.accumulate(np.where(new_set, place, 0))
    new_value = new_set | (np.diff(product[order], prepend=np.inf) != 0)
    rank[order] = np.maximum.accumulate(np.where(new_value, place, 0)) - first + 1
    more = [pa.array(product, from_pandas=True), pa.array(rank, mask=rank == 0)]
    given = members.select(list(GIVEN)).columns
    return pa.table([*given, *more], schema=columns.schema(GIVEN, RANKED))
