"""Triton's persistent autotune cache, made dependable: is it on, where, warm for this work, and
what did this process hit and miss.

A rule script calls `enable` before it imports anything that imports Cherimoya, and `report` at
its end. Rule `setup` calls `setup`, which leaves a seed archive that every node is populated
from: so the choices, and with them the last bits of the scores, are the same on all of them.
Nothing here imports torch or Triton into the calling process before it does so itself.
"""

import importlib.util
import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from veff.autotune import cache, fingerprint, gpus, ledger, seeds, warm
from veff.errors import InputError, Passing
from veff.models.architecture import Architecture

__all__ = ["claim", "enable", "keep", "last_line", "report", "setup", "total", "work"]

log = logging.getLogger(__name__)

DEFAULTS = {
    "device": "auto",
    "gpu_model": None,
    "strict": False,
    "seed": None,
    "cache_dir": None,
    "max_age_days": 30,
    "max_size_mb": 2048,
}

_state: dict = {"node": "none", "gpu": None, "seed": None, "warm_seconds": 0.0}


def enable(settings: dict | None = None, work: Sequence[dict] = (), seeds: Iterable = ()) -> bool:
    """Switch the persistent cache on, before Cherimoya is imported; False without Triton.

    Where `work` is given and the job has an NVIDIA GPU, also take one of the visible GPUs, start
    it, and see to it that this node holds the choices and binaries for `work`: already there,
    restored from one of `seeds` (archives, or folders of them), or benchmarked and then published
    in the first of those folders. `settings` are config["autotune"] with "device" and "gpu_model"
    added.

    Raises RuntimeError if Cherimoya is imported already and its kernels, which have then read the
    switch, are without the cache; InputError where Cherimoya or Triton is too old, where
    `device: cuda` or `gpu_model` finds no GPU that fits, or `cache_dir` cannot hold a cache;
    ledger.Miss under `strict` where the node would have to benchmark.
    """
    fingerprint.check_versions()
    if "cherimoya" in sys.modules and not _knob():
        raise RuntimeError(
            "autotune.enable() must come before cherimoya is imported: the kernels read the "
            "switch when they are defined, and are now without the cache"
        )
    if importlib.util.find_spec("triton") is None:
        return False
    settings = {**DEFAULTS, **(settings or {})}
    _switch_on()
    gpu = claim(settings) if work else None
    if gpu:
        _point_triton_at(_fill(gpu, settings, work, seeds))
        ledger.strict = settings["strict"]
        gpus.start()
    return True


def claim(settings: dict) -> gpus.Gpu | None:
    """The GPU that this process uses, taken among the visible ones; None where it uses the CPU.

    Raises InputError where `device: cuda` or a `gpu_model` finds none that fits.
    """
    settings = {**DEFAULTS, **settings}
    if settings["device"] == "cpu":
        return None
    gpu = gpus.claim(settings["gpu_model"]) if gpus.torch_has_cuda() else None
    if gpu is None and (settings["device"] == "cuda" or settings["gpu_model"]):
        model = settings["gpu_model"]
        raise Passing(  # another node may have one
            f"this job was promised an NVIDIA GPU{f' ({model})' if model else ''}, and "
            f"{os.uname().nodename} shows it none, or its torch is built without CUDA. Nothing is "
            "scored on a CPU unasked: have the profile ask the scheduler for a GPU "
            "(docs/cluster.md), or set device: cpu"
        )
    return gpu


def setup(settings: dict, work: Sequence[dict], folder: Path) -> dict:
    """Warm this node for all of `work` and leave the seed in `folder`.

    Returns which GPU, which seed, how the node got it and in how many seconds, as `report` names
    them; on a machine without a GPU, or with `device: cpu`, it leaves nothing and says so.
    """
    settings = {**DEFAULTS, **settings, "strict": False}
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    gpu = claim(settings) if importlib.util.find_spec("triton") else None
    if gpu and work:
        _fill(gpu, settings, work, [folder])
    return dict(_state)


def keep(folder: Path, seed: str | None) -> list[Path]:
    """Copy the seeds in a run's `folder` to the site's, `seed`; returns where they are.

    Raises InputError where there is no seed to keep, or nowhere to keep it.
    """
    made = []
    for path in sorted(Path(folder).glob("*.tar")):
        try:
            made.append(seeds.Seed(path).check())
        except seeds.BAD as error:
            log.warning("autotune: seed %s is not kept: %s", path, error)
    if not made:
        raise InputError(f"autotune: there is no seed in {folder}: none is made without a GPU")
    if seed is None:
        raise InputError("autotune: seed names no folder to keep the seeds in: set it")
    return [seeds.publish(one, Path(seed)).path for one in made]


def work(
    architectures: Iterable[Architecture],
    sizes: Iterable[int],
    *,
    precision: str,
    engine: str,
    shuffles: int = 0,
) -> list[dict]:
    """The work to come, for each architecture once: to score, in batches of each of these sizes,
    and to attribute with so many shuffles, if any."""
    how = {"precision": precision, "engine": engine}
    tasks = [{"task": "score", "batch_size": size, **how} for size in sizes]
    if shuffles:
        how = {"precision": "fp32", "engine": "cherimoya"}  # attributions are always so
        tasks.append({"task": "attribute", "batch_size": shuffles, **how})
    each = dict.fromkeys(architectures)
    return [architecture.plain() | task for task in tasks for architecture in each]


def report() -> dict:
    """What this process hit, missed and repaired, how its node was populated, and with what; also
    said in the job's log.

    `waited_seconds`: how long another job had the GPU.
    `node`: warm, restored, benchmarked (with ", temporary" where the node's disk could not take
    it) or none.
    `knob`: whether Cherimoya's kernels and ours have the cache on; None where none is imported.
    """
    waited = round(gpus.waited, 3)
    said = {**ledger.counts(), **_state, "waited_seconds": waited, "knob": _knob()}
    log.info("autotune: %s", ", ".join(f"{key} {value}" for key, value in said.items()))
    return said


def total(reports: Iterable[dict]) -> dict:
    """The sum of jobs' reports: {jobs, each count of `ledger.KEYS`, warm_seconds, nodes, gpus}."""
    reports = list(reports)
    return {
        "jobs": len(reports),
        **{key: sum(r[key] for r in reports) for key in (*ledger.KEYS, "warm_seconds")},
        **{
            f"{part}s": {str(v): values.count(v) for v in sorted(set(values), key=str)}
            for part in ("node", "gpu", "seed")
            for values in [[r[part] for r in reports]]
        },
    }


def last_line(total: dict) -> str:
    """The run's last line."""
    return f"autotune: {total['benchmarks']} benchmarks in {total['jobs']} scoring jobs"


def _switch_on() -> None:
    # Triton, since 3.4, reads this variable when the kernels are defined; setting the knob itself
    # would cost half a second of import here, so that is done only where it is already imported.
    os.environ["TRITON_CACHE_AUTOTUNING"] = "1"
    if "triton" in sys.modules:
        sys.modules["triton"].knobs.autotuning.cache = True


def _knob() -> bool | None:
    """Whether all kernels that are imported keep their choices; None where none is."""
    modules = [sys.modules.get(name) for name in ("cherimoya.cheri", "veff.cherimoya.kernels")]
    names = [value for module in modules if module for value in vars(module).values()]
    kernels = [kernel for kernel in names if hasattr(kernel, "cache_results")]
    return all(kernel.cache_results for kernel in kernels) if kernels else None


def _fill(gpu: gpus.Gpu, settings: dict, work: Sequence[dict], seeds: Iterable) -> Path:
    start = time.perf_counter()
    # As JSON gives it back, so that it equals what a seed says it was made for.
    work = json.loads(json.dumps(list(work)))
    found = cache.find_or_fill(gpu, settings, work, [Path(seed) for seed in seeds])
    folder = found.pop("folder")
    seconds = round(time.perf_counter() - start, 3)
    _state.update(found, gpu=gpu.name, warm_seconds=seconds)
    return folder


def _point_triton_at(folder: Path) -> None:
    # Children import the manager too, from wherever they are started.
    os.environ["PYTHONPATH"] = warm.python_path()
    os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
    os.environ["TRITON_CACHE_MANAGER"] = "veff.autotune.manager:Manager"
