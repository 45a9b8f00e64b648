"""Sentences about alleles: what they say, and at the limits of their fields."""

import itertools
import math
import re

import pytest

from veff.outputs import words
from veff.outputs.words import Facts

ONE = {
    "chrom": "chr1",
    "pos": 100,
    "ref": "T",
    "alt": "G",
    "experiment": "HepG2",
    "logfc": math.log2(0.59),
    "folds_agree": 4,
    "n_folds": 5,
    "n_experiments": 1518,
    "max_pval": 3e-4,
    "n_significant": 40,
    "top_biosample": "liver",
    "n_biosamples": 90,
    "n_biosamples_significant": 12,
    "n_biosamples_within_noise": 3,
    "motif": "HNF4A",
    "verdict": "weakened",
    "attributed": True,
    "effect_kept": True,
}


UNJUDGED = {"n_significant": None, "n_biosamples_significant": None}
ALONE = {"n_experiments": 1, "n_significant": 1, "n_biosamples": 1}


def said(**changes):
    return words.sentence(Facts(**ONE | changes))


def test_a_sentence_says_what_the_fields_do():
    assert said() == (
        "T>G at chr1:100 lowers the predicted reads by about 41 % in HepG2 (4 of 5 folds, "
        "p ≤ 0.0003 over all 1,518), where it weakens the motif HNF4A; it is significant in 12 of "
        "90 biosamples; 3 biosamples share the first place within noise."
    )


@pytest.mark.parametrize(
    ("changes", "held", "not_held"),
    [
        ({"max_pval": None} | UNJUDGED, ["may lower", "no p-value"], ["p ≤", "biosample"]),
        ({"max_pval": 1.0}, ["may lower", "p ≤ 1 ", "by chance"], ["significant", "biosample"]),
        ({"max_pval": 0.0501}, ["may lower", "p ≤ 0.06", "by chance"], []),
        ({"max_pval": 0.05}, ["lowers", "p ≤ 0.05"], ["may", "chance"]),
        ({"max_pval": 0.00991}, ["p ≤ 0.01"], ["0.009"]),
        ({"max_pval": 1 / 10001}, ["p ≤ 0.0001 "], []),
        ({"max_pval": 1 / 9999}, ["p ≤ 0.0002"], []),
        ({"folds_agree": 2}, ["a direction that folds disagree on"], ["lower", "raise"]),
        ({"folds_agree": 1, "n_folds": 2}, ["disagree"], ["lower"]),
        ({"folds_agree": 0, "n_folds": 1}, ["disagree", "one model"], ["folds,"]),
        ({"folds_agree": 1, "n_folds": 1}, ["one model, p"], ["of 1 folds"]),
        ({"logfc": 0.0}, ["hardly changes"], ["%", "motif", "lower", "raise"]),
        ({"logfc": -0.0}, ["hardly changes"], ["%"]),
        ({"logfc": 0.01}, ["hardly changes"], ["raise"]),
        ({"logfc": -12.0}, ["by about 99 %"], ["100 %"]),
        ({"logfc": 0.99}, ["raises the predicted reads by about 98 %"], ["fold "]),
        ({"logfc": 3.0}, ["raises the predicted reads 8-fold"], ["%"]),
        (ALONE, ["p ≤ 0.0003)"], ["over all", "significant", "biosample"]),
        ({"n_biosamples": 1518, "n_significant": 0}, ["significant in 0 of 1,518."], ["noise"]),
        ({"n_biosamples": 1}, ["significant in 40 of 1,518."], ["biosample"]),
        ({"n_biosamples": None}, ["significant in 40 of 1,518."], ["biosample"]),
        ({"n_biosamples_significant": 0}, ["significant in 0 of 90 biosamples"], []),
        ({"n_biosamples_within_noise": 1}, ["beyond noise, it is largest in liver."], ["share"]),
        ({"n_biosamples_within_noise": 90}, ["90 biosamples share the first place within"], []),
        ({"n_biosamples_within_noise": None}, ["12 of 90 biosamples."], ["noise", "largest"]),
        (
            {"top_biosample": "x" * 500, "n_biosamples_within_noise": 1},
            ["largest in xxx", "…"],
            [],
        ),
        ({"motif": None, "verdict": None, "effect_kept": None}, ["p ≤"], ["motif"]),
        ({"motif": "CTCF", "verdict": "none"}, ["p ≤"], ["motif"]),
        ({"motif": "CTCF", "verdict": "gained"}, ["where it creates the motif CTCF"], []),
        ({"motif": "GATA1", "verdict": "lost"}, ["destroys the motif GATA1"], []),
        ({"attributed": False}, ["where it, by its sequence alone, weakens"], []),
        ({"effect_kept": False}, ["rests on more than its neighbourhood"], []),
        ({"ref": "A" * 10_000, "chrom": "c" * 300, "motif": "m" * 500}, ["…"], []),
    ],
)
def test_it_is_no_more_certain_than_its_fields_at_their_limits(changes, held, not_held):
    text = said(**changes)
    assert all(one in text for one in held), text
    assert not any(one in text for one in not_held), text
    assert len(text) < 700


def test_no_combination_of_limits_overstates_or_fails():
    values = itertools.product(
        (-40.0, -1e-9, 0.0, 0.5, 40.0),
        (None, 1e-300, 0.05, 0.06, 1.0),
        ((0, 1), (1, 1), (1, 2), (5, 5)),
        (None, "none", "gained", "weakened"),
        (True, False),
        ((None, None, None), (1, 0, 1), (2, 2, None), (90, 0, 90), (1518, 12, 1)),
    )
    names = ("n_biosamples", "n_biosamples_significant", "n_biosamples_within_noise")
    for logfc, p, (agree, folds), verdict, attributed, counts in values:
        changes = {"logfc": logfc, "max_pval": p, "folds_agree": agree, "n_folds": folds}
        changes |= dict(zip(names, counts, strict=True))
        text = said(**changes, verdict=verdict, attributed=attributed)
        if re.search(r" (raises|lowers) ", text):
            assert p is not None
            assert p <= 0.05
            assert 2 * agree > folds
        if "biosample" in text or "beyond noise" in text:
            assert p is not None
            assert p <= 0.05
        if printed := re.search(r"p ≤ ([\d.e-]+)", text):
            assert p * (1 - 1e-9) <= float(printed[1]) <= max(2 * p, 1e-300)
        assert "100 %" not in text
        assert "None" not in text
        assert "nan" not in text
        assert text.endswith(".")
