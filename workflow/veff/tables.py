"""How are tables written so that nobody ever sees half of one?"""

import filecmp
import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq


@contextmanager
def aside(path: str | Path) -> Iterator[Path]:
    """A path beside `path` to write a file or a folder to; renamed to `path` at the end, removed
    on an error.

    A cluster may run a job twice at once. So the name holds the node and the process, and where
    `path` already has the same content it stays as it is, with its time, which is what Snakemake
    looks at.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        yield temporary
        put(temporary, path)
    finally:
        _remove(temporary)


def put(temporary: Path, path: Path) -> None:
    """Rename a file or a folder to `path`, unless what is there has the same content."""
    if _same(temporary, path):
        return
    if path.is_dir() or temporary.is_dir():  # a folder cannot be replaced in one step
        _remove(path)
    try:
        os.replace(temporary, path)
    except OSError:
        if not _same(temporary, path):  # the same job, run twice, put it there just now
            raise


def _same(one: Path, other: Path) -> bool:
    if one.is_dir() and other.is_dir():
        names = [sorted(p.relative_to(f) for p in f.rglob("*")) for f in (one, other)]
        return names[0] == names[1] and all(
            _same(one / name, other / name) for name in names[0] if not (one / name).is_dir()
        )
    return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def write_json(path: str | Path, value) -> None:
    with aside(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n")


def write_record(path: str | Path, value) -> None:
    """Write as JSON what a job says of itself, which differs each time: what another copy of the
    same job wrote stays (Snakemake removed what was there before)."""
    if not Path(path).exists():
        write_json(path, value)


def read_json(path: str | Path):
    return json.loads(Path(path).read_text())


def write_parquet(path: str | Path, tables: Iterable[pa.Table]) -> None:
    """Write tables of one schema, at least one, each as a row group of its own."""
    write_parquets([path], ((table,) for table in tables))


def write_parquets(paths: Sequence[str | Path], items: Iterable[Sequence[pa.Table]]) -> None:
    """Write several files at once: each item has a table for each, which becomes a row group."""
    items = iter(items)
    first = next(items)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(pq.ParquetWriter(stack.enter_context(aside(path)), table.schema))
            for path, table in zip(paths, first, strict=True)
        ]
        for item in chain([first], items):
            for writer, table in zip(writers, item, strict=True):
                writer.write_table(table, row_group_size=max(1, len(table)))


@contextmanager
def parquet(
    path: str | Path, schema: pa.Schema, partitioned: bool
) -> Iterator[Callable[[pa.Table], None]]:
    """A function that takes the table of one experiment after the other.

    They make one file; or, `partitioned`, a folder with a file
    `experiment=<name>/part.parquet` for each, as pandas, pyarrow, DuckDB and polars read it.
    """
    path = Path(path)
    with aside(path) as temporary:
        if not partitioned:
            with pq.ParquetWriter(temporary, schema) as writer:
                yield writer.write_table
            return
        temporary.mkdir()

        def write(table: pa.Table) -> None:
            folder = temporary / f"experiment={quote(table['experiment'][0].as_py(), safe='')}"
            folder.mkdir()
            pq.write_table(table.drop_columns("experiment"), folder / "part.parquet")

        yield write


def dataset(path: str | Path) -> "pyarrow.dataset.Dataset":
    """What `parquet` wrote, as one or as many files."""
    import pyarrow.dataset as ds  # it imports pandas, which each start of Snakemake would wait for

    schema = pa.schema([("experiment", pa.string())])
    return ds.dataset(path, partitioning=ds.partitioning(schema, flavor="hive"))


def parquet_to_tsv(parquet: str | Path, tsv: str | Path) -> None:
    """The same table as gzipped text, some rows in memory at a time."""
    file = pq.ParquetFile(parquet)
    with tsv_gz(tsv, file.schema_arrow) as writer:
        for batch in file.iter_batches():
            writer.write_batch(batch)


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
