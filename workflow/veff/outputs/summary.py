"""What is the largest effect of each allele, over all experiments?"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from veff.scoring import columns
from veff.scoring.adjusted import ALPHA, family_wise, q_value
from veff.scoring.columns import Column
from veff.scoring.maxima import MaxNull
from veff.scoring.pooling import speaking

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
    "max_qval": Column(
        pa.float64(),
        "the smallest false discovery rate at which the allele is on the list, by max_pval among "
        "the distinct alleles of this run; missing without nulls",
        "0 to 1",
        "Benjamini-Hochberg",
    ),
    "max_fwer": Column(
        pa.float64(),
        "the smallest chance of any false allele on the list at which it is on it, by max_pval "
        "among the distinct alleles of this run; missing without nulls",
        "0 to 1",
        "Holm",
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
FDR = {"max_significant_in_run": Column(pa.bool_(), "max_qval is at most fdr")}
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
        rows = speaking(rows)
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

    def table(self, *more: pa.Table) -> pa.Table:
        """One row an allele, in input order; no values where it was not scored.

        The columns of `more`, tables with a row for each too, come last.
        """
        unscored = self._experiment < 0
        unjudged = unscored | (not self._judged)
        n = len(self._names)
        alike = np.select(
            [self._logfc > 0, self._logfc < 0], [self._up, self._down], n - self._up - self._down
        )
        max_pval = self._null.p_value(np.abs(self._logfc), self._kinds)
        incomparable = np.isnan(max_pval)
        distinct = self._alleles["status"].to_numpy(zero_copy_only=False) == "ok"
        max_qval = q_value(max_pval, distinct & ~incomparable)
        max_fwer = family_wise(max_pval, distinct & ~incomparable)
        values = {
            "max_experiment": pa.array(self._names, pa.string()).take(
                pa.array(self._experiment, mask=unscored)
            ),
            "max_logfc": pa.array(self._logfc, mask=unscored),
            "max_logfc_effect": pc.multiply(pa.array(self._logfc, mask=unscored), self._direction),
            "max_jsd": pa.array(self._jsd, mask=unscored),
            "max_experiment_pval": pa.array(self._pval, mask=unjudged),
            "max_pval": pa.array(max_pval, mask=incomparable),
            "max_qval": pa.array(max_qval, mask=incomparable),
            "max_fwer": pa.array(max_fwer, mask=incomparable),
            "n_experiments": pa.array(np.full(len(unscored), n, np.int32), mask=unscored),
            "n_significant": pa.array(self._significant, mask=unjudged),
            "direction_consistency": pa.array(alike / max(n, 1), mask=unscored),
        }
        table = pa.table({name: self._alleles[name] for name in KEYS} | values, schema=SCHEMA)
        if self._fdr is not None:
            passes = pa.array(max_qval <= self._fdr, mask=incomparable)
            table = table.append_column(columns.schema(FDR).field(0), passes)
        for one in more:
            for field in one.schema:
                table = table.append_column(field, one[field.name])
        return table
