"""A run writes over, and removes, only what runs of ours wrote, and one run at a time."""

import errno
import os
import re
import subprocess
import sys

import pytest

from project import ROOT
from veff import outdir
from veff.errors import InputError


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")


@pytest.mark.parametrize(
    "name",
    [
        "report.html",
        "top/mine.txt",
        "parts/x",
        "scores.parquet",
        "haplotypes.parquet",
        "saturation/x",
    ],
)
def test_a_folder_with_files_of_our_names_and_no_mark_is_refused_and_untouched(tmp_path, name):
    put(tmp_path / name)
    with pytest.raises(InputError, match=f"no run of ours wrote .*{name.split('/')[0]}"):
        outdir.check(tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name.split("/")[0]]


def test_every_output_of_the_rules_is_known_as_a_run_s_own():
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    written = set(re.findall(r"{OUT}/([\w.]+)", rules))
    assert "scores.parquet" in written
    assert written <= {*outdir.NAMES}


def test_a_folder_with_other_files_only_is_taken(tmp_path):
    put(tmp_path / "notes.txt")
    outdir.check(tmp_path)
    outdir.claim(tmp_path)
    put(tmp_path / "report.html")
    outdir.check(tmp_path)


def test_an_outdir_that_is_a_file_is_refused(tmp_path):
    put(tmp_path / "out")
    with pytest.raises(InputError, match="out: is a file"):
        outdir.check(tmp_path / "out")


@pytest.mark.parametrize(
    "name", ["top/mine.txt", "top/sub/5.png", "scores.parquet/experiment=a/mine.parquet"]
)
def test_what_a_user_put_into_a_folder_that_is_replaced_stands_in_the_way(tmp_path, name):
    outdir.claim(tmp_path)
    for ours in ("top/5.png", "top/5.svg", "top/.snakemake_timestamp"):
        put(tmp_path / ours)
    put(tmp_path / "scores.parquet/experiment=a/part.parquet")
    outdir.check(tmp_path)
    put(tmp_path / name)
    with pytest.raises(InputError, match=r"written by no run of ours.*move it away"):
        outdir.check(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


HOLD = """
import sys, time
from pathlib import Path
from veff import outdir
outdir.claim(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has claimed the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=ROOT / "workflow",
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_run_is_refused_and_told_who_has_the_folder(tmp_path, holder):
    with pytest.raises(InputError, match=f"process {holder.pid} on {os.uname().nodename} since"):
        outdir.claim(tmp_path)


def test_a_killed_run_leaves_no_lock(tmp_path, holder):
    holder.kill()
    holder.wait()
    outdir.claim(tmp_path)


def test_a_process_claims_a_folder_again(tmp_path):
    outdir.claim(tmp_path)
    outdir.claim(tmp_path)


def test_a_file_system_without_locks_is_told_of(tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(outdir.fcntl, "flock", refuse)
    outdir.claim(tmp_path)
    assert f"outdir {tmp_path}: its file system takes no lock (No locks available)" in caplog.text
