"""Verify: whether the ledger agrees with the logs, and what is derived in it with its rows.

Three checks, none of which writes: SQLite's own check of the file; everything derived, against a copy in which it is
computed again; and the rows of each log, against those of a full scan, if the log is as it was when the ledger read it.
The rows of a log that is gone can be compared with nothing: SQLite finds a damaged page of them, not a changed number.

Each comparison is one statement, which sorts both sides together; SQLite does so in a file where they are large.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from itertools import groupby, islice, zip_longest
from typing import Any

from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.ask import load_book
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import Call, Label, Limit, Name, Response, Row, Session, columns_of
from sessionlog.ledger.costs import COSTS
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.opening import is_damaged, open_ledger
from sessionlog.ledger.quarter_hours import names_of_totals
from sessionlog.ledger.sync import Progress, Scanner, scan_here
from sessionlog.pricing.book import PriceBook

SCHEMA = "sessionlog.ledger.verify/3"
NAMED = 20
"""Differences that are named; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A value of the ledger that is wrong.

    Attributes:
        source: The source of the session or log.
        session: The session's id; the path of a log where that is wrong about no single session.
        column: The kind of the row and the column that differs; `rows` where one side does not have the row at all.
        ledger: The ledger's value.
        logs: The expected value, from the logs or computed again.
    """

    source: str
    session: str
    column: str
    ledger: Any
    logs: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of a verification.

    Attributes:
        path: The ledger's file.
        broken: Errors of SQLite's check, or of using the file; empty without any.
        derived: The first derived values that are wrong.
        derived_count: The number of all.
        differences: The first differences between the ledger and the logs.
        difference_count: The number of all.
        compared: Sessions of which logs were compared.
        left_out: Logs that were not compared, because they are not as they were when the ledger read them.
    """

    path: str
    broken: tuple[str, ...] = ()
    derived: tuple[Difference, ...] = ()
    derived_count: int = 0
    differences: tuple[Difference, ...] = ()
    difference_count: int = 0
    compared: int = 0
    left_out: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether no check has found anything."""
        return not (self.broken or self.derived_count or self.difference_count)

    def to_dict(self) -> dict[str, Any]:
        """The document `sessionlog.ledger.verify/3`."""
        return {
            "schema": SCHEMA,
            "path": self.path,
            "whole": self.is_whole,
            "broken": list(self.broken),
            "derived": {"count": self.derived_count, "first": [asdict(one) for one in self.derived]},
            "differences": {"count": self.difference_count, "first": [asdict(one) for one in self.differences]},
            "compared_sessions": self.compared,
            "left_out_logs": self.left_out,
        }


def verify_ledger(
    path: str,
    prices: PriceBook,
    env: Mapping[str, str] | None = None,
    *,
    scanner: Scanner = scan_here,
    progress: Progress | None = None,
) -> Verified:
    """Check a ledger's file, and its rows against the logs that exist.

    Raises:
        LedgerUnusable: There is no ledger, or it is not the user's alone.
    """
    if not os.path.lexists(path):
        raise LedgerUnusable(f"{path}: there is no ledger yet")
    try:
        book = open_ledger(path, prices)
    except LedgerUnusable as error:
        if not is_damaged(error):
            raise
        return Verified(path=path, broken=(str(error.__cause__).removeprefix(f"{path}: "),))
    with closing(book):
        try:
            broken = check_file(book.connection) or _dangling(book.connection)
            if broken:
                return Verified(path=path, broken=broken)
            with closing(book.copy()) as copy:
                derived, count = _first(compare_derived(copy))
            if count:
                return Verified(path=path, derived=derived, derived_count=count)
            book.release_memory()
            has_same_prices = book.meta("prices") == prices.fingerprint
        except Exception as error:  # noqa: BLE001 - a damaged row can raise anything, and that is a finding
            return Verified(path=path, broken=(f"{type(error).__name__}: {error}",))
    with closing(load_book(None, prices, env=env, scanner=scanner, progress=progress)) as scanned:
        scanned.reconcile()
        try:
            return _compare_logs(scanned, path, has_same_prices=has_same_prices)
        except Exception as error:  # noqa: BLE001 - as above
            return Verified(path=path, broken=(f"{type(error).__name__}: {error}",))


def check_file(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return what SQLite's own check finds."""
    try:
        rows = connection.execute(f"PRAGMA integrity_check({NAMED})").fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return (str(error),)
    return tuple(str(row[0]) for row in rows if row[0] != "ok")


REFERENCES = (
    ("responses", "label_id", "labels"),
    ("calls", "name_id", "names"),
    *((table, "file_id", "files") for table in ("log_sessions", "responses", "calls", "limits")),
)
"""(table, its column, the table of the rows to which the column refers)."""


def _dangling(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return which rows are missing to which others refer."""
    found = [
        f"row {number} of {names}, to which {table} refer, is missing"
        for table, column, names in REFERENCES
        for (number,) in connection.execute(
            f"SELECT DISTINCT {column} FROM {table} WHERE {column} NOT IN (SELECT id FROM {names}) LIMIT {NAMED}"  # noqa: S608 - names of the schema
        )
    ]
    return tuple(found[:NAMED])


def compare_derived(book: Book) -> Iterator[Difference]:
    """Compute everything derived again in a ledger, and yield what was not as it should be.

    Costs are compared only if the ledger has the book's prices.
    """
    connection = book.connection
    connection.create_function("in_order", 1, _in_order, deterministic=True)
    has_other_prices = book.meta("prices") not in {None, book.prices.fingerprint}
    for kind, _, columns, rows in _DERIVED:
        connection.execute(f"CREATE TEMP TABLE before_{kind} AS {_select(columns, rows)}")
    book.reconcile_all()

    def name(key: Row) -> Row:
        sql = "SELECT source, session FROM {} WHERE id = ?"
        both = f"{sql.format('all_sessions')} UNION ALL {sql.format('temp.before_sessions')}"
        return connection.execute(both, key[:1] * 2).fetchone() or ("", f"number {key[0]}")

    for kind, key, columns, rows in _DERIVED:
        before, now = _select(["*"], f"temp.before_{kind}"), _select(columns, rows)
        for one in _compare(connection, kind, key, before, now, name):
            if not (has_other_prices and one.column.partition(".")[2] in _OF_PRICES):
                yield one


def _name(key: Row) -> Row:
    source, name, *_ = key
    return source, path_of(name)


def _in_order(latencies: str | None) -> str | None:
    """The letters of a histogram in an order that does not depend on that of the rows."""
    return latencies and "".join(sorted(latencies))


_OF_PRICES = {*COSTS, "unknown", "unpriced"}
"""Columns that depend on prices."""

_TOTALS = tuple(f"in_order({name}) AS {name}" if name == "latencies" else name for name in names_of_totals())
_DERIVED = (
    ("sessions", 1, Session._fields, "all_sessions"),
    ("quarter_hours", 3, _TOTALS, "quarter_hours"),
    ("counts", 3, ("session_id", "file_id", "n", "*"), "responses WHERE n < 0 OR NOT counts"),
    (
        "costs",
        3,
        ("session_id", "file_id", "n", *COSTS),
        "responses WHERE n >= 0 AND file_id IN (SELECT id FROM files WHERE missing)",
    ),
    ("calls", 3, ("session_id", "file_id", "n"), "calls WHERE NOT counts"),
)
"""(kind, number of columns that identify a row, columns, what follows FROM)."""


def _compare_logs(scanned: Book, path: str, *, has_same_prices: bool) -> Verified:
    """Compare the ledger at a path with a scan of all logs."""
    connection = scanned.connection
    connection.execute("ATTACH ? AS kept", (path,))
    with scanned.reading():
        connection.execute("CREATE TEMP TABLE same (kept INTEGER PRIMARY KEY, main INTEGER)")
        connection.execute(_SAME_LOGS)
        [(compared, left_out)] = connection.execute(_COUNTS)
        differences, count = _first(
            one
            for one in _differences_of_logs(connection)
            if has_same_prices or one.column.partition(".")[2] not in _OF_PRICES
        )
    return Verified(path=path, differences=differences, difference_count=count, compared=compared, left_out=left_out)


_STATE = "{0}.path, {0}.source, {0}.parser, {0}.device, {0}.inode, {0}.size, {0}.mtime_ns, {0}.ctime_ns, {0}.beside"
_SAME_LOGS = f"""INSERT INTO temp.same SELECT a.id, b.id FROM kept.files a JOIN main.files b
    ON ({_STATE.format("a")}) = ({_STATE.format("b")}) WHERE a.settled AND b.settled"""  # noqa: S608 - names of the schema
_COUNTS = """SELECT
    (SELECT COUNT(DISTINCT session_id) FROM kept.log_sessions WHERE file_id IN (SELECT kept FROM temp.same)),
    (SELECT COUNT(*) FROM main.files) - (SELECT COUNT(*) FROM temp.same)"""


def _differences_of_logs(connection: sqlite3.Connection) -> Iterator[Difference]:
    """Yield what differs of the logs in `same`; rows are sorted only of logs that differ in a row of some number."""
    connection.execute("CREATE TEMP TABLE unlike (log INTEGER PRIMARY KEY)")
    for kind, _, columns, rows in _ROWS:
        connection.execute(f"INSERT OR IGNORE INTO temp.unlike {_unlike(kind, columns, rows)}")
    for comparisons in _OF_LOGS, _ROWS:
        for kind, key, columns, rows in comparisons:
            ours, theirs = (_select(columns, rows.format(ledger)) for ledger in ("kept", "main"))
            yield from _compare(connection, kind, key, ours, theirs, _name)
        connection.execute("DELETE FROM temp.same WHERE kept NOT IN (SELECT log FROM temp.unlike)")


def _columns(alias: str, row: type[Row], *without: str) -> tuple[str, ...]:
    return tuple(f"{alias}.{column.name}" for column in columns_of(row) if column.name not in without)


_NOT_OF_LOGS = ("file_id", "n", "session_id", "label_id", "name_id", "counts", "chosen", "time_ns", "family", "key")
_SESSION = ("s.source", "s.session", "s.place")
_JOIN = "JOIN temp.same ON same.{0} = r.file_id JOIN {0}.all_sessions s ON s.id = r.session_id"
_FAMILY = tuple(
    f"CASE WHEN r.superseded_by IS NULL OR r.family <> r.key THEN r.{name} END AS {name}" for name in ("family", "key")
)
"""Family and key, but for those that a ledger has given itself (see `writer.with_own_family`)."""
_ROWS = (
    (
        "responses",
        4,
        (*_SESSION, "r.time_ns", *_columns("r", Response, *_NOT_OF_LOGS), *_FAMILY, *_columns("l", Label)),
        f"{{0}}.responses r {_JOIN} JOIN {{0}}.labels l ON l.id = r.label_id WHERE r.n >= 0",
    ),
    (
        "calls",
        4,
        (*_SESSION, "r.time_ns", "r.key", *_columns("r", Call, *_NOT_OF_LOGS), *_columns("l", Name)),
        f"{{0}}.calls r {_JOIN} JOIN {{0}}.names l ON l.id = r.name_id",
    ),
)
"""As `_DERIVED`, with `{0}` for a ledger, and a table of that name: rows of logs, by session and time."""
_OF_LOGS = (
    ("facts", 3, (*_SESSION, "r.facts"), f"{{0}}.log_sessions r {_JOIN}"),
    (
        "limits",
        3,
        ("f.source", "f.path", "r.name", *_columns("r", Limit, "file_id", "source", "name")),
        "{0}.limits r JOIN temp.same ON same.{0} = r.file_id JOIN {0}.files f ON f.id = r.file_id",
    ),
    (
        "problems",
        2,
        ("f.source", "f.path", "f.problems", "f.named"),
        "{0}.files f JOIN temp.same ON same.{0} = f.id",
    ),
)
"""Likewise, what there is little of: by session, or path."""


def _unlike(table: str, columns: Sequence[str], rows: str) -> str:
    """The statement of the logs of which rows with the same number differ, or that do not have as many rows."""
    names = [f"c{number}" for number in range(len(columns))]
    values = [f"{column.partition(' AS ')[0]} AS {name}" for column, name in zip(columns, names, strict=True)]
    ours, theirs = (_select(("same.kept AS log", "r.n", *values), rows.format(ledger)) for ledger in ("kept", "main"))
    ours_of, theirs_of = (", ".join(f"{side}.{name}" for name in names) for side in "ab")
    count = "(SELECT COUNT(*) FROM {0}.{1} WHERE file_id = same.{0} AND n >= 0)"
    return f"""SELECT a.log FROM ({ours}) a JOIN ({theirs}) b ON a.log = b.log AND a.n = b.n
        WHERE ({ours_of}) IS NOT ({theirs_of})
        UNION SELECT kept FROM temp.same WHERE {count.format("kept", table)} <> {count.format("main", table)}"""  # noqa: S608 - names of the schema


def _select(columns: Sequence[str], rows: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {rows}"  # noqa: S608 - names of the schema


def _first(found: Iterator[Difference]) -> tuple[tuple[Difference, ...], int]:
    """Return the differences that are named, and the number of all."""
    first = tuple(islice(found, NAMED))
    return first, len(first) + sum(1 for _ in found)


def _compare(
    connection: sqlite3.Connection, kind: str, key: int, ours: str, theirs: str, name: Callable[[Row], Row]
) -> Iterator[Difference]:
    """Yield in what the rows of two statements differ.

    Args:
        connection: A ledger's.
        kind: A word for the rows.
        key: How many of the first columns identify a row.
        ours: The statement of the ledger's rows.
        theirs: The statement of the expected ones, with the same columns.
        name: Makes source and session of a key.
    """
    titles = [column[0] for column in connection.execute(f"SELECT * FROM ({theirs}) LIMIT 0").description]  # noqa: S608 - statements of ours
    columns = ", ".join(str(number + 3) for number in range(len(titles)))
    rows = connection.execute(
        f"""SELECT SUM(side), * FROM (SELECT 1 AS side, * FROM ({ours}) UNION ALL SELECT -1, * FROM ({theirs}))
        GROUP BY {columns} HAVING SUM(side) ORDER BY {columns}"""  # noqa: S608 - as above
    )
    for values, group in groupby(rows, lambda row: row[2 : 2 + key]):
        sides: tuple[list[Row], list[Row]] = [], []
        for count, _, *row in group:
            sides[count < 0].extend([tuple(row)] * abs(count))
        source, session = name(values)
        for one, other in zip_longest(*sides):
            for column, value, expected in _unequal(titles, one, other):
                yield Difference(source=source, session=session, column=f"{kind}.{column}", ledger=value, logs=expected)


def _unequal(titles: Sequence[str], one: Row | None, other: Row | None) -> Iterator[tuple[str, Any, Any]]:
    """Yield each column in which two rows differ, with both values; `rows` where one is None."""
    if one is None or other is None:
        yield "rows", int(one is not None), int(other is not None)
        return
    ours, theirs = _values(titles, one), _values(titles, other)
    for column in ours | theirs:
        if ours.get(column) != theirs.get(column):
            yield column, ours.get(column), theirs.get(column)


def _values(titles: Sequence[str], row: Row) -> dict[str, Any]:
    """Return the values of a row by column; facts are several."""
    values = dict(zip(titles, row, strict=True))
    with suppress(ValueError, KeyError, TypeError):
        values |= json.loads(values["facts"])
        del values["facts"]
    return values
