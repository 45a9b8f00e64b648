"""Seed archives: one node's choices and binaries, for other nodes with the same fingerprint.

A seed is a tar. Its first member, `seed.json`, says what it is for (`fingerprint`, `work`, and in
`triton` the parts of Triton's own key), and lists its files with their sha256; the others are the
entries of Triton's cache, `KEY/FILE`. The same contents give the same bytes. `id` names the
contents: two seeds that chose differently have different ids.
"""

import contextlib
import hashlib
import io
import json
import logging
import os
import re
import shutil
import tarfile
import time
from collections.abc import Iterable
from pathlib import Path

from veff.autotune.fingerprint import differences, digest

log = logging.getLogger(__name__)

FORMAT = 1
BAD = (OSError, ValueError, KeyError, TypeError, AttributeError, tarfile.TarError)


class Seed:
    """An archive that is there and readable. Raises one of `BAD` where it is not."""

    def __init__(self, path: Path):
        self.path = Path(path)
        status = self.path.stat()
        if status.st_mode & 0o002:
            raise ValueError("others can write to it, and it holds code")
        with tarfile.open(self.path, "r:") as tar:
            first = tar.next()
            if first is None or first.name != "seed.json":
                raise ValueError("it is not a seed archive")
            manifest = json.load(tar.extractfile(first))
        if manifest["format"] != FORMAT:
            raise ValueError(f"it has format {manifest['format']}, not {FORMAT}")
        self.size = status.st_size
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
        with contextlib.suppress(*BAD), tarfile.open(self.path, "r:") as tar:
            data = tar.extractfile(entry).read()
            if sha256(data) == self.files[entry]:
                return data
        return None

    def check(self) -> "Seed":
        """The seed itself; raises ValueError where one of its files is not as listed."""
        with tarfile.open(self.path, "r:") as tar:
            found = {member.name: sha256(tar.extractfile(member).read()) for member in tar}
        for entry, expected in self.files.items():
            if found.get(entry) != expected:
                raise ValueError(f"its file {entry} is damaged")
        return self

    def unpack(self, folder: Path) -> None:
        """Write the files into `folder`."""
        with tarfile.open(self.path, "r:") as tar:
            members = [member for member in tar if member.name in self.files]
            for member in members:
                member.mtime = time.time()  # or a node's clean-up of old files takes it
            tar.extractall(folder, members, filter="data")


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


def publish(seed: Seed, folder: Path) -> Seed:
    """Put a copy of `seed` into `folder`, unless one for the same is there: then return that.

    So of several nodes that benchmarked the same at once, the first one's choice is everyone's.
    """
    path = Path(folder) / f"{seed.name}.tar"
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        shutil.copyfile(seed.path, aside)
        os.chmod(aside, 0o644)  # whatever the umask: a seed that others can write is not used
        try:
            os.link(aside, path)  # unlike a rename, fails where the name is taken
        except FileExistsError:
            with contextlib.suppress(*BAD):
                return Seed(path).check()
            os.replace(aside, path)  # what is there is damaged
        except OSError:  # no hard links on this file system
            os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    return Seed(path)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _archives(places: Iterable[Path]) -> list[Path]:
    found = []
    for place in map(Path, places):
        found += sorted(place.glob("*.tar")) if place.is_dir() else [place]
    return found


def _portable(file: Path) -> bytes:
    """A file's bytes, without the folders that Triton writes into the lists of its groups."""
    data = file.read_bytes()
    if file.name.startswith("__grp__"):
        group = json.loads(data)["child_paths"]
        data = json.dumps({"child_paths": {child: child for child in sorted(group)}}).encode()
    return data
