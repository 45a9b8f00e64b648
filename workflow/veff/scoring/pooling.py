"""What do the experiments of one biosample say together?

Effects are averaged, replicates first and then assays. How unusual that is, is asked of signed
z-values, which compare between experiments: each experiment's own null says how often a random
allele of the class has as large an effect, that and the direction make a z, and the weighted sum
of z (Stouffer 1949; Willer et al. 2010) is compared with the same sum for each random allele.
Experiments of one geometry are asked about the same random alleles, so this holds however far
replicates resemble each other (the nonparametric combination of Pesarin 2001), where the normal
distribution of Stouffer's sum would hold for independent experiments alone.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtri

from veff.inputs.classes import NAMES, SNV
from veff.scoring.maxima import DRAWN_BY, MaxNull


def speaking(rows: pa.Table) -> pa.Table:
    """Rows of an experiment, by allele: of several signal groups that of the largest effect."""
    n_groups = len(pc.unique(rows["group"]))
    if n_groups == 1:
        return rows
    sizes = np.abs(rows["logfc"].to_numpy()).reshape(-1, n_groups)
    return rows.take(np.arange(len(sizes)) * n_groups + sizes.argmax(1))


class _Replicates:
    """Effects of experiments of one assay, taken in one by one (Welford 1962)."""

    def __init__(self) -> None:
        self._k = 0
        self._mean, self._squares, self._of_folds = 0.0, 0.0, 0.0

    def add(self, logfc: np.ndarray, sd: np.ndarray, n_folds: np.ndarray) -> None:
        self._k += 1
        away = logfc - self._mean
        self._mean = self._mean + away / self._k
        self._squares = self._squares + away * (logfc - self._mean)
        self._of_folds = self._of_folds + sd**2 / n_folds

    def variance(self) -> np.ndarray:
        """Of their mean: what replicates say or what folds say, whichever is more; NaN if neither
        does."""
        of_folds = self._of_folds / self._k**2
        if self._k == 1:
            return of_folds
        return np.fmax(self._squares / (self._k - 1) / self._k, of_folds)


class Pool:
    """Takes in the experiments of one biosample; each array has a value an allele.

    `kinds` [n] are the places of the alleles' classes in `classes.NAMES`.
    logfc: the weighted mean; max_logfc, max_experiment: the largest effect, and the number of its
    experiment, from 0 in the order of `add`.
    """

    def __init__(self, kinds: np.ndarray):
        n = len(kinds)
        self.logfc = np.zeros(n)
        self.max_logfc = np.full(n, np.nan)
        self.max_experiment = np.zeros(n, np.int32)
        self._k = 0
        self._of_folds = np.zeros(n, np.int32)  # degrees of freedom
        self._assays: dict[str, _Replicates] = {}
        self._kinds = kinds
        # By class, and then by how its random alleles were drawn: the alleles' and their sums.
        self._sums: dict[str, dict[tuple, list]] = {}
        self._maxima = MaxNull()

    def add(self, rows: pa.Table, assay: str, weight: float) -> None:
        """Take in an experiment's answers, one an allele."""
        logfc, sd, n_folds = (rows[c].to_numpy() for c in ("logfc", "logfc_sd", "n_folds"))
        self.logfc += weight * logfc
        self._of_folds += n_folds - 1
        self._assays.setdefault(assay, _Replicates()).add(logfc, sd, n_folds)
        larger = ~(np.abs(logfc) <= np.abs(self.max_logfc))
        self.max_logfc[larger] = logfc[larger]
        self.max_experiment[larger] = self._k
        self._k += 1

    def judge(self, rows: pa.Table, weight: float, identity: dict, null: pa.Table) -> None:
        """Take in an experiment's null of one class, of this identity (`null.identities`), and
        what it says of the answers."""
        self._maxima.add(identity, null)
        kind = identity.get("class", SNV)
        logfc = rows["logfc"].to_numpy()[self._kinds == NAMES.index(kind)]
        theirs = null["logfc"].to_numpy().reshape(-1, identity["n"])
        theirs = theirs[np.abs(theirs).argmax(0), np.arange(identity["n"])]
        drawn = tuple(identity[key] for key in DRAWN_BY)
        sums = self._sums.setdefault(kind, {}).setdefault(drawn, [0.0, 0.0])
        for i, z in enumerate(signed_z(logfc, theirs)):
            sums[i] = sums[i] + weight * z

    def noise(self) -> np.ndarray:
        """The standard error of `logfc`, from replicates and folds; NaN where neither tells."""
        variances = sum(one.variance() for one in self._assays.values())
        return np.sqrt(variances) / len(self._assays)

    def freedom(self) -> np.ndarray:
        """The degrees of freedom of that: of the folds, or, of one fold each, of replicates."""
        return np.where(self._of_folds > 0, self._of_folds, self._k - len(self._assays))

    def p_value(self) -> np.ndarray:
        """How often a random allele of the class has as large a sum of z.

        (1 + #{null >= observed}) / (1 + n); NaN for a class without a null. Where windows differ
        in length, and with them the random alleles: the smallest of the lengths' values times
        their number, at most 1 (Bonferroni).
        """
        p = np.full(len(self._kinds), np.nan)
        for kind, by_draw in self._sums.items():
            every = [_share(np.abs(own), np.abs(theirs)) for own, theirs in by_draw.values()]
            smallest = np.min(every, axis=0)
            p[self._kinds == NAMES.index(kind)] = np.minimum(smallest * len(every), 1)
        return p

    def max_p_value(self) -> np.ndarray:
        """How often a random allele of the class has as large a largest effect
        (`maxima.MaxNull`)."""
        return self._maxima.p_value(np.abs(self.max_logfc), self._kinds)


def signed_z(logfc: np.ndarray, null: np.ndarray) -> Iterator[np.ndarray]:
    """Signed z-values of effects under a null, and of that null's own: sign(x) Phi^-1(1 - p / 2).

    p is (1 + #{|null| >= |x|}) / (1 + n). One of the null itself is counted among these, and
    what is observed would have to be, where it is larger, as another one: a half stands for that,
    so that of one experiment the order is that of its p-values, with no tie. Where experiments are
    independent, as replicates are not, the smallest pooled p-values come up to 1.14 times as often
    as they should with 99 random alleles, and with 999 no more often (by simulation).
    """
    sizes = np.sort(np.abs(null))
    n = len(sizes)
    for values, more in ((logfc, 1), (null, 0.5)):
        as_large = n - np.searchsorted(sizes, np.abs(values), side="left")
        yield np.sign(values) * -ndtri((as_large + more) / (2 * (n + 1)))


def _share(observed: np.ndarray, null: np.ndarray) -> np.ndarray:
    n = len(null)
    return (1 + n - np.searchsorted(np.sort(null), observed, side="left")) / (1 + n)
