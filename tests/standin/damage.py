"""What a process reports that finds a cache damaged in one way, and what the next one does.

`damage.py FOLDER` prints {kind: [report of the damaged, report of the next]} as JSON: real Triton,
its real files, the stand-in driver.
"""

import importlib
import json
import os
import shutil
import sys
from pathlib import Path

os.environ["TRITON_CACHE_AUTOTUNING"] = "1"
os.environ["TRITON_CACHE_MANAGER"] = "veff.autotune.manager:Manager"

import kernel
import torch

import standin
from veff.autotune import ledger


def winner(change):
    def damage(cache):
        (file,) = cache.glob("*/*.autotune.json")
        file.write_text(change(file.read_text()))

    return damage


def timings(change):
    def edit(text):
        entry = json.loads(text)
        entry["configs_timings"] = change(entry["configs_timings"])
        return json.dumps(entry)

    return winner(edit)


def configuration(**fields):
    return timings(lambda ts: [[{**config, **fields}, timing] for config, timing in ts])


def group(change):
    def damage(cache):
        for file in cache.glob("*/__grp__*.json"):
            change(file)

    return damage


def beside(pattern, change):
    return group(lambda file: [change(f) for f in file.parent.glob(pattern)])


def elsewhere(file):
    children = json.loads(file.read_text())["child_paths"]
    file.write_text(json.dumps({"child_paths": {c: f"/gone/{c}" for c in children}}))


KINDS = {
    "nothing": lambda cache: None,
    "winner truncated": winner(lambda text: text[: len(text) // 2]),
    "winner empty": winner(lambda text: ""),
    "winner {}": winner(lambda text: "{}"),
    "winner a list": winner(lambda text: "[1]"),
    "winner without timings": timings(lambda ts: []),
    "winner with an unknown field": configuration(num_buffers=2),
    "winner not among the configurations": configuration(num_warps=8),
    "winner that never ran": timings(lambda ts: [[c, [float("inf")] * 3] for c, _ in ts]),
    "winner with no number": timings(lambda ts: [[c, ["fast"] * 3] for c, _ in ts]),
    "winner gone": lambda cache: [f.unlink() for f in cache.glob("*/*.autotune.json")],
    "group truncated": group(lambda file: file.write_text(file.read_text()[:20])),
    "group empty": group(lambda file: file.write_text("")),
    "group a list": group(lambda file: file.write_text("[]")),
    "group without its binary": beside("*.cubin", Path.unlink),
    "group with an empty binary": beside("*.cubin", lambda f: f.write_bytes(b"")),
    "group with truncated metadata": beside("double.json", lambda f: f.write_text("{")),
    "group gone": group(Path.unlink),
    "group with paths elsewhere": group(elsewhere),
}


def run(cache):
    os.environ["TRITON_CACHE_DIR"] = str(cache)
    before = ledger.counts()
    importlib.reload(kernel)  # as in a new process: nothing in memory
    kernel.double[(4,)](torch.zeros(64), 64)
    return {key: n - before[key] for key, n in ledger.counts().items()}


standin.activate()
folder = Path(sys.argv[1])
cold = run(folder / "healthy")
found = {"cold": [cold, cold]}
for kind, damage in KINDS.items():
    cache = folder / kind.replace(" ", "-")
    shutil.copytree(folder / "healthy", cache)
    damage(cache)
    found[kind] = [run(cache), run(cache)]
print(json.dumps(found))
