"""Where does a rule script say what it does, and how does it end when the input is wrong?"""

import atexit
import gc
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from veff import __version__, atomic
from veff.errors import InputError, Passing

MORE = (
    "give it more (--set-resources RULE:mem_mb=…), or let it be tried again (--retries 3), since "
    "each attempt asks for more"
)
REFUSED = 2  # the exit status of a job whose input is wrong
FAULT = "the job failed"
# What PyTorch, the system and the loader of libraries say in place of a MemoryError.
_NO_MEMORY = re.compile("an(no|')t allocate memory|failed to map segment|std::bad_alloc")
_ERROR = re.compile(r"[\d-]+ [\d:,]+ ERROR (.*)")


@contextmanager
def logged(path: str | Path, attempt: int = 1) -> Iterator[None]:
    """Send the messages of a rule script to its log file.

    An `InputError` ends the process with its one line, in the log and on standard error, without
    a traceback: with exit status 2, or 1 where it may be `Passing`. Any other exception is a fault
    of ours: its traceback goes to the log too, and the status is 1.

    Snakemake knows only that a job failed, and with `--retries` starts it again: what `attempt`
    counts. So what the user gave wrong is also left beside the log, `.refused`, and a further
    attempt ends with the same line before it does anything.
    """
    # At its end Python would look for garbage among all that was imported, half a million objects
    # of PyTorch and what comes with it: a second of each job.
    atexit.register(gc.freeze)
    gc.set_threshold(100_000)  # nor, hundreds of times, while it imports
    Path(path).unlink(missing_ok=True)  # another copy of this job may still write to it
    handlers = [logging.FileHandler(path, mode="w")]
    form = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(level=logging.INFO, format=form, handlers=handlers, force=True)
    logging.captureWarnings(True)
    refused, running = (Path(path).with_suffix(end) for end in (".refused", ".running"))
    running.touch()
    try:
        wanted = os.environ.get("VEFF_VERSION", __version__)  # of rules/library.smk
        if wanted != __version__:
            raise InputError(
                f"the rules are cherimoya-veff {wanted}, but this job found the Python package "
                f"{__version__}: install {wanted} in the environment {sys.prefix}"
            )
        if attempt > 1 and refused.is_file():
            raise InputError(refused.read_text())
        refused.unlink(missing_ok=True)
        yield
    except InputError as error:
        logging.error("%s", error)
        print(f"error: {error}", file=sys.stderr)
        if isinstance(error, Passing):
            sys.exit(1)
        atomic.write_text(refused, str(error))
        sys.exit(REFUSED)
    except Exception as error:
        if not _no_memory(error):
            logging.exception(FAULT)
            raise
        logging.error("out of memory: %s", MORE)
        print(f"error: out of memory: {MORE}", file=sys.stderr)
        sys.exit(1)
    finally:
        running.unlink(missing_ok=True)


def _no_memory(error: BaseException | None) -> bool:
    """Whether this error, or one that it came of, is of memory."""
    while error is not None:
        if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def note_fault(logs: Iterable[str], line: str) -> None:
    """Leave the line of a job that never began in its log, for `last_words`."""
    for path in map(Path, logs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{time.strftime('%Y-%m-%d %H:%M:%S,000')} ERROR {line}\n")


def last_words(logs: Path, since: float) -> str:
    """What went wrong, a line a fault: the last thing on the screen of a run that failed.

    Read from the rules' log files below `logs` that were written to after `since`, seconds since
    the epoch. A job that was killed could leave no message, but its `.running` is still there.
    """
    faults: dict[str, str] = {}
    for path in sorted(logs.rglob("*.log")):
        if path.stat().st_mtime < since:
            continue
        lines = path.read_text(errors="replace").splitlines()
        said = [found[1] for line in lines if (found := _ERROR.match(line))]
        if path.with_suffix(".running").exists():
            said.append(f"killed, as the system does with a job that is out of memory: {MORE}")
        if said[-1:] == [FAULT]:
            said.append(f"{lines[-1]} (a fault of the program: {path} has its traceback)")
        if said:
            faults[said[-1]] = str(path.relative_to(logs).with_suffix(""))
    # `inspect` names each bad checkpoint, and `resolve` then all of them in one line.
    once = [one for one in faults if not any(one in other for other in faults if other != one)]
    return "\n".join(f"error in {faults[one]}: {one}" for one in once)
