"""How is a file written so that nobody ever sees half of it?

The parse of the Snakefile reads JSON by this module: it imports little.
"""

import filecmp
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veff.errors import InputError


@contextmanager
def aside(path: str | Path) -> Iterator[Path]:
    """A path beside `path` to write a file or a folder to; renamed to `path` at the end, removed
    on an error.

    A cluster may run a job twice at once. So the name holds the node and the process, and where
    `path` already has the same content it stays as it is, with its time, which is what Snakemake
    looks at.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        yield temporary
        put(temporary, path)
    finally:
        _remove(temporary)


def put(temporary: Path, path: Path) -> None:
    """Rename a file or a folder to `path`, unless what is there has the same content."""
    if _same(temporary, path):
        return
    if path.is_dir() or temporary.is_dir():  # a folder cannot be replaced in one step
        _remove(path)
    try:
        os.replace(temporary, path)
    except OSError:
        if not _same(temporary, path):  # the same job, run twice, put it there just now
            raise


def _same(one: Path, other: Path) -> bool:
    if one.is_dir() and other.is_dir():
        names = [sorted(p.relative_to(f) for p in f.rglob("*")) for f in (one, other)]
        return names[0] == names[1] and all(
            _same(one / name, other / name) for name in names[0] if not (one / name).is_dir()
        )
    return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    with aside(path) as temporary:
        temporary.write_text(text)


def write_json(path: str | Path, value) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_record(path: str | Path, value) -> None:
    """Write as JSON what a job says of itself, which differs each time: what another copy of the
    same job wrote stays (Snakemake removed what was there before)."""
    if not Path(path).exists():
        write_json(path, value)


def read_json(path: str | Path):
    """What a job of ours wrote; raises `damaged` if it is no JSON any more."""
    try:
        return json.loads(Path(path).read_text())
    except ValueError:
        raise damaged(path) from None


def damaged(*paths: str | Path) -> InputError:
    """What to raise of files that are not as a job of ours wrote them, after removing them."""
    for path in map(Path, paths):
        _remove(path)
    return InputError(
        f"{', '.join(map(str, paths))}: not as the job wrote it, so damaged since; removed, and "
        "the same command makes it again"
    )
