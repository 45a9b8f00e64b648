"""How well do predicted effects agree with measured ones, and what does each row add to that?

The values are those of SciPy and scikit-learn. Each comes with its influence function: how much
the value changes, per row, when a row gets more weight. Its mean over the rows is 0, and the sum
over a set of rows, divided by the number of all, is what leaving these rows in twice changes, to
first order (Hampel 1974; for the AUROC these are DeLong's placements). The intervals are made of
it (`bootstrap`), without computing the value again for each resampling.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest, pearsonr, spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score


class Measure(NamedTuple):
    """A value, and the influence of each row on it, float64[n]."""

    value: float
    influence: np.ndarray


def pearson(x: np.ndarray, y: np.ndarray) -> Measure:
    """Pearson's r, as `scipy.stats.pearsonr`."""
    x, y = _standard(x), _standard(y)
    r = float(pearsonr(x, y).statistic)
    return Measure(r, x * y - r * (x * x + y * y) / 2)


def spearman(x: np.ndarray, y: np.ndarray) -> Measure:
    """Spearman's rank correlation with mean ranks for ties, as `scipy.stats.spearmanr`.

    With F and G the shares of rows below a value, half of those equal to it counted, it is
    cov(F, G) / sqrt(var(F) var(G)); F and G are themselves means over rows, which adds to a row's
    influence what it does to the ranks of all others.
    """
    order = Order(x), Order(y)
    f, g = (one.below() for one in order)
    fg = f * g + order[0].above(g) + order[1].above(f) - 3 * np.mean(f * g)
    ff, gg = (
        share**2 + 2 * one.above(share) - 3 * np.mean(share**2)
        for one, share in zip(order, (f, g), strict=True)
    )
    var_f, var_g = np.var(f), np.var(g)
    rho = float(spearmanr(x, y).statistic)
    return Measure(rho, fg / np.sqrt(var_f * var_g) - rho / 2 * (ff / var_f + gg / var_g))


def auroc(score: np.ndarray, positive: np.ndarray) -> Measure:
    """Area under the ROC curve, as `sklearn.metrics.roc_auc_score`."""
    value = float(roc_auc_score(positive, score))
    order, share = Order(score), positive.mean()
    negatives_below = order.below(~positive) / (1 - share)
    positives_above = order.above(positive.astype(float)) / share
    return Measure(
        value,
        np.where(
            positive, (negatives_below - value) / share, (positives_above - value) / (1 - share)
        ),
    )


def auroc_matched(score: np.ndarray, positive: np.ndarray, matched: np.ndarray) -> Measure:
    """The mean over positive rows of the share of their own negatives that they exceed, ties by
    half: the AUROC where all rows are matched to each other, the same number for all of these.

    Each set, a number in `matched`, has both kinds.
    """
    n = len(score)
    _, rank = np.unique(score, return_inverse=True)
    order = Order(matched * n + rank)  # set after set
    negatives, positives = (np.bincount(matched, kind) for kind in (~positive, positive))
    in_earlier, in_later = np.cumsum(negatives) - negatives, positives.sum() - np.cumsum(positives)
    n_negative = negatives[matched]
    exceeded = (order.below(~positive) * n - in_earlier[matched]) / n_negative
    value = float(exceeded[positive].mean())
    # One more negative takes part in the shares of all positives of its set.
    above = order.above(positive.astype(float)) * n - in_later[matched]
    shares = np.bincount(matched, np.where(positive, exceeded, 0))[matched]
    influence = np.where(positive, exceeded - value, (above - shares) / n_negative)
    return Measure(value, influence / positive.mean())


def auprc(score: np.ndarray, positive: np.ndarray) -> Measure:
    """Average precision, as `sklearn.metrics.average_precision_score`."""
    value = float(average_precision_score(positive, score))
    order = Order(score)
    at_or_above = order.at_or_above(np.ones(len(score)))
    precision = order.at_or_above(positive.astype(float)) / at_or_above
    # A row is among those at or above each threshold that is not above its own score.
    thresholds = positive / at_or_above
    gained, lost = order.at_or_below(thresholds), order.at_or_below(thresholds * precision)
    influence = positive * (gained + precision - value) - lost
    return Measure(value, influence / positive.mean())


def sign_concordance(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float, int]:
    """The share of rows with x and y of one sign, its exact 95 % binomial (Clopper-Pearson)
    interval, as `scipy.stats.binomtest`, and of how many rows: those without a 0."""
    signs = (np.sign(x) * np.sign(y)).astype(int)
    n, same = int(np.count_nonzero(signs)), int((signs > 0).sum())
    if not n:
        return np.nan, np.nan, np.nan, 0
    low, high = binomtest(same, n).proportion_ci(0.95, method="exact")
    return same / n, float(low), float(high), n


class Order:
    """Rows by their value: means over the rows below or above each, all in O(n log n)."""

    def __init__(self, values: np.ndarray):
        _, self._place, self._n_equal = np.unique(values, return_inverse=True, return_counts=True)
        self._n = len(values)

    def below(self, kept: np.ndarray | None = None) -> np.ndarray:
        """For each row, the share of all rows that are `kept` and below it, equal ones by half."""
        there = self._n_equal if kept is None else self._sums(kept)
        return ((np.cumsum(there) - there / 2) / self._n)[self._place]

    def above(self, weights: np.ndarray) -> np.ndarray:
        """For each row, the mean over all rows of the weights above it, equal ones by half."""
        there = self._sums(weights)
        return ((there.sum() - np.cumsum(there) + there / 2) / self._n)[self._place]

    def at_or_above(self, weights: np.ndarray) -> np.ndarray:
        """For each row, the mean over all rows of the weights above it or equal."""
        there = self._sums(weights)
        return ((there.sum() - np.cumsum(there) + there) / self._n)[self._place]

    def at_or_below(self, weights: np.ndarray) -> np.ndarray:
        """For each row, the mean over all rows of the weights below it or equal."""
        return (np.cumsum(self._sums(weights)) / self._n)[self._place]

    def _sums(self, weights: np.ndarray) -> np.ndarray:
        return np.bincount(self._place, weights, len(self._n_equal))


def _standard(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / x.std()
