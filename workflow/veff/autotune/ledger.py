"""What this process hit, missed and repaired in the cache: counts that the manager fills."""

import threading
from collections import Counter

KEYS = (
    "autotune_hits",  # a kernel's choice came from the cache
    "autotune_misses",  # a kernel had to be benchmarked
    "benchmarks",  # configurations timed for those misses
    "repaired",  # damaged entries healed or replaced
    "compile_hits",
    "compile_misses",
    "build_hits",  # launchers and driver bindings, which Triton builds with a C compiler
    "build_misses",
    "unwritten",  # entries that could not be written: disk full or read-only
)

_lock = threading.Lock()
_counts: Counter = Counter()

entries: set[str] = set()  # names of the cache's folders that this process read or wrote
strict = False  # a miss is an error


class Miss(RuntimeError):
    """A kernel's choice is not cached, and `autotune: {strict: true}` forbids a benchmark."""


def count(key: str, n: int = 1) -> None:
    with _lock:
        _counts[key] += n


def counts() -> dict[str, int]:
    with _lock:
        return {key: _counts[key] for key in KEYS}
