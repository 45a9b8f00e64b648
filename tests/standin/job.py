"""A GPU job in small, under the stand-in driver: `job.py '{"settings", "work", "seeds"}'`.

With "runs" it runs other work than it made sure of. Prints, as JSON, the report, the hash of the
choices that it ran with, and the modules that were imported when it was sure of its cache.
"""

import json
import sys

from veff import autotune

asked = json.loads(sys.argv[1])
autotune.enable(asked["settings"], asked["work"], asked["seeds"])
heavy = [name for name in ("torch", "triton", "cherimoya") if name in sys.modules]

import standin  # noqa: E402

choices = [standin.exercise(work, "cuda") for work in asked.get("runs", asked["work"])]
print(json.dumps({"choices": choices, "imported": heavy, **autotune.report()}))
