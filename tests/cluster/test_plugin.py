"""Is what we mend of the Slurm plugin, or leave off, still so? Has each test here a limit?"""

import asyncio
import contextlib
from collections import defaultdict
from importlib.metadata import version
from types import SimpleNamespace

import pytest
from packaging.version import Version

from veff import slurm


@pytest.fixture
def asked(monkeypatch):
    """`asked()`: what a plugin told to use squeue asks, where the controller does not answer."""
    import snakemake_executor_plugin_slurm as plugin

    commands = []

    async def query(command, logger):
        commands.append(command.split()[0])
        return {}, 0

    monkeypatch.setattr(plugin, "get_min_job_age", lambda: None)
    monkeypatch.setattr(plugin, "is_query_tool_available", lambda tool: True)
    monkeypatch.setattr(plugin, "query_job_status", query)
    settings = {"init_seconds_before_status_checks": 20, "status_attempts": 1}
    quiet = SimpleNamespace(**dict.fromkeys(("debug", "info", "warning"), lambda *_: None))
    executor = SimpleNamespace(
        workflow=SimpleNamespace(executor_settings=SimpleNamespace(**settings)),
        logger=quiet,
        status_rate_limiter=contextlib.nullcontext(),
        get_status_command=lambda: "squeue",
        run_uuid="run",
        next_seconds_between_status_checks=0,
        _status_query_calls=0,
        _status_query_total_seconds=0,
        _status_query_min_seconds=0,
        _status_query_max_seconds=0,
        _status_query_cycle_rows=[],
    )
    job = SimpleNamespace(external_jobid="1", aux=defaultdict(str))
    check = plugin.Executor.check_active_jobs

    async def look():
        return [one async for one in getattr(check, "__wrapped__", check)(executor, [job])]

    def of():
        assert asyncio.run(look()) == [job]
        return commands.pop()

    of.plugin = plugin
    return of


def test_the_plugin_still_needs_to_be_kept_to_squeue(asked):
    assert asked() == "sacct", "it keeps to squeue: veff.slurm.keep_to_squeue can go"


def test_the_plugin_is_kept_to_squeue(asked):
    slurm.keep_to_squeue(asked.plugin)
    assert asked() == "squeue", "raise veff.slurm.TURNS_TO_SACCT to this plugin's version"


def test_the_mended_version_is_the_pinned_one():
    assert Version(version("snakemake-executor-plugin-slurm")) == slurm.TURNS_TO_SACCT


def test_the_plugins_arrays_still_leave_ready_jobs_lying():
    """Why the profile has none (docs/cluster.md): of twelve ready jobs four may be submitted."""
    import snakemake_executor_plugin_slurm as plugin

    class Array:
        array_jobs = frozenset({"score"})
        max_array_size = 1000
        logger = SimpleNamespace(debug=lambda _: None)
        submitted = False
        _main_event_loop = None

        def _submit_array_jobs(self, jobs):
            self.submitted = True

        _submit_job = _submit_array_jobs

    ready = [SimpleNamespace(rule=SimpleNamespace(name="score"), is_group=bool) for _ in range(12)]
    array = Array()
    array.workflow = SimpleNamespace(dag=SimpleNamespace(ready_jobs=ready[4:]))
    plugin.Executor.run_jobs(array, ready[:4])
    assert not array.submitted, "they are submitted now: the profile may have arrays"


def test_no_test_on_a_slurm_can_outlive_its_limit(request):
    here = [one for one in request.session.items if one.path.parent == request.path.parent]
    assert {one.get_closest_marker("timeout").args for one in here} == {(900,)}
