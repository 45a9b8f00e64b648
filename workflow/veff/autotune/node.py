"""Where this node keeps its caches: private folders, locks, free space, what is pruned."""

import atexit
import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from veff.autotune import trust
from veff.errors import InputError

log = logging.getLogger(__name__)

NETWORK = ("nfs", "lustre", "gpfs", "beegfs", "cifs", "smb", "ceph", "fuse.sshfs", "fuse.gluster")
SPACE = 64 << 20  # what warming writes, twice over
NAMES = 100  # tried for one folder, where others stand in the way

_temporary: Path | None = None
_in_use: list[int] = []  # shared locks, held until the process ends


def root(cache_dir: str | None) -> Path:
    """The user's private folder on a disk of this node; made if it is not there.

    It is in `cache_dir` (with ~ and $VARIABLES), or else in the first that serves of those that
    the site gives this user or job alone, $XDG_RUNTIME_DIR and $SLURM_TMPDIR, and of $TMPDIR and
    /tmp. A place that cannot be trusted is passed over with a warning. Raises InputError where
    `cache_dir` is no folder or is mounted noexec: cached .so files are code, and Triton loads
    them; trust.Untrusted where no place can be trusted.
    """
    for parent in [*_asked(cache_dir), *_usual()]:
        try:
            folder = private(parent, f"veff-autotune-{os.geteuid()}")
        except trust.Untrusted as error:
            log.warning("autotune: %s is not used for the cache: %s", parent, error)
            continue
        if (kind := mount(parent)[0]).startswith(NETWORK):
            log.warning(
                "autotune: the cache folder %s is on a network file system (%s), which is slow "
                "and loses races: set autotune: cache_dir to a disk of the node",
                parent,
                kind,
            )
        return folder
    raise trust.Untrusted("no place of this node can be trusted with code: set cache_dir")


def private(parent: Path, name: str) -> Path:
    """The folder `name` in `parent`, made if need be, that nobody but this user can write to.

    Where something else has the name, the next one is taken: `name.1`, `name.2`, with one
    warning. Raises trust.Untrusted where `parent` itself cannot be trusted.
    """
    with trust.folder(parent) as (there, path):
        for number in range(NAMES):
            one = f"{name}.{number}" if number else name
            with contextlib.suppress(FileExistsError):
                os.mkdir(one, 0o700, dir_fd=there)
            try:
                trust.own(one, there)
            except trust.Untrusted as error:
                if not number:
                    log.warning("autotune: %s is stepped around: %s", path / one, error)
                continue
            return path / one
    raise trust.Untrusted(f"{NAMES} names like {path / name} belong to others")


def _asked(cache_dir: str | None) -> list[Path]:
    if not cache_dir:
        return []
    folder = Path(os.path.expanduser(os.path.expandvars(cache_dir))).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"autotune: cache_dir {folder} is not a folder: name one") from None
    if "noexec" in mount(folder)[1]:
        raise InputError(
            f"autotune: cache_dir {folder} is mounted noexec, and Triton must load code from "
            "it: name another folder"
        )
    return [folder]


def _usual() -> list[Path]:
    """Where caches go unless told: places of this user or job alone first."""
    listed = [os.environ.get(name) for name in ("XDG_RUNTIME_DIR", "SLURM_TMPDIR", "TMPDIR")]
    # After `su` the first may still be another user's.
    listed = [folder for folder in listed if folder and os.access(folder, os.W_OK | os.X_OK)]
    places = [Path(folder).absolute() for folder in [*listed, "/tmp"]]
    usable = [p for p in places if _room(p) and "noexec" not in mount(p)[1]]
    return usable or places[-1:]


def _room(folder: Path) -> bool:
    """Whether a folder is there and has room for a cache."""
    with contextlib.suppress(OSError):
        space = os.statvfs(folder)
        return folder.is_dir() and space.f_bavail * space.f_frsize >= SPACE
    return False


def temporary() -> Path:
    """A private folder for this process alone, where there is room; removed when it ends."""
    global _temporary
    if _temporary is None:
        for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
            with contextlib.suppress(OSError):
                if _room(Path(parent)) and "noexec" not in mount(Path(parent))[1]:
                    with trust.folder(parent) as (_, path):
                        _temporary = Path(tempfile.mkdtemp(prefix="veff-autotune-", dir=path))
                    break
        else:
            raise OSError("no folder of this node has room for even a temporary cache")
        owner = os.getpid()
        atexit.register(
            lambda: os.getpid() == owner and shutil.rmtree(_temporary, ignore_errors=True)
        )
    return _temporary


def mount(path: Path) -> tuple[str, list[str]]:
    """The file system type and the mount options of the mount that `path` is on."""
    path = os.path.realpath(path)
    best, answer = "", ("", [])
    with contextlib.suppress(OSError), open("/proc/self/mountinfo") as lines:
        for line in lines:
            fields, _, source = line.partition(" - ")
            point, options = fields.split()[4:6]
            point = point.replace("\\040", " ")
            # A later line hides an earlier one on the same point.
            if os.path.commonpath([point, path]) == point and len(point) >= len(best):
                best, answer = point, (source.split()[0], options.split(","))
    return answer


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, waiting for it; the kernel frees it when a holder is killed."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("autotune: another job is filling this node's cache: waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def use(archive: Path) -> bool:
    """Mark a cache as in use by this process, by a shared lock on its seed archive.

    False where it is not there, or went away meanwhile.
    """
    try:
        descriptor = os.open(archive, os.O_RDONLY)
    except OSError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        same = os.path.samestat(os.fstat(descriptor), os.stat(archive))
    except OSError:
        same = False
    if not same:
        os.close(descriptor)
        return False
    _in_use.append(descriptor)
    with contextlib.suppress(OSError):  # a read-only cache keeps its age
        os.utime(archive)
    return True


def kept(root: Path) -> list[Path]:
    """The seeds that the caches in `root` were unpacked from: GPU.FINGERPRINT.ID/seed.tar."""
    return sorted(root.glob("*.*.*/seed.tar"))


def prune(root: Path, max_age_days: float, max_size_mb: float) -> None:
    """Remove the caches that are too old or, oldest first, too many, and that nobody uses."""
    caches = []
    for archive in kept(root):
        with contextlib.suppress(OSError):
            size = sum(f.stat().st_size for f in archive.parent.rglob("*") if f.is_file())
            caches.append((archive.stat().st_mtime, size, archive))
    total = sum(size for _, size, _ in caches)
    for trash in root.glob("trash-*"):  # of a job that was killed while it pruned
        shutil.rmtree(trash, ignore_errors=True)
    for used, size, archive in sorted(caches):
        too_old = time.time() - used > max_age_days * 86400
        if (too_old or total > max_size_mb * 2**20) and _remove(archive):
            log.info("autotune: pruned %s", archive.parent.name)
            total -= size


def _remove(archive: Path) -> bool:
    """Remove a cache, unless a process uses it."""
    try:
        descriptor = os.open(archive, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        trash = archive.parent.with_name(f"trash-{os.getpid()}-{archive.parent.name}")
        os.rename(archive.parent, trash)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    shutil.rmtree(trash, ignore_errors=True)
    return True
