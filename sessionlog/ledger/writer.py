"""Writer: inserts the rows of scans, and notes what has to be reconciled afterwards (see `reconcile`).

It works inside the caller's transactions. All rows of a log are kept; `reconcile` decides which count, so that a ledger
does not depend on the order in which logs were read, lost or forgotten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from sessionlog.events.tokens import TokenUsage
from sessionlog.hashes import hash_name
from sessionlog.ledger.costs import PricedLabels
from sessionlog.ledger.current_prices import write_current_prices
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.reconcile import Touched, fold_repeats, reconcile
from sessionlog.ledger.rows import LogRows, Row
from sessionlog.ledger.schema import CALL, LIMIT, RESPONSE
from sessionlog.ledger.statements import insert_rows, write
from sessionlog.ledger.storable import storable
from sessionlog.ledger.trust import is_unreconciled
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import Limit

_FACTS = ("file_id", "session_id", "n", "facts")
_DELETE_FACTS = "DELETE FROM log_sessions WHERE file_id = ? AND session_id = ?"
_PRICED = """SELECT file_id, n, label_id, time_ns, requests, failed, input, output, cache_read, cache_write,
    cache_write_1h, reasoning, recorded_nano, priced, cost_nano, estimate_nano, saved_nano FROM responses
    WHERE (file_id, n) > (?, ?) AND n >= 0 AND {condition} ORDER BY file_id, n LIMIT ?"""
_BATCH = 8192  # responses that are in memory at once
_FAMILY, _KEY, _SUPERSEDED_BY = (RESPONSE.index(name) for name in ("family", "key", "superseded_by"))


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
            facts: list[Row] = []
            responses: list[Row] = []
            calls: list[Row] = []
            for session in batch.sessions:
                session_id = self._ids.session_id(session.name)
                self._touched.sessions.add(session_id)
                if session.facts:
                    facts.append((file_id, session_id, number, session.facts))
                    number += 1
                responses += [
                    (file_id, i, session_id, labels[row[0]], *row[1:]) for i, row in enumerate(session.responses, n)
                ]
                n += len(session.responses)
                calls += [(file_id, i, session_id, names[row[0]], *row[1:]) for i, row in enumerate(session.calls, m)]
                m += len(session.calls)
            if any(row[_SUPERSEDED_BY] for row in responses):
                responses = list(map(with_own_family, responses))
            insert_rows(self._connection, "responses", RESPONSE, responses)
            insert_rows(self._connection, "calls", CALL, calls)
            if not self._touched.whole:
                self._touched.families.update(row[_FAMILY] for row in responses if row[_FAMILY] is not None)
                self._touched.calls.update(row[4] for row in calls)
            if not from_start:  # the new facts include the earlier ones
                self._write(_DELETE_FACTS, [row[:2] for row in facts])
            insert_rows(self._connection, "log_sessions", _FACTS, facts)
        if not from_start:
            fold_repeats(self._connection, self._ids, file_id, first, first_call)
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
                insert_rows(self._connection, "limits", LIMIT, [_limit_row(file_id, scan.source, limit)])

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
        sql = "SELECT n, family FROM responses WHERE file_id = ? AND n >= 0 ORDER BY n DESC LIMIT ?"
        rows = self._connection.execute(sql, (file_id, count)).fetchall()
        self._touched.families.update(family for _, family in rows if family is not None)
        self._write("DELETE FROM responses WHERE file_id = ? AND n = ?", [(file_id, n) for n, _ in rows])

    def touch(self, file_ids: Iterable[int]) -> None:
        """Note that the sessions of these logs have to be reconciled: a log is gone, or is back."""
        for file_id in file_ids:
            rows = self._connection.execute("SELECT session_id FROM log_sessions WHERE file_id = ?", (file_id,))
            self._touched.sessions.update(session_id for (session_id,) in rows)

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
        names = ("input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning")
        last = (0, -1)
        while rows := self._connection.execute(_PRICED.format(condition=condition), (*last, _BATCH)).fetchall():
            changed = []
            for file_id, n, label, time_ns, requests, failed, *tokens, recorded, priced, known, estimate, saved in rows:
                usage = TokenUsage(**dict(zip(names, tokens, strict=True)))
                number = labels.number(self._ids.label(label))
                cost = labels.cost(number, usage, time_ns, recorded, requests, failed=bool(failed), priced=bool(priced))
                if cost != (known, estimate, saved):
                    changed.append((*cost, file_id, n))
            self._write(
                "UPDATE responses SET cost_nano = ?, estimate_nano = ?, saved_nano = ? WHERE file_id = ? AND n = ?",
                changed,
            )
            last = rows[-1][:2]
        self.touch_all()

    def reconcile(self) -> None:
        """Update what was touched: sessions, which copies count, totals, prices of new models."""
        reconcile(self._connection, self._ids, self._touched, self._prices)
        write_current_prices(self._connection, self._prices)
        self._connection.execute("DELETE FROM meta WHERE name = 'unreconciled'")

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        write(self._connection, statement, rows)


def own_family(file_id: int, n: int) -> int:
    """Return the family, and the key, that `with_own_family` gives to a row; it is another one in each ledger."""
    return hash_name(f"{file_id}.{n}", b"")


def with_own_family(row: Row) -> Row:
    """Give a superseded response without a family one of its own, by which `reconcile` finds it."""
    if not row[_SUPERSEDED_BY] or row[_FAMILY] is not None:
        return row
    own = own_family(row[0], row[1])
    return *row[:_FAMILY], own, own, *row[_KEY + 1 :]


def _limit_row(file_id: int, source: str, limit: Limit) -> Row:
    return (
        file_id, source, storable(limit.name), limit.time_ns, limit.used_percent, limit.window_minutes,
        limit.resets_ns, storable(limit.plan),
    )  # fmt: skip
