"""Hand-over: rows that a worker makes of logs, in a file that the ledger's owner takes.

The file is a SQLite database with the ledger's tables of rows, in which logs have the numbers of their jobs, and
sessions, labels and names have ids of the file. The owner attaches it, finds its own ids of the names, and copies the
rows of each log by INSERT … SELECT. A file stays attached until the owner's transaction ends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct

from sessionlog import files
from sessionlog.ledger.columns import Call, Facts, Label, Name, Response, Row, columns_of
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.rows import RowWriter
from sessionlog.ledger.scanning import Scanned
from sessionlog.ledger.tables import ROW_TABLES
from sessionlog.pricing.book import PriceBook

MOST_ATTACHED = 8
"""Files that are attached at once; SQLite allows ten."""


class HandOver(Struct, frozen=True, kw_only=True):
    """The results of some jobs.

    Attributes:
        logs: What was found in each log; without sessions if their rows are in the file.
        file: The path of the file with their rows.
        data: The bytes of that file, from a worker that may be on another machine. Without both the rows are still to
            be made.
    """

    logs: Sequence[Scanned]
    file: str = ""
    data: bytes = b""


@contextmanager
def rows_in_file(path: str, prices: PriceBook) -> Iterator[tuple[sqlite3.Connection, RowWriter]]:
    """Open a new file of rows, and close it at the end; ":memory:" is none, and "" is a temporary one.

    Raises:
        sqlite3.Error: The file cannot be written.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for statement in ROW_TABLES:
            connection.execute(statement)
        connection.execute("BEGIN")
        yield connection, RowWriter(connection, InternedIds(connection), prices)
        if connection.in_transaction:
            connection.execute("COMMIT")
    finally:
        connection.close()


class HandedOver:
    """Files of rows that are attached to a ledger's connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._paths: list[str] = []
        self._schema = ""

    def __len__(self) -> int:
        return len(self._paths)

    def attach(self, handed_over: HandOver, ids: InternedIds) -> None:
        """Attach a file, and find the ids of its names; `copy` copies from this file."""
        self._schema = f"handed_over_{len(self._paths)}"
        self._connection.execute(f"ATTACH ? AS {self._schema}", (handed_over.file or ":memory:",))
        self._paths.append(handed_over.file)
        if handed_over.data:
            self._connection.deserialize(handed_over.data, name=self._schema)
        for table, number_of, names in (
            ("all_sessions", ids.session_id, ("source", "session", "place")),
            ("labels", lambda row: ids.label_id(Label._make(row)), Label._fields),
            ("names", lambda row: ids.name_id(Name._make(row)), Name._fields),
        ):
            self._connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS own_{table} (theirs INTEGER PRIMARY KEY, own)")
            self._connection.execute(f"DELETE FROM temp.own_{table}")  # noqa: S608 - names of the schema
            rows = self._connection.execute(f"SELECT id, {', '.join(names)} FROM {self._schema}.{table}")  # noqa: S608 - as above
            self._connection.executemany(
                f"INSERT INTO temp.own_{table} VALUES (?, ?)",  # noqa: S608 - as above
                [(theirs, number_of(tuple(name))) for theirs, *name in rows.fetchall()],
            )

    def copy(self, number: int, file_id: int, *, n: int, n_of_calls: int, resumed: bool) -> list[int]:
        """Copy the rows of a job's log; return the ids of its sessions. For the others see `RowWriter.insert`."""
        values = {"number": number, "file": file_id, "n": n, "n_of_calls": n_of_calls}
        if resumed:
            self._connection.execute(_DELETE_FACTS.format(self._schema), values)
        for statement in _COPY:
            self._connection.execute(statement.format(self._schema), values)
        return [session_id for (session_id,) in self._connection.execute(_SESSIONS.format(self._schema), values)]

    def detach(self) -> None:
        """Detach and delete all files; the transaction has ended."""
        for number, path in enumerate(self._paths):
            with suppress(sqlite3.Error):
                self._connection.execute(f"DETACH handed_over_{number}")
            with suppress(OSError):
                if path:
                    files.remove_file(path)
        self._paths.clear()


def _copy(table: str, row: type[Row], *, n: str, names: str = "") -> str:
    """Return the statement that copies a log's rows of a table."""
    own = {"file_id": ":file", "n": f"r.n + {n}", "session_id": "s.own", "label_id": "l.own", "name_id": "l.own"}
    columns = [column.name for column in columns_of(row)]
    values = ", ".join(own.get(name, f"r.{name}") for name in columns)
    join = f"JOIN temp.own_{names}s l ON l.theirs = r.{names}_id" if names else ""
    return f"""INSERT INTO {table} ({", ".join(columns)}) SELECT {values} FROM {{0}}.{table} r
        JOIN temp.own_all_sessions s ON s.theirs = r.session_id {join} WHERE r.file_id = :number"""  # noqa: S608 - names of the schema


_COPY = (
    _copy("log_sessions", Facts, n="0"),
    _copy("responses", Response, n=":n", names="label"),
    _copy("calls", Call, n=":n_of_calls", names="name"),
)
_SESSIONS = """SELECT s.own FROM {0}.log_sessions r JOIN temp.own_all_sessions s ON s.theirs = r.session_id
    WHERE r.file_id = :number"""
_DELETE_FACTS = f"DELETE FROM log_sessions WHERE file_id = :file AND session_id IN ({_SESSIONS})"  # noqa: S608 - as above
