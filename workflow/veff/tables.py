"""How are tables written so that nobody ever sees half of one?"""

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq


@contextmanager
def aside(path: str | Path) -> Iterator[Path]:
    """A path beside `path` to write to; renamed to `path` at the end, removed on an error.

    The name holds the process, so that two jobs that write the same file do not meet.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: str | Path, value) -> None:
    with aside(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n")


def read_json(path: str | Path):
    return json.loads(Path(path).read_text())


def write_parquet(path: str | Path, tables: Iterable[pa.Table]) -> None:
    """Write tables of one schema, at least one, each as a row group of its own."""
    tables = iter(tables)
    first = next(tables)
    with aside(path) as temporary, pq.ParquetWriter(temporary, first.schema) as writer:
        for table in (first, *tables):
            writer.write_table(table, row_group_size=max(1, len(table)))


@contextmanager
def tsv_gz(path: str | Path, schema: pa.Schema) -> Iterator[pyarrow.csv.CSVWriter]:
    """A writer of a gzipped TSV with a header; the same tables give the same bytes."""
    # pyarrow quotes the names of a header, so the header is written here.
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with (
        aside(path) as temporary,
        open(temporary, "wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=4, fileobj=raw, mtime=0) as handle,
    ):
        handle.write(("\t".join(schema.names) + "\n").encode())
        with pyarrow.csv.CSVWriter(handle, schema, write_options=options) as writer:
            yield writer
