"""What is the largest effect of each allele, over all experiments?"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from scipy.stats import false_discovery_control

from veff.scoring import columns
from veff.scoring.columns import Column
from veff.scoring.maxima import MaxNull

ALPHA = 0.01  # of abs_logfc.pval, where the configuration gives no false discovery rate

COLUMNS = {
    "allele_id": columns.ALLELE["allele_id"],
    "record": Column(pa.int64(), "number of the record in the input, from 0"),
    **columns.ALLELE,
    "status": Column(pa.string(), "ok, duplicate, or why the allele was not scored"),
    "max_experiment": Column(pa.string(), "the experiment with the largest absolute logfc"),
    "max_logfc": Column(pa.float64(), "logfc in that experiment", "log2"),
    "max_logfc_effect": columns.TOWARDS_EFFECT["logfc_effect"],
    "max_jsd": Column(pa.float64(), "jsd in that experiment", "0 to 1"),
    "max_experiment_pval": Column(
        pa.float64(),
        "abs_logfc.pval in that experiment, not corrected for having chosen it; missing without "
        "nulls",
        "0 to 1",
    ),
    "max_pval": Column(
        pa.float64(),
        "how often the largest absolute logfc of a random allele of its class (of SNVs: a random "
        "SNV) over all experiments is as large; missing without nulls",
        "0 to 1",
        "(1 + #{largest of a null allele >= observed}) / (1 + n)",
    ),
    "n_experiments": Column(pa.int32(), "in which the allele was scored", "experiments"),
    "n_significant": Column(
        pa.int32(),
        f"in which it is significant_in_run, or, without fdr, has abs_logfc.pval < {ALPHA}; "
        "missing without nulls",
        "experiments",
    ),
    "direction_consistency": Column(
        pa.float64(), "share of the experiments whose logfc has the sign of max_logfc", "0 to 1"
    ),
}
FDR = {
    "max_significant_in_run": Column(
        pa.bool_(), "max_pval passes Benjamini-Hochberg at fdr over the alleles of this run"
    )
}
SCHEMA = columns.schema(COLUMNS)
KEYS = SCHEMA.names[: SCHEMA.get_field_index("max_experiment")]


def largest(summary: Path, n: int) -> list[dict]:
    """The `n` alleles with the largest effects; of the same allele given twice, the first."""
    scored = ds.field("status") == "ok"
    table = ds.dataset(summary).to_table(filter=scored)
    order = np.argsort(-np.abs(table["max_logfc"].to_numpy()), kind="stable")[:n]
    return table.take(order).to_pylist()


class Summary:
    """Keeps, for each allele, the experiment with the largest absolute log fold change.

    Of several signal groups, that of the largest effect speaks for its experiment. `kinds` are
    the alleles' classes (`classes.numbers`).
    """

    def __init__(self, alleles: pa.Table, kinds: np.ndarray, fdr: float | None = None):
        self._fdr = fdr
        self._kinds = kinds
        self._null = MaxNull()
        self._alleles = alleles.select(KEYS)
        self._direction = columns.towards_effect(alleles["effect_is"])
        n = len(alleles)
        self._logfc, self._jsd, self._pval = np.full((3, n), np.nan)
        self._experiment = np.full(n, -1, np.int32)
        self._significant, self._up, self._down = np.zeros((3, n), np.int32)
        self._names: list[str] = []
        self._judged = False

    def add(self, rows: pa.Table) -> None:
        """Take in the rows of one experiment, by allele; of equal effects the first one stays."""
        if not len(rows):
            return
        self._names.append(rows["experiment"][0].as_py())
        n_groups = len(pc.unique(rows["group"]))
        sizes = np.abs(rows["logfc"].to_numpy()).reshape(-1, n_groups)
        rows = rows.take(np.arange(len(sizes)) * n_groups + sizes.argmax(1))
        allele, logfc, jsd = (rows[c].to_numpy() for c in ("allele_id", "logfc", "jsd"))
        self._up[allele] += logfc > 0
        self._down[allele] += logfc < 0
        larger = ~(np.abs(logfc) <= np.abs(self._logfc[allele]))
        chosen = allele[larger]
        self._logfc[chosen], self._jsd[chosen] = logfc[larger], jsd[larger]
        self._experiment[chosen] = len(self._names) - 1
        if "abs_logfc.pval" not in rows.column_names:
            return
        self._judged = True
        pval = rows["abs_logfc.pval"].to_numpy()
        self._pval[chosen] = pval[larger]
        with_fdr = "significant_in_run" in rows.column_names
        self._significant[allele] += rows["significant_in_run"] if with_fdr else pval < ALPHA

    def add_null(self, identity: dict, null: pa.Table) -> None:
        """Take in a null of one experiment."""
        self._null.add(identity, null)

    def table(self, annotations: pa.Table | None = None) -> pa.Table:
        """One row an allele, in input order; no values where it was not scored.

        `annotations`, with a row for each too, are its last columns.
        """
        unscored = self._experiment < 0
        unjudged = unscored | (not self._judged)
        n = len(self._names)
        alike = np.select(
            [self._logfc > 0, self._logfc < 0], [self._up, self._down], n - self._up - self._down
        )
        incomparable = unscored | (not len(self._null))
        max_pval = self._null.p_value(np.abs(self._logfc), self._kinds)
        values = {
            "max_experiment": pa.array(self._names, pa.string()).take(
                pa.array(self._experiment, mask=unscored)
            ),
            "max_logfc": pa.array(self._logfc, mask=unscored),
            "max_logfc_effect": pc.multiply(pa.array(self._logfc, mask=unscored), self._direction),
            "max_jsd": pa.array(self._jsd, mask=unscored),
            "max_experiment_pval": pa.array(self._pval, mask=unjudged),
            "max_pval": pa.array(max_pval, mask=incomparable),
            "n_experiments": pa.array(np.full(len(unscored), n, np.int32), mask=unscored),
            "n_significant": pa.array(self._significant, mask=unjudged),
            "direction_consistency": pa.array(alike / max(n, 1), mask=unscored),
        }
        table = pa.table({name: self._alleles[name] for name in KEYS} | values, schema=SCHEMA)
        if self._fdr is not None:
            passes = self._passes(max_pval, incomparable)
            table = table.append_column(columns.schema(FDR).field(0), [passes])
        if annotations is not None:
            for field in annotations.drop_columns("allele_id").schema:
                table = table.append_column(field, annotations[field.name])
        return table

    def _passes(self, max_pval: np.ndarray, incomparable: np.ndarray) -> pa.Array:
        """Which alleles are significant at the false discovery rate, each distinct one counted
        once."""
        once = ~incomparable & (self._alleles["status"].to_numpy(zero_copy_only=False) == "ok")
        passing = np.zeros(len(max_pval), bool)
        if once.any():
            significant = false_discovery_control(max_pval[once]) <= self._fdr
            passing = max_pval <= max_pval[once][significant].max(initial=-1)
        return pa.array(passing, mask=incomparable)
