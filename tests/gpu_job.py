"""A GPU job in small: `gpu_job.py '{"settings", "work", "seeds"}'`.

With "runs" it runs other work than it made sure of. Prints, as JSON, the report, the hash of what
came out of each work, and what `enable` took: modules imported, seconds of CPU. With
`tests/site` and `tests/standin` on PYTHONPATH it runs the kernels under the stand-in driver.
"""

import importlib
import json
import sys
import time

from veff import autotune
from veff.autotune import warm

asked = json.loads(sys.argv[1])
start = time.process_time()
autotune.enable(asked["settings"], asked["work"], asked["seeds"])
cpu = time.process_time() - start
heavy = [name for name in ("torch", "triton", "cherimoya") if name in sys.modules]

runs = asked.get("runs", asked["work"])
outputs = []
if runs:
    module, function = warm.EXERCISE.split(":")
    exercise = getattr(importlib.import_module(module), function)
    outputs = [exercise(work, "cuda") for work in runs]
said = {"outputs": outputs, "imported": heavy, "enable_cpu_s": cpu}
print(json.dumps({**said, **autotune.report()}))
