"""Files that a job writes: whole or not there, and untouched by another copy of the job."""

import logging
import os

import pyarrow as pa
import pytest

from veff import atomic, job, tables

TABLE = pa.table({"experiment": ["a", "a"], "score": [1.0, 2.0]})
LONG_AGO = (1_000_000_000, 1_000_000_000)


def write_folder(path, score=1.0):
    with tables.parquet(path, TABLE.schema, partitioned=True) as write:
        write(pa.table({"experiment": ["a"], "score": [score]}))


WRITERS = {
    "json": lambda path: atomic.write_json(path, {"a": 1}),
    "parquet": lambda path: tables.write_parquet(path, [TABLE]),
    "folder": write_folder,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_job_that_runs_twice_leaves_what_the_first_wrote_with_its_time(tmp_path, write):
    path = tmp_path / "out"
    write(path)
    os.utime(path, LONG_AGO)
    inode = path.stat().st_ino
    write(path)
    assert (path.stat().st_mtime, path.stat().st_ino) == (LONG_AGO[0], inode)
    assert list(tmp_path.iterdir()) == [path]


def test_other_content_replaces_a_file_and_a_folder(tmp_path):
    atomic.write_json(tmp_path / "file", {"a": 1})
    atomic.write_json(tmp_path / "file", {"a": 2})
    assert atomic.read_json(tmp_path / "file") == {"a": 2}
    write_folder(tmp_path / "folder", 1.0)
    write_folder(tmp_path / "folder", 2.0)
    assert tables.dataset(tmp_path / "folder").to_table()["score"].to_pylist() == [2.0]


def test_two_copies_of_a_job_that_end_together_leave_one_folder(tmp_path, monkeypatch):
    path, rename = tmp_path / "out", os.replace

    def replace(source, target):
        """The copy on another node puts its folder there between our look and our rename."""
        path.mkdir()
        (path / "part").write_text("1")
        rename(source, target)

    monkeypatch.setattr(atomic.os, "replace", replace)
    with atomic.aside(path) as ours:
        ours.mkdir()
        (ours / "part").write_text("1")
    assert list(tmp_path.iterdir()) == [path]
    assert (path / "part").read_text() == "1"


def test_an_error_leaves_nothing(tmp_path):
    def half():
        yield TABLE
        raise RuntimeError

    with pytest.raises(RuntimeError):
        tables.write_parquet(tmp_path / "out", half())
    assert list(tmp_path.iterdir()) == []


def test_what_a_job_says_of_itself_is_the_first_copy_s(tmp_path):
    atomic.write_record(tmp_path / "job.json", {"seconds": 1})
    atomic.write_record(tmp_path / "job.json", {"seconds": 2})
    assert atomic.read_json(tmp_path / "job.json") == {"seconds": 1}


def test_a_job_s_log_holds_nothing_of_another_copy_s(tmp_path):
    path = tmp_path / "log"
    with path.open("w") as of_the_other, job.logged(path):
        logging.info("ours")
        of_the_other.write("theirs")
    assert "ours" in path.read_text()
    assert "theirs" not in path.read_text()
