"""Triton's cache manager with nothing taken on trust: Triton loads it by the variable
TRITON_CACHE_MANAGER (or `knobs.cache.manager_class`), version 3.6 to 3.9.

Triton's own reads a damaged file and crashes, and follows absolute paths, so that a copied cache
compiles again. This one checks what it reads, heals it from the node's seed archive where it can,
takes it for missing where it cannot, finds a group's files beside the group, and counts.
"""

import contextlib
import errno
import functools
import json
import logging
import math
import os
import sys
import time
import uuid
from pathlib import Path

from triton.runtime.autotuner import Config
from triton.runtime.cache import FileCacheManager

from veff.autotune import ledger, node
from veff.autotune.fingerprint import differences, triton_parts
from veff.autotune.seeds import BAD, Seed, sha256

log = logging.getLogger(__name__)

WINNER = ".autotune.json"
PASSING = (errno.EBUSY, errno.ENOENT, errno.ESTALE)  # another process replaced or pruned it


class Manager(FileCacheManager):
    def __init__(self, key, override=False, dump=False):
        self._counted = not (override or dump)
        try:
            super().__init__(key, override=override, dump=dump)
        except OSError:  # a new entry's folder in a read-only or full cache
            if not self._counted:
                raise
        ledger.entries.add(key)

    def get_file(self, filename):
        """The path of one cached file, None where it is missing or cannot be trusted."""
        if not self._counted:
            return super().get_file(filename)
        sound = self._sound(filename)
        if filename.endswith(WINNER):
            return self._winner(filename, sound)
        ledger.count("build_hits" if sound else "build_misses")
        return self._make_path(filename) if sound else None

    def get_group(self, filename):
        """The files of a compiled kernel, {name: path}: all of them, beside the group, or None."""
        if not self._counted:
            return super().get_group(filename)
        group = self._group(filename)
        ledger.count("compile_hits" if group else "compile_misses")
        return group

    def put(self, data, filename, binary=True):
        """Write one file; where the cache cannot take it, into a temporary folder of this process,
        so that the job goes on."""
        data = data if isinstance(data, bytes) else str(data).encode()
        if filename.endswith(WINNER):
            ledger.count("benchmarks", len(json.loads(data)["configs_timings"]))
        return self._keep(data, filename)

    def _keep(self, data: bytes, filename: str) -> str:
        try:
            return _write(Path(self.cache_dir), filename, data)
        except OSError as error:
            if ledger.counts()["unwritten"] == 0:
                log.warning("autotune: this job's cache is not kept: %s", error)
            ledger.count("unwritten")
            return _write(node.temporary() / self.key, filename, data)

    def _winner(self, filename: str, sound: bool) -> str | None:
        caller = sys._getframe(2).f_locals  # Autotuner.check_disk_cache, for what get_file lacks
        path = self._make_path(filename)
        if sound:
            reason = _unusable(path, caller.get("configs"))
            if not reason:
                ledger.count("autotune_hits")
                return path
            log.warning("autotune: %s is ignored and will be replaced: %s", path, reason)
            ledger.count("repaired")
        ledger.count("autotune_misses")
        kernel, key = filename.removesuffix(WINNER), caller.get("tuning_key", self.key)
        missed = f"autotune: no cached choice for kernel {kernel} with key {key}{self._why()}"
        if ledger.strict:
            raise ledger.Miss(f"{missed}; strict forbids a benchmark: warm it with rule setup")
        log.warning("%s: benchmarking", missed)
        return None

    def _why(self) -> str:
        seed = _seed(Path(self.cache_dir).parents[1])
        differs = differences(seed.triton, triton_parts()) if seed else ""
        return f" ({differs})" if differs else ""

    def _group(self, filename: str) -> dict[str, str] | None:
        name = f"__grp__{filename}"
        if not self._sound(name):
            return None
        try:
            children = list(json.loads(Path(self._make_path(name)).read_text())["child_paths"])
            whole = filename in children and all([self._sound(child) for child in children])
            if whole:
                json.loads(Path(self._make_path(filename)).read_text())
        except (OSError, ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            log.warning("autotune: %s is incomplete and will be replaced", self._make_path(name))
            ledger.count("repaired")
            return None
        return {child: self._make_path(child) for child in children}

    def _sound(self, filename: str) -> bool:
        """Whether a file is there and, if the node's seed has it, as it was: healed if not."""
        path = Path(self._make_path(filename))
        data = _read(path)
        seed = _seed(path.parents[2])
        entry = f"{self.key}/{filename}"
        if seed is None or entry not in seed.files:
            # An empty .json is for its reader to reject; anything else that is empty is damaged.
            return data is not None if filename.endswith(".json") else bool(data)
        if data is not None and sha256(data) == seed.files[entry]:
            return True
        healthy = seed.read(entry)
        if healthy is None:
            return False
        ledger.count("repaired")
        healed = self._keep(healthy, filename) == str(path)
        log.warning("autotune: %s was damaged: %s", path, "healed" if healed else "not healed")
        return healed


def _unusable(path: str, configs: list | None) -> str:
    """Why the file `path` gives no choice among `configs`, '' if it does."""
    try:
        timings = json.loads(Path(path).read_text())["configs_timings"]
        best = {str(Config(**config)): timing for config, timing in timings}
        winner = min(best, key=best.get)
        if not math.isfinite(best[winner][0]):
            return "no configuration in it ran"
        if configs is not None and not best.keys() <= set(map(str, configs)):
            return "it has a configuration that is not among the kernel's"
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _read(path: Path) -> bytes | None:
    for _ in range(2):
        try:
            return path.read_bytes()
        except OSError as error:
            if error.errno != errno.ESTALE:  # stale once: opened anew, it is the new file
                return None
    return None


def _write(folder: Path, filename: str, data: bytes) -> str:
    """Write aside in the same folder, then rename.

    Triton's own makes a folder for each file and removes it, with the empty ones above: on a
    network file system that fails with EBUSY after the file is in place (triton issue 11512).
    """
    path = folder / filename
    for attempt in range(3):
        aside = folder / f".{uuid.uuid4().hex}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(data)
            os.replace(aside, path)
            return str(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                aside.unlink()
            if error.errno not in PASSING or attempt == 2:
                raise
            time.sleep(0.01)


@functools.cache
def _seed(folder: Path) -> Seed | None:
    """The archive that this node's cache was unpacked from; none while one is being made."""
    try:
        return Seed(folder / "seed.tar")
    except BAD:
        return None
