import numpy as np
import pytest
import torch

from veff.scoring import effects, ensemble


def folds(k, n=5, channels=2, length=50, seed=0):
    generator = torch.Generator().manual_seed(seed)
    h = 2 + torch.randn(k, n, generator=generator)
    logits = torch.randn(k, n, channels, length, generator=generator)
    return h, torch.stack([effects.profile(one) for one in logits])


def test_the_mean_prediction_is_the_mean_of_expected_count_profiles():
    h, p = folds(4)
    mean_h, mean_p = ensemble.mean_prediction(h.abs(), p)
    counts = np.expm1(h.abs().double().numpy())
    expected = (counts[:, :, None, None] * p.numpy()).mean(0)
    ours = (effects.counts(mean_h).view(-1, 1, 1) * mean_p).numpy()
    np.testing.assert_allclose(ours, expected, rtol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_folds_below_zero_take_reads_away_from_counts_and_profile_alike(seed):
    h, p = folds(4, n=40, seed=seed)
    h -= 1.8
    mean_h, mean_p = ensemble.mean_prediction(h, p)
    counts = np.expm1(h.double().numpy())
    expected = (counts[:, :, None, None] * p.numpy()).mean(0)
    total = expected.sum((1, 2))
    np.testing.assert_allclose(mean_h, np.log1p(total), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mean_h, np.log(np.exp(h.double().numpy()).mean(0)), atol=1e-12)
    some = total > 0
    shape = np.maximum(expected[some], 0)
    shape /= shape.sum((1, 2), keepdims=True)
    np.testing.assert_allclose(mean_p[some], shape, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mean_p[~some], p.mean(0)[~some], rtol=1e-12)
    # All kinds were there: a shape cut at zero, one that is not, and none at all.
    cut = (expected < 0).any((1, 2))
    assert (some & cut).any()
    assert (some & ~cut).any()
    assert (~some).any()


def test_one_fold_comes_back_to_the_bit():
    h, p = folds(1)
    mean_h, mean_p = ensemble.mean_prediction(h, p)
    assert torch.equal(mean_h, h[0])
    assert torch.equal(mean_p, p[0])


def test_equal_folds_agree_with_each_of_them():
    h, p = folds(1)
    mean_h, mean_p = ensemble.mean_prediction(h.expand(3, -1), p.expand(3, -1, -1, -1))
    torch.testing.assert_close(mean_h, h[0].double(), rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(mean_p, p[0], rtol=1e-14, atol=1e-16)


def test_a_fold_that_expects_no_read_has_no_say_in_the_profile():
    h, p = folds(3)
    h[0] = 0
    _, mean_p = ensemble.mean_prediction(h, p)
    _, of_two = ensemble.mean_prediction(h[1:], p[1:])
    torch.testing.assert_close(mean_p, of_two, rtol=1e-12, atol=1e-15)


def test_where_no_fold_expects_a_read_profiles_count_alike():
    h, p = folds(3)
    h[:, 1] = torch.tensor([-1.0, -50, -800])
    mean_h, mean_p = ensemble.mean_prediction(h, p)
    torch.testing.assert_close(mean_p[1], p[:, 1].mean(0), rtol=1e-12, atol=1e-15)
    assert mean_h[1] == pytest.approx(np.log(np.exp(-1) / 3))
    assert mean_h.isfinite().all()


@pytest.mark.parametrize("n", [1, 7, 33])
def test_a_rows_answer_depends_on_no_other_row(n):
    h, p = folds(5, n, length=61)
    scores = torch.randn(5, n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def answers(rows):
        mean = ensemble.mean_score(scores[:, rows])
        return (
            *ensemble.mean_prediction(h[:, rows], p[:, rows]),
            mean,
            *ensemble.spread(scores[:, rows], mean),
        )

    whole = answers(torch.arange(n))
    shuffled = torch.randperm(n, generator=torch.Generator().manual_seed(1))
    for rows in (shuffled, torch.arange(n)[-1:], torch.arange(n)[: n // 2 + 1]):
        for ours, expected in zip(answers(rows), whole, strict=True):
            assert torch.equal(ours, expected[rows])


def test_mean_score_and_spread_are_numpys():
    scores = torch.randn(5, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mean = ensemble.mean_score(scores)
    sd, agree = ensemble.spread(scores, mean)
    np.testing.assert_allclose(mean, scores.numpy().mean(0), rtol=1e-12)
    np.testing.assert_allclose(sd, scores.numpy().std(0, ddof=1), rtol=1e-12)
    np.testing.assert_array_equal(agree, (np.sign(scores.numpy()) == np.sign(mean.numpy())).sum(0))


def test_folds_agree_by_sign():
    scores = torch.tensor([[0.5, -1.0, 0.0, 0.0], [0.1, 2.0, 0.0, 1.0], [-9.0, 0.5, 0.0, 1.0]])
    _, agree = ensemble.spread(scores, torch.tensor([0.3, 1.0, 0.0, 0.7]))
    assert agree.tolist() == [2, 2, 3, 2]


def test_one_fold_has_no_spread_to_state():
    sd, agree = ensemble.spread(torch.tensor([[1.0, 0.0]]), torch.tensor([1.0, 0.0]))
    assert sd.isnan().all()
    assert agree.tolist() == [1, 1]
