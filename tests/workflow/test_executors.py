"""What the profiles ask of each executor, in the words of its plugin."""

import ast
import json
import os
import re
import subprocess
import sys

import pytest

from project import ROOT, environment

PLUGINS = ROOT / ".venv/executors"
pytestmark = pytest.mark.skipif(not PLUGINS.is_dir(), reason="needs envs/executors.txt: make test")
SITE = {
    "awsbatch": "--aws-batch-region eu --aws-batch-job-queue q --aws-batch-job-role r",
    "googlebatch": "--googlebatch-project p --googlebatch-region eu",
}
PROFILES = ("generic", "lsf", "sge", "kubernetes", "awsbatch", "googlebatch")


@pytest.fixture(scope="module")
def descriptions(demo):
    """By profile and rule, what the plugin would submit."""

    def start(profile):
        paths = [PLUGINS, ROOT / ".venv/cluster", environment()["PYTHONPATH"]]
        device = {"device": "auto"}  # the demo ran on the CPU, and nothing else may be planned
        command = demo.command(
            *("--rerun-triggers", "mtime", "--forcerun", "score", "collect"),
            **demo.settings | device,
        )
        cores = command.index("--cores")
        options = command[3:cores] + command[cores + 2 :]
        return subprocess.Popen(
            [
                *(sys.executable, str(ROOT / "tests/described.py")),
                *(str(ROOT / "workflow/profiles" / profile), *SITE.get(profile, "").split()),
                *options,
            ],
            cwd=demo.folder,
            env=environment() | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    said = {}
    for profile in PROFILES:
        process = start(profile)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        said[profile] = json.loads(out)
    return said


# Where each description says how many GPUs the job has.
GPUS = {
    "generic": r"-l gpu=(\d)",
    "lsf": r"-gpu num=(\d)",
    "sge": r"-l gpu=(\d)",
    "kubernetes": r"'limits': {[^}]*'nvidia.com/gpu': '(\d)'",
    "awsbatch": r"'type': 'GPU', 'value': '(\d)'",
    "googlebatch": r'type_: "nvidia-l4"\n\s*count: (\d)',
}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_job_of_score_asks_for_a_gpu_and_one_of_collect_for_none(descriptions, profile):
    said = descriptions[profile]
    assert re.findall(GPUS[profile], said["score"]) == ["1"]
    assert re.findall(GPUS[profile], said["top"]) == ["1"]
    assert re.findall(GPUS[profile], said["collect"]) in ([], ["0"])


def test_kubernetes_is_not_told_of_gpus_where_a_job_needs_none(descriptions):
    assert "gpu" not in descriptions["kubernetes"]["collect"]


def test_aws_batch_gives_a_job_at_least_the_memory_that_its_rule_asks_for(descriptions):
    """For a pair of cores and memory that it does not know, the plugin takes the least memory."""
    asked = int(re.search(r"h_vmem=(\d+)M", descriptions["generic"]["score"])[1])
    needs = ast.literal_eval(descriptions["awsbatch"]["score"])
    given = {one["type"]: one["value"] for one in needs}
    assert int(given["MEMORY"]) >= asked
