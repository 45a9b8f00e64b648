"""What is the largest effect of each allele, over all experiments?"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEYS = ["allele_id", "record", "chrom", "pos", "id", "ref", "alt", "status"]
INFO = {
    "CHERI_STATUS": ("String", "Whether the allele was scored (ok, duplicate), or why not"),
    "CHERI_MAX_LOGFC": ("Float", "log2 fold change of counts, largest over the experiments"),
    "CHERI_MAX_JSD": ("Float", "Jensen-Shannon distance (base 2) in that experiment"),
    "CHERI_MAX_EXP": ("String", "The experiment with the largest absolute log2 fold change"),
}
HEADER = [
    f'##INFO=<ID={name},Number=A,Type={kind},Description="{description}">'
    for name, (kind, description) in INFO.items()
]
# VEP and bcftools split INFO at these.
UNSAFE = str.maketrans({c: "_" for c in " ,;=\t"})


class Summary:
    """Keeps, for each allele, the experiment with the largest absolute log fold change."""

    def __init__(self, alleles: pa.Table):
        self._alleles = alleles.select(KEYS)
        n = len(alleles)
        self._logfc = np.full(n, np.nan)
        self._jsd = np.full(n, np.nan)
        self._experiment = np.full(n, -1, np.int32)
        self._names: list[str] = []

    def add(self, rows: pa.Table) -> None:
        """Take in the rows of one experiment; of equal effects the first one stays."""
        if not len(rows):
            return
        self._names.append(rows["experiment"][0].as_py())
        for group in pc.unique(rows["group"]).to_pylist():
            here = rows.filter(pc.equal(rows["group"], group))
            allele = here["allele_id"].to_numpy()
            logfc, jsd = here["logfc"].to_numpy(), here["jsd"].to_numpy()
            larger = ~(np.abs(logfc) <= np.abs(self._logfc[allele]))
            chosen = allele[larger]
            self._logfc[chosen], self._jsd[chosen] = logfc[larger], jsd[larger]
            self._experiment[chosen] = len(self._names) - 1

    def table(self) -> pa.Table:
        """One row an allele, in input order; no values where it was not scored."""
        unscored = self._experiment < 0
        names = pa.array(self._names, pa.string())
        experiment = pa.array(self._experiment, mask=unscored)
        return (
            self._alleles.append_column("max_experiment", names.take(experiment))
            .append_column("max_logfc", pa.array(self._logfc, mask=unscored))
            .append_column("max_jsd", pa.array(self._jsd, mask=unscored))
        )


def info(summary: Path) -> Iterator[str]:
    """For each record of the input, in order, the text to add to its INFO column.

    Every field has one value an ALT; a record without ALT gets none.
    """
    columns = ["record", "alt", "status", "max_logfc", "max_jsd", "max_experiment"]
    for _, alleles in groupby(_rows(summary, columns), lambda row: row[0]):
        _, alts, *values = zip(*alleles, strict=True)
        if alts == (".",):
            yield ""
            continue
        texts = (",".join(map(_text, value)) for value in values)
        yield ";".join(f"{name}={text}" for name, text in zip(INFO, texts, strict=True))


def closing(outdir: str | Path, n: int = 10) -> str:
    """The alleles with the largest effects, and where the results are, for a person to read."""
    outdir = Path(outdir)
    table = pq.read_table(outdir / "summary.parquet")
    scored = table.filter(pc.is_valid(table["max_logfc"]))
    order = np.argsort(-np.abs(scored["max_logfc"].to_numpy()), kind="stable")[:n]
    lines = [f"{len(scored)} of {len(table)} alleles have scores; the largest effects:"]
    lines.append(
        f"  {'chrom':<10}{'pos':>11}  {'ref>alt':<20}{'log2 FC':>8}{'JSD':>7}  experiment"
    )
    for row in scored.take(order).to_pylist():
        change = f"{row['ref']}>{row['alt']}"
        change = change if len(change) <= 18 else f"{change[:17]}…"
        lines.append(
            f"  {row['chrom']:<10}{row['pos']:>11}  {change:<20}{row['max_logfc']:>8.3f}"
            f"{row['max_jsd']:>7.3f}  {row['max_experiment']}"
        )
    unscored = table.filter(pc.is_null(table["max_logfc"]))
    if len(unscored):
        counts = unscored["status"].value_counts().to_pylist()
        reasons = ", ".join(f"{count['counts']} {count['values']}" for count in counts)
        lines.append(f"Not scored: {reasons} (alleles.parquet says why, allele by allele)")
    lines.append(f"Results are in {outdir}: scores.tsv.gz, scores.parquet, annotated.vcf.gz")
    return "\n".join(lines)


def _rows(path: Path, columns: list[str]) -> Iterator[tuple]:
    for batch in pq.ParquetFile(path).iter_batches(columns=columns):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _text(value) -> str:
    match value:
        case None:
            return "."
        case float():
            return f"{value:.5g}"
    return str(value).translate(UNSAFE)
