"""What goes wrong on a cluster, on a real Slurm: each time the run ends in the same result.

A run starts in its middle, without the scores of some chunks. `plan` says what a chunk's first,
second, … start does: "wait:FILE" waits for the test, which so knows that the job is at work when
the fault strikes. For docs/cluster.md:

    FAULTS=tests/cluster/faults.json make test-cluster && python tests/cluster/table.py
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cluster.runs import HERE, Run
from cluster.slurm import NODES, Slurm, wait

pytestmark = pytest.mark.slow


@pytest.fixture
def middle(whole, tmp_path):
    """`middle(plan)`: a run in its middle, without the chunks that the plan names."""

    def of(plan: dict[int, list[str]]) -> Run:
        run = whole.copy(tmp_path / "run", list(plan))
        (run.folder / "plan.json").write_text(json.dumps(plan))
        return run

    return of


@pytest.fixture
def seen(whole, record_faults):
    """Checks that a run ended in the same result, and records what happened."""

    def check(fault: str, follows: str, run: Run) -> None:
        equal = run.tables == whole.tables
        record_faults(fault=fault, follows=follows, equal=equal)
        assert equal

    return check


def starts(run: Run, chunk: int) -> list[dict]:
    return [note for note in run.jobs if note["job"].startswith(f"score-{chunk}-")]


def await_start(run: Run, process: subprocess.Popen, chunk: int, n: int = 1) -> dict:
    """The note of a chunk's n-th start, once it is there."""

    def there() -> bool:
        if process.poll() is not None:
            raise RuntimeError(run.said)
        return len(starts(run, chunk)) >= n

    wait(there, f"start {n} of chunk {chunk}", 180)
    return starts(run, chunk)[n - 1]


def other(node: str) -> str:
    return NODES[1 - NODES.index(node)]


def states_of_files(run: Run) -> dict[str, tuple]:
    """The bytes of each output, and which file it is: a job that changes nothing leaves both.

    Not its time, which Snakemake sets at the end of each job.
    """
    return {
        str(path): (path.read_bytes(), path.stat().st_ino)
        for path in run.out.rglob("*")
        if path.is_file() and "logs" not in path.parts
    }


def lose_a_node(run: Run, *options: str) -> None:
    """The run, which loses the node of chunk 0's job: the other one does that job again."""
    with Slurm() as cluster:
        process = run.start(cluster, *options)
        lost = await_start(run, process, 0)["node"]
        cluster.lose_node(lost)
        (run.folder / "go").touch()
        run.finish(process)
    assert [note["node"] for note in starts(run, 0)] == [lost, other(lost)]


def test_a_node_is_lost(middle, seen):
    run = middle({0: ["wait:go"]})
    lose_a_node(run)
    seen("A node loses power", "Slurm starts its job on the other node", run)


def test_slurmd_is_lost_and_its_job_runs_twice_at_once(middle, seen):
    """Slurm starts the jobs again on the other node while the first copies go on.

    Both copies of chunk 0 write at the same time. Of chunk 3 the first copy is still there when
    the run is over, and is ended when its node comes back.
    """
    run = middle({0: ["wait:go", "wait:go"], 3: ["wait:never"]})
    with Slurm() as cluster:
        process = run.start(cluster)
        first = [await_start(run, process, chunk) for chunk in (0, 3)]
        lost = first[0]["node"]
        assert first[1]["node"] == lost
        cluster.lose_slurmd(lost)
        again = [await_start(run, process, chunk, 2) for chunk in (0, 3)]
        assert {note["node"] for note in again} == {other(lost)}
        (run.folder / "go").touch()
        run.finish(process)
        follows = "its jobs run twice at once, here and on the other node"
        seen("Only slurmd dies on a node", follows, run)
        before = states_of_files(run)
        cluster.start_node(lost)
        wait(lambda: "python" not in cluster.on(lost).values(), "the end of the first copies", 60)
        assert states_of_files(run) == before


def test_jobs_are_cancelled_run_out_of_memory_and_run_out_of_time(middle, seen):
    run = middle({0: ["wait:never"], 3: ["memory", "memory"], 6: ["wait:never"]})
    minutes = "4 * attempt - 3 if wildcards.chunk == '6' else 60"
    resources = ["score:mem_mb=1500 * attempt", f"score:runtime={minutes}"]
    with Slurm() as cluster:
        process = run.start(cluster, "--set-resources", *resources)
        cluster.run("scancel", await_start(run, process, 0)["slurm_job"])
        run.finish(process)
    seen("`scancel` of a job", "Snakemake submits it again", run)
    seen("A job is over its memory", "Snakemake submits it again, with twice the memory", run)
    seen("A job is over its time", "Snakemake submits it again, with more time", run)
    granted = {chunk: [note["resources"] for note in starts(run, chunk)] for chunk in (0, 3, 6)}
    assert [one["mem_mb"] for one in granted[3]] == [1500, 3000]
    assert [one["runtime"] for one in granted[6]] == [1, 5]


def test_snakemake_is_killed_and_started_again_while_its_jobs_run(middle, seen):
    """The old copy of chunk 0 ends beside the new one; that of chunk 3 when the run is over."""
    run = middle({0: ["wait:go", "wait:go"], 3: ["wait:late"]})
    with Slurm() as cluster:
        process = run.start(cluster)
        for chunk in (0, 3):
            await_start(run, process, chunk)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        run.finish(run.start(cluster, "--unlock"))
        process = run.start(cluster)
        await_start(run, process, 0, 2)
        (run.folder / "go").touch()
        run.finish(process)
        follows = "`--unlock`; its jobs run beside those of the new one"
        seen("Snakemake is killed (`-9`) and started again", follows, run)
        before = states_of_files(run)
        (run.folder / "late").touch()
        wait(lambda: not cluster.run("squeue", "-h").strip(), "the old jobs' end", 120)
        assert states_of_files(run) == before
        run.finish(run.start(cluster, "--dry-run"))
        assert "Nothing to be done" in run.said


def test_a_node_s_disk_is_full_and_another_s_cache_is_corrupt(whole, middle, seen):
    run = middle({0: [], 3: [], 6: [], 9: []})
    with Slurm(local_kb=300) as cluster:
        disk = cluster.local("n2")
        shutil.copytree(whole.folder / "disk", disk, dirs_exist_ok=True)
        files = [path for path in disk.glob("*/*/triton/*/*") if path.is_file()]
        for path in files:
            os.truncate(path, path.stat().st_size // 2)
        run.finish(run.start(cluster))
    reports = [run.reports[chunk] for chunk in (0, 3, 6, 9)]
    on = {node: [r["autotune"] for r in reports if r["host"] == node] for node in NODES}
    assert {one["node"] for one in on["n1"]} == {"restored, temporary"}
    assert {one["node"] for one in on["n2"]} == {"warm"}
    assert sum(one["repaired"] for one in on["n2"]) >= len(files) > 0
    assert sum(one["benchmarks"] for one in on["n1"] + on["n2"]) == 0
    seen("A node's disk is full", "its jobs unpack the seed elsewhere, each for itself", run)
    seen("Every file in a node's cache is cut in half", "healed from the node's seed", run)


def test_the_controller_is_down_for_half_a_minute(middle, seen):
    run = middle({0: ["wait:go"], 3: ["wait:go"], 6: []})
    with Slurm() as cluster:
        process = run.start(cluster, "--jobs", "2")
        await_start(run, process, 0)
        cluster.lose_controller()
        (run.folder / "go").touch()
        time.sleep(30)
        cluster.start_controller()
        run.finish(process)
    seen("Slurm's controller is down for 30 s", "Snakemake waits", run)


def test_cluster_generic_with_a_node_lost(middle, seen):
    run = middle({0: ["wait:go"]})
    submit = "sbatch --parsable --export=ALL --gpus={resources.gpu} --mem={resources.mem_mb} "
    submit += "--time={resources.runtime} --cpus-per-task={resources.cpus_per_task} -o /dev/null"
    status = f"{sys.executable} -I {HERE / 'status.py'}"  # without what `node` has for jobs
    generic = [
        "--default-resources=gpu=0",
        "--executor=cluster-generic",
        f"--cluster-generic-submit-cmd={submit}",
    ]
    generic += [f"--cluster-generic-status-cmd={status}", "--cluster-generic-cancel-cmd=scancel"]
    lose_a_node(run, *generic)
    seen("A node loses power, under cluster-generic", "as under the plugin", run)


def test_jobs_that_slurm_would_never_start_are_told_and_released_or_failed(middle, seen):
    """One job a chunk; those of 0 and 3 wait for the test, which holds them or lets them go."""
    admin, launch, constraint, dependency, down, user = range(6)
    run = middle({chunk: [] for chunk in range(6)})
    prolog = "Prolog={root}/prolog\nPartitionName=other Nodes=n1,n2 State=DOWN\n"
    with Slurm(conf=prolog) as cluster:
        once = cluster.root / "prolog-fails-once"
        (cluster.root / "prolog").write_text(f"#!/bin/sh\n! rm {once}\n")
        (cluster.root / "prolog").chmod(0o755)
        once.touch()
        for node in NODES:
            feature(cluster, node, "big")
        first = cluster.run("sbatch", "--parsable", "--hold", "-o/dev/null", "--wrap=true").strip()
        extra = {
            admin: "--begin=now+1hour",
            constraint: "--hold",
            dependency: f"--dependency=afterok:{first}",
            user: "--hold",
        }
        extra = {str(chunk): words for chunk, words in extra.items()}
        process = run.start(
            cluster,
            "--set-resources",
            f"score:slurm_extra={extra}.get(wildcards.chunk, '')",
            f"score:slurm_partition='other' if wildcards.chunk == '{down}' else 'gpu'",
            f"score:constraint='big' if wildcards.chunk == '{constraint}' else ''",
        )

        def submitted() -> bool:
            return len(cluster.run("squeue", "-h", "-t", "all").splitlines()) == 7

        wait(submitted, "six jobs beside the one that is waited for", 180)

        def told(chunk: int, why: str) -> str:
            """Slurm's id of the job, once it was told; within a minute of what was done to it."""
            job = rf"score \(chunk {chunk}, bundle \w+\), Slurm job (\d+)"
            line = re.compile(rf"Stuck in Slurm's queue: .*{job}.*: {why} \(partition")

            def there() -> bool:
                if process.poll() is not None:
                    raise RuntimeError(run.said)
                return bool(line.search(run.said))

            wait(there, f"{why}, chunk {chunk}", 60)
            return line.search(run.said)[1]

        held = {chunk: told(chunk, "JobHeldUser") for chunk in (constraint, user)}
        begun = cluster.run("squeue", "-h", "-o", "%i %r").splitlines()
        (later,) = (line.split()[0] for line in begun if "BeginTime" in line)
        cluster.run("scontrol", "hold", later)
        assert told(admin, "JobHeldAdmin") == later
        for node in NODES:
            feature(cluster, node, "small")
        for job in held.values():
            cluster.run("scontrol", "release", job)
        cluster.run("scancel", first)
        told(launch, "launch failed requeued held")
        told(constraint, "BadConstraints")
        told(dependency, "DependencyNeverSatisfied")
        told(down, "PartitionDown")
        assert process.wait(180) != 0
        assert {note["job"].split("-")[1] for note in run.jobs} == {str(launch), str(user)}
        assert "Trying to restart" not in run.said
        last = r"error in score/(\d)\.\w+: Slurm never started it: (\w+) \(partition"
        assert re.findall(last, run.said) == [
            (str(admin), "JobHeldAdmin"),
            (str(constraint), "BadConstraints"),
            (str(dependency), "DependencyNeverSatisfied"),
            (str(down), "PartitionDown"),
        ]
        assert not cluster.run("squeue", "-h").strip()
        run.finish(run.start(cluster))
    seen("Slurm cannot start a job on a node, and holds it", "told, and released", run)
    follows = "told and failed; the same command takes up the run"
    seen("A job would wait for ever, for a reason of Slurm's", follows, run)


def feature(cluster: Slurm, node: str, name: str) -> None:
    both = [f"AvailableFeatures={name}", f"ActiveFeatures={name}"]
    cluster.run("scontrol", "update", f"NodeName={node}", *both)
