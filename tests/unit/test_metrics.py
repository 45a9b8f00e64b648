"""Each measure against SciPy, scikit-learn or a count; its influence against leaving rows out; the
intervals against a bootstrap that computes everything again, and by their coverage."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

from veff.evaluation import metrics
from veff.evaluation.bootstrap import FEWEST, Blocks

RNG = np.random.default_rng(7)
N = 400
X = RNG.normal(size=N).round(1)  # rounded: with ties
Y = (0.6 * X + 0.8 * RNG.normal(size=N)).round(1)
POSITIVE = RNG.random(N) < 1 / (1 + np.exp(1 - 2 * np.abs(X)))
MEASURES = {
    "pearson": (metrics.pearson, lambda x, y, _: (x, y), lambda x, y: stats.pearsonr(x, y)[0]),
    "spearman": (metrics.spearman, lambda x, y, _: (x, y), lambda x, y: stats.spearmanr(x, y)[0]),
    "auroc": (metrics.auroc, lambda x, _, p: (np.abs(x), p), lambda s, p: roc_auc_score(p, s)),
    "auprc": (
        metrics.auprc,
        lambda x, _, p: (np.abs(x), p),
        lambda s, p: average_precision_score(p, s),
    ),
}


def by_counting_pairs(score, positive):
    pairs = score[positive][:, None] - score[~positive]
    return (np.sum(pairs > 0) + np.sum(pairs == 0) / 2) / pairs.size


@pytest.mark.parametrize("name", MEASURES)
def test_a_value_is_the_one_of_scipy_or_scikit_learn(name):
    measure, arguments, theirs = MEASURES[name]
    assert measure(*arguments(X, Y, POSITIVE)).value == pytest.approx(
        theirs(*arguments(X, Y, POSITIVE)), abs=1e-12
    )


def test_the_auroc_is_the_share_of_pairs_in_the_right_order():
    found = metrics.auroc(np.abs(X), POSITIVE).value
    assert found == pytest.approx(by_counting_pairs(np.abs(X), POSITIVE), abs=1e-12)


def within(score, positive, sets):
    """The mean over positives of scikit-learn's AUROC of each alone against its own negatives."""
    alone = [
        roc_auc_score(np.r_[1, np.zeros(len(theirs))], np.r_[score[i], theirs])
        for i in np.flatnonzero(positive)
        for theirs in [score[~positive & (sets == sets[i])]]
    ]
    return np.mean(alone)


def test_matched_rows_are_compared_within_their_sets():
    size, sets = np.abs(X), RNG.permutation(N) % 20
    value, influence = metrics.auroc_matched(size, POSITIVE, sets)
    assert value == pytest.approx(within(size, POSITIVE, sets), abs=1e-12)
    one_set = metrics.auroc_matched(size, POSITIVE, np.zeros(N, int))
    alike = metrics.auroc(size, POSITIVE)
    assert one_set.value == pytest.approx(alike.value, abs=1e-12)
    assert one_set.influence == pytest.approx(alike.influence, abs=1e-9)
    assert abs(influence.mean()) < 1e-9
    some = range(0, N, 50)  # scikit-learn takes its time
    twice = [within(*(np.append(one, one[i]) for one in (size, POSITIVE, sets))) for i in some]
    expected = (np.array(twice) - value) * N
    assert np.corrcoef(influence[some], expected)[0, 1] > 0.99


@pytest.mark.parametrize("name", MEASURES)
def test_a_rows_influence_is_what_having_it_twice_changes(name):
    """To first order, so what is left is of the order of 1/n."""
    measure, arguments, theirs = MEASURES[name]
    value, influence = measure(*arguments(X, Y, POSITIVE))
    twice = [
        theirs(*arguments(*(np.append(one, one[i]) for one in (X, Y, POSITIVE)))) for i in range(N)
    ]
    expected = (np.array(twice) - value) * N
    assert abs(influence.mean()) < 1e-9
    assert np.max(np.abs(influence - expected)) < 0.03 * np.max(np.abs(expected))


def test_sign_concordance_counts_rows_without_a_zero_and_has_the_exact_interval():
    share, low, high, n = metrics.sign_concordance(X, Y)
    both = (X != 0) & (Y != 0)
    same = int(np.sum((X > 0) == (Y > 0), where=both))
    assert (share, n) == (same / both.sum(), both.sum())
    assert n < N
    # Clopper and Pearson's limits are quantiles of beta distributions.
    assert low == pytest.approx(stats.beta.ppf(0.025, same, n - same + 1))
    assert high == pytest.approx(stats.beta.ppf(0.975, same + 1, n - same))
    assert metrics.sign_concordance(np.zeros(3), np.ones(3))[3] == 0


def blocked(rng, n_blocks=120, each=6, rho=0.6):
    """Pairs that resemble each other within a block; their correlation is rho over blocks."""
    shape = n_blocks, 1
    shared, own = (
        rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], s) for s in (shape, (n_blocks, each))
    )
    x, y = np.moveaxis((np.sqrt(0.5) * shared + np.sqrt(0.5) * own).reshape(-1, 2), 1, 0)
    positive = np.abs(y) > 1
    contig = np.zeros(n_blocks * each, int)
    pos = np.repeat(np.arange(n_blocks), each) * 1000 + 5
    return x, y, positive, contig, pos


@pytest.mark.parametrize("name", MEASURES)
def test_an_interval_is_that_of_a_bootstrap_that_computes_all_again(name):
    measure, arguments, theirs = MEASURES[name]
    x, y, positive, contig, pos = blocked(np.random.default_rng(3))
    everything = np.ones(len(x), bool)
    link = "fisher" if name in ("pearson", "spearman") else "logit"
    found = measure(*arguments(x, y, positive))
    low, high = Blocks.of(contig, pos, 1000).interval(found, everything, link)
    rng, drawn = np.random.default_rng(4), []
    for _ in range(300):
        rows = (rng.integers(120, size=120)[:, None] * 6 + np.arange(6)).ravel()
        drawn.append(theirs(*arguments(x[rows], y[rows], positive[rows])))
    expected = np.quantile(drawn, [0.025, 0.975])
    width = np.diff(expected)[0]
    assert abs(low - expected[0]) < 0.25 * width
    assert abs(high - expected[1]) < 0.25 * width


def test_no_interval_is_given_of_few_blocks_or_at_a_bound():
    measure, everything = metrics.pearson(X, Y), np.ones(N, bool)
    contig = np.arange(N) % (FEWEST - 1)
    few = Blocks.of(contig, np.zeros(N, int), "chromosome")
    assert np.isnan(few.interval(measure, everything, "fisher")).all()
    enough = Blocks.of(np.arange(N) % FEWEST, np.zeros(N, int), "chromosome")
    assert np.isfinite(enough.interval(measure, everything, "fisher")).all()
    for perfect in (1.0, 1 - 1e-15):
        found = enough.interval(metrics.Measure(perfect, np.zeros(N)), everything, "logit")
        assert np.isnan(found).all()


def share_that_holds(name, trials):
    """Of so many intervals of a measure, of rows that resemble their neighbours: the share that
    holds the truth, which is that of very many rows."""
    measure, arguments, theirs = MEASURES[name]
    link = "fisher" if name in ("pearson", "spearman") else "logit"
    truth = theirs(*arguments(*blocked(np.random.default_rng(1), n_blocks=50_000)[:3]))
    rng, held, blocks = np.random.default_rng(2), 0, None
    for _ in range(trials):
        x, y, positive, contig, pos = blocked(rng)
        blocks = blocks or Blocks.of(contig, pos, 1000)
        found = measure(*arguments(x, y, positive))
        low, high = blocks.interval(found, np.ones(len(x), bool), link)
        held += low <= truth <= high
    return held / trials


@pytest.mark.parametrize("name", MEASURES)
def test_of_a_hundred_intervals_95_hold_the_truth(name):
    # Three standard errors of so many.
    assert abs(share_that_holds(name, trials=1000) - 0.95) <= 0.02
