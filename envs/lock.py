"""Writes NAME.lock beside each list NAME.txt: the same pins, with the SHA-256 of their files.

Usage: lock.py [NAME ...], with uv on the path (pip install uv). Left out, all lists are locked but
torch-cpu.txt, whose files are not PyPI's.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
UV = (
    *("uv", "pip", "compile", "--quiet", "--no-config", "--no-deps", "--universal"),
    *("--python-version", "3.11.9", "--generate-hashes", "--emit-build-options"),
    *("--no-header", "--no-annotate"),
)


def lists() -> list[str]:
    """The names of the lists that have a lock."""
    return sorted(path.stem for path in HERE.glob("*.txt") if path.stem != "torch-cpu")


if __name__ == "__main__":
    for name in sys.argv[1:] or lists():
        lock = HERE / f"{name}.lock"
        lock.unlink(missing_ok=True)  # uv would keep the hashes that it holds
        subprocess.run([*UV, HERE / f"{name}.txt", "--output-file", lock], check=True)
