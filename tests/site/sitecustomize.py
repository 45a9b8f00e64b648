"""Read by every Python process that a test starts.

Most of what they do is import PyTorch or Snakemake, and a third of that is looking for garbage, at
the end once more. Where STANDIN_GPUS names GPUs, the cache is warmed with the stand-in driver (of
`tests/standin`, on PYTHONPATH with `workflow`), on a torch without CUDA. On a Slurm of the tests a
process is first on one of its nodes. Where NO_MEMORY_ONCE names a folder that is not there, the
first scoring job to open the bases is told that there is no memory: under a real limit it is a
matter of luck which allocation fails, and what is said of it.
"""

import atexit
import contextlib
import gc
import os
import sys

gc.disable()
atexit.register(gc.freeze)
if "VEFF_SLURM" in os.environ:
    import on_node

    on_node.arrive()
if "NO_MEMORY_ONCE" in os.environ:

    def no_memory(event, args):
        scoring = sys.argv[0].endswith(".score.py")
        if event == "open" and scoring and str(args[0]).endswith("bases.u8"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.environ["NO_MEMORY_ONCE"])
                raise MemoryError

    sys.addaudithook(no_memory)
if os.environ.get("STANDIN_GPUS"):
    with contextlib.suppress(ImportError):
        from veff.autotune import gpus, warm

        gpus.torch_has_cuda = lambda: True
        warm.EXERCISE = "standin:exercise"
