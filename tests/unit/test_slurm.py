"""Jobs that Slurm would never start: what is told, released, cancelled; without a Slurm."""

import asyncio
import sys
from types import SimpleNamespace

import pytest

from veff import slurm


class Queue:
    """Stands in for Slurm's commands: `why` has the reason of each job that it holds back."""

    def __init__(self, **why):
        self.why = {name.lstrip("_"): reason for name, reason in why.items()}
        self.asked = []
        self.answers = True

    async def run(self, *command):
        if command[0] == "squeue":
            return "".join(f"{name}|gpu|{why}\n" for name, why in self.why.items())
        self.asked.append(command)
        return "" if self.answers else None


class Executor:
    """What the plugin's executor has of what is used."""

    run_uuid = "run"

    def __init__(self):
        self.said, self.failed = [], []
        self.logger = SimpleNamespace(warning=self.said.append)

    def report_job_error(self, info, msg):
        self.failed.append((info.external_jobid, info.job._attempt, msg))


@pytest.fixture
def looked(monkeypatch, tmp_path):
    """`looked(queue, times)`: an executor with jobs 7 and 8 that has looked so often."""

    def of(queue, times):
        monkeypatch.setattr(slurm, "_run", queue.run)
        executor = Executor()
        waiting = slurm.Waiting(executor)
        jobs = {
            name: SimpleNamespace(
                external_jobid=name,
                job=SimpleNamespace(
                    name="score",
                    wildcards_dict={"chunk": name},
                    log=[str(tmp_path / f"logs/{name}.log")],
                    _attempt=1,
                    restart_times=3,
                ),
            )
            for name in ("7", "8")
        }
        for _ in range(times):
            for ended in asyncio.run(waiting.look(list(jobs.values()))):
                del jobs[ended]
        return executor

    return of


def test_a_job_is_told_of_once_with_its_reason_and_what_to_do(looked):
    executor = looked(Queue(_7="JobHeldUser", _8="JobHeldUser", _9="JobHeldUser"), 5)
    assert executor.said == [
        "Stuck in Slurm's queue: score (chunk 7), Slurm job 7; score (chunk 8), Slurm job 8: "
        "JobHeldUser (partition gpu): you hold it: scontrol release 7,8; the run waits"
    ]
    assert executor.failed == []


@pytest.mark.parametrize(
    "why",
    [
        "JobHeldAdmin",
        "BadConstraints",
        "DependencyNeverSatisfied",
        "PartitionDown",
        "PartitionTimeLimit",
        "QOSMaxWallDurationPerJobLimit",
        "InvalidAccount",
    ],
)
def test_what_only_people_can_mend_fails_for_good_and_leaves_its_line(looked, why, tmp_path):
    queue = Queue(_7=why)
    assert looked(queue, 1).failed == []
    executor = looked(queue, 2)
    ((name, attempt, line),) = executor.failed
    assert (name, attempt) == ("7", 4)  # after the last of three retries
    assert line.startswith(f"Slurm never started it: {why} (partition gpu): ")
    assert queue.asked == [("scancel", "7")]
    assert (tmp_path / "logs/7.log").read_text().endswith(f" ERROR {line}\n")


@pytest.mark.parametrize("why", ["None", "Priority", "Resources", "BeginTime", "Dependency"])
def test_what_ends_by_itself_is_left_alone(looked, why):
    queue = Queue(_7=why)
    executor = looked(queue, 3)
    assert (executor.said, executor.failed, queue.asked) == ([], [], [])


@pytest.mark.parametrize("between", " _")  # Slurm's words, and since its version 23
def test_a_failed_launch_is_released_twice_and_then_submitted_anew(looked, between):
    queue = Queue(_7=between.join(["launch", "failed", "requeued", "held"]))
    executor = looked(queue, 3)
    assert queue.asked == [("scontrol", "release", "7")] * 2
    executor = looked(queue, 4)
    assert queue.asked[-1] == ("scancel", "7")
    assert [(name, attempt) for name, attempt, _ in executor.failed] == [("7", 1)]


def test_a_job_that_cannot_be_cancelled_has_not_failed(looked):
    queue = Queue(_7="JobHeldAdmin")
    queue.answers = False
    assert looked(queue, 3).failed == []


@pytest.fixture
def plugin(monkeypatch):
    class Plugged(Executor):
        next_seconds_between_status_checks = 180

        def get_status_command(self):
            return "sacct"

        async def check_active_jobs(self, active_jobs):
            for one in active_jobs:
                yield one

    module = SimpleNamespace(Executor=Plugged)
    monkeypatch.setitem(sys.modules, "snakemake_executor_plugin_slurm", module)
    slurm.attend()
    slurm.attend()  # a workflow may be read twice
    return module


async def all_of(several):
    return [one async for one in several]


def test_slurm_is_asked_at_least_every_half_minute(plugin, monkeypatch):
    monkeypatch.setattr(slurm, "_run", Queue().run)
    executor = plugin.Executor()
    jobs = [SimpleNamespace(external_jobid="7", job=None)]
    assert asyncio.run(all_of(executor.check_active_jobs(jobs))) == jobs
    assert executor.next_seconds_between_status_checks == 30


def test_an_executor_that_is_not_yet_made_is_not_asked_for_its_jobs(plugin, monkeypatch):
    """Its thread looks for the first time while it is made."""
    monkeypatch.delattr(Executor, "run_uuid")
    assert asyncio.run(all_of(plugin.Executor().check_active_jobs([]))) == []
