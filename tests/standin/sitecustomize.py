"""Read by every Python process that has this folder on PYTHONPATH, with `workflow`: the cache is
warmed with the stand-in driver, on a torch without CUDA, where STANDIN_GPUS names GPUs."""

import atexit
import contextlib
import gc
import os

gc.disable()  # as tests/quick does
atexit.register(gc.freeze)
if os.environ.get("STANDIN_GPUS"):
    with contextlib.suppress(ImportError):
        from veff.autotune import gpus, warm

        gpus.torch_has_cuda = lambda: True
        warm.EXERCISE = "standin:exercise"
