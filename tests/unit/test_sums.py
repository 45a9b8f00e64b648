"""What a job wrote is what the next one reads, or it is named, removed and made again."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pytest

from veff import atomic, sums, tables
from veff.errors import InputError
from veff.inputs import reference
from veff.inputs.reference import Reference
from veff.scoring import windows

DAMAGED = "not as the job wrote it, so damaged since; removed, and the same command makes it again"


def flip(path, place=-1):
    """One bit of a byte, counted from the file's beginning or end."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def cut_short(path):
    os.truncate(path, path.stat().st_size // 2)


@pytest.fixture
def results(tmp_path):
    """A table as a file, and as a folder of files."""
    table = pa.table({"experiment": ["e"] * 9, "logfc": np.arange(9.0)})
    tables.write_parquet(tmp_path / "summary.parquet", [table])
    with tables.parquet(tmp_path / "scores.parquet", table.schema, True) as write:
        write(table)
    sums.write(tmp_path / "summary.parquet", tmp_path / "scores.parquet")
    return tmp_path


def test_a_table_that_is_as_it_was_written_is_read(results):
    sums.check(results / "summary.parquet", results / "scores.parquet")


@pytest.mark.parametrize("name", ["summary.parquet", "scores.parquet/experiment=e/part.parquet"])
@pytest.mark.parametrize("harm", [flip, lambda path: flip(path, 9), cut_short, os.unlink])
def test_a_damaged_table_is_named_and_removed_and_no_other(results, name, harm):
    harm(results / name)
    (harmed,) = {"summary.parquet", "scores.parquet"} & set(name.split("/"))
    if harm is os.unlink and harmed == name:
        return  # Snakemake sees that
    with pytest.raises(InputError) as error:
        sums.check(results / "summary.parquet", results / "scores.parquet")
    assert str(error.value) == f"{results / harmed}: {DAMAGED}"
    left = {path.name for path in results.iterdir() if not path.name.startswith(".")}
    assert left == {"summary.parquet", "scores.parquet"} - {harmed}


def test_a_table_without_its_sum_is_made_again(results):
    (results / ".summary.parquet.sha256").unlink()
    with pytest.raises(InputError, match=r"summary\.parquet: not as"):
        sums.check(results / "summary.parquet")


def test_a_record_that_is_no_json_any_more_is_named_and_removed(tmp_path):
    path = tmp_path / "summary.json"
    atomic.write_json(path, {"chunks": 3})
    assert atomic.read_json(path) == {"chunks": 3}
    cut_short(path)
    with pytest.raises(InputError) as error:
        atomic.read_json(path)
    assert str(error.value) == f"{path}: {DAMAGED}"
    assert not path.exists()


PIECE = 4  # 16 bases a piece, of 5 pieces


@pytest.fixture
def genome(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "PIECE", PIECE)
    (tmp_path / "g.fa").write_text(f">one\n{'ACGT' * 10}\n>two\n{'GATTACA' * 5}\n")
    reference.build(tmp_path / "g.fa", tmp_path / "g")
    return tmp_path / "g"


def by_fetch(genome, first, last):
    contig = int(first >= 40)
    return genome.fetch(contig, first - 40 * contig, last + 1 - 40 * contig)


def by_at(genome, first, last):
    contig = int(first >= 40)
    return genome.at(np.array([contig]), np.array([[first, last]]) - 40 * contig)


def by_windows(genome, first, last):
    contig, length = int(first >= 40), last + 1 - first
    start = first - 40 * contig + length // 2
    return windows.windows(genome, np.array([contig]), [start], [0], [""], length)


@pytest.mark.parametrize("read", [by_fetch, by_at, by_windows])
@pytest.mark.parametrize(("first", "last"), [(0, 15), (14, 17), (33, 39), (40, 47), (63, 74)])
def test_a_damaged_base_is_found_by_whoever_reads_its_piece(genome, read, first, last):
    pieces = {first >> PIECE, last >> PIECE}
    sound = genome.with_name("sound")
    shutil.copytree(genome, sound)
    for base in range(0, 75, 5):
        flip(genome / "bases.u8", base)
        opened = Reference.open(genome)
        if base >> PIECE in pieces:
            with pytest.raises(InputError, match=r"bases\.u8: not as the job wrote it"):
                read(opened, first, last)
            assert not (genome / "bases.u8").exists()
        else:
            read(opened, first, last)
            read(opened, first, last)
        shutil.copy(sound / "bases.u8", genome)


@pytest.mark.parametrize("name", ["bases.u8", "contigs.json"])
def test_a_genome_cut_short_or_contigs_with_another_digit_are_removed(genome, name):
    if name == "bases.u8":
        cut_short(genome / name)
    else:
        (genome / name).write_text((genome / name).read_text().replace("40", "41"))
    with pytest.raises(InputError, match=f"{name}: not as the job wrote it"):
        Reference.open(genome)
    assert not (genome / name).exists()
