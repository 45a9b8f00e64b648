"""A run from end to end on a real Slurm of two nodes with disks of their own.

Scores are the CPU engine's. The cache is filled and read for real, with Cherimoya's own kernels,
under the stand-in CUDA driver.
"""

import json
import os
import signal
import subprocess
import sys

import pytest

from cluster import slurm
from cluster.runs import CHUNKS, HERE, on_nodes
from veff.autotune import seeds

pytestmark = pytest.mark.slow


def test_jobs_run_on_both_nodes_and_the_result_is_the_local_run_s_to_the_byte(whole):
    scoring = [job for job in whole.jobs if job["job"].startswith("score")]
    assert len(scoring) == CHUNKS
    assert {job["node"] for job in scoring} == {"n1", "n2"}
    assert whole.results == whole.here


def test_a_job_uses_the_gpu_that_slurm_gave_it(whole):
    for job in whole.jobs:
        assert job["gpu"] == f"GPU-{job['node']}-{job['given']}"
        assert job["visible"] == job["given"]


def test_each_node_is_filled_once_and_every_other_job_hits(whole):
    (setup,) = whole.out.glob("autotune/*.json")
    assert json.loads(setup.read_text())["node"] == "benchmarked"
    filled = {node: [] for node in slurm.NODES}
    for report in whole.reports:
        tuned = report["autotune"]
        if tuned["node"] != "warm":
            filled[report["host"]].append(tuned["node"])
        assert (tuned["benchmarks"], tuned["compile_misses"], tuned["build_misses"]) == (0, 0, 0)
        assert tuned["autotune_hits"] > 0
        assert tuned["compile_hits"] > 0
    assert sorted(filled.values()) == [[], ["restored"]]  # of the two, setup filled the first
    assert len(list(whole.out.glob("autotune/*.tar"))) == 1


def test_ten_jobs_on_a_cold_node_fill_it_once_after_one_that_was_killed(whole, tmp_path):
    (seed,) = whole.out.glob("autotune/*.tar")
    with slurm.Slurm() as cluster:

        def asked(**more) -> str:
            settings = {"cache_dir": str(cluster.root / "local")}
            work = seeds.Seed(seed).work
            return json.dumps({"settings": settings, "work": work, "runs": [], **more})

        variables = on_nodes(cluster)
        alone = ["srun", "--nodelist=n2", "--overcommit", "--mem=0"]
        python = ["env", "CUDA_VISIBLE_DEVICES=0", sys.executable, str(HERE.parent / "gpu_job.py")]
        cold = subprocess.Popen([*alone, "-n1", *python, asked(seeds=[])], env=variables)
        scratch = "veff-autotune-*/scratch-*/triton"
        slurm.wait(lambda: list(cluster.local("n2").glob(scratch)), "a job that holds the lock")
        for process, name in cluster.on("n2").items():
            if name == "python":
                os.kill(process, signal.SIGKILL)
        assert cold.wait(30) != 0
        ten = subprocess.run(
            [*alone, "-n10", *python, asked(seeds=[str(seed)])],
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
        )
    reports = [json.loads(line) for line in ten.stdout.splitlines()]
    assert sorted(report["node"] for report in reports) == ["restored"] + ["warm"] * 9, ten.stderr
    assert {report["benchmarks"] for report in reports} == {0}
