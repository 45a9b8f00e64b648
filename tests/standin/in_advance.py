"""What is compiled, launched and timed by `ahead.compile_all`, and what is then left to do.

`in_advance.py FOLDER` prints [[compilations, launches, benchmarks], ...] as JSON: after the call,
after the work itself, and after other work. Real Triton, its real files, the stand-in driver.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

os.environ["TRITON_CACHE_AUTOTUNING"] = "1"
os.environ["TRITON_CACHE_MANAGER"] = "veff.autotune.manager:Manager"
os.environ["TRITON_CACHE_DIR"] = sys.argv[1]

import kernel
import torch

import standin
from veff.autotune import ahead, ledger

autograd = ThreadPoolExecutor(1)  # launches from a thread of its own, too


def counts():
    done = ledger.counts()
    return [done["compile_misses"], len(standin.launches), done["benchmarks"]]


def run(n, device):
    autograd.submit(lambda: kernel.double[(4,)](torch.zeros(64), n)).result()
    if n == 64:
        raise ValueError("this work needs what a kernel computes")


standin.activate()
ahead.compile_all(run, [64, 63])
found = [counts()]
for n in (63, 1):
    run(n, "cuda")
    found.append(counts())
print(json.dumps(found))
