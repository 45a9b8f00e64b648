"""Where does a rule script say what it does, and how does it end when the input is wrong?"""

import atexit
import gc
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veff.errors import InputError


@contextmanager
def logged(path: str | Path) -> Iterator[None]:
    """Send the messages of a rule script to its log file.

    An `InputError` ends the process with exit status 1 and its one line, in the log and on
    standard error, without a traceback. Any other exception is a fault of ours: its traceback
    goes to the log too.
    """
    # At its end Python would look for garbage among all that was imported, half a million objects
    # of PyTorch and what comes with it: a second of each job.
    atexit.register(gc.freeze)
    Path(path).unlink(missing_ok=True)  # another copy of this job may still write to it
    handlers = [logging.FileHandler(path, mode="w")]
    form = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(level=logging.INFO, format=form, handlers=handlers, force=True)
    logging.captureWarnings(True)
    try:
        yield
    except InputError as error:
        logging.error("%s", error)
        sys.exit(f"error: {error}")
    except Exception:
        logging.exception("the job failed")
        raise
