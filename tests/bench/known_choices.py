"""Which choices did a run's setup make? They become known ones of its GPU model.

    python tests/bench/known_choices.py SEED.tar [SEED.tar ...]

Reads the seeds in `outdir/autotune` and `outdir/autotune/top` of a run on a GPU of which nothing
was known, and writes what they chose into `workflow/veff/autotune/known.json`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow"))

from triton import Config

from veff.autotune import known, manager
from veff.autotune.seeds import Seed


def main():
    table = json.loads(known.TABLE.read_text())
    for seed in map(Seed, map(Path, sys.argv[1:])):
        of_gpu = table.setdefault(seed.fingerprint["GPU"], {})
        for entry in seed.files:
            if not entry.endswith(manager.WINNER):
                continue
            kernel = Path(entry).name.removesuffix(manager.WINNER)
            held = json.loads(seed.read(entry))
            config, (ms, *_) = min(held["configs_timings"], key=lambda pair: pair[1])
            one = {"key": held["key"], "config": known.plain(Config(**config)), "ms": round(ms, 4)}
            others = [other for other in of_gpu.get(kernel, []) if other["key"] != one["key"]]
            of_gpu[kernel] = sorted([*others, one], key=lambda one: str(one["key"]))
    known.TABLE.write_text(text(table))


def text(table: dict) -> str:
    """JSON with a choice a line."""
    lines = []
    for gpu, kernels in sorted(table.items()):
        each = [
            f"  {json.dumps(kernel)}: [\n"
            + ",\n".join(f"   {json.dumps(one)}" for one in choices)
            + "\n  ]"
            for kernel, choices in sorted(kernels.items())
        ]
        lines.append(f" {json.dumps(gpu)}: {{\n" + ",\n".join(each) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
