"""How unusual is the largest effect of an allele over many experiments?

The smallest of many p-values is no p-value: with 1,518 experiments nearly every random SNV has one
below 0.01. But nulls are drawn from one seed, so experiments with windows of one length are asked
about the same random alleles of a class, and the largest effect of each of these over all
experiments is a null of the largest effect, whatever the experiments have in common (the maximum
statistic of Westfall and Young 1993).
"""

import numpy as np
import pyarrow as pa

from veff.inputs.classes import NAMES, SNV

DRAWN_BY = ("n", "seed", "scheme", "regions_sha256", "reference_sha256", "input_length")


class MaxNull:
    """The largest absolute logfc of the null alleles, taken in null by null."""

    def __init__(self) -> None:
        # By class, and then by how its random alleles were drawn.
        self._largest: dict[str, dict[tuple, np.ndarray]] = {}

    def add(self, identity: dict, null: pa.Table) -> None:
        """Take in an experiment's null of one class, of this identity (`null.identities`).

        Of several signal groups, that of the largest effect speaks for its experiment.
        """
        drawn = tuple(identity[key] for key in DRAWN_BY)
        largest = self._largest.setdefault(identity.get("class", SNV), {})
        # The groups' rows follow each other, each over all alleles in the order of the draw. Not
        # abs_logfc, which under mean_score is the mean of the folds' absolute values.
        sizes = np.abs(null["logfc"].to_numpy()).reshape(-1, identity["n"]).max(0)
        largest[drawn] = np.maximum(largest.get(drawn, sizes), sizes)

    def p_value(self, observed: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """P-values of alleles' largest absolute logfc over all experiments, float64 [n].

        `kinds` [n] are the places of the alleles' classes in `classes.NAMES`. (1 + #{null >=
        observed}) / (1 + n), for a null of the maximum over experiments; NaN for a class without
        one. Where windows differ in length, and with them the random alleles, the values of the
        lengths are added up, to at most 1 (Bonferroni: at least one of the maxima is as large).
        """
        p = np.full(len(observed), np.nan)
        for kind, by_draw in self._largest.items():
            rows = kinds == NAMES.index(kind)
            total = np.zeros(rows.sum())
            for sizes in by_draw.values():
                n = len(sizes)
                below = np.searchsorted(np.sort(sizes), observed[rows], side="left")
                total += (1 + n - below) / (1 + n)
            p[rows] = np.minimum(total, 1)
        return p
