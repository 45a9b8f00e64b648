"""Which folder of this node holds the choices and binaries for some work: filled if need be.

A folder is an unpacked seed, named by GPU, fingerprint and contents; a job of another run with
the same choices shares it, and nothing in it changes but by a miss. So the run's seed decides
which choices a node uses, not what the node happens to hold.
"""

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from veff.autotune import fingerprint, ledger, node, seeds, warm
from veff.autotune.gpus import Gpu
from veff.autotune.seeds import Seed

log = logging.getLogger(__name__)

# The node's disk is full, read-only, not ours to write to, or also somebody else's.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


def find_or_fill(gpu: Gpu, settings: dict, work: list[dict], places: list[Path]) -> dict:
    """The folder for Triton, filled: {folder, node, seed}.

    Where the node's disk cannot take it, the folder is a temporary one of this process, and
    `node` says so. Raises ledger.Miss where a benchmark is needed and `strict` forbids it.
    """
    try:
        return _in(node.root(settings["cache_dir"]), gpu, settings, work, places)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        log.warning("autotune: the job goes on without the node's cache: %s", error)
    found = _in(node.temporary(), gpu, settings, work, places)
    return {**found, "node": f"{found['node']}, temporary"}


def _in(root: Path, gpu: Gpu, settings: dict, work: list[dict], places: list[Path]) -> dict:
    mark = fingerprint.here(gpu)
    wanted = [settings["seed"], *places] if settings["seed"] else places
    seed = seeds.find(wanted, mark, work, logging.DEBUG, check=False)
    if seed and _holds(root, seed):
        return {"folder": _folder(root, seed), "node": "warm", "seed": seed.id}
    scratch = root / f"scratch-{fingerprint.digest(mark)}"
    with node.lock(scratch.with_suffix(".lock")):
        shutil.rmtree(scratch, ignore_errors=True)  # of a job that was killed under this lock
        try:
            how = "warm"
            # Another job may have published or filled it while this one waited.
            seed = seeds.find(wanted, mark, work, logging.WARNING) or seeds.find(
                node.kept(root), mark, work, logging.DEBUG
            )
            if seed is None:
                if settings["strict"]:
                    raise ledger.Miss(
                        f"autotune: no seed fits {gpu.name}, nothing is cached on this node, and "
                        "autotune: strict forbids a benchmark: run the rule setup on such a node"
                    )
                how = "benchmarked"
                alike = seeds.alike([*wanted, *node.kept(root)], mark)
                seed = _benchmark(scratch, mark, work, alike)
            seed = _publish(seed, places)
            if not _holds(root, seed):
                _restore(seed, _folder(root, seed), scratch)
                node.use(_folder(root, seed) / "seed.tar")
                how = "restored" if how == "warm" else how
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        node.prune(root, settings["max_age_days"], settings["max_size_mb"])
    log.info("autotune: this node's cache for %s is %s", gpu.name, how)
    return {"folder": _folder(root, seed), "node": how, "seed": seed.id}


def _folder(root: Path, seed: Seed) -> Path:
    return root / f"{seed.name}.{seed.id}"


def _holds(root: Path, seed: Seed) -> bool:
    """Whether the seed is unpacked here; if so it is held until this process ends."""
    archive = _folder(root, seed) / "seed.tar"
    with contextlib.suppress(OSError):
        return archive.stat().st_size == seed.size and node.use(archive)
    return False


def _benchmark(scratch: Path, mark: dict, work: list[dict], alike: Iterable[Seed]) -> Seed:
    """Warm in `scratch`, from what seeds for other work decided, and pack what a job needs."""
    log.warning("autotune: benchmarking for %s; this takes a minute", mark["GPU"])
    cache = scratch / "triton"
    cache.mkdir(parents=True)
    for seed in alike:
        seed.unpack(cache)
    done = warm.warm(cache, work)
    return seeds.pack(
        cache,
        done["entries"],
        scratch / "seed.tar",
        fingerprint=mark,
        work=work,
        triton=done["triton"],
    )


def _publish(seed: Seed, places: list[Path]) -> Seed:
    """Leave the seed in the run's folder; returns the one that is there, the first one's."""
    for place in places:
        if place.is_dir():
            try:
                return seeds.publish(seed, place)
            except OSError as error:
                log.warning("autotune: the seed is not published in %s: %s", place, error)
    return seed


def _restore(seed: Seed, folder: Path, scratch: Path) -> None:
    """Unpack aside, then rename: a folder is there whole or not at all."""
    aside = scratch / "restored"
    aside.mkdir(parents=True)
    seed.unpack(aside / "triton")
    seed.copy(aside / "seed.tar")
    shutil.rmtree(folder, ignore_errors=True)  # a damaged one
    os.rename(aside, folder)
