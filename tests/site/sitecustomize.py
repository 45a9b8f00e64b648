"""Read by every Python process that a test starts.

Most of what they do is import PyTorch or Snakemake, and a third of that is looking for garbage, at
the end once more. Where STANDIN_GPUS names GPUs, the cache is warmed with the stand-in driver (of
`tests/standin`, on PYTHONPATH with `workflow`), on a torch without CUDA. On a Slurm of the tests a
process is first on one of its nodes.
"""

import atexit
import contextlib
import gc
import os

gc.disable()
atexit.register(gc.freeze)
if "VEFF_SLURM" in os.environ:
    import on_node

    on_node.arrive()
if os.environ.get("STANDIN_GPUS"):
    with contextlib.suppress(ImportError):
        from veff.autotune import gpus, warm

        gpus.torch_has_cuda = lambda: True
        warm.EXERCISE = "standin:exercise"
