"""Which interactions are the largest: of the run, for its report; of an allele, for the VCF?"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

SHOWN = 20
NAMED = 10  # samples of those
EXPERIMENTS = 50  # of those, and signal groups
ALLELES = pa.schema(
    {
        "allele_id": pa.int64(),
        "haplotype": pa.int64(),
        "logfc": pa.float64(),
        "interaction": pa.float64(),
        "interaction_pval": pa.float64(),
        "experiment": pa.string(),
    }
)
VALUES = ALLELES.names[2:]
IN_EACH = ["experiment", "group", "single_logfc", "sum_logfc", "logfc", "logfc.pval", "jsd"]
IN_EACH += ["interaction", "interaction_pval"]


class Largest:
    """The haplotypes of two or more alleles, each in the experiment where its interaction is
    largest; `planned` are all, in the order of their numbers."""

    def __init__(self, planned: pa.Table):
        self._alleles = planned["alleles"].combine_chunks()
        several = pc.greater(pc.list_value_length(self._alleles), 1)
        self._several = np.flatnonzero(several.to_numpy(zero_copy_only=False))
        self._size = np.full(len(planned), -1.0)
        self._values = {name: np.full(len(planned), None, object) for name in VALUES}
        self._shown: dict[int, dict] = {}

    def add(self, rows: pa.Table) -> None:
        """The rows of one experiment and group, one a haplotype."""
        size = np.abs(rows["interaction"].to_numpy())
        larger = self._several[size[self._several] > self._size[self._several]]
        self._size[larger] = size[larger]
        for name, values in self._values.items():
            values[larger] = rows[name].take(larger).to_pylist()
        first = larger[np.argsort(-size[larger], kind="stable")][:SHOWN]
        self._shown |= zip(first.tolist(), rows.take(first).to_pylist(), strict=True)
        order = sorted(self._shown, key=lambda one: (-self._size[one], one))
        self._shown = {one: self._shown[one] for one in order[:SHOWN]}

    def shown(self, haplotypes: Path) -> list[dict]:
        """Those with the largest interactions, the largest first, with their first samples.

        Of `experiments` each has its rows in the table `haplotypes`, the largest interactions
        first, and `n_experiments` is how many there are.
        """
        wanted = ds.field("haplotype").isin(list(self._shown))
        rows = ds.dataset(haplotypes).to_table(["haplotype", *IN_EACH], filter=wanted)
        each = {one: [] for one in self._shown}
        for row in rows.to_pylist():
            each[row.pop("haplotype")].append(row)
        for of_one in each.values():
            of_one.sort(key=lambda row: -abs(row["interaction"]))
        return [
            row
            | {"samples": row["samples"][:NAMED], "n_experiments": len(each[one])}
            | {"experiments": each[one][:EXPERIMENTS]}
            for one, row in self._shown.items()
        ]

    def of_alleles(self, alleles: Path) -> pa.Table:
        """A row for each allele of the input (`ALLELES`), of the haplotypes that have it the one
        with the largest interaction; null where there is none."""
        scored_as = pq.read_table(alleles, columns=["scored_as"])["scored_as"]
        best: dict[int, int] = {}
        for one in self._several[np.argsort(self._size[self._several], kind="stable")].tolist():
            best |= dict.fromkeys(self._alleles[one].as_py(), one)
        found = [best.get(one) for one in scored_as.to_pylist()]
        values = [
            [None if one is None else self._values[name][one] for one in found] for name in VALUES
        ]
        return pa.table([np.arange(len(found)), found, *values], schema=ALLELES)
