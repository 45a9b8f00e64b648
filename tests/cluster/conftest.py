"""A run that all tests on Slurm start from, and the record of faults."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest

from cluster import slurm
from cluster.runs import RESULTS, Run, make_inputs, run_here

LIMIT_S = 900  # of a test with what it waits for: what hangs must not hang for ever


def pytest_collection_modifyitems(items):
    reason = slurm.unable()
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(LIMIT_S))
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def whole(tmp_path_factory, worker_id):
    """The run from end to end on a cold Slurm, with what a run on this machine gave as `here`."""
    base = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        base = base.parent  # the processes of pytest-xdist share it
    folder = base / "whole"
    with (base / "whole.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = Run(folder)
        if not (folder / "done").exists():
            folder.mkdir()
            make_inputs(folder)
            with slurm.Slurm() as cluster:
                process = run.start(cluster, target="all")
                run_here(folder)
                run.finish(process)
                shutil.copytree(cluster.local("n1"), folder / "disk")
            (folder / "done").touch()
    run.here = {name: (folder / "here" / name).read_bytes() for name in RESULTS}
    return run


@pytest.fixture
def record_faults(tmp_path_factory, worker_id):
    """Adds a row to the file that FAULTS names (`tests/cluster/faults.json`, for the docs), or to
    one among pytest's."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent
    path = Path(os.environ.get("FAULTS") or base / "faults.json")

    def add(**row) -> None:
        with (base / "faults.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = json.loads(path.read_text()) if path.exists() else []
            rows = [old for old in rows if old["fault"] != row["fault"]] + [row]
            rows.sort(key=lambda one: one["fault"].strip("`"))
            path.write_text(json.dumps(rows, indent=1) + "\n")

    return add
