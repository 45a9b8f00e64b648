"""Compile what some work launches, on all cores, before any of it runs.

Triton compiles a kernel when it is first launched, and the configurations of one one after the
other. Here the work is done once with launches that only note what is to be compiled: its results
are of no use, and what its course hides from this pass is compiled later, as without it. Forks do
it, since threads, which wait for Python's lock, gained nothing on 16 cores.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future

from veff import forks
from veff.autotune import known


class _Undecided(Exception):
    """No choice is cached; `args[0]` are the configurations that will be timed."""


def compile_all(run: Callable, work: list) -> None:
    """Compile for each `run(item, "cuda")`, into Triton's cache and this process.

    What fails here, Triton's internals that moved included, fails later with its own message.
    """
    with contextlib.suppress(Exception), _only_compiling(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for item in work:
            with contextlib.suppress(Exception):
                run(item, "cuda")


@contextlib.contextmanager
def _only_compiling() -> Iterator[None]:
    """While this is open, no kernel is launched or timed; at its end each is compiled, in the
    configuration chosen for it, or in all, for the arguments that these will be timed with."""
    from triton.runtime import _async_compile
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    launch, tune, check = JITFunction.run, Autotuner.run, Autotuner.check_disk_cache

    def note_one(self, *args, grid, warmup, **meta):
        before = _async_compile.active_mode.set(mode)  # autograd launches from another thread
        try:
            return launch(self, *args, grid=grid, warmup=True, **meta)
        finally:
            _async_compile.active_mode.reset(before)

    def note_each(self, *args, **meta):
        try:
            tune(self, *args, **meta)
        except _Undecided as undecided:
            for config in undecided.args[0]:
                self.fn.run(*args, **meta, **config.all_kwargs())

    met = set()

    def decided(self, key, configs, _):
        def undecided():
            found = known.of(self.base_fn.__name__, key, configs)
            again = (self, key) in met
            met.add((self, key))
            raise _Undecided(found[:1] if found else () if again else configs)

        return check(self, key, configs, undecided)

    noted = _Noted()
    with _async_compile.AsyncCompileMode(noted, ignore_errors=True) as mode:
        try:
            JITFunction.run, Autotuner.run = note_one, note_each
            Autotuner.check_disk_cache = decided
            yield
        finally:
            JITFunction.run, Autotuner.run = launch, tune
            Autotuner.check_disk_cache = check
            noted.compile()


class _Noted(Executor):
    """Compilations that are made all at once: in forks, which leave them in Triton's cache, and
    then here, where each is read from there."""

    def __init__(self):
        self._calls: list[tuple[Callable, Future]] = []

    def submit(self, call: Callable) -> Future:
        self._calls.append((call, Future()))
        return self._calls[-1][1]

    def compile(self) -> None:
        forks.on_all_cores([lambda call=call: _built(call()) for call, _ in self._calls])
        for call, future in self._calls:
            try:
                future.set_result(call())
            except Exception as error:
                future.set_exception(error)


def _built(kernel) -> None:
    """Have the launcher of a compiled kernel built too, with a C compiler."""
    from triton.runtime import driver

    driver.active.launcher_cls(kernel.src, kernel.metadata)
