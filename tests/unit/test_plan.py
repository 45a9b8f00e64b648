import pytest

from veff import atomic, plan
from veff.models.sheet import Request


def experiments(n, folds=5):
    return [Request(f"e{i}", tuple(f"{i}.{fold}" for fold in range(folds))) for i in range(n)]


@pytest.mark.parametrize(("n", "expected"), [(1, 50), (400, 50), (1518, 190)])
def test_models_in_a_bundle_grow_with_the_sheet_so_that_bundles_stay_few(n, expected):
    assert plan.models_per_job("auto", experiments(n)) == expected
    assert plan.models_per_job(7, experiments(n)) == 7


def test_alleles_are_divided_as_when_the_run_began(tmp_path):
    summary = tmp_path / "summary.json"
    first = experiments(3)
    assert plan.models_in_a_bundle(summary, {"a": first}) == 15
    atomic.write_json(summary, {"models_in_a_bundle": 15})
    assert plan.models_in_a_bundle(summary, {"b": experiments(1), "a": first}) == 15


def test_a_chunk_is_what_the_models_score_in_ten_minutes():
    assert plan.chunk_size(7, "cpu", 5) == 7
    assert plan.chunk_size("auto", "cpu", 5) * 5 == pytest.approx(plan.JOB_S * plan.CPU_RATE)
    assert plan.chunk_size("auto", "cpu", 10**9) == 1
    assert plan.chunk_size("auto", "cuda", 1) == plan.ALLELES_A_JOB
