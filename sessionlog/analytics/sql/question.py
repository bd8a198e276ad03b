"""Run a user's SQL query on the ledger, which it cannot change.

The file is opened read-only, SQLite refuses to write, and the authorizer allows only reading and functions that
compute: no other file can be attached, made or loaded. A query that takes too long, or makes a value that is too large,
is cancelled.

SQLite checks for cancellation between steps of its virtual machine. One function call is one step: `instr` of two large
values takes hours, and sqlite3_interrupt does not end it either (see `result_stream`).
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress

from sessionlog.analytics.sql.result_stream import (
    SECONDS,
    QueryResult,
    ResultStream,
    read_batch,
    read_result,
    unique_names,
)
from sessionlog.analytics.sql.views import make_views
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.book import Book
from sessionlog.ledger.opening import open_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_LARGEST = 4 << 20  # bytes of one value: SQLite alone would let `zeroblob` fill the memory
_LARGEST_HEAP = 128 << 20
_STEPS = 20_000  # steps of SQLite's virtual machine, a millisecond or less, between two checks for cancellation

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


class LedgerQuery:
    """A query of the ledger, for a `ResultStream`."""

    def __init__(self, path: str, sql: str, now_ns: int | None = None) -> None:
        """Begin; the arguments are those of `ask_sql`."""
        self._path, self._sql, self._now_ns = path, sql, now_ns

    def results(self, is_cancelled: Callable[[], bool]) -> Iterator[Any]:
        """Yield True once the file is open, the column names, then batches of rows, empty at the end."""
        with _open(self._path, self._now_ns) as book:
            connection = book.connection
            connection.set_progress_handler(is_cancelled, _STEPS)
            yield True
            cursor = connection.execute(self._sql)
            if not cursor.description:
                raise InvalidQuery("there is no question in it; begin with SELECT or WITH")
            yield unique_names([column[0] for column in cursor.description])
            while True:
                yield read_batch(cursor)

    def cancel(self) -> None:
        """Nothing to do: SQLite's own checks see that the query is cancelled."""

    def refusal(self, error: BaseException) -> BaseException:
        """Return the error for the caller: InvalidQuery for what SQLite refuses."""
        if isinstance(error, MemoryError):
            return InvalidQuery(f"it needs more than {_LARGEST_HEAP >> 20} MiB of memory; sort or group less")
        return InvalidQuery(_reason(error)) if isinstance(error, _REFUSED) else error


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
    with ResultStream(LedgerQuery(path, sql, now_ns), seconds=seconds) as found:
        return read_result(found, limit)


def limit_memory() -> None:
    """Limit SQLite's memory in this process, permanently: a sort or a DISTINCT has no other limit."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA hard_heap_limit = {_LARGEST_HEAP}")


def _open(path: str, now_ns: int | None) -> Book:
    book = open_ledger(path, write=False)
    connection = book.connection
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
        book.close()
        raise
    return book


def _authorize(action: int, _first: str | None, second: str | None, _database: str | None, _inside: str | None) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _reason(error: BaseException) -> str:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
        return f"{error}: only reading is allowed (SELECT, WITH), and functions that compute"
    if isinstance(error, UnicodeEncodeError):
        return "it is no text that SQLite understands"
    return str(error)
