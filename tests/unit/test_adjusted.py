"""Lists of alleles whose errors are kept: held against definitions, and by simulation."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import false_discovery_control

from veff.scoring.adjusted import family_wise, q_value
from veff.scoring.maxima import MaxNull

ALL = np.ones(60, bool)


@pytest.fixture
def p():
    """Of 60 alleles, some of them equal, on the grid of a null of 199."""
    return np.random.default_rng(0).integers(1, 200, 60) ** 2 / 200**2


def test_a_q_value_is_the_smallest_rate_at_which_the_step_up_takes_the_allele(p):
    found = q_value(p, ALL)
    for rate in np.unique(np.r_[found, found - 1e-9, 0.05, 0.2]):
        ranked = np.sort(p)
        passing = [k for k in range(1, 61) if ranked[k - 1] <= rate * k / 60 + 1e-12]
        taken = p <= (ranked[max(passing) - 1] if passing else -1)
        assert np.array_equal(found <= rate + 1e-10, taken)


def test_a_family_wise_value_is_the_smallest_level_at_which_the_step_down_takes_the_allele(p):
    found = family_wise(p / 100, ALL)
    for level in np.unique(np.r_[found, found - 1e-9, 0.05, 0.2]):
        taken = np.zeros(60, bool)
        for i, place in enumerate(np.argsort(p, kind="stable")):
            if p[place] / 100 * (60 - i) > level + 1e-12 and level < 1:
                break
            taken[place] = True
        taken = p <= p[taken].max(initial=-1)  # of equal ones all
        assert np.array_equal(found <= level + 1e-10, taken)


@pytest.mark.parametrize("adjust", [q_value, family_wise])
def test_what_is_given_twice_counts_once(p, adjust):
    twice = np.r_[p, p[:30], np.nan]
    counted = np.r_[ALL, np.zeros(31, bool)]
    found = adjust(twice, counted)
    assert np.array_equal(found[:60], adjust(p, ALL))
    assert np.array_equal(found[60:-1], found[:30])
    assert np.isnan(found[-1])
    assert np.isnan(adjust(twice, np.zeros(91, bool))).all()


def errors(planted, runs=400, alleles=40, experiments=50, n_null=1999):
    """Of runs in which so many alleles have an effect: how often the list at 0.05 of `family_wise`
    has a false allele, and the mean share of false ones on that of `q_value`."""
    rng = np.random.default_rng(planted)
    spread = np.linspace(0.5, 2, experiments)[:, None]
    identity = dict.fromkeys(("seed", "scheme", "regions_sha256", "reference_sha256"))
    identity |= {"n": n_null, "input_length": 2114}
    wrong, share = 0, 0.0
    for _ in range(runs):
        size = n_null + alleles
        own = rng.standard_normal((experiments, size), np.float32)
        sizes = np.abs(spread * (0.7 * rng.standard_normal(size) + 0.7 * own)).max(0)
        sizes[:planted] += 20
        judge = MaxNull()
        judge.add(identity, pa.table({"logfc": sizes[alleles:]}))
        p = judge.p_value(sizes[:alleles], np.zeros(alleles, int))
        every = np.ones(alleles, bool)
        wrong += (family_wise(p, every)[planted:] <= 0.05).any()
        listed = q_value(p, every) <= 0.05
        share += listed[planted:].sum() / max(listed.sum(), 1)
        assert listed[:planted].all()
    return wrong / runs, share / runs


@pytest.mark.parametrize("planted", [0, 20])
def test_lists_over_many_correlated_experiments_keep_their_errors(planted):
    """By simulation: at most 5 % within three standard errors of 400 runs."""
    family, discoveries = errors(planted)
    above = 3 * (0.05 * 0.95 / 400) ** 0.5
    assert family <= 0.05 + above
    assert discoveries <= 0.05 + above
    assert family > 0.01  # it is not kept by listing nothing
    assert discoveries > 0.005


@pytest.mark.parametrize("m", [1, 2, 7, 1000])
def test_q_values_are_those_of_scipy_s_false_discovery_control(m):
    rng = np.random.default_rng(m)
    for power in (1, 3, 8):
        # Of few values, so that many are equal.
        p = (np.ceil(1000 * rng.random(m) ** power) / 1000).clip(1e-3)
        assert np.array_equal(q_value(p, np.ones(m, bool)), false_discovery_control(p))
