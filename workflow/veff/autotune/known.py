"""Which configuration of a kernel is the fastest on a GPU model that was measured?

`known.json` has, for each of these models, {kernel: [{"key": Triton's key, "config": what of the
configuration decides, "ms": what it took}]}; `tests/bench/known_choices.py` writes it from a run's
seeds. A choice is taken where one timing confirms it, in place of one of each configuration.
"""

import contextlib
import functools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

TABLE = Path(__file__).with_name("known.json")
LAUNCH = ("num_warps", "num_stages", "maxnreg")
SLACK = 1.5  # how many times what it took a choice may take and still be one


def of(kernel: str, key: Sequence, configs: Sequence) -> tuple | None:
    """The configuration of these that is known to be the fastest on this GPU, and its ms."""
    for one in _table().get(_gpu(), {}).get(kernel, ()):
        if one["key"] == list(key):
            for config in configs:
                if plain(config) == one["config"]:
                    return config, one["ms"]
    return None


def plain(config) -> dict:
    """What decides of a Triton configuration."""
    return config.kwargs | {name: getattr(config, name) for name in LAUNCH}


@contextlib.contextmanager
def trusted() -> Iterator[None]:
    """While this is open, Triton times only what is known of a kernel, or all where that is slow
    or fails here."""
    from triton.runtime.autotuner import Autotuner

    check, time_one = Autotuner.check_disk_cache, Autotuner._bench
    only: list = []

    def confirmed(self, key, configs, benchmark):
        def benchmark_known():
            known = of(self.base_fn.__name__, key, configs)
            if known:
                only.append(known[0])
                try:
                    benchmark()
                finally:
                    only.clear()
            if not known or not self.configs_timings[known[0]][0] <= SLACK * known[1]:
                benchmark()

        return check(self, key, configs, benchmark_known)

    def bench(self, *args, config, **meta):
        if only and config is not only[0]:
            return [math.inf] * 3
        return time_one(self, *args, config=config, **meta)

    Autotuner.check_disk_cache, Autotuner._bench = confirmed, bench
    try:
        yield
    finally:
        Autotuner.check_disk_cache, Autotuner._bench = check, time_one


@functools.cache
def _table() -> dict:
    return json.loads(TABLE.read_text())


@functools.cache
def _gpu() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""
