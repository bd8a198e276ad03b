"""Compare: two ledgers of the same logs, session by session, and a ledger's derived values with recomputed ones."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sessionlog.fast_dataclasses import dataclass
from sessionlog.hashes import blake2b
from sessionlog.ledger.book import Book
from sessionlog.ledger.rows import Row
from sessionlog.ledger.schema import SESSION, UNREADABLE

Name = tuple[str, str, str]
"""A session: (source, id, place)."""

_RECORDS = """
SELECT s.source, s.session, s.place, COUNT(*) AS records, SUM(r.requests) AS requests, SUM(r.failed) AS failed_requests,
    SUM(r.input) AS input_tokens, SUM(r.output) AS output_tokens, SUM(r.cache_read) AS cache_read_tokens,
    SUM(r.cache_write) AS cache_write_tokens, SUM(r.reasoning) AS reasoning_tokens, SUM(r.cost_nano) AS known_cost_nano,
    SUM(r.estimate_nano) AS estimated_cost_nano, MIN(r.time_ns) AS first_ns, MAX(r.time_ns) AS last_ns,
    SUM(r.active_ms) AS active_ms
FROM records r JOIN sessions s ON s.id = r.session_id GROUP BY 1, 2, 3
"""
_MODELS = """
SELECT DISTINCT s.source, s.session, s.place, l.provider || '/' || l.model || ' ' || l.project AS models
FROM records r JOIN sessions s ON s.id = r.session_id JOIN labels l ON l.id = r.label_id ORDER BY 1, 2, 3, 4
"""
_CALLS = """
SELECT s.source, s.session, s.place, COUNT(*) AS tool_calls, SUM(c.failed) AS tool_errors,
    SUM(c.output_bytes) AS tool_output_bytes
FROM calls c JOIN sessions s ON s.id = c.session_id WHERE c.counts GROUP BY 1, 2, 3
"""
_FACTS = """
SELECT source, session, place, end_status, project, start_ns, duration_ms, prompt, turns, last_turn_ns FROM sessions
"""
_LOGS = """
SELECT f.path, f.device, f.inode, f.size, f.mtime_ns, f.ctime_ns, f.settled, s.source, s.session, s.place
FROM log_sessions t JOIN files f ON f.id = t.file_id JOIN sessions s ON s.id = t.session_id WHERE NOT f.missing
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
    """Compare a ledger with a scan of the logs that exist: digests of all sessions, values only where they differ."""
    ours, theirs = _digests_of(kept), _digests_of(scanned)
    different = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
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
    count = len(ours.keys() | theirs.keys())
    return Comparison(differences=tuple(found), compared=count - len(writing), writing=len(writing))


def _digests_of(book: Book) -> dict[bytes, int]:
    """Return for each session, known by the hash of its name, a sum of hashes of its rows in any order."""
    digests: dict[bytes, int] = {}

    def add(row: Row, sql: str) -> None:
        key = _digest(row[:_NAME])
        digests[key] = digests.get(key, 0) ^ int.from_bytes(_digest((sql, row[_NAME:])))

    for sql in (_RECORDS, _CALLS, _FACTS, _MODELS):
        book.query(sql, {}, partial(add, sql=sql))
    return digests


def _digest(row: Row) -> bytes:
    """Not Python's own hash, in which -1 and -2 are equal."""
    return blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _values_of(book: Book, wanted: Container[bytes]) -> dict[Name, dict[str, Any]]:
    found: dict[Name, dict[str, Any]] = defaultdict(dict)

    def add(row: Row, columns: Sequence[str]) -> None:
        if _digest(row[:_NAME]) not in wanted:
            return
        values = dict(zip(columns, row[_NAME:], strict=True))
        if "models" in values:
            found[row[:_NAME]].setdefault("models", []).append(values["models"])
        else:
            found[row[:_NAME]].update(values)

    for sql in (_RECORDS, _CALLS, _FACTS, _MODELS):
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
        before = f"SELECT * FROM temp.before_{kind}"  # noqa: S608 - a name of ours
        was, now = (_rows_by_key(connection, f"{one} EXCEPT {other}", count, sql)
                    for one, other in ((before, sql), (sql, before)))  # fmt: skip
        keys = sorted(was.keys() | now.keys(), key=repr)
        found += [(kind, key, was.get(key), now.get(key)) for key in keys if was.get(key) != now.get(key)]
    names = _session_names(connection) if found else {}
    return [
        Difference(source=source, session=session, column=f"{kind}.{column}", ledger=ours, logs=theirs)
        for kind, key, old, new in found
        for source, session in [names.get(key[0], ("", f"number {key[0]}"))]
        for column, ours, theirs in _changed_columns(old, new)
        if not (has_other_prices and column in _OF_PRICES)
    ]


def _rows_by_key(connection: sqlite3.Connection, sql: str, count: int, named: str) -> dict[Row, dict[str, Any]]:
    """Return rows by their first columns; `named` is the statement whose columns have the right names."""
    columns = [column[0] for column in connection.execute(f"SELECT * FROM ({named}) LIMIT 0").description]  # noqa: S608 - a query of ours
    return {
        row[:count]: {c: _comparable(c, v) for c, v in zip(columns[count:], row[count:], strict=True)}
        for row in connection.execute(sql)
    }


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


_OF_PRICES = {"cost_nano", "estimate_nano", "saved_nano", "unknown", "unpriced", "label_id"}
"""Columns that depend on prices; the label, too, of a row that is made of what passed on the wire."""

_GONE = "responses WHERE n >= 0 AND file_id IN (SELECT id FROM files WHERE missing)"
_DERIVED = (
    ("sessions", 1, f"SELECT {', '.join(SESSION)} FROM all_sessions"),  # noqa: S608 - names of the schema
    ("quarter_hours", 3, "SELECT * FROM quarter_hours"),
    ("counts", 3, "SELECT session_id, file_id, n, * FROM responses WHERE n < 0 OR NOT counts"),
    ("wire", 3, "SELECT wire_session, file_id, n, * FROM wire_matches"),
    ("costs", 3, f"SELECT session_id, file_id, n, cost_nano, estimate_nano, saved_nano FROM {_GONE}"),  # noqa: S608 - names of the schema
    ("calls", 3, "SELECT session_id, file_id, n, counts FROM calls WHERE NOT counts"),
)
