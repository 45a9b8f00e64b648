"""What a run that failed says last."""

import logging
import os
import time

import pytest

from veff import job
from veff.errors import InputError


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
