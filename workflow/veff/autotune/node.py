"""Where this node keeps its caches: private folders, locks, free space, what is pruned."""

import atexit
import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from veff.errors import InputError

log = logging.getLogger(__name__)

NETWORK = ("nfs", "lustre", "gpfs", "beegfs", "cifs", "smb", "ceph", "fuse.sshfs", "fuse.gluster")
SPACE = 64 << 20  # what warming writes, twice over

_temporary: Path | None = None
_in_use: list[int] = []  # shared locks, held until the process ends


def root(cache_dir: str | None) -> Path:
    """The user's private folder on a disk of this node; made if it is not there.

    `cache_dir` (with ~ and $VARIABLES), else the first of $TMPDIR, $SLURM_TMPDIR and /tmp from
    which code can be loaded. Raises InputError where the folder is not private to the user or
    is mounted noexec: cached .so files are code, and Triton loads them.
    """
    name = f"veff-autotune-{os.getuid()}"
    if cache_dir:
        parent = Path(os.path.expanduser(os.path.expandvars(cache_dir))).absolute()
        parent.mkdir(parents=True, exist_ok=True)
        if "noexec" in mount(parent)[1]:
            raise InputError(
                f"autotune: cache_dir {parent} is mounted noexec, and Triton must load code from "
                "it: name another folder"
            )
    else:
        listed = [os.environ.get("TMPDIR"), os.environ.get("SLURM_TMPDIR"), "/tmp"]
        parents = [Path(folder).absolute() for folder in listed if folder]
        usable = [p for p in parents if p.is_dir() and "noexec" not in mount(p)[1]]
        parent = (usable or parents)[0]
    kind = mount(parent)[0]
    if kind.startswith(NETWORK):
        log.warning(
            "autotune: the cache folder %s is on a network file system (%s), which is slow and "
            "loses races: set autotune: cache_dir to a disk of the node",
            parent,
            kind,
        )
    return private(parent / name)


def private(folder: Path) -> Path:
    """Make `folder`, or check that nobody but its owner, this user, can write there."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise InputError(
            f"autotune: {folder} is not a folder of this user: remove it or set cache_dir"
        )
    if status.st_mode & 0o022:
        raise InputError(
            f"autotune: others can write into {folder}, and code is loaded from it: run "
            f"chmod 700 on it after checking what is in it, or set cache_dir"
        )
    above = folder.parent.stat().st_mode
    if above & stat.S_IWOTH and not above & stat.S_ISVTX:
        raise InputError(
            f"autotune: others can replace {folder}, since {folder.parent} is open to all "
            "without the sticky bit: set cache_dir to a folder of yours"
        )
    return folder


def temporary() -> Path:
    """A private folder for this process alone, where there is room; removed when it ends."""
    global _temporary
    if _temporary is None:
        for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
            with contextlib.suppress(OSError):
                space = os.statvfs(parent)
                if (
                    space.f_bavail * space.f_frsize >= SPACE
                    and "noexec" not in mount(Path(parent))[1]
                ):
                    _temporary = Path(tempfile.mkdtemp(prefix="veff-autotune-", dir=parent))
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
