"""How is work done in forks of this process, which start in milliseconds with all it imported?"""

import contextlib
import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

_FORK = multiprocessing.get_context("fork")


def die_with_parent() -> None:
    """A job that is killed must not leave this process behind, at work on its GPU."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def pool(n: int) -> ProcessPoolExecutor:
    """`n` forks that make calls."""
    return ProcessPoolExecutor(n, _FORK, die_with_parent)


def forked(function: Callable, *arguments):
    """What `function` returns, or raises, in a fork."""
    with pool(1) as one:
        return one.submit(function, *arguments).result()


def on_all_cores(calls: Sequence[Callable[[], object]]) -> None:
    """Make the calls, in a fork for each core, for what they leave on disk; one that fails is
    passed over."""
    taken = _FORK.Value("i")

    def work():
        die_with_parent()
        while True:
            with taken.get_lock():
                mine = taken.value
                taken.value += 1
            if mine >= len(calls):
                return
            with contextlib.suppress(Exception):
                calls[mine]()

    workers = [_FORK.Process(target=work) for _ in range(_cores(len(calls)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _cores(most: int) -> int:
    return min(len(os.sched_getaffinity(0)), most)
