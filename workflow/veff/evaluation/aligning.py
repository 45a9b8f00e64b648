"""Which allele of the run does each row of a table mean, and towards which is its effect?

Each row has one fate: `aligned`; `undirected`, its allele found but not on which strand; or why
it was lost. Its alleles are judged and left-aligned as the run's are, then found among them.
"""

from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.errors import InputError
from veff.evaluation.truth import Table
from veff.inputs.judging import OTHER, Judge
from veff.inputs.preparing import BLOCK_RECORDS
from veff.inputs.records import ORDER_UNKNOWN, Record
from veff.inputs.reference import Reference

ALIGNED, UNDIRECTED = "aligned", "undirected"
# How far from 1/2 a frequency must be to tell a palindromic SNV's strand, as in TwoSampleMR.
CLEAR = 0.08
_COMPLEMENT = str.maketrans("ACGTacgt", "TGCAtgca")
_KEYS = ["contig", "scored_pos", "scored_ref", "scored_alt"]


def align(
    table: Table,
    alleles: Path,
    reference: Reference,
    max_allele_length: int,
    experiments: list[str],
) -> pa.Table:
    """A row for each row of the table, in its order.

    Columns: line; fate; allele_id, in the run, null if lost; kind (`SNV`, `insertion`, `deletion`
    or `other`); contig, pos, as scored; effect, towards ALT, NaN where there is none or its
    direction is unknown; as_written, the same towards whatever allele the table has as effect
    allele; positive (1, 0 or NaN); flipped, whether that is REF, so that the effect was turned;
    strand_flipped, whether the alleles are of the other strand; palindromic; experiment, null
    where the row is about all; matched, what it shares with those that it is matched to, or null.

    Raises `InputError` if no row is found.
    """
    judge = Judge(reference, table, str(table.truth.table), max_allele_length, share=1.0)
    rows = table.rows()
    parts = []
    while block := list(islice(rows, BLOCK_RECORDS)):
        parts.append(_block(table, judge, *map(list, zip(*block, strict=True))))
    if not parts:
        raise InputError(f"{table.truth.table}: no rows")
    found = _found(pa.concat_tables(parts), alleles)
    fate = found["fate"].to_numpy(zero_copy_only=False).astype(object)
    usable = np.isin(fate, (ALIGNED, UNDIRECTED))
    if found["experiment"].null_count == 0:
        known = pc.is_in(found["experiment"], pa.array(experiments, pa.string())).to_numpy()
        fate[usable & ~known] = "unknown_experiment"
        usable &= known
    _first_only(found, fate, usable)
    if not np.isin(fate, (ALIGNED, UNDIRECTED)).any():
        why, n = np.unique(fate.astype(str), return_counts=True)
        counts = ", ".join(f"{k} {one}" for one, k in zip(why, n.tolist(), strict=True))
        raise InputError(
            f"{table.truth.table}: none of its {len(found):,} rows is about an allele of the run "
            f"({counts}); it must be of the same assembly, and of the variants that are scored"
        )
    return found.set_column(found.column_names.index("fate"), "fate", pa.array(fate, pa.string()))


def _block(table: Table, judge: Judge, rows: list, cells: list[list[str]]) -> pa.Table:
    """What is known of some rows before they are looked for in the run."""
    values = table.values(rows, cells)
    lines = [row.line for row in rows]
    several = np.array([type(row) is Record and len(row.alts) > 1 for row in rows])
    rows = [
        row._replace(alts=row.alts[:1]) if s else row for row, s in zip(rows, several, strict=True)
    ]
    # REF that the table names, and that fits, says with it which strand is meant.
    named = np.array([type(row) is Record and not row.note for row in rows])
    judged = judge.block(rows.copy())[0]
    fate, effect_is, *places = (
        np.array(judged[name].to_numpy(zero_copy_only=False), object)
        for name in ("status", "effect_is", *_KEYS, "palindromic")
    )
    named &= fate == "ok"
    strand = np.zeros(len(rows), bool)
    for status, again, on_other_strand in (
        ("ref_alt_swapped", _swapped, False),
        ("ref_mismatch", _complemented, True),
    ):
        which = [i for i in np.flatnonzero(fate == status).tolist() if _is_snv(rows[i], again)]
        if not which:
            continue
        second = judge.block([again(rows[i]) for i in which])[0]
        fits = second["status"].to_numpy(zero_copy_only=False) == "ok"
        where = np.array(which)[fits]
        names = ("status", "effect_is", *_KEYS, "palindromic")
        for column, name in zip((fate, effect_is, *places), names, strict=True):
            column[where] = second[name].to_numpy(zero_copy_only=False)[fits]
        strand[where] = on_other_strand
    palindromic = places[-1] == True  # noqa: E712 - an array of objects, None among them
    fate[fate == "ok"] = ALIGNED
    fate[several & (fate == ALIGNED)] = "several_alts"
    signed = bool(table.truth.effect or table.truth.allelic_ratio)
    direction = np.select([effect_is == "alt", effect_is == "ref"], [1.0, -1.0], np.nan)
    if signed:
        fate[(fate == ALIGNED) & np.isnan(direction)] = "no_effect_allele"
    other, told = _by_frequency(direction, values.frequency, values.alt_frequency)
    ambiguous = (fate == ALIGNED) & palindromic & ~named & signed
    fate[ambiguous & ~told] = UNDIRECTED
    turned = ambiguous & told & other
    direction[turned] *= -1
    strand |= turned
    nothing = np.isnan(values.positive) & (np.isnan(values.effect) | (not signed))
    fate[np.isin(fate, (ALIGNED, UNDIRECTED)) & nothing] = "no_value"
    kept = fate == ALIGNED
    columns = {
        "line": pa.array(lines, pa.int64()),
        "fate": pa.array(fate, pa.string()),
        "contig": pa.array(places[0], pa.string()),
        "scored_pos": pa.array(places[1], pa.int64(), from_pandas=True),
        "scored_ref": pa.array(places[2], pa.string()),
        "scored_alt": pa.array(places[3], pa.string()),
        "effect": np.where(kept, direction * values.effect, np.nan),
        "as_written": values.effect,
        "positive": values.positive,
        "flipped": kept & (direction < 0),
        "strand_flipped": strand,
        "palindromic": palindromic,
        **{
            name: pa.nulls(len(rows), pa.string())
            if texts is None
            else pa.array(texts, pa.string())
            for name, texts in (("experiment", values.experiment), ("matched", values.matched))
        },
    }
    return pa.table(columns)


def _swapped(row: Record) -> Record:
    return row._replace(ref=row.alts[0], alts=(row.ref,), effect=OTHER.get(row.effect, ""))


def _complemented(row: Record) -> Record:
    """The same of the other strand; which of the two is REF is then told by the reference."""
    ref, alt = (one.translate(_COMPLEMENT) for one in (row.ref, row.alts[0]))
    return row._replace(ref=ref, alts=(alt,), note=ORDER_UNKNOWN)


def _is_snv(row: Record, again) -> bool:
    """Only of single bases the complement stands at the same place."""
    return again is not _complemented or len(row.ref) == len(row.alts[0]) == 1


def _by_frequency(direction, frequency, alt_frequency) -> tuple[np.ndarray, np.ndarray]:
    """Whether the study's effect allele is, by its frequency, the complement of the allele that
    it looks like, and whether the frequencies are clear enough to tell."""
    study = np.where(direction > 0, frequency, 1 - frequency) - 0.5
    population = alt_frequency - 0.5
    told = (np.abs(study) > CLEAR) & (np.abs(population) > CLEAR) & ~np.isnan(direction)
    return np.sign(study) != np.sign(population), told


def _found(rows: pa.Table, alleles: Path) -> pa.Table:
    """The rows with the allele of the run that each means."""
    columns = ["allele_id", "status", *_KEYS]
    run = pq.read_table(alleles, columns=columns)
    run = run.filter(pc.equal(run["status"], "ok")).drop_columns("status")
    rows = rows.append_column("row", pa.array(np.arange(len(rows))))
    rows = rows.join(run, _KEYS, join_type="left outer").sort_by("row")
    fate = rows["fate"]
    here = pc.is_in(fate, pa.array([ALIGNED, UNDIRECTED]))
    lost = pc.and_(here, pc.is_null(rows["allele_id"]))
    rows = rows.set_column(
        rows.column_names.index("fate"), "fate", pc.if_else(lost, "not_in_run", fate)
    )
    ref, alt = (pc.binary_length(rows[name]) for name in ("scored_ref", "scored_alt"))
    kind = pc.case_when(
        pc.make_struct(
            pc.and_(pc.equal(ref, 1), pc.equal(alt, 1)),
            pc.and_(pc.equal(ref, 1), pc.greater(alt, 1)),
            pc.and_(pc.greater(ref, 1), pc.equal(alt, 1)),
        ),
        "SNV",
        "insertion",
        "deletion",
        "other",
    )
    return rows.drop_columns(["row"]).append_column("kind", kind)


def _first_only(found: pa.Table, fate: np.ndarray, usable: np.ndarray) -> None:
    """Of rows about one allele (and experiment) only the first is used."""
    where = np.flatnonzero(usable)
    key = found.select(["allele_id", "experiment"]).take(where)
    experiment = pc.fill_null(key["experiment"], "").combine_chunks().dictionary_encode()
    code = experiment.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    keys = code * (int(pc.max(key["allele_id"]).as_py() or 0) + 1) + key["allele_id"].to_numpy()
    again = np.ones(len(where), bool)
    again[np.unique(keys, return_index=True)[1]] = False
    fate[where[again]] = "duplicate"
