"""The autotune cache at work, with Cherimoya's own kernels under the stand-in CUDA driver.

Launches do nothing and times are made up; choosing, compiling and every file are real. One node
is warmed, after a first attempt that is killed, by eight jobs that start at once; the other tests
start from what that left. `tests/gpu/test_autotune.py` has what only a GPU can show.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from veff.autotune import seeds

pytestmark = pytest.mark.slow

STANDIN = Path(__file__).parents[1] / "standin"
SITE = STANDIN.with_name("site")
WORKFLOW = Path(__file__).parents[2] / "workflow"
SHAPE = {"n_filters": 16, "n_layers": 5, "expansion": 2, "input_length": 256, "batch_size": 4}
CONFIGURATIONS = 12 + 36  # of the statistics kernel; of the MLP kernel, where 64 does not divide H
BINARIES = 3 + 3 + 1  # dilations 1, 2 to 8, and 16 or more of two kernels; and the third kernel
NOTHING = {"benchmarks": 0, "compile_misses": 0, "build_misses": 0, "autotune_misses": 0}


def start(cache, seeds=(), gpu="NVIDIA H200", wrapper=(), **asked):
    """A job on a node whose disk is `cache`, in a process group of its own."""
    settings = {"cache_dir": str(cache), **asked.pop("settings", {})}
    asked = {"settings": settings, "work": [SHAPE], "seeds": [str(s) for s in seeds], **asked}
    path = os.pathsep.join(
        [str(SITE), str(STANDIN), str(WORKFLOW), os.environ.get("PYTHONPATH", "")]
    )
    return subprocess.Popen(
        [*wrapper, sys.executable, STANDIN.parent / "gpu_job.py", json.dumps(asked)],
        env={**os.environ, "PYTHONPATH": path, "STANDIN_GPUS": gpu},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """What the job reports, with what it said as `log`."""
    out, log = process.communicate(timeout=300)
    assert process.returncode == 0, log
    return {**json.loads(out), "log": log}


def fail(process):
    """What the job said, that is expected to fail."""
    _, log = process.communicate(timeout=300)
    assert process.returncode != 0
    return log


def part(report, of):
    return {key: report[key] for key in of}


def repack(seed, cache, path, **fingerprint):
    """A seed like `seed`, of the entries in `cache`."""
    return seeds.pack(
        cache,
        [entry.name for entry in cache.iterdir()],
        path,
        fingerprint={**seed.fingerprint, **fingerprint},
        work=seed.work,
        triton=seed.triton,
    )


def the_cache(disk):
    (folder,) = disk.glob("veff-autotune-*/*.*.*/triton")
    return folder


@pytest.fixture(scope="module")
def warmed(tmp_path_factory):
    """A node's disk, the run's seeds, and the reports of the eight jobs that warmed it."""
    disk, run = tmp_path_factory.mktemp("disk"), tmp_path_factory.mktemp("run")
    killed = start(disk, [run])
    deadline = time.time() + 120
    while not list(disk.glob("veff-autotune-*/scratch-*/triton/*/*.cubin")):
        assert time.time() < deadline
        assert killed.poll() is None, killed.communicate()[1]
        time.sleep(0.1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    # Three of them run the kernels; to the others, that the node is warm is enough.
    jobs = [start(disk, [run], **({} if i < 3 else {"runs": []})) for i in range(8)]
    reports = [finish(job) for job in jobs]
    return disk, run, reports


def test_standin_eight_jobs_on_a_cold_node_warm_it_once_after_a_warming_that_was_killed(warmed):
    disk, run, reports = warmed
    assert sorted(report["node"] for report in reports) == ["benchmarked"] + ["warm"] * 7
    assert len({report["seed"] for report in reports}) == 1
    assert len(list(run.iterdir())) == 1
    assert list(disk.glob("veff-autotune-*/scratch-*/")) == []


def test_standin_no_job_benchmarks_or_compiles_not_even_the_one_that_warmed(warmed):
    _, _, reports = warmed
    for report in reports[:3]:
        assert part(report, NOTHING) == NOTHING
        assert (report["autotune_hits"], report["compile_hits"]) == (2, BINARIES)
        assert report["knob"] is True


def test_standin_all_jobs_of_a_node_choose_alike(warmed):
    _, _, reports = warmed
    assert len({tuple(report["outputs"]) for report in reports[:3]}) == 1


def test_standin_the_winners_file_has_every_configuration(warmed):
    files = the_cache(warmed[0]).glob("*/*.autotune.json")
    timed = [json.loads(file.read_text())["configs_timings"] for file in files]
    assert sum(map(len, timed)) == CONFIGURATIONS


def test_standin_the_fingerprint_has_each_part_that_decides(warmed):
    (path,) = warmed[1].iterdir()
    seed = seeds.Seed(path)
    assert (seed.fingerprint["GPU"], seed.fingerprint["GPU cores"]) == ("NVIDIA H200", "16896")
    assert seed.work == [SHAPE]
    assert seed.triton["backend"].endswith("-90")
    for part in ("Triton's key", "Triton's variables"):
        assert seed.triton[part]
    for kernel in ("_fwd_inf_stats_kernel", "_fwd_inf_norm_mlp_kernel"):
        assert seed.triton[f"cache_key of {kernel}"]
        assert seed.triton[f"configurations of {kernel}"]


def test_standin_a_warm_node_costs_milliseconds_and_no_import(warmed):
    disk, run, _ = warmed
    reports = [finish(start(disk, [run], runs=[])) for _ in range(5)]
    assert all(report["node"] == "warm" and report["imported"] == [] for report in reports)
    assert min(report["enable_cpu_s"] for report in reports) < 0.05  # on a busy machine, too


def test_standin_another_node_is_restored_from_the_seed_with_the_first_gone(warmed, tmp_path):
    _, run, reports = warmed
    shutil.copytree(run, tmp_path / "run")
    report = finish(start(tmp_path / "new", [tmp_path / "run"]))
    assert report["node"] == "restored"
    assert part(report, NOTHING) == NOTHING
    assert report["outputs"] == reports[0]["outputs"]


def test_standin_a_node_without_the_run_s_seed_publishes_what_it_holds(warmed, tmp_path):
    disk, run, _ = warmed
    (tmp_path / "run").mkdir()
    report = finish(start(disk, [tmp_path / "run"], runs=[]))
    assert report["node"] == "warm"
    (published,), (first,) = (tmp_path / "run").iterdir(), run.iterdir()
    assert published.name == first.name
    assert published.read_bytes() == first.read_bytes()


def test_standin_a_node_that_holds_another_choice_uses_the_run_s(warmed, tmp_path):
    disk, run, _ = warmed
    shutil.copytree(disk, tmp_path / "disk", symlinks=True)
    (path,) = run.iterdir()
    seed = seeds.Seed(path)
    seed.unpack(tmp_path / "other")
    for file in (tmp_path / "other").glob("*/*.autotune.json"):
        entry = json.loads(file.read_text())
        entry["configs_timings"].sort(key=lambda pair: pair[1])  # the same winner, another file
        file.write_text(json.dumps(entry))
    (tmp_path / "run").mkdir()
    other = repack(seed, tmp_path / "other", tmp_path / "run" / path.name)
    assert other.id != seed.id
    report = finish(start(tmp_path / "disk", [tmp_path / "run"]))
    assert (report["node"], report["seed"]) == ("restored", other.id)
    assert part(report, NOTHING) == NOTHING


def test_standin_every_file_damaged_is_healed_from_the_seed(warmed, tmp_path):
    disk, run, reports = warmed
    shutil.copytree(disk, tmp_path / "disk")
    files = [f for f in the_cache(tmp_path / "disk").glob("*/*") if f.is_file()]
    for file in files:
        os.truncate(file, file.stat().st_size // 2)
    report = finish(start(tmp_path / "disk", [run]))
    assert part(report, NOTHING) == NOTHING
    assert report["repaired"] == len(files)
    assert report["outputs"] == reports[0]["outputs"]
    whole = [f.read_bytes() for f in the_cache(disk).glob("*/*")]
    assert [f.read_bytes() for f in the_cache(tmp_path / "disk").glob("*/*")] == whole


def test_standin_a_node_swept_by_its_clean_up_is_restored(warmed, tmp_path):
    disk, run, _ = warmed
    shutil.copytree(disk, tmp_path / "disk")
    (the_cache(tmp_path / "disk").parent / "seed.tar").unlink()
    report = finish(start(tmp_path / "disk", [run]))
    assert report["node"] == "restored"
    assert part(report, NOTHING) == NOTHING


def test_standin_strict_fails_before_a_benchmark_where_no_seed_fits(warmed, tmp_path):
    _, run, _ = warmed
    log = fail(start(tmp_path, [run], gpu="NVIDIA H100", settings={"strict": True}))
    assert "GPU NVIDIA H200, here NVIDIA H100" in log
    assert "strict forbids a benchmark" in log
    assert "benchmark\n" not in log.splitlines(keepends=True)  # what the stand-in says of each


def test_standin_strict_fails_before_a_benchmark_of_a_shape_that_is_not_cached(warmed):
    disk, run, _ = warmed
    strict = {"settings": {"strict": True}, "runs": [{**SHAPE, "batch_size": 5}]}
    log = fail(start(disk, [run], **strict))
    assert "no cached choice for kernel _fwd_inf_stats_kernel with key (16, 256, 5, True" in log
    assert "benchmark\n" not in log.splitlines(keepends=True)


def test_standin_a_benchmark_begins_with_what_a_seed_for_other_work_chose(warmed, tmp_path):
    _, run, _ = warmed
    shutil.copytree(run, tmp_path / "run")
    more = [SHAPE, {**SHAPE, "n_layers": 4}]
    report = finish(start(tmp_path / "disk", [tmp_path / "run"], work=more, runs=[SHAPE]))
    assert report["node"] == "benchmarked"
    # The times are made up, so that another benchmark would have left others.
    seeds.Seed(next(run.iterdir())).unpack(tmp_path / "first")
    chosen, first = (
        sorted(file.read_bytes() for file in cache.glob("*/*.autotune.json"))
        for cache in (the_cache(tmp_path / "disk"), tmp_path / "first")
    )
    assert chosen == first


def test_standin_each_gpu_kind_has_its_own_seed(warmed, tmp_path):
    _, run, _ = warmed
    (path,) = run.iterdir()
    seed = seeds.Seed(path)
    seed.unpack(tmp_path / "cache")
    shutil.copytree(run, tmp_path / "run")
    h100 = repack(seed, tmp_path / "cache", tmp_path / "run" / "h100.tar", GPU="NVIDIA H100")
    disk = tmp_path / "disk"
    for gpu, fits in [("NVIDIA H100", h100), ("NVIDIA H200", seed)]:
        report = finish(start(disk, [tmp_path / "run"], gpu=gpu, runs=[]))
        assert (report["gpu"], report["seed"], report["node"]) == (gpu, fits.id, "restored")


def on_small_disk(disk, size, then=""):
    """A command in front of the job's: `disk` is a tmpfs of its own, of that size."""
    mount = f'mount -t tmpfs -o size={size},mode=700 none "$0" && {then or ":"} && exec "$@"'
    user = [] if os.getuid() == 0 else ["--user", "--map-current-user"]
    wrapper = ["unshare", "--mount", *user, "sh", "-c", mount, str(disk)]
    if subprocess.run([*wrapper, "true"], capture_output=True).returncode:
        pytest.skip("cannot mount a small file system here")
    return wrapper


def test_standin_a_full_disk_costs_the_cache_but_neither_the_job_nor_its_choices(warmed, tmp_path):
    _, run, reports = warmed
    report = finish(start(tmp_path, [run], wrapper=on_small_disk(tmp_path, "300k")))
    assert report["node"] == "restored, temporary"
    assert "the job goes on without the node's cache" in report["log"]
    assert "No space left" in report["log"]
    assert part(report, NOTHING) == NOTHING
    assert report["outputs"] == reports[0]["outputs"]


def test_standin_a_read_only_warm_cache_is_used_as_it_is(warmed, tmp_path):
    disk, run, reports = warmed
    copy = f'cp -r {disk}/veff-autotune-* "$0" && mount -o remount,ro "$0"'
    wrapper = on_small_disk(tmp_path, "20m", copy)
    report = finish(start(tmp_path, [run], wrapper=wrapper))
    assert report["node"] == "warm"
    assert part(report, NOTHING) == NOTHING
    assert report["outputs"] == reports[0]["outputs"]


def test_standin_a_read_only_damaged_cache_does_not_stop_a_job(warmed, tmp_path):
    disk, run, _ = warmed
    damage = 'for f in "$0"/*/*.*.*/triton/*/*.ptx; do : > "$f"; done'
    copy = f'cp -r {disk}/veff-autotune-* "$0" && {damage} && mount -o remount,ro "$0"'
    wrapper = on_small_disk(tmp_path, "20m", copy)
    report = finish(start(tmp_path, [run], wrapper=wrapper))
    assert report["benchmarks"] == 0
    assert report["compile_misses"] == BINARIES
    assert "this job's cache is not kept" in report["log"]


def test_standin_a_miss_says_which_part_of_triton_s_key_differs(warmed, tmp_path):
    _, run, _ = warmed
    (path,) = run.iterdir()
    seed = seeds.Seed(path)
    seed.unpack(tmp_path / "cache")
    seed.triton["Triton's key"] = "another"
    (tmp_path / "run").mkdir()
    repack(seed, tmp_path / "cache", tmp_path / "run" / "seed.tar")
    strict = {"settings": {"strict": True}, "runs": [{**SHAPE, "batch_size": 5}]}
    log = fail(start(tmp_path / "disk", [tmp_path / "run"], **strict))
    assert "(Triton's key another, here " in log
