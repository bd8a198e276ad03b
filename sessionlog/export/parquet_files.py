"""Parquet files: rows of a table and a day become the bytes of one file, compressed with zstd.

Rows wait in a temporary file as JSON lines, which DuckDB reads with the table's types, so that memory does not grow
with their number. The same rows give the same bytes, whatever the machine has of cores.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb
import orjson

from sessionlog import files
from sessionlog.ledger.parquet_schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from typing import BinaryIO

_LEAST_OBJECT = 1 << 24  # DuckDB's own limit of a JSON line; its buffers are a multiple of it
_MEMORY = "256MB"


class ParquetEncoder:
    """Rows on their way into one file after the other, in a private temporary folder.

    Attributes:
        count: Rows since the last file.
    """

    def __init__(self) -> None:
        self._folder = files.temporary_directory("sessionlog-parquet-")
        self._database = duckdb.connect(
            config={"threads": "1", "memory_limit": _MEMORY, "temp_directory": os.path.join(self._folder, "spill")}
        )
        self._rows: BinaryIO | None = None
        self._path = ""
        self._longest = 0
        self.count = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row; what it lacks is null."""
        if self._rows is None:
            self._rows, self._path = files.open_temporary(self._folder)
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        self._longest = max(self._longest, len(line))
        self._rows.write(line)
        self.count += 1

    def encode(self, table: str) -> bytes:
        """Return the rows as a file of a table, and begin the next one.

        Raises:
            duckdb.Error: There is no room for the file.
        """
        assert self._rows is not None, "a file has rows"
        self._rows.close()
        columns = ", ".join(f"{name}: {_quoted(kind)}" for name, kind in TABLES[table].items())
        target = f"{self._path}.parquet"
        read = (
            f"read_json({_quoted(self._path)}, columns = {{{columns}}}, format = 'newline_delimited', "
            f"maximum_object_size = {max(_LEAST_OBJECT, 2 * self._longest)})"
        )
        options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{sessionlog_schema: '{SCHEMA_VERSION}'}}"
        self._database.execute(f"COPY (SELECT * FROM {read}) TO {_quoted(target)} ({options})")  # noqa: S608 - our own names and paths
        with files.open_log(target) as file:
            data = file.read()
        for path in (self._path, target):
            files.remove_file(path)
        self._rows, self._longest, self.count = None, 0, 0
        return data

    def decode(self, data: bytes, columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield expressions on the rows of a file, as `encode` has made it.

        Raises:
            duckdb.Error: It is no parquet file, or lacks a column.
        """
        file, path = files.open_temporary(self._folder)
        with file:
            file.write(data)
        with closing(self._database.cursor()) as cursor:
            cursor.execute(f"SELECT {columns} FROM read_parquet({_quoted(path)})")  # noqa: S608 - our own names and paths
            while rows := cursor.fetchmany(4096):
                yield from rows
        files.remove_file(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rows is not None:
            self._rows.close()
        self._database.close()
        files.remove_directory(self._folder)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
