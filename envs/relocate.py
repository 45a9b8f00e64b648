"""Puts right the paths in a virtual environment whose folder was moved.

Usage: relocate.py STAMP, a file in the environment that holds the path it was last at. The
environment's own Python runs from anywhere; its scripts (snakemake, activate) name its path, and a
`.pth` file that of the library, which stands beside it in the clone.
"""

import sys
from pathlib import Path


def relocate(stamp: Path) -> None:
    """Replace the old path by the new one in every script, the clone's in the library's `.pth`
    file, then in the stamp.

    Exits when the new path has a space in it, which the first line of a script cannot hold.
    """
    environment = stamp.resolve().parent
    old, new = stamp.read_text().strip(), str(environment)
    if old == new:
        return
    if any(character.isspace() for character in new):
        sys.exit(f"{new} has a space in it: make the environment again with make clean env")
    for script in (environment / "bin").iterdir():
        if not script.is_symlink() and script.is_file():
            _replace(script, old, new)
    for library in environment.glob("lib/python*/site-packages/__editable__*.pth"):
        _replace(library, str(Path(old).parent), str(environment.parent))
    stamp.write_text(new + "\n")


def _replace(file: Path, old: str, new: str) -> None:
    content = file.read_bytes()
    if old.encode() in content:
        file.write_bytes(content.replace(old.encode(), new.encode()))


if __name__ == "__main__":
    relocate(Path(sys.argv[1]))
