"""Writer: inserts the rows of scans, and notes what has to be reconciled afterwards (see `reconcile`).

It works inside the caller's transactions. All rows of a log are kept; `reconcile` decides which count, so that a ledger
does not depend on the order in which logs were read, lost or forgotten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from sessionlog.ledger.columns import Call, Limit, Response
from sessionlog.ledger.costs import COSTS, PricedLabels, costs_of
from sessionlog.ledger.handover import HandedOver
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.reconcile import Touched, fold_repeats, reconcile
from sessionlog.ledger.rows import RowWriter, set_own_families
from sessionlog.ledger.scanning import Scanned
from sessionlog.ledger.statements import insert_rows, select_rows, write
from sessionlog.ledger.storable import storable
from sessionlog.ledger.trust import is_unreconciled
from sessionlog.ledger.vanished import find_vanished, keep_vanished, let_go, set_aside
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import Limit as ReportedLimit

_SET_COSTS = f"UPDATE responses SET {', '.join(f'{name} = ?' for name in COSTS)} WHERE file_id = ? AND n = ?"  # noqa: S608 - names of the schema
_ALL = -1 << 63  # below all numbers of rows
_BATCH = 8192  # responses that are in memory at once
_NO_RESPONSE = (1 << 63) - 1  # the time from which a session has changed that got new facts alone


class Writer:
    """Inserts scans into the tables of `schema`.

    Attributes:
        ids: The ids of names.
        is_first: The tables were empty when it began, and nothing was reconciled since.
    """

    def __init__(self, connection: sqlite3.Connection, prices: PriceBook) -> None:
        """Start writing; the connection is in a transaction."""
        self._connection, self._prices = connection, prices
        self.resume()
        self.is_first = not any(map(self._has, ("log_sessions", "responses", "calls")))
        self._touched = Touched(whole=self.is_first or is_unreconciled(connection))
        self._entered: set[int] = set()

    def _has(self, table: str) -> bool:
        return bool(self._connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone())  # noqa: S608 - names of the schema

    def pause(self) -> None:
        """Mark the ledger as unreconciled, so that the caller can commit; it cannot be queried before `reconcile`."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('unreconciled', 'yes')")

    def resume(self) -> None:
        """Continue in a new transaction: another process may have inserted names meanwhile."""
        self.ids = InternedIds(self._connection)
        self._rows = RowWriter(self._connection, self.ids, self._prices)

    def insert(
        self, file_id: int, scanned: Scanned, handed: HandedOver | None = None, *, was_rewritten: bool = False
    ) -> None:
        """Insert the rows of a log, in place of its earlier ones if it was read from the start.

        Args:
            file_id: The log.
            scanned: The result of its scan.
            handed: Where its rows are copied from; None if they are made here.
            was_rewritten: The log has changed since it was read, by the same parser.
        """
        resumed = not scanned.from_start
        keeps = was_rewritten and not resumed
        if keeps:
            set_aside(self._connection, file_id)
        if not resumed:
            self.drop(file_id)
        elif scanned.scan.replaced_count:
            self._remove_last(file_id, scanned.scan.replaced_count)
        self._entered.add(file_id)
        n = self._next(file_id, "responses") if resumed else 0
        m = self._next(file_id, "calls") if resumed else 0
        if handed is None:
            sessions = self._rows.insert(scanned.scan.sessions, file_id, n=n, n_of_calls=m, resumed=resumed)
        else:
            sessions = handed.copy(scanned.number, file_id, n=n, n_of_calls=m, resumed=resumed)
        set_own_families(self._connection, file_id, n)
        for session_id in sessions:
            self._touched.add(session_id, _NO_RESPONSE if resumed else None)
        self._touch_new(file_id, n, m, resumed=resumed)
        if keeps:
            keep_vanished(self._connection, file_id)
        kept = None if self.is_first else find_vanished(self._connection, file_id)
        if kept is not None:
            self.touch([kept])
            let_go(self._connection, kept, file_id, n)
        self._limits(file_id, scanned)

    def append(self, file_id: int, responses: Iterable[Response], calls: Iterable[Call]) -> None:
        """Append rows to those of a log; they have the names of sessions, labels and tools in place of ids."""
        first, first_call = self._next(file_id, "responses"), self._next(file_id, "calls")
        rows = [
            row._replace(file_id=file_id, n=n, session_id=self._session(row), label_id=self.ids.label_id(row.label_id))  # type: ignore[arg-type] # names
            for n, row in enumerate(responses, first)
        ]
        rows_of_calls = [
            call._replace(file_id=file_id, n=n, session_id=self._session(call), name_id=self.ids.name_id(call.name_id))  # type: ignore[arg-type] # names
            for n, call in enumerate(calls, first_call)
        ]
        insert_rows(self._connection, "responses", Response, rows)
        insert_rows(self._connection, "calls", Call, rows_of_calls)
        self._touch_new(file_id, first, first_call, resumed=True)

    def _session(self, row: Response | Call) -> int:
        """Return the id of a session whose name a row has, which has changed."""
        session_id = self.ids.session_id(row.session_id)
        self._touched.add(session_id, _NO_RESPONSE)
        return session_id

    def _touch_new(self, file_id: int, n: int, n_of_calls: int, *, resumed: bool) -> None:
        """Note what has to be reconciled of the rows of a log that were inserted last."""
        if not self._touched.whole:
            self._touch_copies(file_id, n, n_of_calls)
        if resumed:
            sql = """SELECT session_id, CASE WHEN COUNT(*) = COUNT(time_ns) THEN MIN(time_ns) END FROM responses
                WHERE file_id = ? AND n >= ? GROUP BY session_id"""
            for session_id, since_ns in self._connection.execute(sql, (file_id, n)):
                self._touched.add(session_id, since_ns)
            fold_repeats(self._connection, self.ids, self._touched, file_id, n, n_of_calls)

    def _next(self, file_id: int, table: str) -> int:
        sql = f"SELECT COALESCE(MAX(n), -1) + 1 FROM {table} WHERE file_id = ?"  # noqa: S608 - names of the schema
        number: int = self._connection.execute(sql, (file_id,)).fetchone()[0]
        return max(0, number)

    def _limits(self, file_id: int, scanned: Scanned) -> None:
        """Keep the latest report of a log on each rate limit."""
        for limit in scanned.scan.limits:
            name = file_id, storable(limit.name)
            known = self._connection.execute(
                "SELECT time_ns, COALESCE(resets_ns, 0), used_percent FROM limits WHERE file_id = ? AND name = ?", name
            ).fetchone()
            if known is None or known <= (limit.time_ns, limit.resets_ns or 0, limit.used_percent):
                self._connection.execute("DELETE FROM limits WHERE file_id = ? AND name = ?", name)
                insert_rows(self._connection, "limits", Limit, [_limit_row(file_id, scanned.source, limit)])

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
        write(
            self._connection, "DELETE FROM responses WHERE file_id = ? AND n = ?", [(file_id, row[0]) for row in rows]
        )

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

    def _touch_copies(self, file_id: int, n: int = _ALL, n_of_calls: int = _ALL) -> None:
        ask, touched = self._connection.execute, self._touched
        families = ask("SELECT family FROM responses WHERE file_id = ? AND n >= ? AND family IS NOT NULL", (file_id, n))
        touched.families.update(family for (family,) in families)
        keys = ask("SELECT key FROM calls WHERE file_id = ? AND n >= ?", (file_id, n_of_calls))
        touched.calls.update(key for (key,) in keys)

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
                costs = labels.costs(labels.number(self.ids.label(row.label_id)), row)
                if costs != costs_of(row):
                    changed.append((*costs, row.file_id, row.n))
            write(self._connection, _SET_COSTS, changed)
            last = (rows[-1].file_id, rows[-1].n)
        self.touch_all()

    def reconcile(self) -> None:
        """Update what was touched: sessions, which copies count, totals, prices of new models."""
        reconcile(self._connection, self.ids, self._touched)
        self._connection.execute("DELETE FROM meta WHERE name = 'unreconciled'")
        self.is_first, self._touched = False, Touched()


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
