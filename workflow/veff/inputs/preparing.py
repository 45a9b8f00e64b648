"""Which alleles are in the input, and which of them are scored, in which order?

Alleles are judged in blocks, in the order of the input, and go to disk in two streams: the rows
of all, and the aligned form of those that can be scored, cut by region of the genome. Then
region after region is sorted, which finds the duplicates and gives the order of the scores;
last, the rows of all are completed with what that showed. Memory does not grow with the input.
"""

import gc
import itertools
import logging
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import atomic, plan
from veff.inputs import classes, records
from veff.inputs.judging import JUDGED, SITES, STATUSES, Judge, first_sites
from veff.inputs.records import Columns, Malformed, Record
from veff.inputs.reference import Reference

ALLELES = JUDGED.append(pa.field("scored_as", pa.int64()))
SCOREABLE = pa.schema(
    {
        "allele_id": pa.int64(),
        "contig": pa.int32(),
        "start": pa.int64(),
        "ref_len": pa.int32(),
        "alt": pa.string(),
    }
)

BLOCK_RECORDS = 1 << 16  # records that are in memory at once, at most,
BLOCK_BASES = 1 << 22  # and about how many bases of them
REGION_BITS = 24  # regions that are sorted at once have 2**24 bases


def prepare(
    variants: Path,
    reference: Reference,
    alleles: Path,
    scoreable: Path,
    *,
    chunk_size: int,
    most_chunks: int | None = None,
    max_allele_length: int = 500,
    max_ref_mismatch: float = 0.01,
    malformed_rows: str = "error",
    positions: str = "auto",
) -> dict:
    """Read variants, give each allele a status, and write two Parquet files in one folder.

    ``alleles``: every allele of the input, in its order and with its keys: allele_id (0, 1, ...),
    record, chrom, pos (null if no number), id, ref, alt as the input has them (but for lists: a
    missing REF is filled in, an order of alleles settled by the reference); effect_is (``alt`` or
    ``ref``, where a tool's table says of which of them an effect is, else ``unknown``); status
    (one of `STATUSES`), reason (one line; for ``ok`` empty or a remark); contig (its name in the
    reference, null if it is not there); scored_pos, scored_ref, scored_alt: as what it is scored,
    written as ``bcftools norm`` does (null if it is not); scored_as (the allele_id under which
    its scores stand: its own, or of a ``duplicate`` the first; null if it has none).
    ``scoreable``: the alleles to score, trimmed and left-aligned, in the order of contig, start,
    ref_len, alt; start is 0-based; each row group is a chunk of ``chunk_size`` alleles, or of more
    where there would be more than ``most_chunks``, the last one smaller.

    ``positions``: how a list counts them, as `records.Variants` takes it.

    Returns read_as (form, positions, and why those), records, alleles, statuses (counts),
    scoreable, chunks, classes (those of `classes.NAMES` that scoreable alleles besides SNVs are
    of), ref_checked (alleles whose REF was compared), contigs_unmatched (alleles by name of
    contig).

    Raises `InputError` when no contig of the input is in the reference, when one may be two of
    them, when more REF differ from the reference than ``max_ref_mismatch`` of them by chance, and
    for rows that cannot be parsed unless ``malformed_rows`` is ``'skip'``.
    """
    rows = records.Variants(variants, malformed_rows, reference, positions)
    logging.info("%s: read as %s; positions are %s: %s", variants, *rows.read_as.values())
    judge = Judge(reference, rows, str(variants), max_allele_length, max_ref_mismatch)
    with tempfile.TemporaryDirectory(dir=alleles.parent, prefix=".prepare-") as scratch:
        scratch = Path(scratch)
        with _no_collector():
            regions = _judge_all(rows.pieces(), judge, scratch / "judged", scratch / "sites")
        judge.check()
        chunk_size = plan.enough(judge.alleles, chunk_size, most_chunks)
        duplicates, n_scoreable, kinds = _write_scoreable(
            scratch / "sites", regions, reference, scratch / "scoreable", chunk_size
        )
        statuses = _write_alleles(scratch / "judged", duplicates, scratch / "alleles")
        if sum(statuses.values()) != judge.alleles or statuses["ok"] != n_scoreable:
            raise RuntimeError(
                f"{variants}: {judge.alleles} alleles, {n_scoreable} of them scoreable, but the "
                f"statuses are {dict(statuses)}; this is a fault of the program"
            )
        logging.info("%s: %d records, %d alleles", variants, judge.records, judge.alleles)
        for status in filter(statuses.get, STATUSES):
            logging.info("%12d %s", statuses[status], status)
        atomic.put(scratch / "scoreable", scoreable)
        atomic.put(scratch / "alleles", alleles)
    return {
        "read_as": rows.read_as,
        "records": judge.records,
        "alleles": judge.alleles,
        "statuses": {status: statuses[status] for status in STATUSES},
        "scoreable": n_scoreable,
        "chunks": -(-n_scoreable // chunk_size),
        "classes": [classes.NAMES[kind] for kind in sorted(kinds) if kind],
        "ref_checked": judge.fit.checked,
        "contigs_unmatched": dict(judge.contigs_unmatched),
    }


@contextmanager
def _no_collector() -> Iterator[None]:
    """Without Python's garbage collector, which would look for cycles among all the records that
    are held, again and again: they make none, and that takes a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _judge_all(
    rows: Iterable[Record | Malformed | Columns], judge: Judge, judged: Path, sites: Path
) -> dict[int, list[int]]:
    """Write the alleles with their statuses to `judged`, those that can be scored to `sites`.

    Returns which record batches of `sites` hold each region of the genome.
    """
    regions = defaultdict(list)
    n_batches = 0
    lz4 = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        pa.ipc.new_stream(str(judged), JUDGED, options=lz4) as every,
        pa.ipc.new_file(str(sites), SITES) as scoreable,
    ):
        for block in _blocks(rows):
            judged_block, ok = judge.block(block)
            every.write_table(judged_block)
            ok = ok.sort_by("site")
            region = ok.column("site").to_numpy() >> REGION_BITS
            for start, end in itertools.pairwise(
                [0, *(np.flatnonzero(np.diff(region)) + 1).tolist(), len(region)]
            ):
                if start < end:
                    scoreable.write_table(ok.slice(start, end - start).combine_chunks())
                    regions[int(region[start])].append(n_batches)
                    n_batches += 1
    return regions


def _blocks(
    rows: Iterable[Record | Malformed | Columns],
) -> Iterator[list[Record | Malformed] | Columns]:
    """As many records at once as memory is meant for."""
    block, size = [], 0
    for row in rows:
        if type(row) is Columns:
            if block:
                yield block
            yield row
            block, size = [], 0
            continue
        block.append(row)
        if isinstance(row, Record):
            size += len(row.ref) * len(row.alts) + sum(map(len, row.alts))
        if len(block) == BLOCK_RECORDS or size > BLOCK_BASES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _write_scoreable(
    sites: Path, regions: dict[int, list[int]], reference: Reference, out: Path, chunk_size: int
) -> tuple[np.ndarray, int, set[int]]:
    """Sort region after region, write each distinct allele, and return the others.

    Returns the duplicates, int64[2, n], their allele_id in its order and the one that is scored
    for each; the number of alleles written, and their classes (`classes.number`).
    """
    first_site = first_sites(reference)
    kinds: set[int] = set()
    duplicates, n_scoreable = [np.zeros((2, 0), np.int64)], 0
    pending = SCOREABLE.empty_table()
    with (
        pa.OSFile(str(sites)) as file,
        pa.ipc.open_file(file) as batches,
        pq.ParquetWriter(out, SCOREABLE, compression="zstd") as writer,
    ):
        for region in sorted(regions):
            table = pa.Table.from_batches(map(batches.get_batch, regions[region]))
            order = [(key, "ascending") for key in ("site", "ref_len", "alt", "allele_id")]
            table = table.sort_by(order).combine_chunks()
            allele_id, site, ref_len = (table.column(i).to_numpy() for i in range(3))
            alt = table.column("alt")
            first = np.ones(len(table), bool)
            first[1:] = (np.diff(site) != 0) | (np.diff(ref_len) != 0)
            first[1:] |= pc.not_equal(alt.slice(1), alt.slice(0, len(alt) - 1)).to_numpy()
            scored_as = allele_id[first][np.cumsum(first) - 1]
            duplicates.append(np.stack([allele_id, scored_as])[:, ~first])
            kinds.update(np.unique(classes.number(ref_len, pc.utf8_length(alt).to_numpy())))
            contig = np.searchsorted(first_site, site, "right") - 1
            distinct = pa.table(
                [allele_id, contig, site - first_site[contig], ref_len, alt], SCOREABLE.names
            )
            pending = pa.concat_tables([pending, distinct.cast(SCOREABLE).filter(first)])
            n_scoreable += int(first.sum())
            whole = len(pending) - len(pending) % chunk_size
            if whole:
                writer.write_table(pending.slice(0, whole), row_group_size=chunk_size)
                pending = pending.slice(whole).combine_chunks()
        if len(pending):
            writer.write_table(pending, row_group_size=chunk_size)
    duplicates = np.concatenate(duplicates, axis=1)
    return duplicates[:, np.argsort(duplicates[0])], n_scoreable, kinds


def _write_alleles(judged: Path, duplicates: np.ndarray, out: Path) -> Counter:
    """Write all alleles with what the sort has shown, and count their statuses."""
    statuses = Counter()
    duplicate, first = duplicates
    with (
        pa.OSFile(str(judged)) as file,
        pa.ipc.open_stream(file) as batches,
        pq.ParquetWriter(out, ALLELES, compression="zstd") as writer,
    ):
        for batch in batches:
            allele_id = batch.column("allele_id").to_numpy()
            status, reason = batch.column("status"), batch.column("reason")
            scored_as = pa.array(allele_id, mask=pc.not_equal(status, "ok").to_numpy(False))
            here = slice(*np.searchsorted(duplicate, [allele_id[0], allele_id[-1] + 1]))
            repeated = pa.array(np.isin(allele_id, duplicate[here], assume_unique=True))
            same = [
                f"the same change as allele {original}" + (f"; {remark}" if remark else "")
                for original, remark in zip(
                    first[here], reason.filter(repeated).to_pylist(), strict=True
                )
            ]
            status = pc.if_else(repeated, "duplicate", status)
            reason = pc.replace_with_mask(reason, repeated, pa.array(same, pa.string()))
            scored_as = pc.replace_with_mask(scored_as, repeated, pa.array(first[here]))
            for counted in pc.value_counts(status).to_pylist():
                statuses[counted["values"]] += counted["counts"]
            columns = dict(zip(JUDGED.names, batch.columns, strict=True))
            columns |= {"status": status, "reason": reason, "scored_as": scored_as}
            writer.write_batch(pa.record_batch(list(columns.values()), schema=ALLELES))
    return statuses
