"""What is compiled and launched by `ahead.compile_all`, what is then left to do, and how much of
it where the fastest configuration is known.

`in_advance.py FOLDER` prints {step: [compilations, launches]} as JSON, and what was chosen of what
is known. Real Triton, its real files, the stand-in driver.
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
from veff.autotune import ahead, known, ledger

autograd = ThreadPoolExecutor(1)  # launches from a thread of its own, too


def counts(before=(0, 0)):
    now = ledger.counts()["compile_misses"], len(standin.launches)
    return [b - a for a, b in zip(before, now, strict=True)]


def run(n, device):
    autograd.submit(lambda: kernel.double[(4,)](torch.zeros(64), n)).result()
    if n == 64:
        raise ValueError("this work needs what a kernel computes")


standin.activate()
ahead.compile_all(run, [64, 63])
found = {"ahead": counts()}
for step, n in {"work": 63, "other work": 1}.items():
    before = counts()
    run(n, "cuda")
    found[step] = counts(before)

second = known.plain(kernel.CONFIGS[1])
# The stand-in's times are from 0 to 1.
table = [{"key": [n, "torch.float32"], "config": second, "ms": n - 61} for n in (62, 61)]
known._gpu, known._table = lambda: "a GPU", lambda: {"a GPU": {"double": table}}
for step, n in {"known": 62, "known, but slow here": 61}.items():
    ahead.compile_all(run, [n])
    before = counts()
    with known.trusted():
        run(n, "cuda")
    found[step] = counts(before)
    if n == 62:
        found["chosen"] = known.plain(kernel.double.best_config) == second
print(json.dumps(found))
