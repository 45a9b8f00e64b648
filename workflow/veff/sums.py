"""Is a table that a job reads as the job that wrote it left it?

Beside each, hidden, stands its SHA-256. The parts of the scores have theirs in the records of
their jobs (`outputs.collect.check`), and the bases of the reference in `contigs.json`.
"""

import hashlib
from pathlib import Path

from veff import atomic
from veff.inputs.identity import sha256, sums


def write(*paths: str | Path) -> None:
    """Note what these files, or folders of files, hold."""
    paths = [Path(path) for path in paths]
    for path, found in zip(paths, sums(paths, _sum), strict=True):
        atomic.write_text(_beside(path), found + "\n")


def check(*paths: str | Path) -> None:
    """Raise `InputError` that names those that hold something else than `write` noted.

    They are removed, so that the same command makes them again.
    """
    paths = [Path(path) for path in paths]
    found = zip(paths, sums(paths, _sum), strict=True)
    if differing := [path for path, own in found if noted(path) != own]:
        raise atomic.damaged(*differing)


def noted(path: str | Path) -> str | None:
    """What `write` noted of it, None if nothing."""
    try:
        return _beside(Path(path)).read_text(errors="replace").strip()
    except FileNotFoundError:
        return None


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.sha256")


def _sum(path: Path) -> str:
    if not path.is_dir():
        return sha256(path)
    files = sorted(file for file in path.rglob("*.parquet"))
    each = "".join(f"{sha256(file)} {file.relative_to(path)}\n" for file in files)
    return hashlib.sha256(each.encode()).hexdigest()
