from veff import plan, resources


def test_the_longest_job_that_the_plan_allows_gets_its_time_on_a_gpu_five_times_slower():
    need = resources.models(plan.JOB_S * plan.GPU_RATE, 1, on_gpu=True)
    assert need.minutes >= 5 * plan.JOB_S / 60


def test_what_was_measured_fits():
    """tests/bench/results: throughput, two_gpus and many_models on a GPU; prepare."""
    assert resources.models(1_000_000, 1, on_gpu=True).mem_mb > 2 * 2561
    assert resources.models(20_000, 50, on_gpu=True).mem_mb > 2 * 1832
    assert resources.text(0).mem_mb > 2 * 318


def test_a_cpu_takes_longer_and_more_cores_less():
    gpu, one, four = (
        resources.models(100_000, 5, on_gpu, threads).minutes
        for on_gpu, threads in ((True, 1), (False, 1), (False, 4))
    )
    assert gpu < four < one
