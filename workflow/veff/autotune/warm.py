"""Fill one cache folder for some work, in processes of their own: `python -m veff.autotune.warm`.

The first process benchmarks and compiles; a second must then need neither. What the second one
read is what a job needs, and goes into the seed.
"""

import contextlib
import ctypes
import importlib
import json
import logging
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC
from pathlib import Path

from veff.autotune import ledger
from veff.autotune.fingerprint import triton_parts

log = logging.getLogger(__name__)

# Called with a work dict and a device, it runs the whole model once at that exact shape and
# returns a hash of the outputs.
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
    first = _run(cache, work)
    second = _run(cache, work)
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


def _run(cache: Path, work: list[dict]) -> dict:
    command = [sys.executable, "-m", "veff.autotune.warm", EXERCISE]
    variables = {
        **os.environ,
        "PYTHONPATH": python_path(),
        "TRITON_CACHE_AUTOTUNING": "1",
        "TRITON_CACHE_DIR": str(cache),
        "TRITON_CACHE_MANAGER": "veff.autotune.manager:Manager",
    }
    done = subprocess.run(
        command, input=json.dumps(work), env=variables, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"warming the autotune cache failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _main(exercise: str) -> None:
    # A job that is killed must not leave this process behind, at work on its GPU.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    module, function = exercise.split(":")
    with contextlib.suppress(ImportError, AttributeError):  # Triton's internals, if they moved
        _compile_ahead()
    run = getattr(importlib.import_module(module), function)
    outputs = [run(item, "cuda") for item in json.load(sys.stdin)]
    said = {"outputs": outputs, "entries": sorted(ledger.entries), "triton": triton_parts()}
    print(json.dumps({**ledger.counts(), **said}))


def _compile_ahead() -> None:
    """Compile a kernel's configurations on all cores before Triton times them one by one."""
    from triton.runtime._async_compile import AsyncCompileMode
    from triton.runtime.autotuner import Autotuner

    time_one = Autotuner._bench

    def compile_all(self, configs, args, meta):
        options = {name: value for name, value in meta.items() if name != "warmup"}
        with (
            ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
            AsyncCompileMode(pool, ignore_errors=True),
        ):
            for config in configs:
                self.fn.warmup(*args, **options, **config.all_kwargs())

    def bench(self, *args, config, **meta):
        configs = self.prune_configs(meta)
        if config is configs[0]:
            with contextlib.suppress(Exception):  # internals: what fails here is compiled later
                compile_all(self, configs, args, meta)
        return time_one(self, *args, config=config, **meta)

    Autotuner._bench = bench


if __name__ == "__main__":
    _main(sys.argv[1])
