"""How are tables written, and read again?"""

import gzip
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.atomic import aside

ROWS = 1 << 14  # of a table that one core makes text at once


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def write_parquet(path: str | Path, tables: Iterable[pa.Table]) -> None:
    """Write tables of one schema, at least one, each as a row group of its own."""
    write_parquets([path], ((table,) for table in tables), small=True)


def write_parquets(
    paths: Sequence[str | Path], items: Iterable[Sequence[pa.Table]], small: bool = False
) -> None:
    """Write several files at once: each item has a table for each, which becomes a row group.

    While one item is written, the next one is made. Files that are not to be `small` are written
    and read in half the time.
    """
    options = {} if small else {"compression": "lz4"}
    items = iter(items)
    first = next(items)
    with ExitStack() as stack, ThreadPoolExecutor(len(paths)) as pool:
        writers = [
            stack.enter_context(
                pq.ParquetWriter(
                    stack.enter_context(aside(path)),
                    table.schema,
                    write_page_checksum=True,
                    use_dictionary=small or _not_measured(table.schema),
                    **options,
                )
            )
            for path, table in zip(paths, first, strict=True)
        ]

        def write(writer: pq.ParquetWriter, table: pa.Table) -> None:
            writer.write_table(table, row_group_size=max(1, len(table)))

        writing = []
        for item in chain([first], items):
            for one in writing:
                one.result()
            writing = [pool.submit(write, *pair) for pair in zip(writers, item, strict=True)]
        for one in writing:
            one.result()


def _not_measured(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if not pa.types.is_floating(field.type)]


@contextmanager
def parquet(
    path: str | Path, schema: pa.Schema, partitioned: bool, distinct: Collection[str] = ()
) -> Iterator[Callable[[pa.Table], None]]:
    """A function that takes the table of one experiment after the other.

    They make one file; or, `partitioned`, a folder with a file
    `experiment=<name>/part.parquet` for each, as pandas, pyarrow, DuckDB and polars read it. Of
    columns that are `distinct` hardly a value comes twice: dictionaries of them only take time.
    """
    path = Path(path)
    options = {"use_dictionary": [name for name in schema.names if name not in distinct]}
    with aside(path) as temporary:
        if not partitioned:
            with pq.ParquetWriter(temporary, schema, **options) as writer:
                yield writer.write_table
            return
        temporary.mkdir()

        def write(table: pa.Table) -> None:
            folder = temporary / f"experiment={quote(table['experiment'][0].as_py(), safe='')}"
            folder.mkdir()
            pq.write_table(table.drop_columns("experiment"), folder / "part.parquet", **options)

        yield write


def dataset(path: str | Path) -> "pa.dataset.Dataset":
    """What `parquet` wrote, as one or as many files."""
    import pyarrow.dataset as ds  # it imports pandas, which each start of Snakemake would wait for

    schema = pa.schema([("experiment", pa.string())])
    return ds.dataset(path, partitioning=ds.partitioning(schema, flavor="hive"))


def parquet_to_tsv(parquet: str | Path, tsv: str | Path) -> None:
    """The same table as gzipped text, some rows in memory at a time."""
    file = pq.ParquetFile(parquet)
    with tsv_gz(tsv, file.schema_arrow) as write:
        for batch in file.iter_batches(ROWS * cores()):
            write(batch)


@contextmanager
def tsv_gz(
    path: str | Path, schema: pa.Schema
) -> Iterator[Callable[[pa.Table | pa.RecordBatch], None]]:
    """A function that writes tables to a gzipped TSV with a header; the same tables give the same
    bytes.

    A text with a quote, a tab or a line's end in it stands in quotes, its own doubled, as RFC 4180
    has it: so pandas, polars and R read it back. No other text is quoted, which `pyarrow.csv`
    cannot do. Blocks of rows are compressed on all cores, each as a gzip member of its own.
    """
    with (
        aside(path) as temporary,
        open(temporary, "wb") as handle,
        ThreadPoolExecutor(cores()) as pool,
    ):
        handle.write(_member(("\t".join(schema.names) + "\n").encode()))

        def write(table: pa.Table | pa.RecordBatch) -> None:
            starts = range(0, len(table), ROWS)
            handle.writelines(pool.map(lambda i: _text(table.slice(i, ROWS)), starts))

        yield write


def _text(table: pa.Table | pa.RecordBatch) -> bytes:
    """The rows as text, compressed; nearly all of it is done outside Python's lock."""
    if isinstance(table, pa.Table):
        (table,) = table.combine_chunks().to_batches()
    cells = [_cells(column) for column in table.columns]
    cells[-1] = pc.binary_join_element_wise(cells[-1], "\n", "")
    rows = pc.binary_join_element_wise(*cells, "\t")
    _, offsets, text = rows.buffers()
    ends = memoryview(offsets).cast("i")
    return _member(memoryview(text)[ends[rows.offset] : ends[rows.offset + len(rows)]])


def _member(text: bytes | memoryview) -> bytes:
    return gzip.compress(text, compresslevel=4, mtime=0)


def _cells(column: pa.Array) -> pa.Array:
    """The values as text, '' where one is missing."""
    texts = pc.fill_null(pc.cast(column, pa.string()), "")
    if not pa.types.is_string(column.type):
        return texts
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
    return pc.if_else(pc.match_substring_regex(texts, '["\t\r\n]'), quoted, texts)
