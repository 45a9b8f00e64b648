"""What cluster-generic asks after a job: prints running, success or failed."""

import subprocess
import sys

state = subprocess.run(
    ["squeue", "--noheader", "--states=all", "--format=%T", "--jobs", sys.argv[1]],
    capture_output=True,
    text=True,
).stdout.strip()
ended = {"COMPLETED": "success"} | dict.fromkeys(
    ("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"),
    "failed",
)
print(ended.get(state, "running"))  # a controller that does not answer says nothing either
