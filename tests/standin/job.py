"""A GPU job in small, under the stand-in driver: `job.py '{"settings", "work", "seeds"}'`.

Prints, as JSON, the report and the hash of the choices that it ran with.
"""

import json
import sys

asked = json.loads(sys.argv[1])

from veff import autotune  # noqa: E402

autotune.enable(asked["settings"], asked["work"], asked["seeds"])

import standin  # noqa: E402

choices = [standin.exercise(work, "cuda") for work in asked["work"]]
print(json.dumps({"choices": choices, **autotune.report()}))
