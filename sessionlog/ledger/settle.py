"""Settle: after logs were entered or dropped, what counts is decided anew for all that they touched.

Sessions first (they say what is known), then copies of responses and of tool calls, then cells, which are sums of what
counts. Everything here is computed from what the logs told and from nothing else, so it may be done again at any time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from sessionlog.ledger.cells import fill_cells
from sessionlog.ledger.copies import Names, by_column, label_of, put_together, tellers_of, winners, winning_call
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.rows import Row
from sessionlog.ledger.schema import CALL, INDEXES, RESPONSE, SESSION, insert
from sessionlog.ledger.sessions import session_row
from sessionlog.ledger.storable import within_64_bits

_INSERT_SESSION = insert("sessions", SESSION)
_INSERT_RESPONSE = insert("responses", RESPONSE)
_INSERT_CALL = insert("calls", CALL)
_RESPONSE = ", ".join(f"r.{name}" for name in RESPONSE)
_CALL = ", ".join(f"c.{name}" for name in CALL)
_FAMILY, _KEY, _SESSION, _COUNTS = (RESPONSE.index(name) for name in ("family", "key", "session_id", "counts"))
_TOLD_BY = RESPONSE.index("told_by")
_CALL_KEY, _CALL_COUNTS, _CALL_TOLD_BY = (CALL.index(name) for name in ("key", "counts", "told_by"))


@dataclass(slots=True, kw_only=True)
class Touched:
    """What has to be settled.

    Attributes:
        whole: Everything: the book was empty, or all of it has changed.
        sessions: Sessions that are told differently now.
        families: Families with other copies now.
        calls: Keys of calls with other copies now.
    """

    whole: bool = False
    sessions: set[int] = field(default_factory=set)
    families: set[int] = field(default_factory=set)
    calls: set[int] = field(default_factory=set)


def settle(connection: sqlite3.Connection, ids: InternedIds, touched: Touched) -> None:
    """Put sessions, copies and cells right; inside the caller's transaction."""
    if not touched.whole:
        for index in INDEXES:
            connection.execute(index)
    news = _settle_sessions(connection, ids, touched)
    names = Names(ids.label, ids.name, ids.path, ids.session)
    hearsay = _has(connection, "responses") or _has(connection, "calls")
    known = _known(connection) if hearsay else frozenset()
    if hearsay and news and not touched.whole:
        touched.families.update(row[0] for row in connection.execute(_HEARSAY.format("family", "responses")))
        touched.calls.update(row[0] for row in connection.execute(_HEARSAY.format("key", "calls")))
    moved = _settle_responses(connection, ids, names, touched, known)
    _settle_calls(connection, names, touched, known)
    fill_cells(connection, None if touched.whole else touched.sessions | moved)
    for index in INDEXES:
        connection.execute(index)


_HEARSAY = "SELECT DISTINCT {} FROM {} WHERE told_by IS NOT NULL"


def _has(connection: sqlite3.Connection, table: str) -> bool:
    """Whether any row of a table says that another session tells it better."""
    return bool(connection.execute(f"SELECT 1 FROM {table} WHERE told_by IS NOT NULL LIMIT 1").fetchone())  # noqa: S608 - names of the schema


def _known(connection: sqlite3.Connection) -> frozenset[str]:
    return frozenset(f"{source}:{name}" for source, name in connection.execute("SELECT source, session FROM sessions"))


def choose(connection: sqlite3.Connection, ids: Iterable[int] | None) -> str:
    """Return a condition `IN (…)` on these numbers, `IS NOT NULL` for all; one such list lives at a time."""
    if ids is None:
        return "IS NOT NULL"
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS chosen (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.chosen")
    connection.executemany("INSERT INTO temp.chosen VALUES (?)", ((number,) for number in sorted(ids)))
    return "IN (SELECT id FROM temp.chosen)"


def _settle_sessions(connection: sqlite3.Connection, ids: InternedIds, touched: Touched) -> bool:
    """Write the facts of sessions that were touched; tell whether other sessions are known than before."""
    chosen = choose(connection, None if touched.whole else touched.sessions)
    told = connection.execute(
        f"""SELECT t.session_id, t.facts, COALESCE(f.missing, 0) FROM told t LEFT JOIN files f ON f.id = t.file_id
            WHERE t.session_id {chosen} ORDER BY t.session_id, t.file_id, t.n"""  # noqa: S608 - no values
    )
    rows = []
    for session_id, group in by_column(told, 0):
        archived = all(missing for _, _, missing in group)
        rows.append(session_row(session_id, [facts for _, facts, _ in group], archived=archived))
    write(connection, _INSERT_SESSION, rows)
    lost = touched.sessions - {row[0] for row in rows}
    connection.executemany("DELETE FROM sessions WHERE id = ?", ((session_id,) for session_id in lost))
    return bool(lost or ids.new_sessions)


def _settle_responses(
    connection: sqlite3.Connection, ids: InternedIds, names: Names, touched: Touched, known: Collection[str]
) -> set[int]:
    """Decide which copies count; return the sessions to which or from which anything moved."""
    chosen = choose(connection, None if touched.whole else touched.families)
    connection.execute(f"DELETE FROM responses WHERE n < 0 AND family {chosen}")  # noqa: S608 - no values
    copies = connection.execute(
        f"""SELECT {_RESPONSE} FROM responses r WHERE r.family IN (
                SELECT family FROM responses WHERE family {chosen}
                GROUP BY family HAVING COUNT(*) > 1 OR MAX(told_by IS NOT NULL))
            ORDER BY r.family, r.key"""  # noqa: S608 - no values
    )
    flags: list[Row] = []
    derived: list[Row] = []
    moved: set[int] = set()
    alone = _alone(connection, chosen)
    for _, group in by_column(copies, _FAMILY):
        kept = set()
        for winner in winners(group, names, known):
            if winner.counts is winner.place:
                kept.add(winner.place[:2])
            else:
                derived.append(put_together(winner, ids.label_id(label_of(winner, names))))
        moved.update(row[_SESSION] for row in group)
        flags += [(row[:2] in kept, *row[:2]) for row in group if bool(row[_COUNTS]) != (row[:2] in kept)]
    connection.executemany("UPDATE responses SET counts = ? WHERE file_id = ? AND n = ?", flags)
    write(connection, _INSERT_RESPONSE, derived)
    return moved | alone


def _alone(connection: sqlite3.Connection, chosen: str) -> set[int]:
    """Let count what did not count because of copies that are no more."""
    rows = connection.execute(
        f"""SELECT file_id, n, session_id FROM responses WHERE NOT counts AND family IN (
                SELECT family FROM responses WHERE family {chosen}
                GROUP BY family HAVING COUNT(*) = 1 AND MAX(told_by IS NOT NULL) = 0)"""  # noqa: S608 - no values
    ).fetchall()
    connection.executemany("UPDATE responses SET counts = 1 WHERE file_id = ? AND n = ?", [row[:2] for row in rows])
    return {session_id for _, _, session_id in rows}


def _settle_calls(connection: sqlite3.Connection, names: Names, touched: Touched, known: Collection[str]) -> None:
    """Decide which copies of tool calls count."""
    chosen = choose(connection, None if touched.whole else touched.calls)
    copies = connection.execute(
        f"""SELECT {_CALL} FROM calls c WHERE c.key IN (
                SELECT key FROM calls WHERE key {chosen}
                GROUP BY key HAVING COUNT(*) > 1 OR MAX(told_by IS NOT NULL) OR NOT MAX(counts))
            ORDER BY c.key"""  # noqa: S608 - no values
    )
    flags: list[Row] = []
    for _, group in by_column(copies, _CALL_KEY):
        best = group[0] if len(group) == 1 and group[0][5] is None else winning_call(group, names, known)
        flags += [(row is best, *row[:2]) for row in group if bool(row[_CALL_COUNTS]) != (row is best)]
    connection.executemany("UPDATE calls SET counts = ? WHERE file_id = ? AND n = ?", flags)


def fold_repeats(connection: sqlite3.Connection, ids: InternedIds, file_id: int, first: int, first_call: int) -> None:
    """Put together what a log told before and tells again, from the rows `first` and `first_call` on.

    A response that gets more rows is given again by each scan that goes on, and so is a call that gets its result.
    """
    names = Names(ids.label, ids.name, ids.path, ids.session)
    if _has_keys(connection, "responses", file_id, first):
        _fold_responses(connection, ids, names, file_id, first)
    if _has_keys(connection, "calls", file_id, first_call):
        _fold_calls(connection, names, file_id, first_call)


def _has_keys(connection: sqlite3.Connection, table: str, file_id: int, first: int) -> bool:
    """Whether a log told anything from a row on that may be a repeat: else its rows before need not be looked at."""
    sql = f"SELECT 1 FROM {table} WHERE file_id = ? AND n >= ? AND key IS NOT NULL LIMIT 1"  # noqa: S608 - names of the schema
    return connection.execute(sql, (file_id, first)).fetchone() is not None


def _fold_responses(connection: sqlite3.Connection, ids: InternedIds, names: Names, file_id: int, first: int) -> None:
    again = connection.execute(
        f"""SELECT {_RESPONSE} FROM responses r WHERE r.file_id = :file AND r.n >= 0 AND (r.key, r.standing) IN (
                SELECT key, standing FROM responses
                WHERE file_id = :file AND n >= 0 AND key IS NOT NULL GROUP BY 1, 2 HAVING COUNT(*) > 1 AND MAX(n) >= :n)
            ORDER BY r.key, r.standing, r.n""",  # noqa: S608 - no values
        {"file": file_id, "n": first},
    )
    for _, group in by_column(again, _KEY):
        for copies in _by_standing(group):
            [winner] = winners(copies, names, ())
            row = put_together(winner, ids.label_id(label_of(winner, names)))
            _forget(connection, "responses", copies[1:])
            told_by = tellers_of(copies, _TOLD_BY)
            write(connection, _INSERT_RESPONSE, [(*copies[0][:2], *row[2:_TOLD_BY], told_by, *row[_TOLD_BY + 1 :])])


def _fold_calls(connection: sqlite3.Connection, names: Names, file_id: int, first_call: int) -> None:
    calls = connection.execute(
        f"""SELECT {_CALL} FROM calls c WHERE c.file_id = :file AND c.key IN (
                SELECT key FROM calls WHERE file_id = :file GROUP BY key HAVING COUNT(*) > 1 AND MAX(n) >= :n)
            ORDER BY c.key, c.n""",  # noqa: S608 - no values
        {"file": file_id, "n": first_call},
    )
    for _, group in by_column(calls, _CALL_KEY):
        best = winning_call(group, names, ())
        if best is not None:
            told_by = tellers_of(group, _CALL_TOLD_BY)
            _forget(connection, "calls", group)
            write(connection, _INSERT_CALL, [(*best[:_CALL_TOLD_BY], told_by, *best[_CALL_TOLD_BY + 1 :])])


def _by_standing(copies: Sequence[Row]) -> Iterable[list[Row]]:
    standing = RESPONSE.index("standing")
    for _, group in by_column(sorted(copies, key=lambda row: row[standing]), standing):
        if len(group) > 1:
            yield group


def _forget(connection: sqlite3.Connection, table: str, rows: Iterable[Row]) -> None:
    connection.executemany(f"DELETE FROM {table} WHERE file_id = ? AND n = ?", [row[:2] for row in rows])  # noqa: S608 - names of the schema


def write(connection: sqlite3.Connection, statement: str, rows: Sequence[Row]) -> None:
    """Run a statement for many rows; numbers beyond 64 bits are bent."""
    try:
        connection.executemany(statement, rows)
    except OverflowError:  # rare enough to look at each number only then; rows that are in are entered again
        connection.executemany(statement, [within_64_bits(row) for row in rows])
