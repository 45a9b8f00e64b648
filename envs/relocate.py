"""Puts right the paths in a virtual environment whose folder was moved.

Usage: relocate.py STAMP, a file in the environment that holds the path it was last at. The
environment's own Python runs from anywhere; its scripts (snakemake, activate) name its path.
"""

import sys
from pathlib import Path


def relocate(stamp: Path) -> None:
    """Replace the old path by the new one in every script, then in the stamp.

    Exits when the new path has a space in it, which the first line of a script cannot hold.
    """
    environment = stamp.resolve().parent
    old, new = stamp.read_text().strip(), str(environment)
    if old == new:
        return
    if any(character.isspace() for character in new):
        sys.exit(f"{new} has a space in it: make the environment again with make clean env")
    for script in (environment / "bin").iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        content = script.read_bytes()
        if old.encode() in content:
            script.write_bytes(content.replace(old.encode(), new.encode()))
    stamp.write_text(new + "\n")


if __name__ == "__main__":
    relocate(Path(sys.argv[1]))
