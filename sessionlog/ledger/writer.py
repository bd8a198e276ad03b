"""Writer: inserts the rows of scans, and notes what has to be reconciled afterwards (see `reconcile`).

It works inside the caller's transactions. All rows of a log are kept; `reconcile` decides which count, so that a ledger
does not depend on the order in which logs were read, lost or forgotten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from sessionlog.hashes import hash_name
from sessionlog.ledger.columns import Call, Facts, Limit, Response
from sessionlog.ledger.costs import COSTS, PricedLabels, costs_of
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.reconcile import Touched, fold_repeats, reconcile
from sessionlog.ledger.rows import LogRows
from sessionlog.ledger.statements import insert_rows, select_rows, write
from sessionlog.ledger.storable import storable
from sessionlog.ledger.trust import is_unreconciled
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import Limit as ReportedLimit

_SET_COSTS = f"UPDATE responses SET {', '.join(f'{name} = ?' for name in COSTS)} WHERE file_id = ? AND n = ?"  # noqa: S608 - names of the schema
_DELETE_FACTS = "DELETE FROM log_sessions WHERE file_id = ? AND session_id = ?"
_BATCH = 8192  # responses that are in memory at once
_NO_RESPONSE = (1 << 63) - 1  # the time from which a session has changed that got new facts alone


class Writer:
    """Inserts scans into the tables of `schema`.

    Attributes:
        is_first: The tables were empty when it began.
    """

    def __init__(self, connection: sqlite3.Connection, prices: PriceBook) -> None:
        """Start writing; the connection is in a transaction."""
        self._connection, self._prices = connection, prices
        self._ids = InternedIds(connection)
        self.is_first = not any(map(self._has, ("log_sessions", "responses", "calls")))
        self._touched = Touched(whole=self.is_first or is_unreconciled(connection))
        self._entered: set[int] = set()

    def _has(self, table: str) -> bool:
        return bool(self._connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone())  # noqa: S608 - names of the schema

    def pause(self) -> None:
        """Mark the ledger as unreconciled, so that the caller can commit; it cannot be queried before `reconcile`."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('unreconciled', 'yes')")

    def resume(self) -> None:
        """Continue after a pause, in a new transaction: another process may have inserted names meanwhile."""
        self._ids = InternedIds(self._connection)

    def insert(self, file_id: int, scan: LogRows, *, from_start: bool) -> None:
        """Insert the rows of a log, in place of its earlier ones if it was read from the start."""
        if from_start:
            self.drop(file_id)
        elif scan.replaced_count:
            self._remove_last(file_id, scan.replaced_count)
        self._entered.add(file_id)
        n = first = 0 if from_start else self._next(file_id, "responses")
        m = first_call = 0 if from_start else self._next(file_id, "calls")
        number = 0
        for batch in scan.batches():
            labels = list(map(self._ids.label_id, batch.labels))
            names = list(map(self._ids.name_id, batch.names))
            facts: list[Facts] = []
            responses: list[Response] = []
            calls: list[Call] = []
            sessions_of_responses: list[int] = []
            sessions_of_calls: list[int] = []
            for session in batch.sessions:
                session_id = self._ids.session_id(session.name)
                self._touched.add(session_id, None if from_start else _NO_RESPONSE)
                if session.facts:
                    facts.append(Facts(file_id, session_id, number, session.facts))
                    number += 1
                responses += session.responses
                sessions_of_responses += [session_id] * len(session.responses)
                calls += session.calls
                sessions_of_calls += [session_id] * len(session.calls)
            if any(row.superseded_by for row in responses):
                responses = [with_own_family(row, file_id, i) for i, row in enumerate(responses, n)]
            insert_rows(
                self._connection, "responses", Response, responses,
                file_id=[file_id] * len(responses), n=range(n, n + len(responses)),
                session_id=sessions_of_responses, label_id=[labels[row.label_id] for row in responses],
            )  # fmt: skip
            insert_rows(
                self._connection, "calls", Call, calls,
                file_id=[file_id] * len(calls), n=range(m, m + len(calls)),
                session_id=sessions_of_calls, name_id=[names[row.name_id] for row in calls],
            )  # fmt: skip
            n += len(responses)
            m += len(calls)
            if not self._touched.whole:
                self._touched.families.update(row.family for row in responses if row.family is not None)
                self._touched.calls.update(row.key for row in calls)
            if not from_start:
                for session_id, row in zip(sessions_of_responses, responses, strict=True):
                    self._touched.add(session_id, row.time_ns)
                # The new facts include the earlier ones.
                self._write(_DELETE_FACTS, [(row.file_id, row.session_id) for row in facts])
            insert_rows(self._connection, "log_sessions", Facts, facts)
        if not from_start:
            fold_repeats(self._connection, self._ids, self._touched, file_id, first, first_call)
        self._limits(file_id, scan)

    def _next(self, file_id: int, table: str) -> int:
        sql = f"SELECT COALESCE(MAX(n), -1) + 1 FROM {table} WHERE file_id = ?"  # noqa: S608 - names of the schema
        number: int = self._connection.execute(sql, (file_id,)).fetchone()[0]
        return max(0, number)

    def _limits(self, file_id: int, scan: LogRows) -> None:
        """Keep the latest report of a log on each rate limit."""
        for limit in scan.limits:
            name = file_id, storable(limit.name)
            known = self._connection.execute(
                "SELECT time_ns, COALESCE(resets_ns, 0), used_percent FROM limits WHERE file_id = ? AND name = ?", name
            ).fetchone()
            if known is None or known <= (limit.time_ns, limit.resets_ns or 0, limit.used_percent):
                self._connection.execute("DELETE FROM limits WHERE file_id = ? AND name = ?", name)
                insert_rows(self._connection, "limits", Limit, [_limit_row(file_id, scan.source, limit)])

    def drop(self, file_id: int) -> None:
        """Delete all rows of a log."""
        if self.is_first and file_id not in self._entered:
            return
        self.touch([file_id])
        self._touch_copies(file_id)
        for table in ("log_sessions", "responses", "calls", "limits", "resumes"):
            self._connection.execute(f"DELETE FROM {table} WHERE file_id = ?", (file_id,))  # noqa: S608 - names of the schema

    def _remove_last(self, file_id: int, count: int) -> None:
        """Delete the last responses of a log, which a resumed scan gives again."""
        sql = (
            "SELECT n, family, session_id, time_ns FROM responses WHERE file_id = ? AND n >= 0 ORDER BY n DESC LIMIT ?"
        )
        rows = self._connection.execute(sql, (file_id, count)).fetchall()
        for _, family, session_id, time_ns in rows:
            self._touched.add(session_id, time_ns)
            if family is not None:
                self._touched.families.add(family)
        self._write("DELETE FROM responses WHERE file_id = ? AND n = ?", [(file_id, row[0]) for row in rows])

    def touch(self, file_ids: Iterable[int]) -> None:
        """Note that the sessions of these logs have to be reconciled: a log is gone, or is back."""
        for file_id in file_ids:
            rows = self._connection.execute("SELECT session_id FROM log_sessions WHERE file_id = ?", (file_id,))
            self._touched.sessions.update(dict.fromkeys(session_id for (session_id,) in rows))

    def move(self, file_id: int, *, counts: bool) -> None:
        """Set whether the rows of a log count: they do not while it is `ELSEWHERE`."""
        self._touch_copies(file_id)
        self._touched.has_moved = True
        self._connection.execute(
            "UPDATE responses SET counts = ?, chosen = ? WHERE file_id = ? AND n >= 0", (counts, counts, file_id)
        )
        self._connection.execute("UPDATE calls SET counts = ? WHERE file_id = ?", (counts, file_id))

    def _touch_copies(self, file_id: int) -> None:
        ask, touched = self._connection.execute, self._touched
        families = ask("SELECT family FROM responses WHERE file_id = ? AND family IS NOT NULL", (file_id,))
        touched.families.update(family for (family,) in families)
        touched.calls.update(key for (key,) in ask("SELECT key FROM calls WHERE file_id = ?", (file_id,)))

    def touch_all(self) -> None:
        """Note that everything has to be reconciled."""
        self._touched.whole = True

    def reprice(self, condition: str = "TRUE") -> None:
        """Estimate every response again, at new prices, or those that satisfy a condition."""
        labels = PricedLabels(self._prices)
        last = (0, -1)
        where = (
            f"responses r WHERE (r.file_id, r.n) > (?, ?) AND r.n >= 0 AND {condition} ORDER BY r.file_id, r.n LIMIT ?"
        )
        while rows := list(select_rows(self._connection, Response, where, (*last, _BATCH))):
            changed = []
            for row in rows:
                costs = labels.costs(labels.number(self._ids.label(row.label_id)), row)
                if costs != costs_of(row):
                    changed.append((*costs, row.file_id, row.n))
            self._write(_SET_COSTS, changed)
            last = (rows[-1].file_id, rows[-1].n)
        self.touch_all()

    def reconcile(self) -> None:
        """Update what was touched: sessions, which copies count, totals, prices of new models."""
        reconcile(self._connection, self._ids, self._touched)
        self._connection.execute("DELETE FROM meta WHERE name = 'unreconciled'")

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        write(self._connection, statement, rows)


def own_family(file_id: int, n: int) -> int:
    """Return the family, and the key, that `with_own_family` gives to a row; it is another one in each ledger."""
    return hash_name(f"{file_id}.{n}", b"")


def with_own_family(row: Response, file_id: int, n: int) -> Response:
    """Give a superseded response without a family one of its own, by which `reconcile` finds it."""
    if not row.superseded_by or row.family is not None:
        return row
    own = own_family(file_id, n)
    return row._replace(family=own, key=own)


def _limit_row(file_id: int, source: str, limit: ReportedLimit) -> Limit:
    return Limit(
        file_id=file_id,
        source=source,
        name=storable(limit.name),
        time_ns=limit.time_ns,
        used_percent=limit.used_percent,
        window_minutes=limit.window_minutes,
        resets_ns=limit.resets_ns,
        plan=storable(limit.plan),
    )
