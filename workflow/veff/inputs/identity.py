"""Is what a job reads still the file that the run was started with?

When a run starts, each file that the user named is known by its SHA-256. The rules that read it
have a note of that among their inputs, and the hash among their parameters: another content makes
again what depends on it, whatever the times of the files say, and a job, which hashes the bytes
while it reads them, stops at others.
"""

import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from veff import atomic
from veff.errors import InputError

BLOCK = 1 << 20  # bytes that are read and hashed at once
# A file that was written to so shortly before it was hashed could change again within what its
# time resolves, so it is hashed again at the next start.
SETTLED_S = 2


class Input(type(Path())):
    """A path whose content is hashed while it is read, from `open` on.

    `sha256` is what a whole reading must come to, else `InputError` is raised at the end of the
    file. Where it is None, the first whole reading sets it. A reader that moves within the file,
    or leaves off before its end, checks nothing.
    """

    sha256: str | None = None

    @classmethod
    def expecting(cls, path: str | Path, sha256: str | None) -> "Input":
        self = cls(path)
        self.sha256 = sha256
        return self

    @classmethod
    def all(cls, sha256: Mapping[str, str]) -> dict[str, "Input"]:
        """Files by their paths, whose hashes are given by their paths."""
        return {path: cls.expecting(path, one) for path, one in sha256.items()}

    def open(self, mode="r", buffering=-1, encoding=None, errors=None, newline=None):
        if mode not in ("r", "rt", "rb"):
            return super().open(mode, buffering, encoding, errors, newline)
        stream = io.BufferedReader(_Hashed(self), BLOCK)
        return stream if mode == "rb" else io.TextIOWrapper(stream, encoding, errors, newline)


class _Hashed(io.FileIO):
    """The bytes of an `Input`, as they are on disk."""

    def __init__(self, path: Input):
        super().__init__(path, "rb")
        self._path = path
        self._hash = hashlib.sha256()

    def readinto(self, buffer) -> int:
        n = super().readinto(buffer)
        if self._hash is not None:
            self._hash.update(memoryview(buffer)[:n])
            if n == 0:
                self._path.sha256 = same(self._path, self._path.sha256, self._hash.hexdigest())
        return n

    # Those of FileIO do not go through `readinto`.
    read = io.RawIOBase.read
    readall = io.RawIOBase.readall

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._hash = None
        return super().seek(offset, whence)


@contextmanager
def pinned(path: Path) -> Iterator[BinaryIO]:
    """The file of a path for readers that take no stream of ours, such as htslib; as an `Input`
    it is checked at the end: what was read is what its hash says if nobody wrote to it meanwhile.
    """
    with open(path, "rb", buffering=0) as file:
        before = _state(file.fileno())
        yield file
        if isinstance(path, Input):
            file.seek(0)
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if _state(file.fileno()) != before:
                raise InputError(f"{path}: was written to while it was read; run again")
            path.sha256 = same(path, path.sha256, found)


def same(path: str | Path, expected: str | None, found: str) -> str:
    """The hash, if it is the one that was expected; raises `InputError` that names the file."""
    if expected not in (None, found):
        raise InputError(
            f"{path}: changed while the run used it (its SHA-256 was {expected[:12]}…, what was "
            f"read now has {found[:12]}…); run again, and what depends on it is made again"
        )
    return found


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises `InputError` if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def sums(paths: Iterable[str | Path], of: Callable[..., str] = sha256) -> list[str]:
    """The hash `of` each path, on all cores: Python's lock does not hold it up."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(of, paths))


def now(
    paths: Iterable[str], record: Path, keep: bool, read: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """The SHA-256 of each file as it is now, by its path, and of those that were `read` already.

    Those that `record` knows, with their size, times and inode as they are, are not read. `keep`
    writes the record anew, for `recorded` and for the next start. Raises `InputError` for a file
    that cannot be read or is being written to.
    """
    known = _read(record)

    def look(path: str) -> dict:
        state = _state(path)
        if known.get(path, {}).get("state") == state:
            return known[path]
        age = time.time() - max(state["changed_ns"], state["modified_ns"]) / 1e9
        found = sha256(path)
        if _state(path) != state:
            raise InputError(f"{path}: was written to while it was read; run again afterwards")
        return {"state": state if age > SETTLED_S else None, "sha256": found}

    paths = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        found = dict(zip(paths, pool.map(look, paths), strict=True))
    found |= {path: {"state": None, "sha256": one} for path, one in read.items()}
    if keep and found != known:
        atomic.write_json(record, found)
    return {path: one["sha256"] for path, one in found.items()}


def recorded(record: Path) -> dict[str, str]:
    """What `now` found at the start of the run, for the processes that the run itself starts."""
    return {path: one["sha256"] for path, one in _read(record).items()}


def noted(note: Path, content: list, elsewhere: str | None) -> Path:
    """The note, whose time says since when its JSON has been `content`.

    If it has another one, it is rewritten, or, where that may not be, a note `elsewhere`.
    """
    if _read(note) == content:
        return note
    note = note if elsewhere is None else Path(elsewhere, note.parent.name, note.name)
    note.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(note, content)
    return note


def _state(path: str | int) -> dict[str, int]:
    """What tells without reading that a file is what it was.

    Its inode may differ on a network file system though it is the same, which costs a reading.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return {
        "size": found.st_size,
        "modified_ns": found.st_mtime_ns,
        "changed_ns": found.st_ctime_ns,
        "inode": found.st_ino,
    }


def _read(record: Path) -> dict[str, dict]:
    try:
        return json.loads(record.read_text())
    except (OSError, ValueError):  # not there, or cut short: then all is hashed again
        return {}
