import json
from dataclasses import asdict

import pytest

from veff import forecast, plan
from veff.models.sheet import Request


def requests(n, folds=5):
    return [Request(f"e{i}", tuple(f"{i}.{fold}" for fold in range(folds))) for i in range(n)]


def a_cut(device="cpu", gpu=False, models=5, bundles=1):
    return plan.Cut(device, None, gpu, models, bundles)


def chunks(alleles, cut):
    size = plan.enough(alleles, cut.chunk_size("auto"), cut.most_chunks("auto"))
    return -(-alleles // size)


@pytest.mark.parametrize(("n", "expected"), [(1, 50), (400, 50), (1518, 190)])
def test_models_in_a_bundle_grow_with_the_sheet_so_that_bundles_stay_few(n, expected):
    assert plan.models_per_job("auto", requests(n)) == expected
    assert plan.models_per_job(7, requests(n)) == 7


def test_alleles_stay_divided_as_when_the_run_began(tmp_path):
    summary = tmp_path / "summary.json"
    bundles = {"a": requests(3)}
    began = plan.cut(summary, bundles, "auto", None, gpu=True)
    assert began == plan.Cut("auto", None, gpu=True, models=15, bundles=1)
    summary.write_text(json.dumps({"cut": asdict(began)}))
    more = {"b": requests(1), **bundles}
    assert plan.cut(summary, more, "auto", None, gpu=False) == began
    other = plan.Cut("cpu", None, gpu=False, models=5, bundles=2)
    assert plan.cut(summary, more, "cpu", None, gpu=False) == other


def test_a_chunk_is_what_the_models_score_in_ten_minutes():
    assert a_cut().chunk_size(7) == 7
    assert a_cut().chunk_size("auto") * 5 == pytest.approx(plan.JOB_S * plan.CPU_RATE)
    assert a_cut(models=10**9).chunk_size("auto") == 1
    assert a_cut("cuda", gpu=True, models=1).chunk_size("auto") == plan.ALLELES_A_JOB


@pytest.mark.parametrize(
    ("device", "gpu_model", "elsewhere", "here", "expected"),
    [
        ("auto", None, True, False, 1),  # a submit node without a GPU
        ("auto", None, False, False, 0),
        ("auto", None, False, True, 1),
        ("auto", "h200", False, False, 1),
        ("cuda", None, False, False, 1),
        ("cpu", None, True, True, 0),
    ],
)
def test_a_job_is_to_have_a_gpu_where_one_is_asked_of_a_scheduler_or_is_here(
    monkeypatch, device, gpu_model, elsewhere, here, expected
):
    monkeypatch.setattr(plan, "_gpu_here", lambda: here)
    assert plan.gpus_a_job(device, gpu_model, elsewhere) == expected


def test_fifty_models_and_a_million_alleles_from_a_submit_node_make_few_jobs():
    """They made 41,667, as if each ran on a core of the submit node."""
    gpu = plan.gpus_a_job("auto", None, elsewhere=True)
    assert chunks(10**6, a_cut("auto", gpu=bool(gpu), models=50)) == 5


@pytest.mark.parametrize("alleles", [10**6, 10**8, 10**10])
@pytest.mark.parametrize("experiments", [1, 10, 400, 1518])
@pytest.mark.parametrize("gpu", [False, True])
def test_no_plan_has_more_than_twenty_thousand_scoring_jobs(alleles, experiments, gpu):
    every = requests(experiments)
    size = plan.models_per_job("auto", every)
    bundles = -(-5 * experiments // size)
    cut = a_cut("auto", gpu, models=min(size, 5 * experiments), bundles=bundles)
    assert chunks(alleles, cut) * bundles <= 20_000


def test_a_chunk_size_that_is_told_is_taken_however_many_jobs_it_makes():
    assert a_cut().most_chunks(10) is None
    assert plan.enough(10**6, 10, None) == 10


def a_forecast(**changes):
    these = {"experiments": 10, "models": 50, "bundles": 1, "chunk_size": "auto"}
    return forecast.Forecast(a_cut("cuda", gpu=True, models=50), **these | changes)


def test_a_plan_says_what_is_not_yet_counted():
    said = a_forecast().words()
    assert "alleles not yet counted, under 10 experiments (50 models)" in said
    assert "for each million alleles 5 scoring jobs: chunks of 240,000 alleles" in said


def test_a_plan_adds_up_hours_for_what_is_left_and_warns_of_more_than_a_day():
    prepared = {"alleles": 2_100_000, "scoreable": 2_000_000, "chunks": 10, "classes": []}
    whole, rest = a_forecast(prepared=prepared), a_forecast(prepared=prepared, done=9)
    assert whole.jobs(2_000_000) == 10
    expected = (2_000_000 * 50 / plan.GPU_RATE + 10 * forecast.START_S) / 3600
    assert whole.hours(2_000_000) == pytest.approx(expected)
    assert rest.hours(2_000_000) == pytest.approx(expected / 10)
    assert a_forecast(prepared=prepared, done=10, nulls=9, judged=50).hours(2_000_000) == 0
    random_snvs = a_forecast(prepared=prepared, done=10, nulls=9, judged=40)
    assert random_snvs.hours(2_000_000) == pytest.approx(9 * 10 / plan.GPU_RATE / 3600)
    both = a_forecast(prepared=prepared, strands=2, nulls=1_000_000)
    assert both.hours(2_000_000) == pytest.approx(3 * expected, rel=0.01)
    assert "2,100,000 alleles, 2,000,000 of them to be scored" in whole.words()
    assert "10 scoring jobs, 9 of them done: chunks of 200,000 alleles" in rest.words()
    assert "more than a day" not in whole.words()
    long = prepared | {"scoreable": 50_000_000, "alleles": 50_000_000}
    assert "warning: more than a day for one GPU" in a_forecast(prepared=long).words()


def test_a_plan_counts_what_is_scored_besides_the_alleles():
    prepared = {"alleles": 100, "scoreable": 100, "chunks": 1, "classes": []}
    alone = a_forecast(prepared=prepared)
    planned = forecast.Planned("haplotypes", windows=4_000_000, jobs=4, done=3)
    both = a_forecast(prepared=prepared, planned=(planned,))
    left = (1_000_000 * 50 / plan.GPU_RATE + forecast.START_S) / 3600
    assert both.hours(100) == pytest.approx(alone.hours(100) + left)
    a_window = forecast.SCORE_BYTES * 10 + forecast.FOLD_BYTES * 50
    assert both.bytes(100) == alone.bytes(100) + 4_000_000 * a_window
    said = "plan: 4,000,000 windows besides (haplotypes), in 4 scoring jobs, 3 of them done\n"
    assert said in both.words()
    assert "besides" not in alone.words()


def test_a_plan_says_what_random_snvs_and_drawings_add_on_a_core():
    on_core = {"cut": a_cut(models=10), "experiments": 2, "models": 10, "bundles": 1}
    prepared = {"alleles": 300, "scoreable": 300, "chunks": 1, "classes": []}
    one = forecast.Forecast(
        **on_core, chunk_size="auto", nulls=1000, top=20, shuffles=10, prepared=prepared
    )
    assert one.drawing_hours(300) == pytest.approx(20 * 10 * 5 * forecast.SHUFFLE_S / 3600)
    assert one.drawing_hours(1) == pytest.approx(10 * 5 * forecast.SHUFFLE_S / 3600)
    assert "1,000 random SNVs a model (nulls) among them, and 0.42 to draw 20 largest effects" in (
        one.words()
    )
    assert a_forecast(top=20, shuffles=10).drawing_hours(300) == 0  # on a GPU


def test_a_plan_counts_the_random_alleles_of_each_class():
    prepared = {"alleles": 0, "scoreable": 0, "chunks": 0, "classes": ["ins_1_5", "del_6_20"]}
    one = a_forecast(nulls=1000, prepared=prepared)
    assert one.hours(0) == pytest.approx(3 * 1000 * 50 / plan.GPU_RATE / 3600)
    assert "3,000 random alleles a model (nulls of 3 classes) among them" in one.words()
    before = a_forecast(nulls=1000).words()
    assert "1,000 random SNVs a model (nulls) among them, but none yet of other classes" in before


def test_there_are_fewer_random_snvs_on_a_core():
    assert plan.random_snvs(gpu=False) / plan.CPU_RATE < 150
    assert plan.random_snvs(gpu=True) == 10_000
