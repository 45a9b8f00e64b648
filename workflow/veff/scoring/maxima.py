"""How unusual is the largest effect of an allele over many experiments?

The smallest of many p-values is no p-value: with 1,518 experiments nearly every random SNV has one
below 0.01. But nulls are drawn from one seed, so experiments with windows of one length are asked
about the same random SNVs, and the largest effect of each of these over all experiments is a null
of the largest effect, whatever the experiments have in common (the maximum statistic of Westfall
and Young 1993).
"""

import numpy as np
import pyarrow as pa

DRAWN_BY = ("n", "seed", "scheme", "regions_sha256", "reference_sha256", "input_length")


class MaxNull:
    """The largest absolute logfc of the null SNVs, taken in experiment by experiment."""

    def __init__(self) -> None:
        self._largest: dict[tuple, np.ndarray] = {}

    def __len__(self) -> int:
        """How many sets of random SNVs it knows."""
        return len(self._largest)

    def add(self, identity: dict, null: pa.Table) -> None:
        """Take in an experiment's null, of this identity (`null.identities`).

        Of several signal groups, that of the largest effect speaks for its experiment.
        """
        drawn = tuple(identity[key] for key in DRAWN_BY)
        # The groups' rows follow each other, each over all SNVs in the order of the draw. Not
        # abs_logfc, which under mean_score is the mean of the folds' absolute values.
        sizes = np.abs(null["logfc"].to_numpy()).reshape(-1, identity["n"]).max(0)
        self._largest[drawn] = np.maximum(self._largest.get(drawn, sizes), sizes)

    def p_value(self, observed: np.ndarray) -> np.ndarray:
        """P-values of alleles' largest absolute logfc over all experiments, float64 [n].

        (1 + #{null >= observed}) / (1 + n), for a null of the maximum over experiments. Where
        windows differ in length, and with them the random SNVs, the values of the lengths are
        added up, to at most 1 (Bonferroni: at least one of the maxima is as large).
        """
        total = np.zeros(len(observed))
        for sizes in self._largest.values():
            n = len(sizes)
            below = np.searchsorted(np.sort(sizes), observed, side="left")
            total += (1 + n - below) / (1 + n)
        return np.minimum(total, 1)
