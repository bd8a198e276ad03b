"""Compare: two ledgers of the same logs, session by session, and a ledger's derived values with recomputed ones.

Both sides are read side by side in the order of their names, so that no more than what differs is in memory.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import Row, Session
from sessionlog.ledger.costs import COSTS
from sessionlog.ledger.schema import UNREADABLE
from sessionlog.ledger.storable import rows_of

Name = tuple[str, str, str]
"""A session: (source, id, place)."""

_SUMS = """SUM(r.requests) AS requests, SUM(r.failed) AS failed_requests,
    SUM(r.input) AS input_tokens, SUM(r.output) AS output_tokens, SUM(r.cache_read) AS cache_read_tokens,
    SUM(r.cache_write) AS cache_write_tokens, SUM(r.reasoning) AS reasoning_tokens, SUM(r.cost_nano) AS known_cost_nano,
    SUM(r.estimate_nano) AS estimated_cost_nano, SUM(r.active_ms) AS active_ms"""
_INPUTS = """SUM(r.cache_write_1h) AS cache_write_1h_tokens, SUM(r.recorded_nano) AS recorded_cost_nano,
    SUM(r.priced) AS priced, SUM(r.saved_nano) AS saved_nano"""
"""Sums of what a cost is computed from, and of its savings."""
_MODEL = "l.provider || '/' || l.model || ' ' || l.project AS models"
_PRICED_AS = "l.response_model || ' ' || l.speed || ' ' || l.service_tier AS priced_as"
_TOTALS = f"""
SELECT s.source, s.session, s.place, {_MODEL}, {_PRICED_AS}, {_SUMS}, MIN(r.first_ns), MAX(r.last_ns)
FROM sessions s CROSS JOIN quarter_hours r ON r.session_id = s.id JOIN labels l ON l.id = r.label_id
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""  # noqa: S608 - names of the schema
"""Records by session: their totals have just been recomputed in both ledgers."""
_OF_LOGS = f"""
SELECT CAST(f.path AS BLOB), r.records, r.cache_write_1h_tokens, r.recorded_cost_nano, r.priced, r.saved_nano
FROM files f JOIN (
    SELECT file_id, COUNT(*) AS records, {_INPUTS} FROM responses r WHERE r.counts GROUP BY file_id
) r ON r.file_id = f.id ORDER BY 1
"""  # noqa: S608 - names of the schema
"""Records by log, for what is not in totals: in the order of the table, so that no rows have to be sorted."""
_RECORDS = f"""
SELECT s.source, s.session, s.place, COUNT(*) AS records, {_SUMS}, {_INPUTS},
    MIN(r.time_ns) AS first_ns, MAX(r.time_ns) AS last_ns
FROM records r JOIN sessions s ON s.id = r.session_id GROUP BY 1, 2, 3
"""  # noqa: S608 - names of the schema
_NAMES = tuple(
    f"""
SELECT DISTINCT s.source, s.session, s.place, {names}
FROM records r JOIN sessions s ON s.id = r.session_id JOIN labels l ON l.id = r.label_id ORDER BY 1, 2, 3, 4
"""  # noqa: S608 - names of the schema
    for names in (_MODEL, _PRICED_AS)
)
"""Names of a session's records, one a row."""
_CALLS = """
SELECT s.source, s.session, s.place, c.tool_calls, c.tool_errors, c.tool_output_bytes
FROM sessions s JOIN (
    SELECT session_id, COUNT(*) AS tool_calls, SUM(failed) AS tool_errors, SUM(output_bytes) AS tool_output_bytes
    FROM calls WHERE counts GROUP BY 1
) c ON c.session_id = s.id ORDER BY 1, 2, 3
"""
_FACTS = """
SELECT source, session, place, end_status, project, start_ns, duration_ms, prompt, turns, last_turn_ns FROM sessions
ORDER BY 1, 2, 3
"""
_LOGS = """
SELECT f.path, f.device, f.inode, f.size, f.mtime_ns, f.ctime_ns, f.settled, s.source, s.session, s.place
FROM log_sessions t JOIN files f ON f.id = t.file_id JOIN sessions s ON s.id = t.session_id WHERE NOT f.missing
"""
_SESSIONS_OF = """
SELECT s.source, s.session, s.place, CAST(f.path AS BLOB) FROM files f JOIN log_sessions t ON t.file_id = f.id
JOIN sessions s ON s.id = t.session_id
"""
_NAME = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A value of the ledger that is wrong.

    Attributes:
        source: The session's source.
        session: Its id.
        column: The column that differs.
        ledger: The ledger's value; None for no value.
        logs: The expected value, from the logs or recomputed.
    """

    source: str
    session: str
    column: str
    ledger: Any
    logs: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of comparing two ledgers.

    Attributes:
        differences: By session and column.
        compared: Sessions compared.
        writing: Sessions that differ, but whose logs were written to between the two scans.
    """

    differences: tuple[Difference, ...]
    compared: int
    writing: int


def compare_books(kept: Book, scanned: Book) -> Comparison:
    """Compare a ledger with a scan of the logs that exist; both have recomputed totals."""
    different: set[Name] = set()
    count = 0
    for sql in (_TOTALS, _CALLS, _FACTS):
        for one, other in _side_by_side(_rows(kept, sql), _rows(scanned, sql), _NAME):
            if one != other:
                different.add((one or other or ())[:_NAME])
            count += sql is _FACTS
    of_logs = _side_by_side(_rows(kept, _OF_LOGS), _rows(scanned, _OF_LOGS), 1)
    paths = {(one or other or ())[0] for one, other in of_logs if one != other}
    for book in (kept, scanned) if paths else ():
        different.update(row[:_NAME] for row in book.connection.execute(_SESSIONS_OF) if row[_NAME] in paths)
    found: list[Difference] = []
    writing = set()
    if different:
        our_values, their_values = _values_of(kept, different), _values_of(scanned, different)
        changed = _changed(kept, scanned)
        for name in sorted(our_values.keys() | their_values.keys()):
            if name in changed:
                writing.add(name)
                continue
            found += [
                Difference(source=name[0], session=name[1], column=column, ledger=one, logs=other)
                for column, one, other in _unequal(our_values.get(name, {}), their_values.get(name, {}))
            ]
    return Comparison(differences=tuple(found), compared=count - len(writing), writing=len(writing))


def _rows(book: Book, sql: str) -> Iterator[Row]:
    """Return the rows of a query, a few at a time; sums beyond 64 bits are clamped."""
    book.connection.execute("DROP TABLE IF EXISTS temp.compared")
    rows_of(book.connection, f"CREATE TEMP TABLE compared AS {sql}")
    return book.connection.execute("SELECT * FROM temp.compared")


def _side_by_side(ours: Iterator[Row], theirs: Iterator[Row], count: int) -> Iterator[tuple[Row | None, Row | None]]:
    """Pair rows that are sorted by their first `count` columns; None where one side has no row."""
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if one is None or other is None or one[:count] == other[:count]:
            yield one, other
            one, other = next(ours, None), next(theirs, None)
        elif _order(one[:count]) < _order(other[:count]):
            yield one, None
            one = next(ours, None)
        else:
            yield None, other
            other = next(theirs, None)


def _order(key: Row) -> Row:
    """A key that sorts as in SQLite, where NULL comes first."""
    return tuple((value is not None, value) for value in key)


def _values_of(book: Book, wanted: Container[Name]) -> dict[Name, dict[str, Any]]:
    found: dict[Name, dict[str, Any]] = defaultdict(dict)

    def add(row: Row, columns: Sequence[str]) -> None:
        if row[:_NAME] not in wanted:
            return
        values = dict(zip(columns, row[_NAME:], strict=True))
        if len(values) == 1:
            [(column, name)] = values.items()
            found[row[:_NAME]].setdefault(column, []).append(name)
        else:
            found[row[:_NAME]].update(values)

    for sql in (_RECORDS, _CALLS, _FACTS, *_NAMES):
        book.query(sql, {}, partial(add, columns=_columns(book, sql)))
    return found


def _columns(book: Book, sql: str) -> list[str]:
    cursor = book.connection.execute(f"SELECT * FROM ({sql}) LIMIT 0")  # noqa: S608 - a query of ours
    return [column[0] for column in cursor.description[_NAME:]]


def _unequal(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    """Columns that differ, with both values."""
    if not ours or not theirs:
        yield "the session", bool(ours) or None, bool(theirs) or None
        return
    for column in sorted(ours.keys() | theirs.keys()):
        if ours.get(column) != theirs.get(column):
            yield column, ours.get(column), theirs.get(column)


def _changed(kept: Book, scanned: Book) -> set[Name]:
    """Sessions of logs with another state in one ledger than in the other, or whose state may not show a change."""
    looks: dict[Any, set[Row]] = defaultdict(set)
    names: dict[Any, set[Name]] = defaultdict(set)
    unreadable = {path for book in (kept, scanned) for (path,) in book.query(_UNREADABLE, {})}
    for book in (kept, scanned):
        for path, *look, source, session, place in book.query(_LOGS, {}):
            looks[path].add(tuple(look))
            names[path].add((source, session, place))
    return {
        name
        for path, facts in names.items()
        if path in unreadable or any(not look[-1] for look in looks[path]) or len(looks[path]) > 1
        for name in facts
    }


_UNREADABLE = f"SELECT path FROM files WHERE missing = {UNREADABLE}"  # noqa: S608 - a number


def compare_derived(book: Book) -> list[Difference]:
    """Recompute all derived rows in the ledger, and return each that was not as it should be.

    What was there before is kept in temporary tables, which SQLite writes to a file where they are large. Costs are
    compared only if the ledger was priced with the book's prices.
    """
    connection = book.connection
    has_other_prices = book.meta("prices") not in {None, book.prices.fingerprint}
    for kind, _, sql in _DERIVED:
        connection.execute(f"CREATE TEMP TABLE before_{kind} AS {sql}")
    book.reconcile_all()
    found: list[tuple[str, Row, Mapping[str, Any] | None, Mapping[str, Any] | None]] = []
    for kind, count, sql in _DERIVED:
        now = connection.execute(sql)
        columns = [column[0] for column in now.description[count:]]
        before = connection.execute(f"SELECT * FROM temp.before_{kind}")  # noqa: S608 - a name of ours
        wrong: dict[Row, tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]] = {}
        for one, other in _side_by_side(before, now, count):
            if one != other:
                old = None if one is None else _values(columns, one[count:])
                new = None if other is None else _values(columns, other[count:])
                if old != new:
                    wrong[(one or other or ())[:count]] = old, new
        found += [(kind, key, *wrong[key]) for key in sorted(wrong, key=repr)]
    names = _session_names(connection) if found else {}
    return [
        Difference(source=source, session=session, column=f"{kind}.{column}", ledger=ours, logs=theirs)
        for kind, key, old, new in found
        for source, session in [names.get(key[0], ("", f"number {key[0]}"))]
        for column, ours, theirs in _changed_columns(old, new)
        if not (has_other_prices and column in _OF_PRICES)
    ]


def _values(columns: Iterable[str], row: Row) -> dict[str, Any]:
    return {column: _comparable(column, value) for column, value in zip(columns, row, strict=True)}


def _session_names(connection: sqlite3.Connection) -> dict[int, tuple[str, str]]:
    columns = "id, source, session FROM"
    rows = connection.execute(f"SELECT {columns} temp.before_sessions UNION SELECT {columns} all_sessions")
    return {number: (str(source), str(session)) for number, source, session in rows}


def _changed_columns(was: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> Iterable[tuple[str, Any, Any]]:
    if was is None or now is None:
        yield "rows", int(was is not None), int(now is not None)
        return
    yield from ((column, was[column], now[column]) for column in was if was[column] != now[column])


def _comparable(column: str, value: Any) -> Any:
    """A value without effects of the order in which rows were summed."""
    if column == "latencies" and isinstance(value, str):
        return "".join(sorted(value))
    return round(value, 3) if column == "generation_ms" and isinstance(value, float) else value


_OF_PRICES = {*COSTS, "unknown", "unpriced"}
"""Columns that depend on prices."""

_GONE = "responses WHERE n >= 0 AND file_id IN (SELECT id FROM files WHERE missing)"
_DERIVED = (
    ("sessions", 1, f"SELECT {', '.join(Session._fields)} FROM all_sessions ORDER BY 1"),  # noqa: S608 - names of the schema
    ("quarter_hours", 3, "SELECT * FROM quarter_hours ORDER BY 1, 2, 3"),
    ("counts", 3, "SELECT session_id, file_id, n, * FROM responses WHERE n < 0 OR NOT counts ORDER BY 1, 2, 3"),
    ("costs", 3, f"SELECT session_id, file_id, n, {', '.join(COSTS)} FROM {_GONE} ORDER BY 1, 2, 3"),  # noqa: S608 - names of the schema
    ("calls", 3, "SELECT session_id, file_id, n, counts FROM calls WHERE NOT counts ORDER BY 1, 2, 3"),
)
"""(kind, columns of the key, rows in its order)."""
