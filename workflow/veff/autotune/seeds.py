"""Seed archives: one node's choices and binaries, for other nodes with the same fingerprint.

A seed is a tar. Its first member, `seed.json`, says what it is for (`fingerprint`, `work`, and in
`triton` the parts of Triton's own key), and lists its files with their sha256; the others are the
entries of Triton's cache, `KEY/FILE`. The same contents give the same bytes. `id` names the
contents: two seeds that chose differently have different ids.

A seed holds code. So it is used only where nobody but this user and root can write to it, and read
through the one descriptor of which that was checked.
"""

import contextlib
import errno
import hashlib
import io
import json
import logging
import os
import re
import tarfile
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from veff.autotune import trust
from veff.autotune.fingerprint import differences, digest

log = logging.getLogger(__name__)

FORMAT = 1
MANIFEST = 16 << 20  # bytes of a manifest, at most
NAMES = 100  # tried for one seed, where others stand in the way
BAD = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    tarfile.TarError,
)
# A folder of Triton's cache and a file in it; neither is hidden, or above.
_ENTRY = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9_-][^/\0]*")


class Seed:
    """An archive that is there, readable and trusted. Raises one of `BAD` where it is not."""

    def __init__(self, path: Path):
        self.path = Path(path)
        self._descriptor = trust.file(self.path)
        weakref.finalize(self, os.close, self._descriptor)
        with self._opened() as tar:
            first = tar.next()
            if first is None or first.name != "seed.json" or not _is_plain(first):
                raise ValueError("it is not a seed archive")
            if first.size > MANIFEST:
                raise ValueError(f"its manifest has {first.size} bytes, more than {MANIFEST}")
            manifest = json.load(tar.extractfile(first))
        if manifest["format"] != FORMAT:
            raise ValueError(f"it has format {manifest['format']}, not {FORMAT}")
        for entry in manifest["files"]:
            if not _ENTRY.fullmatch(entry):
                raise ValueError(f"its file {entry!r} has a name that no cache has")
        self.size = os.fstat(self._descriptor).st_size
        self.fingerprint: dict[str, str] = manifest["fingerprint"]
        self.triton: dict[str, str] = manifest["triton"]
        self.work: list[dict] = manifest["work"]
        self.files: dict[str, str] = manifest["files"]
        self.id: str = digest(manifest)

    @property
    def name(self) -> str:
        """`GPU.FINGERPRINT`: what the seed is for."""
        return name(self.fingerprint, self.work)

    def misfit(self, fingerprint: dict, work: Iterable[dict]) -> str:
        """Why the seed cannot serve here, '' if it can."""
        if self.fingerprint != fingerprint:
            return differences(self.fingerprint, fingerprint)
        missing = [item for item in work if item not in self.work]
        return f"made for other work than {missing}" if missing else ""

    def read(self, entry: str) -> bytes | None:
        """The bytes of one file, None where the archive cannot give the listed ones."""
        with contextlib.suppress(*BAD), self._opened() as tar:
            return self._data(tar, tar.getmember(entry))
        return None

    def check(self) -> "Seed":
        """The seed itself; raises ValueError where one of its files is not as listed."""
        found = {entry for entry, _ in self._entries()}
        if missing := sorted(self.files.keys() - found):
            raise ValueError(f"its file {missing[0]} is missing")
        return self

    def unpack(self, folder: Path) -> None:
        """Write the files into `folder`, beside or over what is there."""
        folder.mkdir(exist_ok=True)
        for entry, data in self._entries():
            (folder / entry).parent.mkdir(exist_ok=True)
            (folder / entry).write_bytes(data)

    def copy(self, path: Path) -> None:
        """Write the archive as it is to `path`."""
        with self._file() as file:
            path.write_bytes(file.read())

    def _entries(self) -> Iterator[tuple[str, bytes]]:
        """Each listed file and its bytes; raises ValueError where they are not those listed."""
        with self._opened() as tar:
            for member in tar:
                if member.name in self.files:
                    yield member.name, self._data(tar, member)

    def _data(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
        data = tar.extractfile(member).read() if _is_plain(member) else b""
        if not _is_plain(member) or sha256(data) != self.files[member.name]:
            raise ValueError(f"its file {member.name} is damaged")
        return data

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tarfile.TarFile]:
        with self._file() as file, tarfile.open(fileobj=file, mode="r:") as tar:
            yield tar

    def _file(self) -> BinaryIO:
        # A position of its own, since threads read at once.
        return open(f"/proc/self/fd/{self._descriptor}", "rb")


def name(fingerprint: dict, work: Iterable[dict]) -> str:
    gpu = re.sub(r"[^A-Za-z0-9]+", "-", fingerprint["GPU"]).strip("-")
    return f"{gpu}.{digest([fingerprint, list(work)])}"


def pack(
    cache: Path, entries: Iterable[str], path: Path, *, fingerprint: dict, work: list, triton: dict
) -> Seed:
    """Write the named entries of Triton's cache folder `cache` as the seed `path`."""
    files = {
        str(file.relative_to(cache)): _portable(file)
        for entry in sorted(entries)
        for file in sorted((cache / entry).glob("*"))
        if file.is_file()
    }
    manifest = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "work": work,
        "triton": triton,
        "files": {file: sha256(data) for file, data in files.items()},
    }
    head = json.dumps(manifest, indent=1, sort_keys=True).encode()
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for member, data in [("seed.json", head), *files.items()]:
            entry = tarfile.TarInfo(member)  # no time, no owner: reproducible
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    os.chmod(path, 0o644)
    return Seed(path)


def find(
    places: Iterable[Path], fingerprint: dict, work: list, level: int, check: bool = True
) -> Seed | None:
    """The first undamaged seed in `places` (archives, or folders of archives) that fits.

    Where none does, why not is logged at `level`. Without `check` only what a seed says of itself
    is read.
    """
    reasons = []
    for path in _archives(places):
        try:
            seed = Seed(path)
            reason = seed.misfit(fingerprint, work)
            if not reason:
                return seed.check() if check else seed
        except BAD as error:
            log.log(level, "autotune: seed %s is not used: %s", path, error)
            continue
        reasons.append(f"{path.name}: {reason}")
    for reason in reasons:
        log.log(level, "autotune: a seed does not fit: %s", reason)
    return None


def alike(places: Iterable[Path], fingerprint: dict) -> Iterator[Seed]:
    """The undamaged seeds in `places` for any work in this environment, the first ones last: what
    they hold of the same kernel is to be theirs."""
    for path in reversed(_archives(places)):
        with contextlib.suppress(*BAD):
            seed = Seed(path).check()
            if seed.fingerprint == fingerprint:
                yield seed


def publish(seed: Seed, folder: Path) -> Seed:
    """Put a copy of `seed` into `folder`, unless one for the same is there: then return that.

    So of several nodes that benchmarked the same at once, the first one's choice is everyone's.
    Where what has its name cannot be trusted, the copy gets the next name.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(prefix=f".{seed.name}.", dir=folder)
    os.close(descriptor)
    aside = Path(aside)
    try:
        seed.copy(aside)
        os.chmod(aside, 0o644)  # whatever the umask: a seed that others can write is not used
        for number in range(NAMES):
            path = folder / f"{seed.name}{f'.{number}' if number else ''}.tar"
            try:
                try:
                    os.link(aside, path)  # unlike a rename, fails where the name is taken
                except FileExistsError:
                    return Seed(path).check()
                except OSError:  # no hard links on this file system
                    os.replace(aside, path)
            except trust.Untrusted as error:
                if not number:
                    log.warning("autotune: seed %s is stepped around: %s", path, error)
                continue
            except BAD:
                os.replace(aside, path)  # what is there is damaged
            return Seed(path)
        raise OSError(errno.EEXIST, f"{NAMES} names of this seed belong to others", str(path))
    finally:
        aside.unlink(missing_ok=True)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _archives(places: Iterable[Path]) -> list[Path]:
    found = []
    for place in map(Path, places):
        found += sorted(place.glob("*.tar")) if place.is_dir() else [place]
    return found


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Whether a member is a file with all its bytes in the archive: no link, device or hole."""
    return member.isreg() and member.sparse is None


def _portable(file: Path) -> bytes:
    """A file's bytes, without the folders that Triton writes into the lists of its groups."""
    data = file.read_bytes()
    if file.name.startswith("__grp__"):
        group = json.loads(data)["child_paths"]
        data = json.dumps({"child_paths": {child: child for child in sorted(group)}}).encode()
    return data
