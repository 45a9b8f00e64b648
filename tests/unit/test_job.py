"""What a run that failed says last."""

import errno
import logging
import os
import subprocess
import sys
import time

import pytest

from project import ROOT
from veff import job
from veff.errors import InputError, Passing


@pytest.fixture
def logs(tmp_path):
    yield tmp_path
    logging.basicConfig(force=True)


def fail(path, error):
    path.parent.mkdir(exist_ok=True)
    with pytest.raises((type(error), SystemExit)), job.logged(path):
        raise error


def test_each_failed_job_has_its_one_line(logs):
    fail(logs / "prepare.log", InputError("a.vcf, line 3: POS is 'x'"))
    fail(logs / "score/0.abc.log", ZeroDivisionError("division by zero"))
    with job.logged(logs / "reference.log"):
        logging.info("all is well")
    first, second = job.last_words(logs, 0).splitlines()
    assert first == "error in prepare: a.vcf, line 3: POS is 'x'"
    assert second.startswith("error in score/0.abc: ZeroDivisionError: division by zero (a fault")


def test_faults_of_an_earlier_run_are_not_told_again(logs):
    fail(logs / "prepare.log", InputError("a.vcf: empty"))
    hour_ago = time.time() - 3600
    os.utime(logs / "prepare.log", (hour_ago, hour_ago))
    assert job.last_words(logs, time.time() - 60) == ""


def test_a_fault_that_another_repeats_is_told_once(logs):
    fail(logs / "models/abc.inspect.log", InputError("x.torch: cut short"))
    fail(logs / "models/abc.resolve.log", InputError("x.torch: cut short; y.torch: cut short"))
    assert job.last_words(logs, 0) == (
        "error in models/abc.resolve: x.torch: cut short; y.torch: cut short"
    )


def attempt(path, number, error=None):
    """The exit status of a job's attempt, and whether it came to its work."""
    worked = []
    try:
        with job.logged(path, number):
            worked.append(True)
            if error:
                raise error
    except SystemExit as end:
        return end.code, bool(worked)
    return 0, bool(worked)


def test_what_the_user_gave_wrong_is_not_tried_again_in_the_same_run(logs, capsys):
    path = logs / "prepare.log"
    assert attempt(path, 1, InputError("a.vcf, line 3: POS is 'x'")) == (job.REFUSED, True)
    assert attempt(path, 2) == (job.REFUSED, False)
    line = "error: a.vcf, line 3: POS is 'x'\n"
    assert capsys.readouterr().err == line + line
    assert job.last_words(logs, 0) == "error in prepare: a.vcf, line 3: POS is 'x'"
    assert attempt(path, 1) == (0, True)  # another run
    assert attempt(path, 2) == (0, True)


def test_what_may_pass_is_tried_again(logs):
    path = logs / "download.log"
    assert attempt(path, 1, Passing("the hub does not answer")) == (1, True)
    assert attempt(path, 2) == (0, True)


def follows(error, cause):
    error.__context__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        MemoryError(),
        follows(SystemError("returned a result with an exception set"), MemoryError()),
    ],
)
def test_whoever_says_that_memory_is_out_the_job_says_it_in_words(logs, error):
    assert attempt(logs / "score.log", 1, error) == (1, True)
    assert job.last_words(logs, 0).startswith("error in score: out of memory: give it more")
    assert attempt(logs / "score.log", 2) == (0, True)


DIES = """
import os, resource, signal, sys
from veff import job
with job.logged(sys.argv[1]):
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    bytearray(1 << 34)
"""


@pytest.mark.parametrize("how", ["killed", "out of memory"])
def test_a_job_out_of_memory_is_told_in_words(logs, how):
    path = logs / "score.log"
    command = [sys.executable, "-c", DIES, str(path), how]
    done = subprocess.run(command, cwd=ROOT / "workflow", capture_output=True, text=True)
    assert done.returncode
    assert "Traceback" not in done.stderr
    said = job.last_words(logs, 0)
    assert said.startswith(f"error in score: {how}")
    assert "each attempt asks for more" in said
