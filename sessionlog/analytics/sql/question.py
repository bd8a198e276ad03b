"""Run a user's SQL query on the ledger, which it cannot change.

The file is opened read-only, SQLite refuses to write, and the authorizer allows only reading and functions that
compute: no other file can be attached, made or loaded. A query that takes too long, or makes a value that is too large,
is cancelled.

SQLite runs in its own thread, which checks for cancellation between steps of SQLite's virtual machine. One function
call is one step (`instr` of two large values takes hours, and sqlite3_interrupt does not end it either), so the caller
does not wait for the thread: it goes on in the background until the process ends.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from threading import Event, Semaphore, Thread
from types import TracebackType
from typing import Any, Self

from sessionlog.analytics.sql.views import make_views
from sessionlog.errors import InvalidQuery
from sessionlog.fast_dataclasses import dataclass
from sessionlog.ledger.store import open_read_only

SECONDS = 60.0
"""The default time limit of a query."""

LARGEST_ANSWER = 32 << 20
"""The approximate limit in bytes of a result that is returned whole."""

_LARGEST = 4 << 20  # bytes of one value: SQLite alone would let `zeroblob` fill the memory
_LARGEST_HEAP = 128 << 20
_BATCH, _BATCH_SECONDS = 1 << 18, 0.05  # approximate bytes, and time, of rows that are passed on together
_CELL = 60  # approximate bytes of a small value
_STEPS = 20_000  # steps of SQLite's virtual machine, a millisecond or less, between two checks for cancellation
_LOOK_SECONDS = 0.1  # an interrupt may not end a wait for another thread
_END_SECONDS = 0.2  # how long to wait for a cancelled thread

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_COMPUTING = (
    "abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling changes char coalesce concat concat_ws cos "
    "cosh count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp "
    "first_value floor format glob group_concat hex if ifnull iif instr json json_array json_array_length "
    "json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch "
    "json_pretty json_quote json_remove json_replace json_set json_type json_valid julianday lag last_value "
    "lead length like likelihood likely ln log log10 log2 lower ltrim max median min mod nth_value ntile "
    "nullif octet_length percent_rank percentile percentile_cont percentile_disc pi pow power printf quote "
    "radians random randomblob rank replace round row_number rtrim sign sin sinh soundex sqlite_version sqrt "
    "strftime string_agg substr substring subtype sum tan tanh time timediff total trim trunc typeof unhex "
    "unicode unixepoch unlikely upper zeroblob -> ->>"
)
"""The SQL functions of all SQLite versions that only compute."""

_FUNCTIONS = frozenset(_COMPUTING.split())
_REFUSED = (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The result of a query.

    Attributes:
        columns: Their names; a repeated name is `name:2`.
        rows: Values of SQLite's types: None, int, float, str, bytes.
        more: Whether there are rows beyond the limit.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False


class ResultStream:
    """A result whose rows are iterated as SQLite finds them, in bounded memory; use it in a `with` statement.

    Attributes:
        columns: Their names, as in `QueryResult`.
    """

    def __init__(self, path: str, sql: str, *, seconds: float = SECONDS, now_ns: int | None = None) -> None:
        """Start a query; the arguments are those of `ask_sql`.

        The caller's CPU time between two rows counts towards the limit; waiting for its output does not.
        """
        self._seconds, self._left = seconds, math.inf
        self._used = time.thread_time()
        self._is_cancelled, self._wanted, self._found = Event(), Semaphore(0), SimpleQueue[Any]()
        self._thread = Thread(target=self._work, args=(path, sql, now_ns), daemon=True)
        self._thread.start()
        try:
            self._next()  # opening the file does not count towards the limit
            self._left = seconds
            self.columns: tuple[str, ...] = self._next()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while rows := self._next():
            yield from rows

    def close(self) -> None:
        """Cancel the query; the thread ends at SQLite's next check."""
        self._is_cancelled.set()
        self._wanted.release()
        self._thread.join(_END_SECONDS)

    def _next(self) -> Any:
        """Return the thread's next value."""
        self._wanted.release()
        used = time.thread_time()
        self._left -= used - self._used
        self._used = used
        while True:
            if self._left <= 0:  # also if the thread is fast and the caller slow
                raise InvalidQuery(f"it took longer than {self._seconds:g} seconds")
            began = time.monotonic()
            try:
                found = self._found.get(timeout=min(self._left, _LOOK_SECONDS))
                break
            except Empty:
                continue
            finally:
                self._left -= time.monotonic() - began
        if isinstance(found, BaseException):
            raise _refusal(found) from found
        return found

    def _work(self, path: str, sql: str, now_ns: int | None) -> None:
        try:
            with closing(_open(path, now_ns)) as connection:
                connection.set_progress_handler(self._is_cancelled.is_set, _STEPS)
                results = self._results(connection, sql)
                while self._wanted.acquire() and not self._is_cancelled.is_set():
                    self._found.put(next(results))
        except BaseException as error:  # noqa: BLE001 - every error is raised in the caller's thread
            self._found.put(error)

    @staticmethod
    def _results(connection: sqlite3.Connection, sql: str) -> Iterator[Any]:
        """Yield True once the file is open, the column names, then batches of rows, empty at the end."""
        yield True
        cursor = connection.execute(sql)
        if not cursor.description:
            raise InvalidQuery("there is no question in it; begin with SELECT or WITH")
        yield _unique([column[0] for column in cursor.description])
        while True:
            yield _batch(cursor)


def _batch(cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    rows, size, until = [], 0, time.monotonic() + _BATCH_SECONDS
    for row in cursor:
        rows.append(row)
        size += _size(row)
        if size > _BATCH or time.monotonic() > until:
            break
    return rows


def _size(row: tuple[Any, ...]) -> int:
    return _CELL * (1 + len(row)) + sum(len(cell) for cell in row if isinstance(cell, str | bytes))


def ask_sql(
    path: str, sql: str, *, limit: int | None = None, seconds: float = SECONDS, now_ns: int | None = None
) -> QueryResult:
    """Run a query on the ledger as it is; bring it up to date before.

    Args:
        path: The ledger's file.
        sql: One SELECT, on the views (see `views`) or on the tables of the schema.
        limit: The most rows to fetch.
        seconds: The time limit.
        now_ns: The present, to distinguish running from unfinished sessions; the clock's when None.

    Raises:
        LedgerUnusable: There is no usable ledger.
        InvalidQuery: The query is not valid, not allowed, too slow or too large; the message has the reason.
    """
    rows: list[tuple[Any, ...]] = []
    size = 0
    with ResultStream(path, sql, seconds=seconds, now_ns=now_ns) as found:
        for row in found:
            if limit is not None and len(rows) == limit:
                return QueryResult(columns=found.columns, rows=tuple(rows), more=True)
            rows.append(row)
            size += _size(row)
            if size > LARGEST_ANSWER:
                raise InvalidQuery(
                    f"the answer is larger than {LARGEST_ANSWER >> 20} MiB after {len(rows):,} rows; add a LIMIT, "
                    "or let --csv or --json write its rows as they come"
                )
        return QueryResult(columns=found.columns, rows=tuple(rows))


def limit_memory() -> None:
    """Limit SQLite's memory in this process, permanently: a sort or a DISTINCT has no other limit."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA hard_heap_limit = {_LARGEST_HEAP}")


def _open(path: str, now_ns: int | None) -> sqlite3.Connection:
    connection = open_read_only(path)
    try:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("PRAGMA temp_store = MEMORY")  # sorted data is private and must not get into files
        with suppress(sqlite3.Error):  # their first use creates them, which the authorizer would refuse
            connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()
        make_views(connection, time.time_ns() if now_ns is None else now_ns)
        connection.execute("PRAGMA query_only = 1")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        connection.set_authorizer(_authorize)
    except BaseException:
        connection.close()
        raise
    return connection


def _unique(names: list[str]) -> tuple[str, ...]:
    return tuple(
        name if name not in names[:index] else f"{name}:{names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    )


def _authorize(action: int, _first: str | None, second: str | None, _database: str | None, _inside: str | None) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _refusal(error: BaseException) -> BaseException:
    """The error for the caller: InvalidQuery for what SQLite refuses."""
    if isinstance(error, MemoryError):
        return InvalidQuery(f"it needs more than {_LARGEST_HEAP >> 20} MiB of memory; sort or group less")
    return InvalidQuery(_reason(error)) if isinstance(error, _REFUSED) else error


def _reason(error: BaseException) -> str:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
        return f"{error}: only reading is allowed (SELECT, WITH), and functions that compute"
    if isinstance(error, UnicodeEncodeError):
        return "it is no text that SQLite understands"
    return str(error)
