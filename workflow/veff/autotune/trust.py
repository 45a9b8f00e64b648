"""Can anybody but this user and root change a file, or what stands in a folder?

The rules are OpenSSH's for its own files: the owner is this user or root, neither group nor others
can write (an ACL that lets somebody write shows as the group's), and so for each folder above, up
to the root or to a folder with the sticky bit, where nobody can rename what is another's. All is
looked at through open descriptors, and links are followed here, one by one: so what was checked
is what is used.
"""

import functools
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, ELOOP
from pathlib import Path

LINKS = 40  # followed in one path, as Linux has it

_LOOK = os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)


class Untrusted(PermissionError):
    """Somebody else could have put it there, or could change it; the message says who and how."""

    def __init__(self, reason: str):
        super().__init__(EACCES, reason)

    def __str__(self) -> str:
        return self.strerror


@contextmanager
def folder(path: str | Path) -> Iterator[tuple[int, Path]]:
    """A descriptor of a folder in which nobody else can change what is this user's, and its path
    without links. Raises Untrusted where somebody can, OSError where it is no folder."""
    todo = list(reversed(Path(path).absolute().parts[1:]))
    here, where, links = os.open("/", _LOOK | os.O_DIRECTORY), ["/"], 0
    try:
        _check_folder(os.fstat(here), "/")
        while todo:
            name = todo.pop()
            found = os.open(name, _LOOK, dir_fd=here)
            here, above = found, here
            try:
                status = os.fstat(here)
                if stat.S_ISLNK(status.st_mode):
                    _check_owner(status, f"the link {Path(*where, name)}")
                    if (links := links + 1) > LINKS:
                        raise OSError(ELOOP, os.strerror(ELOOP), str(path))
                    target = Path(os.readlink("", dir_fd=here))
                    os.close(here)
                    here, above = above, None
                    todo += reversed(target.parts)
                    continue
            finally:
                if above is not None:
                    os.close(above)
            if name == "/":
                where = ["/"]
            elif name == "..":
                where[1:] = where[1:-1]
            else:
                where.append(name)
            _check_folder(status, str(Path(*where)))
        yield here, Path(*where)
    finally:
        os.close(here)


def file(path: str | Path) -> int:
    """A descriptor, to read, of a file that only this user and root can write to.

    What is read from it is theirs, wherever the file lies: somebody else can put another file in
    its place, but none that has this owner. Raises Untrusted, and OSError where it is not there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == ELOOP:
            raise Untrusted("it is a link; give the file itself") from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Untrusted("it is not a regular file")
        _check_owner(status, "it")
        _check_mode(status, "it")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def own(name: str, there: int) -> None:
    """Check that `name`, in the folder open as `there`, is a folder of this user alone."""
    descriptor = os.open(name, _LOOK, dir_fd=there)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISDIR(status.st_mode):
            raise Untrusted("it is not a folder")
        if status.st_uid != os.geteuid():
            raise Untrusted(f"it belongs to {_user(status.st_uid)}")
        _check_mode(status, "it")
    finally:
        os.close(descriptor)


def _check_folder(status: os.stat_result, path: str) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{path} is not a folder")
    if status.st_uid != _hidden_root():
        _check_owner(status, path)
    if not status.st_mode & stat.S_ISVTX:
        _check_mode(status, path)


def _check_owner(status: os.stat_result, what: str) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise Untrusted(f"{what} belongs to {_user(status.st_uid)}, not to this user or root")


def _check_mode(status: os.stat_result, what: str) -> None:
    for bit, who in ((stat.S_IWOTH, "everybody"), (stat.S_IWGRP, "its group")):
        if status.st_mode & bit:
            raise Untrusted(f"{who} can write to {what} (mode {stat.S_IMODE(status.st_mode):o})")


@functools.cache
def _hidden_root() -> int:
    """The owner that folders of root seem to have in a container that does not know root."""
    with suppress(OSError):
        known = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        if not any(int(inside) <= 0 < int(inside) + int(n) for inside, _, n in known):
            return int(Path("/proc/sys/kernel/overflowuid").read_text())
    return 0


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
