"""What does a run end with, for a person to read?"""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import autotune
from veff.outputs import provenance


def words(record: dict, summary: Path, has_text: bool, n: int = 10) -> str:
    """The `n` alleles with the largest effects, where the results are, and what must be known.

    `record` is that of the run (`provenance.run`), `summary` the table of `outputs.summary`;
    `has_text` says whether the scores are written as text too.
    """
    table = pq.read_table(summary)
    scored = table.filter(pc.is_valid(table["max_logfc"]))
    order = np.argsort(-np.abs(scored["max_logfc"].to_numpy()), kind="stable")[:n]
    lines = [f"{len(scored)} of {len(table)} alleles have scores"]
    if len(scored):
        lines[0] += "; the largest effects:"
        lines.append(
            f"  {'chrom':<10}{'pos':>11}  {'ref>alt':<20}{'log2 FC':>10}{'JSD':>10}{'p':>9}"
            "  experiment"
        )
    for row in scored.take(order).to_pylist():
        change = f"{row['ref']}>{row['alt']}"
        change = change if len(change) <= 18 else f"{change[:17]}…"
        lines.append(
            f"  {row['chrom']:<10}{row['pos']:>11}  {change:<20}{row['max_logfc']:>#10.3g}"
            f"{row['max_jsd']:>#10.3g}{_p(row['max_pval']):>9}  {row['max_experiment']}"
        )
    unscored = table.filter(pc.is_null(table["max_logfc"]))
    if len(unscored):
        counts = unscored["status"].value_counts().to_pylist()
        reasons = ", ".join(f"{count['counts']} {count['values']}" for count in counts)
        lines.append(f"Not scored: {reasons} (alleles.parquet says why, allele by allele)")
    scores = "scores.tsv.gz" if has_text else "scores.parquet"
    lines.append(
        f"Results are in {summary.parent}: report.html, summary.tsv.gz, {scores}, annotated.vcf.gz"
    )
    lines += [f"The same checkpoint twice: {', '.join(names)}" for names in record["duplicates"]]
    if record["stranded"]:
        lines.append(
            f"Stranded: {_some(record['stranded'])}. If Cherimoya before 0.2.0 trained them (no "
            "checkpoint says), nearly all signal may stand on one strand: train those again"
        )
    lines += filter(None, [provenance.mixed(record)])
    if (store := record["store"])["found"] or store["scored"]:
        lines.append(f"store: {store['found']:,} scores found, {store['scored']:,} computed")
    lines.append(autotune.last_line(record["scoring"]["autotune"]))
    return "\n".join(lines)


def _some(names: list[str], n: int = 5) -> str:
    more = f" and {len(names) - n} more" if len(names) > n else ""
    return ", ".join(names[:n]) + more


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
