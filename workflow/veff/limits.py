"""How is a file that may be hostile opened, without harm to the job that opens it?"""

import gc
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class Exceeded(RuntimeError):
    """What was run took more than it may, or took its process down; the message says which."""


def within(seconds: int, memory: int, function: Callable[..., T], *arguments) -> T:
    """`function(*arguments)`, from a child process that may take so many seconds of a processor
    and so many bytes of memory beyond what this process has.

    The child is a fork, so that it starts in milliseconds with all that is imported. Elsewhere
    than on Linux, where neither can be relied on, the call is made here. Raises Exceeded, and
    what `function` raises.
    """
    if sys.platform != "linux":
        return function(*arguments)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(
        target=_run, args=(sender, seconds, memory, function, arguments), daemon=True
    )
    child.start()
    sender.close()
    try:
        failed, answer = receiver.recv()
    except EOFError:
        failed, answer = True, None
    finally:
        receiver.close()
        child.join()
    if answer is None and failed:
        answer = Exceeded(_cause(child.exitcode, seconds))
    elif isinstance(answer, MemoryError):
        answer = Exceeded(f"more than {memory >> 30} GB of memory")
    if failed:
        raise answer
    return answer


def _run(sender, seconds: int, memory: int, function: Callable, arguments: tuple) -> None:
    gc.disable()  # it would touch, and so copy, all that is imported
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_AS, pages * os.sysconf("SC_PAGE_SIZE") + memory)
    try:
        answer = False, function(*arguments)
    except Exception as error:
        answer = True, error
    sender.send(answer)


def _limit(which: int, value: int) -> None:
    """Lower a limit of this process, not above what it already has."""
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, hard))


def _cause(exitcode: int, seconds: int) -> str:
    if exitcode == -signal.SIGXCPU:
        return f"more than {seconds} s"
    try:
        return f"so much that its process ended with {signal.Signals(-exitcode).name}"
    except ValueError:
        return f"so much that its process ended with status {exitcode}"
