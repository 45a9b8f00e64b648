"""What a job finds on a node of `tests/cluster/slurm.py`: `tests/site` lets it arrive there.

The node's GPUs, with the stand-in driver behind them: the cache is filled and read for real, and
as torch has no CUDA, the scores are made on the CPU. Each scoring job notes where it runs, on
which GPU, and when, and then does what the test planned for it, if anything.

VEFF_SLURM is the folder of the Slurm; in the folder that Snakemake runs in, `jobs` holds the
notes, and `plan.json` says for a chunk what its first, second, … start does.
"""

import json
import os
import re
import subprocess
import sys
import time
import types
from pathlib import Path


def gpus_of_this_node() -> bool:
    node = os.uname().nodename
    names = Path(os.environ.get("VEFF_SLURM", "/none"), f"gpus.{node}")
    if names.is_file():
        os.environ["STANDIN_GPUS"] = names.read_text()
        os.environ["STANDIN_UUID"] = f"GPU-{node}-"
        os.environ["STANDIN_STEP"] = "6"
    return names.is_file()


def watch_scoring_jobs() -> None:
    from veff import autotune

    enable, report = autotune.enable, autotune.report
    work = []

    def enable_and_note(settings=None, wanted=(), seeds=()):
        enabled = enable(settings, wanted, seeds)
        if wanted:
            import torch

            from veff.cherimoya import engine

            engine.device = lambda setting: torch.device("cpu")
        if wanted and hasattr(sys.modules["__main__"], "snakemake"):
            work[:] = wanted
            act(note())
        return enabled

    def read_the_cache_and_report():
        """The job's kernels, launched under the stand-in driver: do they find their choices?"""
        if work:
            import standin

            for one in work:
                standin.exercise(one, "cuda")
        return report()

    autotune.enable, autotune.report = enable_and_note, read_the_cache_and_report


def note() -> str:
    """Write down this start of a scoring job; returns what the test plans for it."""
    from veff.autotune import gpus

    snakemake = sys.modules["__main__"].snakemake
    name = "-".join([snakemake.rule, *snakemake.wildcards])
    folder = Path("jobs")
    folder.mkdir(exist_ok=True)
    before = len(list(folder.glob(f"{name}.*")))
    said = {
        "job": name,
        "start": before,
        "time": time.time(),
        "node": os.uname().nodename,
        "slurm_job": os.environ["SLURM_JOB_ID"],
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "given": given_by_slurm(),
        "gpu": gpus.claim().uuid,
        "resources": dict(snakemake.resources.items()),
    }
    aside = Path(f".{name}.{before}")  # the test may look at any moment
    aside.write_text(json.dumps(said))
    aside.rename(folder / f"{name}.{before}")
    plan = Path("plan.json")
    planned = json.loads(plan.read_text()) if plan.is_file() else {}
    steps = planned.get(name.split("-")[1], [])  # by chunk
    return steps[before] if before < len(steps) else ""


def given_by_slurm() -> str:
    """The number of this job's GPU on its node, as the controller has it."""
    command = ["scontrol", "show", "job", "-d", os.environ["SLURM_JOB_ID"]]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    return ",".join(re.findall(r"GRES=gpu:\w+:1\(IDX:(\d+)\)", said))


def act(planned: str) -> None:
    match planned.partition(":"):
        case "wait", _, file:  # until the test makes the file
            while not Path(file).exists():
                time.sleep(0.1)
        case "memory", _, _:
            # More than the first attempt has, less than the second.
            held = bytearray(1_500_000_000)
            held[::4096] = b"1" * len(held[::4096])
            time.sleep(5)


def without_efficiency_report() -> None:
    """The plugin's, which nobody asks for here: it imports pandas each time Snakemake starts."""
    module = types.ModuleType("snakemake_executor_plugin_slurm.efficiency_report")
    module.create_efficiency_report = None
    sys.modules[module.__name__] = module


def arrive() -> None:
    without_efficiency_report()
    # Snakemake itself, which each job starts twice, needs none of the rest.
    if "snakemake" not in sys.orig_argv and gpus_of_this_node():
        watch_scoring_jobs()
