"""Reconcile: after logs were inserted or dropped, decide again which of the affected rows count.

Sessions first (copies depend on which sessions are known), then copies of responses and of tool calls, then requests on
the wire (see `wire`), then the totals per quarter hour, which sum what counts. All results depend only on the rows of
logs, so this can be repeated any time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct

from sessionlog.ledger.changes import note_changes
from sessionlog.ledger.columns import Call, Response, Session
from sessionlog.ledger.copies import Names, label_of, merged_row, superseding_sessions, winners, winning_call
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.quarter_hours import fill_totals
from sessionlog.ledger.schema import COPY_INDEXES, ELSEWHERE, GONE, INDEXES, VANISHED
from sessionlog.ledger.sessions import session_row
from sessionlog.ledger.statements import choose, insert_rows, select_rows
from sessionlog.ledger.wire import decide, has_wire, spans_of

_BATCH = 2048  # rows that are in memory at once
_by_session, _by_family, _by_key = itemgetter(0), attrgetter("family"), attrgetter("key")


class Touched(Struct, kw_only=True):
    """What has to be reconciled.

    Attributes:
        whole: Everything: the ledger was empty, or all of it has changed.
        sessions: Sessions whose logs have changed → the earliest time of a response that did; None for any time.
        families: Families whose copies have changed.
        calls: Keys of calls whose copies have changed.
        has_moved: Logs have become `ELSEWHERE`, or are back, so that other sessions are known.
    """

    whole: bool = False
    sessions: dict[int, int | None] = {}
    families: set[int] = set()
    calls: set[int] = set()
    has_moved: bool = False

    def add(self, session: int, since_ns: int | None) -> None:
        """Note that a session has changed, from a time on; None for any time."""
        known = self.sessions.get(session, since_ns)
        self.sessions[session] = None if known is None or since_ns is None else min(known, since_ns)


def reconcile(connection: sqlite3.Connection, ids: InternedIds, touched: Touched) -> None:
    """Update sessions, copies and totals in the caller's transaction."""
    for index in COPY_INDEXES:
        connection.execute(index)
    before = [] if touched.whole or not has_wire(connection) else spans_of(connection, touched.sessions)
    new_sessions = _reconcile_sessions(connection, ids, touched)
    names = Names(ids.label, ids.name, ids.path, ids.session)
    has_superseded = _has_superseded(connection, "responses") or _has_superseded(connection, "calls")
    known = _known(connection) if has_superseded else frozenset()
    if has_superseded and new_sessions and not touched.whole:
        touched.families.update(row[0] for row in connection.execute(_SUPERSEDED.format("family", "responses")))
        touched.calls.update(row[0] for row in connection.execute(_SUPERSEDED.format("key", "calls")))
    if touched.whole:
        for statement in _COUNT_ALONE:
            connection.execute(statement)
    elsewhere = {row[0] for row in connection.execute(f"SELECT id FROM files WHERE missing = {ELSEWHERE}")}  # noqa: S608 - a number
    moved = _reconcile_responses(connection, ids, names, touched, known, elsewhere)
    changed = moved | _reconcile_calls(connection, names, touched, known, elsewhere)
    if before or has_wire(connection):
        moved |= decide(connection, None if touched.whole else touched.sessions.keys() | moved, before)
    note_changes(connection, None if touched.whole else touched.sessions.keys() | changed | moved)
    fill_totals(connection, None if touched.whole else touched.sessions | dict.fromkeys(moved))
    for index in INDEXES:
        connection.execute(index)


_ELSEWHERE = f"(SELECT id FROM files WHERE missing = {ELSEWHERE})"  # noqa: S608 - a number
_COUNT_ALONE = (
    f"UPDATE responses SET chosen = 0 WHERE chosen AND file_id IN {_ELSEWHERE}",  # noqa: S608 - as above
    f"UPDATE calls SET counts = 0 WHERE counts AND file_id IN {_ELSEWHERE}",  # noqa: S608 - as above
    f"UPDATE responses SET chosen = 1 WHERE NOT chosen AND family IS NULL AND file_id NOT IN {_ELSEWHERE}",  # noqa: S608 - as above
    "UPDATE responses SET counts = chosen WHERE counts <> chosen",
)
"""Counts that do not depend on copies: rows of a log elsewhere do not count, responses without a family do."""

_SUPERSEDED = "SELECT DISTINCT {} FROM {} WHERE superseded_by IS NOT NULL"


def _has_superseded(connection: sqlite3.Connection, table: str) -> bool:
    """Whether another session may supersede any row of a table."""
    return bool(connection.execute(f"SELECT 1 FROM {table} WHERE superseded_by IS NOT NULL LIMIT 1").fetchone())  # noqa: S608 - names of the schema


def _known(connection: sqlite3.Connection) -> frozenset[str]:
    sql = "SELECT source, session FROM all_sessions WHERE NOT elsewhere"
    return frozenset(f"{source}:{name}" for source, name in connection.execute(sql))


def _reconcile_sessions(connection: sqlite3.Connection, ids: InternedIds, touched: Touched) -> bool:
    """Write the rows of touched sessions; return whether the set of known sessions may have changed."""
    chosen = choose(connection, None if touched.whole else touched.sessions)
    facts_of_logs = connection.execute(
        f"""SELECT t.session_id, t.facts, COALESCE(f.missing, 0), CAST(f.path AS TEXT) LIKE '%{VANISHED}'
            FROM log_sessions t LEFT JOIN files f ON f.id = t.file_id
            WHERE t.session_id {chosen} ORDER BY t.session_id, t.file_id, t.n"""  # noqa: S608 - no values
    )
    lost = set(touched.sessions)
    sessions = groupby(facts_of_logs, _by_session)
    while some := [(session_id, list(group)) for session_id, group in islice(sessions, _BATCH)]:
        rows = []
        for session_id, group in some:
            lost.discard(session_id)
            here = [row for row in group if row[2] != ELSEWHERE]
            facts, archived = [row[1] for row in here or group], all(row[2] == GONE for row in here)
            row = session_row(session_id, facts, archived=archived, elsewhere=not here)
            rows.append(row._replace(rewritten=int(any(row[3] for row in here))))
        insert_rows(connection, "all_sessions", Session, rows)
    connection.executemany("DELETE FROM all_sessions WHERE id = ?", ((session_id,) for session_id in lost))
    return bool(lost or ids.has_new_sessions or touched.has_moved)


_TO_DECIDE = """SELECT {key} FROM {table} WHERE {key} {chosen} GROUP BY {key} HAVING COUNT(*) > 1
    UNION SELECT {key} FROM {table} WHERE {row_key} {chosen} AND (superseded_by IS NOT NULL OR NOT {flag})"""
"""Keys to decide on: those with several copies, and single ones that do not count, or may be superseded."""


def _to_decide(table: str, key: str, flag: str, chosen: str, *, whole: bool) -> str:
    # The plus sign keeps SQLite from looking up every row by the index of keys where all of them are wanted.
    row_key = f"+{key}" if whole else key
    return _TO_DECIDE.format(table=table, key=key, flag=flag, chosen=chosen, row_key=row_key)


def _reconcile_responses(
    connection: sqlite3.Connection,
    ids: InternedIds,
    names: Names,
    touched: Touched,
    known: Collection[str],
    elsewhere: Collection[int],
) -> set[int]:
    """Decide which copies count; return the sessions whose totals may change."""
    chosen = choose(connection, None if touched.whole else touched.families)
    connection.execute(f"DELETE FROM responses WHERE n < 0 AND family {chosen}")  # noqa: S608 - no values
    to_decide = _to_decide("responses", "family", "chosen", chosen, whole=touched.whole)
    copies = select_rows(connection, Response, f"responses r WHERE r.family IN ({to_decide}) ORDER BY r.family, r.key")
    flags: list[tuple[Any, ...]] = []
    derived: list[Response] = []
    moved: set[int] = set()
    for _, copies_of_family in groupby(copies, _by_family):
        group = list(copies_of_family)
        kept = set()
        for winner in winners([row for row in group if row.file_id not in elsewhere], names, known):
            if winner.counts is winner.place:
                kept.add((winner.place.file_id, winner.place.n))
            else:
                derived.append(merged_row(winner, ids.label_id(label_of(winner, names))))
        moved.update(row.session_id for row in group)
        for row in group:
            is_kept = (row.file_id, row.n) in kept
            if bool(row.chosen) != is_kept:
                flags.append((is_kept, is_kept, row.file_id, row.n))
    connection.executemany("UPDATE responses SET counts = ?, chosen = ? WHERE file_id = ? AND n = ?", flags)
    insert_rows(connection, "responses", Response, derived)
    return moved


def _reconcile_calls(
    connection: sqlite3.Connection,
    names: Names,
    touched: Touched,
    known: Collection[str],
    elsewhere: Collection[int],
) -> set[int]:
    """Decide which copies of tool calls count; return the sessions of those that changed."""
    chosen = choose(connection, None if touched.whole else touched.calls)
    to_decide = _to_decide("calls", "key", "counts", chosen, whole=touched.whole)
    copies = select_rows(connection, Call, f"calls r WHERE r.key IN ({to_decide}) ORDER BY r.key")
    flags: list[tuple[Any, ...]] = []
    changed: set[int] = set()
    for _, copies_of_call in groupby(copies, _by_key):
        group = list(copies_of_call)
        here = [row for row in group if row.file_id not in elsewhere]
        best = winning_call(here, names, known) if here else None
        others = [row for row in group if bool(row.counts) != (row is best)]
        flags += [(row is best, row.file_id, row.n) for row in others]
        changed.update(row.session_id for row in others)
    connection.executemany("UPDATE calls SET counts = ? WHERE file_id = ? AND n = ?", flags)
    return changed


def fold_repeats(
    connection: sqlite3.Connection, ids: InternedIds, touched: Touched, file_id: int, first: int, first_call: int
) -> None:
    """Merge rows of a log that repeat earlier ones of it, from the rows `first` and `first_call` on.

    A resumed scan repeats a response that got more rows, and a call that got its result.
    """
    for index in COPY_INDEXES:  # without them all rows would be searched
        connection.execute(index)
    names = Names(ids.label, ids.name, ids.path, ids.session)
    if _has_keys(connection, "responses", file_id, first):
        _fold_responses(connection, ids, names, touched, file_id, first)
    if _has_keys(connection, "calls", file_id, first_call):
        _fold_calls(connection, names, file_id, first_call)


def _has_keys(connection: sqlite3.Connection, table: str, file_id: int, first: int) -> bool:
    """Whether any row of a log from `first` on may be a repeat; otherwise its earlier rows need not be searched."""
    sql = f"SELECT 1 FROM {table} WHERE file_id = ? AND n >= ? AND key IS NOT NULL LIMIT 1"  # noqa: S608 - names of the schema
    return connection.execute(sql, (file_id, first)).fetchone() is not None


def _fold_responses(
    connection: sqlite3.Connection, ids: InternedIds, names: Names, touched: Touched, file_id: int, first: int
) -> None:
    again = select_rows(
        connection,
        Response,
        """responses r WHERE +r.file_id = :file AND +r.n >= 0
            AND r.family IN (SELECT family FROM responses WHERE file_id = :file AND n >= :n)
            AND (r.key, r.copy_rank) IN (SELECT key, copy_rank FROM responses WHERE file_id = :file AND n >= :n)
            ORDER BY r.key, r.copy_rank, r.n""",
        {"file": file_id, "n": first},
    )
    for _, group in groupby(list(again), attrgetter("key", "copy_rank")):
        copies = list(group)
        if len(copies) > 1:
            for row in copies:
                touched.add(row.session_id, row.time_ns)
            [winner] = winners(copies, names, ())
            row = merged_row(winner, ids.label_id(label_of(winner, names)))
            _forget(connection, "responses", copies[1:])
            kept, superseded_by = copies[0], superseding_sessions(copies)
            row = row._replace(file_id=kept.file_id, n=kept.n, superseded_by=superseded_by)
            insert_rows(connection, "responses", Response, [row])


def _fold_calls(connection: sqlite3.Connection, names: Names, file_id: int, first_call: int) -> None:
    calls = select_rows(
        connection,
        Call,
        """calls r WHERE +r.file_id = :file AND r.key IN (SELECT key FROM calls WHERE file_id = :file AND n >= :n)
            ORDER BY r.key, r.n""",
        {"file": file_id, "n": first_call},
    )
    for _, copies in groupby(list(calls), _by_key):
        group = list(copies)
        best = winning_call(group, names, ()) if len(group) > 1 else None
        if best is not None:
            _forget(connection, "calls", group)
            insert_rows(connection, "calls", Call, [best._replace(superseded_by=superseding_sessions(group))])


def _forget(connection: sqlite3.Connection, table: str, rows: Iterable[Response | Call]) -> None:
    places = [(row.file_id, row.n) for row in rows]
    connection.executemany(f"DELETE FROM {table} WHERE file_id = ? AND n = ?", places)  # noqa: S608 - names of the schema
