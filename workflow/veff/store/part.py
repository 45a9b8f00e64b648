"""How are scores kept in one file that never changes, and are they still what was written?

A part has a row an allele, in order, with all that `scoring.score` says of it. Its name is the
hash of its footer, which names the alleles and what scored them; each page has a CRC-32. So a part
that is cut short, edited or misnamed shows where it is read, and none needs a note beside it.
"""

import hashlib
import json
import os
import re
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.autotune import trust
from veff.models.experiment import Experiment
from veff.scoring import columns

KEYS = {"contig": pa.string(), "start": pa.int64(), "ref_len": pa.int32(), "alt": pa.string()}
OF_ALL = {**KEYS, "n_padded": pa.int32()}
ORDER = [(key, "ascending") for key in KEYS]
IDENTITY, ALLELES = b"identity", b"alleles"
ROWS = 1 << 16  # of a row group: what is read for one allele
NAME = re.compile(r"[0-9a-f]{32}(\.\d+)?\.parquet")
NAMES = 100  # tried for one part, where others stand in the way
FOOTER = 64 << 20  # bytes, at most
ABANDONED_S = 86400  # a file aside so old is of a job that was killed


class Damaged(Exception):
    """A part that is not what was written, or that no scoring job would write; says why."""


def schema(experiment: Experiment) -> pa.Schema:
    """The columns of a part: those of `OF_ALL`; of each signal group the answers, `GROUP.NAME`;
    and of each fold its scores, `GROUP.FOLD.NAME`."""
    fields = dict(OF_ALL)
    for group in experiment.groups:
        for score in columns.SCORES:
            fields |= {f"{group}.{score}": pa.float64(), f"{group}.{score}_sd": pa.float64()}
        fields[f"{group}.folds_agree"] = pa.int64()
        for fold in range(len(experiment.folds)):
            fields |= {f"{group}.{fold}.{score}": pa.float64() for score in columns.SCORES}
    return pa.schema(fields)


def joined(
    alleles: pa.Table,
    contigs: list[str],
    experiment: Experiment,
    answer: pa.Table,
    folds: pa.Table,
) -> pa.Table:
    """What `scoring.score` says of alleles under an experiment, as the rows of a part.

    `contigs` are the hashes of the reference's, by number.
    """
    keys = alleles.select(list(KEYS)[1:])
    values = {"contig": pa.array(contigs).take(alleles["contig"].combine_chunks())}
    values |= {name: keys[name] for name in keys.column_names}
    for group in experiment.groups:
        own = answer.filter(pc.equal(answer["group"], group))
        values["n_padded"] = own["n_padded"]
        for score in columns.SCORES:
            values |= {f"{group}.{name}": own[name] for name in (score, f"{score}_sd")}
        values[f"{group}.folds_agree"] = own["folds_agree"]
        of_group = folds.filter(pc.equal(folds["group"], group))
        for fold in range(len(experiment.folds)):
            one = of_group.filter(pc.equal(of_group["fold"], fold))
            values |= {f"{group}.{fold}.{score}": one[score] for score in columns.SCORES}
    return pa.table(values, schema=schema(experiment)).sort_by(ORDER)


def parted(
    rows: pa.Table, allele_id: np.ndarray, experiment: Experiment
) -> tuple[pa.Table, pa.Table]:
    """The tables that `joined` was given, of rows of parts and their alleles' numbers."""
    n, n_folds = len(rows), len(experiment.folds)
    answers, folds = [], []
    for group in experiment.groups:
        keys = {
            "allele_id": pa.array(allele_id, pa.int64()),
            "experiment": pa.repeat(experiment.name, n),
            "group": pa.array(np.full(n, group, np.int32)),
            "n_padded": rows["n_padded"],
        }
        answer = keys | {"n_folds": pa.array(np.full(n, n_folds, np.int32))}
        for score in columns.SCORES:
            answer |= {name: rows[f"{group}.{name}"] for name in (score, f"{score}_sd")}
            if score == "logfc":
                answer["folds_agree"] = rows[f"{group}.folds_agree"]
        answers.append(pa.table(answer))
        for fold in range(n_folds):
            of_fold = {score: rows[f"{group}.{fold}.{score}"] for score in columns.SCORES}
            number = pa.array(np.full(n, fold, np.int32))
            folds.append(pa.table({**keys, "fold": number, **of_fold}))
    return pa.concat_tables(answers), pa.concat_tables(folds)


def texts(alleles: pa.Table) -> pa.Array:
    """The start, REF's length and ALT of each allele as one text, by which they are compared."""
    parts = [pc.cast(alleles[name].combine_chunks(), pa.string()) for name in list(KEYS)[1:]]
    return pc.binary_join_element_wise(*parts, ":")


def sum_of(alleles: pa.Table) -> str:
    """A hash of which alleles these are, in their order."""
    hashed = hashlib.sha256()
    for column in (alleles["contig"].combine_chunks(), texts(alleles)):
        for buffer in column.buffers()[1:]:
            hashed.update(memoryview(buffer))
    return hashed.hexdigest()


def write(rows: pa.Table, identity: dict, folder: Path) -> Path:
    """Put rows that `joined` made into `folder`, and return where they are.

    They are written aside and get their name when they are whole. Where what has the name cannot
    be trusted, they get the next one.
    """
    said = {IDENTITY: json.dumps(identity, sort_keys=True), ALLELES: sum_of(rows)}
    _clear(folder)
    descriptor, aside = tempfile.mkstemp(prefix=".part-", dir=folder)
    try:
        with open(descriptor, "w+b") as file:
            # Scores are as good as random: dictionaries of them only take time.
            options = {"use_dictionary": ["contig", "alt"], "compression": "lz4"}
            options |= {"row_group_size": ROWS, "write_page_checksum": True}
            pq.write_table(rows.replace_schema_metadata(said), file, **options)
            file.flush()
            os.fchmod(file.fileno(), 0o644)  # whatever the umask: see `trust`
            os.fsync(file.fileno())
            name = _footer(file.fileno())
        for number in range(NAMES):
            path = folder / f"{name}{f'.{number}' if number else ''}.parquet"
            try:
                os.link(aside, path)  # unlike a rename, fails where the name is taken
            except FileExistsError:
                with suppress(trust.Untrusted):
                    os.close(trust.file(path))
                    os.replace(aside, path)  # the same, unless it was damaged since
                    return path
                continue
            except OSError:  # no hard links on this file system
                os.replace(aside, path)
            return path
        raise OSError(f"{NAMES} names like {path} belong to others")
    finally:
        with suppress(FileNotFoundError):
            os.unlink(aside)


def _clear(folder: Path) -> None:
    """Remove what killed jobs of this user left aside."""
    for path in folder.glob(".part-*"):
        with suppress(OSError):
            found = path.lstat()
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime > ABANDONED_S:
                path.unlink()


def _footer(descriptor: int) -> str:
    """The hash of a Parquet file's footer."""
    size = os.fstat(descriptor).st_size
    end = os.pread(descriptor, 8, max(size - 8, 0))
    length = struct.unpack("<I", end[:4])[0] if end[4:] == b"PAR1" else size
    if not 0 < length <= min(size - 12, FOOTER):
        raise Damaged("it is no Parquet file, or cut short")
    return hashlib.sha256(os.pread(descriptor, length + 8, size - 8 - length)).hexdigest()[:32]


class Part:
    """A part, open: it was written by this user or root, and its footer is the one written."""

    def __init__(self, path: Path, file: pq.ParquetFile, columns: pa.Schema):
        self.path = path
        self._file = file
        self._columns = columns
        self.groups = range(file.num_row_groups)

    def span(self, group: int) -> tuple[str, str, int, int]:
        """The first and the last contig of a row group, and the least and the largest start."""
        found = self._file.metadata.row_group(group)
        contig, start = (found.column(i).statistics for i in range(2))
        return contig.min, contig.max, start.min, start.max

    def place(self, group: int) -> tuple[bytes, int, int]:
        """What tells which alleles stand in a row group, without reading them: the hash of all of
        the part, and the rows."""
        sizes = [self._file.metadata.row_group(i).num_rows for i in range(group + 1)]
        return self._file.schema_arrow.metadata[ALLELES], sum(sizes[:group]), sizes[group]

    def alleles(self, group: int) -> pa.Table:
        """Which alleles stand in a row group, in order."""
        return self._read(group, list(KEYS))

    def rows(self, group: int) -> pa.Table:
        """All of a row group."""
        rows = self._read(group, None)
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            if name.endswith("_sd") and column.null_count == len(column):
                continue  # a spread that one fold does not have
            finite = "." not in name or pc.all(pc.is_finite(column)).as_py()
            if column.null_count or not finite:
                raise Damaged(f"its column {name} has a row without a finite number")
        return rows

    def _read(self, group: int, names: list[str] | None) -> pa.Table:
        try:
            table = self._file.read_row_group(group, names)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(error) from error
        return table.cast(self._columns) if names is None else table


@contextmanager
def opened(path: Path, identity: dict, columns: pa.Schema) -> Iterator[Part]:
    """The part of that path, name and identity.

    Raises `Damaged`, `trust.Untrusted`, and OSError where it cannot be read.
    """
    descriptor = trust.file(path)
    try:
        if _footer(descriptor) != path.name.partition(".")[0]:
            raise Damaged("its footer is not the one that it was written with")
        try:
            file = pq.ParquetFile(f"/proc/self/fd/{descriptor}", page_checksum_verification=True)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(error) from error
        with file:
            found = file.schema_arrow
            said = found.metadata or {}
            named = said.get(IDENTITY, b"").decode(errors="replace")
            if named != json.dumps(identity, sort_keys=True) or ALLELES not in said:
                raise Damaged("it was scored by something else than its folder says")
            if not found.equals(columns):
                raise Damaged("its columns are not those of scores")
            yield Part(path, file, columns)
    finally:
        os.close(descriptor)


def _damaged(error: Exception) -> Exception:
    """What a reader's error means: damage, unless the system refused to read."""
    return error if getattr(error, "errno", None) else Damaged(str(error).splitlines()[0])
