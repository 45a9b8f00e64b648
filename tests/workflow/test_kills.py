"""The demo, killed with -9 at ten points and started again each time: the same bytes.

It takes minutes, so that only `make test-kills` runs it.
"""

import os
import shutil
import signal
import time

import pytest

from project import Project

pytestmark = [pytest.mark.slow, pytest.mark.kills]

POINTS = 10
SETTINGS = {"chunk_size": 160, "models_per_job": 2, "top": "{n: 3, shuffles: 2}"}


def bytes_of(outdir):
    names = ("alleles", "scores", "folds", "summary", "attributions")
    names = [f"{name}.parquet" for name in names] + ["scores.tsv.gz", "annotated.vcf.gz"]
    names += [path.relative_to(outdir) for path in sorted((outdir / "top").glob("*.png"))]
    return {name: (outdir / name).read_bytes() for name in names}


def test_a_run_killed_at_ten_points_gives_the_bytes_of_one_that_was_not(tmp_path):
    whole = Project(tmp_path)
    began = time.monotonic()
    whole.run(**SETTINGS)
    seconds = time.monotonic() - began
    expected = bytes_of(whole.outdir)
    shutil.rmtree(whole.outdir)
    shutil.rmtree(tmp_path / ".snakemake")
    killed = 0
    for point in range(POINTS):
        # Each point is further on in what is left of the run, from its first second on.
        process = whole.start(**SETTINGS)
        time.sleep(1 + seconds * (point + 0.5) / POINTS / 2)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate()
        whole.run("--unlock", **SETTINGS)
    assert killed >= POINTS / 2
    whole.run(**SETTINGS)
    assert bytes_of(whole.outdir) == expected
