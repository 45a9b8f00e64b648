"""The p-value of the largest effect over experiments is uniform where nothing is to be found."""

import numpy as np
import pyarrow as pa
import pytest

from veff.inputs.classes import NAMES
from veff.scoring.maxima import MaxNull

N = 2000
SNVS = np.zeros(N, int)
IDENTITY = {
    "n": N,
    "seed": 0,
    "scheme": "uniform",
    "regions_sha256": None,
    "reference_sha256": "abc",
    "input_length": 2114,
}


def effects(rng, n, experiments, shared):
    """Absolute effects [experiments, n], as far as `shared` those of a common factor."""
    common = rng.standard_normal(n)
    own = rng.standard_normal((experiments, n))
    spread = np.linspace(0.5, 2, experiments)[:, None]  # experiments differ in scale
    return np.abs(spread * (shared * common + (1 - shared**2) ** 0.5 * own))


def signs(sizes):
    """Plus and minus in turn: an effect is as large in either direction."""
    return np.where(np.arange(len(sizes)) % 2, -1.0, 1.0)


def p_values(null, observed, identities):
    judge = MaxNull()
    for identity, sizes in zip(identities, null, strict=True):
        judge.add(identity, pa.table({"logfc": sizes * signs(sizes)}))
    return judge.p_value(observed.max(0), SNVS)


def share_of_level(p, level):
    """How many standard errors the share of p-values at this level lies above it."""
    # Of the observed and of the null's own quantile, both of N.
    error = (2 * level * (1 - level) / N) ** 0.5
    return (np.mean(p <= level) - level) / error


@pytest.mark.parametrize("experiments", [2, 50, 1518])
@pytest.mark.parametrize("shared", [0, 0.7])
def test_p_is_uniform_for_random_snvs_however_alike_the_experiments(experiments, shared):
    rng = np.random.default_rng(experiments)
    null, observed = (effects(rng, N, experiments, shared) for _ in range(2))
    p = p_values(null, observed, [IDENTITY] * experiments)
    for level in (0.01, 0.05, 0.2, 0.5):
        assert abs(share_of_level(p, level)) < 4


def test_the_smallest_of_many_p_values_is_not():
    """What the maximum is for: without it nearly every SNV would be called."""
    rng = np.random.default_rng(0)
    null, observed = (effects(rng, N, 200, 0.3) for _ in range(2))
    each = [p_values(a[None], b[None], [IDENTITY]) for a, b in zip(null, observed, strict=True)]
    assert np.mean(np.min(each, 0) <= 0.01) > 0.5


def test_windows_of_two_lengths_are_judged_on_the_safe_side():
    rng = np.random.default_rng(1)
    null, observed = (effects(rng, N, 20, 0.5) for _ in range(2))
    null[10:] = effects(rng, N, 20, 0.5)[10:]  # other random SNVs
    other = IDENTITY | {"input_length": 1057}
    p = p_values(null, observed, [IDENTITY] * 10 + [other] * 10)
    for level in (0.01, 0.05, 0.2):
        assert share_of_level(p, level) < 4


def test_of_several_groups_the_largest_effect_speaks():
    judge = MaxNull()
    judge.add(IDENTITY | {"n": 3}, pa.table({"logfc": [1.0, -5.0, 1.0, 2.0, 2.0, 2.0]}))
    assert judge.p_value(np.array([1.5, 3.0, 6.0]), SNVS[:3]).tolist() == [1, 2 / 4, 1 / 4]


def test_an_allele_is_judged_by_the_largest_effects_of_its_own_class():
    judge = MaxNull()
    judge.add(IDENTITY | {"n": 3}, pa.table({"logfc": [0.1, 0.2, 0.3]}))
    for sizes in ([1.0, 2.0, 3.0], [0.0, 0.0, 5.0]):
        judge.add(IDENTITY | {"n": 3, "class": "ins_1_5"}, pa.table({"logfc": sizes}))
    kinds = np.array([NAMES.index(name) for name in ("ins_1_5", "snv", "ins_1_5", "del_1_5")])
    p = judge.p_value(np.array([1.5, 1.5, 4.0, 1.5]), kinds)
    np.testing.assert_equal(p, [3 / 4, 1 / 4, 2 / 4, np.nan])


def test_the_null_is_of_what_is_compared_also_where_folds_are_scored_apart():
    """Under mean_score abs_logfc is the mean of the folds' absolute values, and larger."""
    judge = MaxNull()
    folds = np.array([[1.0, -2.0, 3.0], [-1.0, 2.0, 1.0]])
    null = {"logfc": folds.mean(0), "abs_logfc": np.abs(folds).mean(0)}
    judge.add(IDENTITY | {"n": 3}, pa.table(null))
    assert judge.p_value(np.array([0.5, 2.5]), SNVS[:2]).tolist() == [2 / 4, 1 / 4]
