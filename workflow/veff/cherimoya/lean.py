"""How is Cherimoya imported without what only its training and its drawing of loci need?

Its modules name two functions of tangermeme, which would bring Numba, pandas and readers of
bigWigs into every job: a second of its start. Each is imported when it is first called.
"""

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LATER = ("tangermeme.io", "tangermeme.deep_lift_shap")


class _Later(types.ModuleType):
    """Stands for a module: whatever is asked of it is a function that imports it when called."""

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments, **named):
            return getattr(importlib.import_module(self.__name__), name)(*arguments, **named)

        return call


@contextmanager
def _later(names: tuple[str, ...]) -> Iterator[None]:
    """While this is open, these modules are not imported, unless they are already."""
    stand_ins = {name: _Later(name) for name in names if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


with _later(LATER):
    from cherimoya import Cherimoya, ControlWrapper, cheri

__all__ = ["Cherimoya", "ControlWrapper", "cheri"]
