"""Question: SQL of a person's own, asked of the ledger, which it cannot change.

The file is opened for reading, SQLite refuses to write, and of a statement's parts only reading, and functions that
compute, are allowed: no other file can be attached, made or loaded. A question that takes too long is given up, and so
is one that makes a value too large.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sessionlog.analytics.sql.views import make_views
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.store import open_to_ask

SECONDS = 60.0
"""How long a question may take unless told otherwise."""

_LARGEST = 64 << 20  # bytes of one value: SQLite alone would let `zeroblob` fill the memory
_STEPS = 20_000  # of SQLite's machine, a millisecond or less, between two looks at the clock

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
"""Functions of SQLite that only compute, of all its versions."""

_FUNCTIONS = frozenset(_COMPUTING.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What SQLite answered.

    Attributes:
        columns: Their names, as the question calls them; a name that comes again is `name:2`.
        rows: Values of SQLite's types: None, int, float, str, bytes.
        more: There are rows beyond the limit.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False


class _Clock:
    """Tells SQLite when to give up."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def is_over(self) -> bool:
        return time.monotonic() >= self._end


def ask_sql(
    path: str, sql: str, *, limit: int | None = None, seconds: float = SECONDS, now_ns: int | None = None
) -> Answer:
    """Put a question to the ledger at a path, as it is: bring it up to date before.

    Args:
        path: The ledger's file.
        sql: One SELECT, on the views (see `views`) or on the tables of the schema.
        limit: Rows to fetch at most.
        seconds: When to give up.
        now_ns: Tells running sessions from unfinished ones; the present when None.

    Raises:
        LedgerUnusable: There is no ledger that could be asked.
        InvalidQuery: SQLite cannot answer, may not, or takes too long; the message says what it said.
    """
    connection = open_to_ask(path)
    try:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("PRAGMA temp_store = MEMORY")  # what is sorted is private
        with suppress(sqlite3.Error):  # they make themselves when they are first asked, and would not be allowed to
            connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()
        make_views(connection, time.time_ns() if now_ns is None else now_ns)
        connection.execute("PRAGMA query_only = 1")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        connection.set_authorizer(_authorize)
        return _ask(connection, sql, limit, seconds)
    finally:
        connection.close()


def _ask(connection: sqlite3.Connection, sql: str, limit: int | None, seconds: float) -> Answer:
    clock = _Clock(seconds)
    connection.set_progress_handler(clock.is_over, _STEPS)
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)
    except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError) as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            raise InvalidQuery(_reason(error)) from error
        if clock.is_over():
            raise InvalidQuery(f"it took longer than {seconds:g} seconds") from error
        raise KeyboardInterrupt from error  # it came while SQLite worked, and only SQLite heard it
    columns = _unique([column[0] for column in cursor.description or ()])
    if not columns:
        raise InvalidQuery("there is no question in it; begin with SELECT or WITH")
    return Answer(
        columns=columns,
        rows=tuple(rows if limit is None else rows[:limit]),
        more=limit is not None and len(rows) > limit,
    )


def _unique(names: list[str]) -> tuple[str, ...]:
    return tuple(
        name if name not in names[:index] else f"{name}:{names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    )


def _authorize(action: int, _first: str | None, second: str | None, _database: str | None, _inside: str | None) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _reason(error: Exception) -> str:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
        return f"{error}: only reading is allowed (SELECT, WITH), and functions that compute"
    if isinstance(error, UnicodeEncodeError):
        return "it is no text that SQLite understands"
    return str(error)
