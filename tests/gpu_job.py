"""A GPU job in small: `gpu_job.py '{"settings", "work", "seeds"}'`.

With "runs" it runs other work than it made sure of. Prints, as JSON, the report, the hash of what
came out of each work, and the modules that were imported when it was sure of its cache. With
`tests/standin` on PYTHONPATH it runs the kernels under the stand-in driver.
"""

import importlib
import json
import sys

from veff import autotune
from veff.autotune import warm

asked = json.loads(sys.argv[1])
autotune.enable(asked["settings"], asked["work"], asked["seeds"])
heavy = [name for name in ("torch", "triton", "cherimoya") if name in sys.modules]

runs = asked.get("runs", asked["work"])
outputs = []
if runs:
    module, function = warm.EXERCISE.split(":")
    exercise = getattr(importlib.import_module(module), function)
    outputs = [exercise(work, "cuda") for work in runs]
print(json.dumps({"outputs": outputs, "imported": heavy, **autotune.report()}))
