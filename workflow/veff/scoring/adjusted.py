"""How small is a p-value among those of all alleles of a run?

Alleles that are judged by the same random ones have p-values that depend on each other, upwards
together; the false discovery rate is kept all the same (Bates et al. 2023, Ann. Stat. 51:149), and
Holm's bound holds whatever the dependence.
"""

import numpy as np

ALPHA = 0.01  # of a p-value, where the configuration gives no false discovery rate


def q_value(p: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """The smallest false discovery rate at which each is on the list (Benjamini and Hochberg
    1995), float64 [n].

    `counted`, bool [n], are the distinct alleles; another one has the value of its p among them.
    """
    return _like(p, counted, _benjamini_hochberg)


def family_wise(p: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """The smallest chance of any false one at which each is on the list (Holm 1979), as
    `q_value`."""
    return _like(p, counted, _holm)


def _benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Of ascending p-values: the running minimum, from the last, of m p_i / i, i from 1.

    As `scipy.stats.false_discovery_control`, whose import takes longer than all else of a job's.
    """
    m = len(p)
    return np.minimum(np.minimum.accumulate((p * (m / np.arange(1, m + 1)))[::-1])[::-1], 1)


def _holm(p: np.ndarray) -> np.ndarray:
    """Of ascending p-values: the running maximum of (m - i) p_i, i from 0, at most 1."""
    return np.minimum(np.maximum.accumulate(np.arange(len(p), 0, -1) * p), 1)


def _like(p: np.ndarray, counted: np.ndarray, adjust) -> np.ndarray:
    """What `adjust` makes of the p-values that are counted, for all that equal one of them."""
    own = np.sort(p[counted])
    if not len(own):
        return np.full(len(p), np.nan)
    place = np.searchsorted(own, p).clip(max=len(own) - 1)
    return np.where(np.isnan(p), np.nan, adjust(own)[place])
