"""Read by every Python process of a run in the tests. Most of what they do is import PyTorch or
Snakemake, and a third of that is looking for garbage, at the end once more."""

import atexit
import gc

gc.disable()
atexit.register(gc.freeze)
