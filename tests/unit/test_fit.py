"""How many wrong REF are too many."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veff.inputs.fit import CHANCE, too_many


@given(st.integers(0, 60), st.integers(1, 60), st.floats(0, 1))
def test_too_many_are_those_that_chance_brings_less_often_than_said(wrong, right, share):
    checked = wrong + right
    tail = sum(
        math.comb(checked, k) * share**k * (1 - share) ** (checked - k)
        for k in range(wrong, checked + 1)
    )
    if not math.isclose(tail, CHANCE, rel_tol=1e-6):
        assert too_many(wrong, checked, share) == (wrong > 0 and tail < CHANCE)


@pytest.mark.parametrize(
    ("wrong", "checked", "expected"),
    [
        (0, 0, False),
        (1, 1, False),
        (2, 2, True),
        (3, 5, True),
        (9, 10, True),
        (1, 5, False),
        (2, 20, False),
        (2, 1000, False),
        (20, 1000, False),
        (25, 1000, True),
        (10_200, 1_000_000, False),
        (10_400, 1_000_000, True),
    ],
)
def test_at_one_in_a_hundred(wrong, checked, expected):
    assert too_many(wrong, checked, 0.01) == expected
