"""Parquet files: rows of a table become the bytes of one file, compressed with zstd; several files become one.

Rows wait in temporary files as lines of numbers, one file for each month, which DuckDB reads with the table's types, so
that memory does not grow with their number. Names, which many rows have in common, stand in other lines, once. The same
rows give the same bytes, whatever the machine has of cores.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb
import orjson

from sessionlog import files
from sessionlog.errors import NotExported
from sessionlog.ledger.parquet_schema import NAMES, ORDER, SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from typing import BinaryIO

_LEAST_OBJECT = 1 << 24  # DuckDB's own limit of a JSON line; its buffers are a multiple of it
_MEMORY = "100MB"
_MOST_MONTHS = 64  # whose rows wait at once, each in an open file

Month = int | None
"""Months since the year 0; None for rows without a time."""


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise NotExported(f"parquet: {str(error).partition(chr(10))[0]}") from error


class ParquetEncoder:
    """Rows on their way into files, in a private temporary folder.

    Args:
        machine: The id of the machine whose rows they are.
    """

    def __init__(self, machine: str) -> None:
        self._folder = files.temporary_directory("sessionlog-parquet-")
        self._machine = machine
        self._database = duckdb.connect(
            config={"threads": "1", "memory_limit": _MEMORY, "temp_directory": os.path.join(self._folder, "spill")}
        )
        self._waiting: dict[tuple[str, Month], _Lines] = {}
        self._names: dict[tuple[str, str], _Lines] = {}

    def name(self, table: str, group: str, values: Sequence[Any]) -> int:
        """Add a group of names, and return the number by which rows refer to it."""
        lines = self._names.get((table, group))
        if lines is None:
            lines = self._names[table, group] = _Lines(self._folder)
            types = ", ".join(f"{column} {TABLES[table][column]}" for column in NAMES[table][group])
            self._database.execute(f"CREATE TABLE {table}_{group} (number BIGINT, {types})")
        return (
            lines.add(orjson.dumps({"number": lines.count, **dict(zip(NAMES[table][group], values, strict=True))})) - 1
        )

    def add(self, table: str, month: Month, row: Sequence[Any]) -> int:
        """Add a row, in the order of `line_columns`; return how many wait for the file of this month."""
        lines = self._waiting.get((table, month))
        if lines is None:
            lines = self._waiting[table, month] = _Lines(self._folder)
        return lines.add(orjson.dumps(row)[1:-1])

    def is_full(self) -> bool:
        """Whether rows of so many months wait that they should be encoded."""
        return len(self._waiting) >= _MOST_MONTHS

    def months(self, table: str) -> list[Month]:
        """Return the months of the rows of a table that wait, in order."""
        return sorted(
            (month for kind, month in self._waiting if kind == table), key=lambda month: (month is None, month)
        )

    @_named()
    def encode(self, table: str, month: Month) -> tuple[int, bytes]:
        """Return the number of rows that wait for a file, and the file, which may be empty.

        Raises:
            NotExported: There is no room for the file.
        """
        lines = self._waiting.pop((table, month), None) or _Lines(self._folder)
        joins = []
        for group in NAMES[table]:
            if (table, group) in self._names:
                self._load_names(table, group)
                joins.append(f"LEFT JOIN {table}_{group} ON {table}_{group}.number = rows.number_of_{group}")
        named = {
            column: f"{table}_{group}.{column}" if (table, group) in self._names else f"NULL::{TABLES[table][column]}"
            for group, columns in NAMES[table].items()
            for column in columns
        }
        columns = [
            _quoted(self._machine) if name == "machine_id" else named.get(name, f"rows.{name}")
            for name in TABLES[table]
        ]
        selected = ", ".join(f"{column} AS {name}" for column, name in zip(columns, TABLES[table], strict=True))
        types = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in line_columns(table).items())
        read = (
            f"read_csv({_quoted(lines.close())}, columns = {{{types}}}, auto_detect = false, header = false, "
            "delim = ',', quote = '', escape = '', nullstr = 'null', parallel = false)"
        )
        order = f"rows.{ORDER[table]} NULLS LAST, rows.record, rows.revision"
        data = self._copy(f"SELECT {selected} FROM {read} AS rows {' '.join(joins)} ORDER BY {order}")  # noqa: S608 - our own names and paths
        files.remove_file(lines.path)
        return lines.count, data

    @_named()
    def merge(self, table: str, parts: Iterable[bytes], *, is_whole: bool) -> tuple[int, bytes]:
        """Return the rows of files as one file: of each row the latest revision.

        Args:
            table: The table of the files.
            parts: The files, each of which is asked for when the one before it is on the disk.
            is_whole: These are all files of a month, so that tombstones have nothing left to hide.

        Raises:
            NotExported: One is no parquet file of this table, or there is no room.
        """
        paths = [self._store(data) for data in parts]
        listed = ", ".join(map(_quoted, paths))
        empty = ", ".join(f"NULL::{kind} AS {name}" for name, kind in TABLES[table].items())
        found = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
        rows = f"SELECT {empty} WHERE false UNION ALL BY NAME SELECT * FROM {found}"  # noqa: S608 - our own names and paths
        latest = f"SELECT DISTINCT * FROM ({rows}) QUALIFY revision = max(revision) OVER (PARTITION BY record)"  # noqa: S608 - as above
        kept = "NOT deleted" if is_whole else "true"
        data = self._copy(f"SELECT * FROM ({latest}) WHERE {kept} ORDER BY {ORDER[table]} NULLS LAST, record")  # noqa: S608 - as above
        for path in paths:
            files.remove_file(path)
        [(count,)] = self.decode(data, "count(*)")
        return count, data

    def decode(self, data: bytes, columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield expressions on the rows of a file, as `encode` has made it.

        Raises:
            NotExported: It is no parquet file, or lacks a column.
        """
        path = self._store(data)
        with _named(), closing(self._database.cursor()) as cursor:
            cursor.execute(f"SELECT {columns} FROM read_parquet({_quoted(path)})")  # noqa: S608 - our own names and paths
            while rows := cursor.fetchmany(4096):
                yield from rows
        files.remove_file(path)

    def _load_names(self, table: str, group: str) -> None:
        """Insert the names that were added since the last file."""
        lines = self._names[table, group]
        if not lines.is_open:
            return
        kinds = {"number": "BIGINT", **{column: TABLES[table][column] for column in NAMES[table][group]}}
        types = ", ".join(f"{column}: {_quoted(kind)}" for column, kind in kinds.items())
        read = (
            f"read_json({_quoted(lines.close())}, columns = {{{types}}}, format = 'newline_delimited', "
            f"maximum_object_size = {max(_LEAST_OBJECT, 2 * lines.longest)})"
        )
        self._database.execute(f"INSERT INTO {table}_{group} SELECT * FROM {read}")  # noqa: S608 - our own names and paths
        files.remove_file(lines.path)

    def _copy(self, select: str) -> bytes:
        """Return what a statement selects as a parquet file."""
        path = os.path.join(self._folder, "copy.parquet")
        options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{sessionlog_schema: '{SCHEMA_VERSION}'}}"
        self._database.execute(f"COPY ({select}) TO {_quoted(path)} ({options})")
        with files.open_log(path) as file:
            data = file.read()
        files.remove_file(path)
        return data

    def _store(self, data: bytes) -> str:
        """Write a file into the folder; return its path."""
        file, path = files.open_temporary(self._folder)
        with file:
            file.write(data)
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lines in (*self._waiting.values(), *self._names.values()):
            lines.close()
        self._database.close()
        files.remove_directory(self._folder)


class _Lines:
    """Lines in a temporary file, which is opened for the first one, and again for the first one after `close`.

    Attributes:
        path: The file that was closed last.
        count: Lines in all files.
        longest: The greatest length of a line.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self.path = ""
        self.count = self.longest = 0

    @property
    def is_open(self) -> bool:
        """Whether there are lines in a file that is not closed yet."""
        return self._file is not None

    def add(self, line: bytes) -> int:
        """Append a line; return how many there are."""
        if self._file is None:
            self._file, self.path = files.open_temporary(self._folder)
        self._file.write(line + b"\n")
        self.longest = max(self.longest, len(line))
        self.count += 1
        return self.count

    def close(self) -> str:
        """Close the file; return its path: of an empty one if no line was added."""
        if self._file is None and not self.path:
            self._file, self.path = files.open_temporary(self._folder)
        if self._file is not None:
            self._file.close()
            self._file = None
        return self.path


def line_columns(table: str) -> dict[str, str]:
    """Return the columns of a row on its way into a file of a table, with their types.

    Names are replaced by the number of their group (see `ParquetEncoder.name`).
    """
    named = {column for columns in NAMES[table].values() for column in columns}
    groups = dict.fromkeys((f"number_of_{group}" for group in NAMES[table]), "BIGINT")
    own = {name: kind for name, kind in TABLES[table].items() if name != "machine_id" and name not in named}
    return groups | own


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
