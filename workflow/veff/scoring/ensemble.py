"""What is one answer from the models (folds) of an experiment, and how far do they agree?"""

import math

import torch

from veff.scoring.effects import row_sums


def mean_prediction(h: torch.Tensor, p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The average of the folds' expected-count profiles, as one prediction.

    With c_k = expm1(h_k) the counts of fold k, below zero where its head says so, the expected
    counts are m = mean(c_k p_k), position by position. h is log1p of their sum, which is
    log(mean(exp(h_k))); p is max(m, 0), scaled to sum to 1, or, where the sum of m is not above
    zero, the mean of the p_k. This is how CATv1's model card averages its folds. One fold comes
    back as it is, to the bit.

    Parameters
    ----------
    h : [K, N]
    p : [K, N, channels, T], each summing to 1 over channels and positions

    Returns
    -------
    h : [N], float64 where K > 1
    p : [N, channels, T]
    """
    if len(h) == 1:
        return h[0], p[0]
    weight = h.double().expm1()
    weight = torch.where(_total(weight) > 0, weight, 1)
    weight = weight / _total(weight)
    mean = _total([w.view(-1, 1, 1) * one for w, one in zip(weight, p, strict=True)]).clamp(min=0)
    # Without a fold below zero the sum is 1 as it stands.
    total = torch.where((weight < 0).any(0), row_sums(mean.flatten(1)), 1)
    return _log_mean_exp(h), mean / total.view(-1, 1, 1)


def both_strands(
    forward: tuple[torch.Tensor, torch.Tensor], reverse: tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The average of what a model says about a window and about its reverse complement.

    Each is a pair h [N], p [N, channels, T]. Counts are averaged as counts, h = log1p(mean(
    expm1(h))), and profiles as probabilities. The reverse profile is first turned around, and the
    channels of a group change places, which are its strands: so Cherimoya augments its training
    (`channel_permutation_from_groups`).
    """
    (h, p), (h_reverse, p_reverse) = forward, reverse
    return _log_mean_exp(torch.stack([h, h_reverse])), (p + p_reverse.flip(1, 2)) / 2


def mean_score(scores: torch.Tensor) -> torch.Tensor:
    """The mean of the folds' scores, [K, N] to [N], as variant-scorer averages folds."""
    return _total(scores) / len(scores)


def heldout_score(scores: torch.Tensor, answering: torch.Tensor) -> torch.Tensor:
    """The mean of the scores [K, N] of those folds that answer, bool [K, N]: [N]."""
    return _total(torch.where(answering, scores, 0)) / answering.sum(0)


def spread(scores: torch.Tensor, answer: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How far the folds' scores [K, N] agree with each other and with the answer [N].

    Returns
    -------
    sd : [N], the folds' sample standard deviation (K - 1 in the denominator); NaN for one fold
    folds_agree : int64 [N], how many folds have the sign of the answer
    """
    deviation = scores - mean_score(scores)
    variance = _total(deviation * deviation) / (len(scores) - 1 or math.nan)
    return variance.sqrt(), (scores.sign() == answer.sign()).sum(0)


def _log_mean_exp(h: torch.Tensor) -> torch.Tensor:
    """log(mean(exp(h))) over the first axis, float64."""
    h = h.double()
    largest = h.amax(0)
    return largest + (_total((h - largest).exp()) / len(h)).log()


def _total(per_fold) -> torch.Tensor:
    """The sum over folds in their order: `torch.sum` may order the terms by a column's place."""
    total = per_fold[0]
    for one in per_fold[1:]:
        total = total + one
    return total
