"""Which of a run's Slurm jobs will never start by themselves, and what becomes of them?

Of a job that waits the plugin knows only that it waits, for ever too. Slurm gives a reason, and
some reasons do not go away: they are told when first seen, and what can be done is done at the
next look, should the reason still be there.
"""

import asyncio
import functools
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version

from packaging.version import Version

from veff import job

# Seconds between two looks at most; the plugin's own pause grows to 180.
EVERY_S = 30
SECONDS = 60  # that a command of Slurm may take
NAMED = 5  # jobs in a line
RELEASES = 2  # of one job, before it is submitted anew
# The newest plugin that is known to ask sacct after the jobs, whatever it was told, where the
# controller does not answer for a moment.
TURNS_TO_SACCT = Version("2.8.0")

WAITS, RELEASED, AGAIN, FAILS = "waits", "released", "again", "fails"
FOLLOWS = {
    WAITS: "the run waits",
    RELEASED: "released at the next look",
    AGAIN: "cancelled at the next look, and submitted again as far as retries allow",
    FAILS: "cancelled at the next look, and failed, unless that has changed",
}


@dataclass(frozen=True)
class Reason:
    """A reason of Slurm's (a pattern) that stays, what follows, and what the user can do."""

    pattern: str
    follows: str
    advice: str


REASONS = (
    Reason(
        "launch failed requeued held", RELEASED, "Slurm could not start it on a node (sinfo -R)"
    ),
    Reason(
        "JobHoldMaxRequeue|launch failure limit exceeded requeued held",
        AGAIN,
        "Slurm gave it up, having started it too often",
    ),
    Reason("JobHeldUser", WAITS, "you hold it: scontrol release {jobs}"),
    Reason(
        "JobHeldAdmin", FAILS, "ask the administrators why they hold it, and start the run again"
    ),
    Reason(
        "BadConstraints",
        FAILS,
        "no node has what it asks for: change that (--set-resources, gpu_model, slurm_extra)",
    ),
    Reason(
        "DependencyNeverSatisfied",
        FAILS,
        "the job that slurm_extra has it wait for did not end as it should: name another, or none",
    ),
    Reason(
        "PartitionDown|PartitionInactive",
        FAILS,
        "choose another partition (slurm_partition), or start the run again when it is up",
    ),
    Reason(
        "PartitionTimeLimit|PartitionNodeLimit|.*Max.*PerJob.*",
        FAILS,
        "it asks for more than one job may have: another partition, or less "
        "(--set-resources RULE:runtime=…, or a smaller chunk_size)",
    ),
    Reason(
        "InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed",
        FAILS,
        "set slurm_account, slurm_qos or slurm_partition to what you may use",
    ),
)


def attend() -> None:
    """Have the Slurm plugin, where Snakemake has loaded it, look after the jobs that wait."""
    plugin = sys.modules.get("snakemake_executor_plugin_slurm")
    if plugin is None or hasattr(plugin.Executor.check_active_jobs, "__wrapped__"):
        return
    plugins = plugin.Executor.check_active_jobs

    @functools.wraps(plugins)
    async def check_active_jobs(self, active_jobs):
        if self.get_status_command() == "squeue":
            keep_to_squeue(plugin)
        ended = set()
        if active_jobs:  # at its very first look the executor is not yet made
            ended = await vars(self).setdefault("waiting", Waiting(self)).look(active_jobs)
        async for one in plugins(self, [j for j in active_jobs if j.external_jobid not in ended]):
            yield one
        self.next_seconds_between_status_checks = min(
            self.next_seconds_between_status_checks, EVERY_S
        )

    plugin.Executor.check_active_jobs = check_active_jobs


def keep_to_squeue(plugin) -> None:
    """Keep a plugin from sacct, which without accounting knows of no job: no run would end."""
    if Version(version("snakemake-executor-plugin-slurm")) <= TURNS_TO_SACCT:
        plugin.is_query_tool_available = lambda tool: tool != "sacct"


@dataclass(frozen=True)
class Stuck:
    """Why a job will not start by itself: also in Slurm's words, and in which partition."""

    reason: Reason
    why: str
    partition: str

    def words(self, infos: list) -> str:
        advice = self.reason.advice.format(jobs=",".join(one.external_jobid for one in infos))
        return f"{self.why} (partition {self.partition}): {advice}"


class Waiting:
    """What was seen of the jobs of an executor that wait for what does not come."""

    def __init__(self, executor):
        self.executor = executor
        self.told: dict[str, Stuck] = {}  # by Slurm's id of the job
        self.released: dict[str, int] = {}

    async def look(self, active_jobs: list) -> set[str]:
        """Tell of jobs that are stuck, and end or release those told of before.

        Returns the ids of those that ended: the scheduler knows of them.
        """
        jobs = {one.external_jobid: one for one in active_jobs}
        stuck = {name: one for name, one in (await self._stuck()).items() if name in jobs}
        new = {name: one for name, one in stuck.items() if self.told.get(name) != one}
        for one in dict.fromkeys(new.values()):
            self._tell(one, [jobs[name] for name in new if new[name] == one])
        ended = set()
        for name in stuck.keys() - new.keys():
            if await self._deal_with(stuck[name], jobs[name]):
                ended.add(name)
        self.told = {name: one for name, one in stuck.items() if name not in ended}
        return ended

    async def _stuck(self) -> dict[str, Stuck]:
        """Of the run's jobs that will not start by themselves, by their ids: why."""
        command = ["squeue", "--noheader", "--array", "--format=%i|%P|%r"]
        out = await _run(*command, "--name", self.executor.run_uuid)
        rows = [line.strip().split("|", 2) for line in (out or "").splitlines()]
        return {
            name: Stuck(reason, why, partition)
            for name, partition, why in rows
            if (reason := known(why))
        }

    def _tell(self, stuck: Stuck, infos: list) -> None:
        named = [f"{_called(one.job)}, Slurm job {one.external_jobid}" for one in infos]
        if len(named) > NAMED:
            named[NAMED:] = [f"{len(named) - NAMED} more"]
        self.executor.logger.warning(
            f"Stuck in Slurm's queue: {'; '.join(named)}: {stuck.words(infos)}; "
            f"{FOLLOWS[stuck.reason.follows]}"
        )

    async def _deal_with(self, stuck: Stuck, info) -> bool:
        """Do what follows; whether that ended the job."""
        reason = stuck.reason
        name = info.external_jobid
        if reason.follows == WAITS:
            return False
        if reason.follows == RELEASED and self.released.get(name, 0) < RELEASES:
            self.released[name] = self.released.get(name, 0) + 1
            if await _run("scontrol", "release", name) is not None:
                return False
        if await _run("scancel", name) is None:
            return False  # Slurm does not answer: the next look comes
        line = f"Slurm never started it: {stuck.words([info])}"
        if reason.follows == FAILS:
            # Another attempt would wait as this one did. Not through the setter, which would have
            # the scheduler give back other resources than the job had.
            info.job._attempt = info.job.restart_times + 1
            job.note_fault(info.job.log, line)
        self.executor.report_job_error(info, msg=line)
        return True


def known(why: str) -> Reason | None:
    """The reason that Slurm's words name, None for one that may go away."""
    why = why.replace("_", " ")  # between the words of some, since Slurm 23
    return next((one for one in REASONS if re.fullmatch(one.pattern, why)), None)


def _called(one) -> str:
    wildcards = getattr(one, "wildcards_dict", {})  # a group of jobs has none
    named = ", ".join(f"{key} {value}" for key, value in wildcards.items())
    return f"{one.name} ({named})" if named else one.name


async def _run(*command: str) -> str | None:
    """What a command of Slurm prints, None where it fails or does not end."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        process = await asyncio.create_subprocess_exec(*command, **pipes)
    except OSError:
        return None
    try:
        out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    except TimeoutError:
        process.kill()
        return None
    return None if process.returncode else out.decode(errors="replace")
