"""Fill one cache folder for some work, in processes of their own: `python -m veff.autotune.warm`.

The first process compiles and benchmarks; a second must then need neither. What the second one
read is what a job needs, and goes into the seed. Both are forks of one that has imported what
they need and has not touched the GPU.
"""

import gc
import importlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path

from veff import forks
from veff.autotune import ahead, gpus, known, ledger
from veff.autotune.fingerprint import triton_parts

log = logging.getLogger(__name__)

# Called with a work dict and a device, it runs the whole model once at that exact shape and
# returns a hash of the outputs, or None where their bits differ from time to time.
EXERCISE = "veff.cherimoya.warmup:exercise"


class Incomplete(RuntimeError):
    """After warming, a second process still had to benchmark or to compile."""


def warm(cache: Path, work: list[dict]) -> dict:
    """Fill the empty folder `cache` and check it.

    Returns {entries, triton}: the names of the cache's folders that a job reads, and the parts of
    Triton's key.
    Raises OSError where the disk is full, Incomplete where the check failed, RuntimeError with
    its last words where a process failed.
    """
    first, second = _run(cache, work)
    if first["unwritten"] or second["unwritten"]:
        raise OSError(ENOSPC, "no room for the autotune cache", str(cache))
    needed = {k: second[k] for k in ("benchmarks", "compile_misses", "build_misses") if second[k]}
    if needed:
        raise Incomplete(f"autotune: a second process on the warmed cache still had {needed}")
    if first["outputs"] != second["outputs"]:
        log.warning("autotune: the same choices gave two outputs: this model is not deterministic")
    return {"entries": second["entries"], "triton": second["triton"]}


def python_path() -> str:
    """PYTHONPATH of a child that imports veff."""
    ours = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))


def _run(cache: Path, work: list[dict]) -> list[dict]:
    """What the two processes said."""
    command = [sys.executable, "-m", "veff.autotune.warm", EXERCISE]
    variables = {
        **os.environ,
        "PYTHONPATH": python_path(),
        "TRITON_CACHE_AUTOTUNING": "1",
        "TRITON_CACHE_DIR": str(cache),
        "TRITON_CACHE_MANAGER": "veff.autotune.manager:Manager",
    }
    asked = json.dumps({"work": work, "take_turn": not gpus.is_mine()})
    done = subprocess.run(command, input=asked, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"warming the autotune cache failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _main(exercise: str) -> None:
    forks.die_with_parent()
    module, function = exercise.split(":")
    gc.disable()
    run = getattr(importlib.import_module(module), function)
    gc.freeze()  # what is imported stays, and is shared with the forks
    gc.enable()
    asked = json.load(sys.stdin)
    if asked["take_turn"]:
        gpus.claim()
    print(json.dumps([forks.forked(part, run, asked["work"]) for part in (_fill, _said)]))


def _fill(run: Callable, work: list[dict]) -> dict:
    ahead.compile_all(run, work)
    gpus.turn()  # times taken beside another job's work would mislead; both forks have this lock
    with known.trusted():
        return _said(run, work)


def _said(run: Callable, work: list[dict]) -> dict:
    """What a process with this work gave, read, and had to do."""
    outputs = [run(item, "cuda") for item in work]
    said = {"outputs": outputs, "entries": sorted(ledger.entries), "triton": triton_parts()}
    return {**ledger.counts(), **said}


if __name__ == "__main__":
    _main(sys.argv[1])
