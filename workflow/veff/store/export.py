"""How are stored scores published: one row an allele, to be asked for by position?"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pysam

import veff
from veff.atomic import aside, put
from veff.inputs.alignment import Aligned
from veff.inputs.judging import as_written
from veff.inputs.reference import FIRST_BASE, Reference
from veff.models.experiment import Experiment
from veff.names import distinct
from veff.scoring import columns
from veff.store import Store, part

REGION = 1 << 24  # bases whose alleles are held in memory at once
FIELDS = {"LOGFC": "logfc", "JSD": "jsd"}  # of the VCF
DIGITS = 5


def export(
    store: Store,
    reference: Reference,
    contigs: list[str],
    experiments: list[Experiment],
    *,
    tsv: Path,
    vcf: Path,
) -> int:
    """Write all alleles of these experiments that stand on this reference, in its order.

    `contigs` are the hashes of its contigs.

    `tsv` has the columns #chrom, pos, ref, alt and, of each experiment, its scores,
    `EXPERIMENT.SCORE`; `vcf` the fields CHERI_LOGFC_… and CHERI_JSD_…. Of several signal groups
    each has its own, `EXPERIMENT.GROUP`. What an experiment lacks is empty, or `.`. Both are
    compressed by bgzip and have a CSI index beside them. Returns how many alleles there are.
    """
    labels = {
        (one.name, group): one.name if len(one.groups) == 1 else f"{one.name}.{group}"
        for one in experiments
        for group in one.groups
    }
    keys = distinct([re.sub(r"[^0-9A-Za-z_.]", "_", one) for one in labels.values()], "{}_{}")
    n = 0
    with aside(tsv) as text, aside(vcf) as records:
        with pysam.BGZFile(str(text), "wb") as rows, pysam.BGZFile(str(records), "wb") as lines:
            rows.write(_tsv_header(reference, experiments, labels.values()).encode())
            lines.write(_vcf_header(reference, labels.values(), keys).encode())
            for chrom, pos, ref, alt, scores in _alleles(store, reference, contigs, experiments):
                n += len(pos)
                rows.write(_tsv_rows(chrom, pos, ref, alt, scores).encode())
                lines.write(_vcf_rows(chrom, pos, ref, alt, scores, keys).encode())
        pysam.tabix_index(
            str(text), seq_col=0, start_col=1, end_col=1, meta_char="#", csi=True, force=True
        )
        pysam.tabix_index(str(records), preset="vcf", csi=True, force=True)
        for one, out in ((text, tsv), (records, vcf)):
            put(Path(f"{one}.csi"), Path(f"{out}.csi"))
    return n


def _alleles(
    store: Store, reference: Reference, contigs: list[str], experiments: list[Experiment]
) -> Iterator[tuple[str, pa.Array, pa.Array, pa.Array, list[dict[str, pa.Array]]]]:
    """The alleles, region after region: contig, position, REF and ALT as a VCF has them, and the
    scores by name of each experiment's groups."""
    places = [store.places(one) for one in experiments]
    for contig, (name, sha256) in enumerate(zip(reference.names, contigs, strict=True)):
        for start in range(0, int(reference.lengths[contig]) + 1, REGION):
            region = sha256, start, start + REGION
            tables = [
                store.region(one, there, *region)
                for one, there in zip(experiments, places, strict=True)
            ]
            keys = pa.concat_tables(table.select(list(part.KEYS)) for table in tables)
            keys = keys.filter(pc.invert(pc.match_substring(keys["alt"], "|")))  # not virtual ones
            if not len(keys):
                continue
            keys = keys.group_by(list(part.KEYS)).aggregate([])
            pos, ref, alt = _as_written(reference, contig, keys)
            rows = pa.table({"pos": pos, "ref": ref, "alt": alt})
            order = pc.sort_indices(rows, [(key, "ascending") for key in rows.column_names])
            rows, texts = rows.take(order).combine_chunks(), part.texts(keys.take(order))
            scores = []
            for one, table in zip(experiments, tables, strict=True):
                row = pc.index_in(texts, part.texts(table))
                scores += [
                    {score: table[f"{group}.{score}"].take(row) for score in columns.SCORES}
                    for group in one.groups
                ]
            yield name, *rows.columns, scores


def _as_written(reference: Reference, contig: int, keys: pa.Table) -> tuple:
    start, ref_len = keys["start"].to_numpy(), keys["ref_len"].to_numpy().astype(np.int64)
    ref = [
        reference.fetch(contig, first, first + n).translate(FIRST_BASE).decode()
        for first, n in zip(start.tolist(), ref_len.tolist(), strict=True)
    ]
    alt = keys["alt"].combine_chunks()
    alt_len = pc.binary_length(alt).to_numpy().astype(np.int64)
    aligned = Aligned(start, pa.array(ref, pa.string()), alt, ref_len, alt_len)
    return as_written(reference, np.full(len(keys), contig), aligned)


def _tsv_header(reference: Reference, experiments: list[Experiment], labels) -> str:
    said = {
        "cherimoya-veff": veff.__version__,
        "reference_sha256": reference.sha256,
        "models_sha256": {one.name: one.sha256 for one in experiments},
    }
    names = [f"{label}.{score}" for label in labels for score in columns.SCORES]
    head = "\t".join(["#chrom", "pos", "ref", "alt", *names])
    return f"##{json.dumps(said)}\n{head}\n"


def _tsv_rows(chrom: str, pos, ref, alt, scores: list[dict]) -> str:
    values = [
        pc.fill_null(pc.cast(column, pa.string()), "") for one in scores for column in one.values()
    ]
    cells = [pa.repeat(chrom, len(pos)), pc.cast(pos, pa.string()), ref, alt, *values]
    cells = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in cells]
    lines = pc.binary_join_element_wise(*cells, "\t").to_pylist()
    return "".join(f"{line}\n" for line in lines)


def _vcf_header(reference: Reference, labels, keys: list[str]) -> str:
    lines = ["##fileformat=VCFv4.3"]
    lines += [
        f"##contig=<ID={name},length={length}>"
        for name, length in zip(reference.names, reference.lengths.tolist(), strict=True)
    ]
    for label, key in zip(labels, keys, strict=True):
        for field, score in FIELDS.items():
            meaning = f"{score} = {columns.SCORES[score].formula} under {label}"
            meaning = re.sub(r'["\\]', "'", f"{meaning}; {DIGITS} significant digits")
            lines.append(
                f'##INFO=<ID=CHERI_{field}_{key},Number=A,Type=Float,Description="{meaning}",'
                f'Source="cherimoya-veff",Version="{veff.__version__}">'
            )
    return "\n".join([*lines, "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"]) + "\n"


def _vcf_rows(chrom: str, pos, ref, alt, scores: list[dict], keys: list[str]) -> str:
    fields = [
        (f"CHERI_{field}_{key}", one[score].to_pylist())
        for key, one in zip(keys, scores, strict=True)
        for field, score in FIELDS.items()
    ]
    rows = zip(pos.to_pylist(), ref.to_pylist(), alt.to_pylist(), strict=True)
    lines = []
    for number, (where, before, after) in enumerate(rows):
        info = ";".join(f"{field}={_number(values[number])}" for field, values in fields)
        lines.append(f"{chrom}\t{where}\t.\t{before}\t{after}\t.\t.\t{info}\n")
    return "".join(lines)


def _number(value: float | None) -> str:
    return "." if value is None else f"{value:.{DIGITS}g}"
