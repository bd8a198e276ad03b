"""Event rows on their way into parquet files, by month, in a temporary database."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import duckdb
import orjson

from sessionlog import files
from sessionlog.transcript.event_rows import COLUMNS

Error = duckdb.Error
_IDS = {"machine_id": "VARCHAR", "log_key": "BIGINT", "revision": "BIGINT", "deleted": "BOOLEAN"}
EVENT_COLUMNS = {**_IDS, **{name: kind for name, kind in COLUMNS.items() if name != "log"}}
"""Column → DuckDB's type, in a file."""

_LEAST_OBJECT = 1 << 24
MOST_ROWS = 20_000  # of a file, which is in memory as a whole
_GROUP = 2048  # rows that are in memory until they are compressed
_MEMORY = "256MB"


class EventTable:
    """Rows that wait in a private temporary folder.

    Attributes:
        folder: That folder.
    """

    def __init__(self, machine: str) -> None:
        self.folder = files.temporary_directory("sessionlog-parquet-")
        self._machine = machine
        self._database: duckdb.DuckDBPyConnection | None = None

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows; columns that they lack are null.

        Raises:
            OSError: There is no room for them.
        """
        longest = 0
        file, path = files.open_temporary(self.folder)
        with file:
            for row in rows:
                line = orjson.dumps({"machine_id": self._machine, **row}, option=orjson.OPT_APPEND_NEWLINE)
                longest = max(longest, len(line))
                file.write(line)
        if longest:
            read = [name for name in EVENT_COLUMNS if name != "time"]
            types = ", ".join(f"{name}: '{EVENT_COLUMNS[name]}'" for name in read)
            selected = ", ".join(read)
            self._open().execute(
                f"INSERT INTO rows ({selected}, time) SELECT {selected}, make_timestamptz(time_ns // 1000) "  # noqa: S608 - our own names and paths
                f"FROM read_json({_quoted(path)}, columns = {{{types}}}, format = 'newline_delimited', "
                f"maximum_object_size = {max(_LEAST_OBJECT, 2 * longest)})"
            )
        files.remove_file(path)

    def add_file(self, data: bytes) -> None:
        """Add the rows of a file as they are."""
        file, path = files.open_temporary(self.folder)
        with file:
            file.write(data)
        self._open().execute(
            f"INSERT INTO rows BY NAME SELECT * FROM read_parquet({_quoted(path)}, hive_partitioning = false)"  # noqa: S608 - our own path
        )
        files.remove_file(path)

    def keep_latest(self) -> None:
        """Delete all revisions of an event but the latest."""
        self._open().execute(
            "DELETE FROM rows WHERE rowid NOT IN "
            "(SELECT arg_max(rowid, revision) FROM rows GROUP BY log_key, session, position)"
        )

    def files(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield (month, rows, bytes) of each file; the month of rows without a time is "".

        Raises:
            duckdb.Error: There is no room for a file.
        """
        if self._database is None:
            return
        months = self._database.execute("SELECT DISTINCT strftime(time, '%Y-%m') AS month FROM rows ORDER BY month")
        for (month,) in months.fetchall():
            fits = "time IS NULL" if month is None else f"strftime(time, '%Y-%m') = {_quoted(month)}"
            blocks = self._database.execute(
                f"SELECT count(*), min(i), max(i) FROM (SELECT rowid AS i, row_number() OVER (ORDER BY rowid) - 1 AS n "  # noqa: S608 - our own names
                f"FROM rows WHERE {fits}) GROUP BY n // {MOST_ROWS} ORDER BY min(i)"
            )
            for count, first, last in blocks.fetchall():
                rows = f"SELECT * FROM rows WHERE {fits} AND rowid BETWEEN {first} AND {last}"  # noqa: S608 - our own names
                yield month or "", count, self._encode(rows)

    def _encode(self, rows: str) -> bytes:
        path = os.path.join(self.folder, "events.parquet")
        self._open().execute(
            f"COPY ({rows}) TO {_quoted(path)} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_GROUP})"
        )
        with files.open_log(path) as file:
            data = file.read()
        files.remove_file(path)
        return data

    def _open(self) -> duckdb.DuckDBPyConnection:
        """Return the database; it is opened after workers are forked, which would inherit its threads."""
        if self._database is None:
            spill = os.path.join(self.folder, "spill")
            self._database = duckdb.connect(
                os.path.join(self.folder, "rows.duckdb"),
                config={"threads": "1", "memory_limit": _MEMORY, "temp_directory": spill},
            )
            columns = ", ".join(f"{name} {kind}" for name, kind in EVENT_COLUMNS.items())
            self._database.execute("SET TimeZone = 'UTC'")
            self._database.execute("SET preserve_insertion_order = false")  # in order, texts would wait in memory
            self._database.execute(f"CREATE TABLE rows ({columns})")
        return self._database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._database is not None:
            self._database.close()
        files.remove_directory(self.folder)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
