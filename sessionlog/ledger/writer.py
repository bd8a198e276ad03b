"""Writer: enters what scans told, and notes what has to be settled for it (see `settle`).

All of it happens inside one transaction of the caller's, and a writer lives no longer than that. What the logs told is
kept as they told it; what of it counts is decided by `settle`, so that a book does not depend on the order in which
logs were entered, read again, lost or forgotten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from sessionlog.events.tokens import TokenUsage
from sessionlog.ledger.costs import cost_of
from sessionlog.ledger.facts import facts_text
from sessionlog.ledger.lean import LeanScan, LeanSession, Row, number_of
from sessionlog.ledger.numbers import Numbers
from sessionlog.ledger.rows import storable, within_64_bits
from sessionlog.ledger.schema import CALL, LIMIT, RESPONSE, insert
from sessionlog.ledger.settle import Touched, fold_repeats, settle
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import Limit

_INSERT_RESPONSE = insert("responses", RESPONSE)
_INSERT_CALL = insert("calls", CALL)
_INSERT_LIMIT = insert("limits", LIMIT)
_INSERT_TOLD = insert("told", ("file_id", "session_id", "n", "facts"))


class Writer:
    """Enters scans into the tables of `schema`."""

    def __init__(self, connection: sqlite3.Connection, prices: PriceBook) -> None:
        """Begin; the connection is in a transaction."""
        self._connection, self._prices = connection, prices
        self._numbers = Numbers(connection)
        self._touched = Touched(whole=not any(map(self._has, ("told", "responses", "calls"))))
        self._entered: set[int] = set()

    def _has(self, table: str) -> bool:
        return bool(self._connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone())  # noqa: S608 - names of the schema

    def enter(self, file_id: int, scan: LeanScan, *, anew: bool) -> None:
        """Enter what a scan told of a log: all of it, or what was appended to what is known."""
        if anew:
            self.drop(file_id)
        elif scan.replaced_count:
            self._take_back(file_id, scan.replaced_count)
        self._entered.add(file_id)
        first = 0 if anew else self._next(file_id, "responses")
        first_call = 0 if anew else self._next(file_id, "calls")
        labels = list(map(self._numbers.label_id, scan.labels))
        names = list(map(self._numbers.name_id, scan.names))
        responses: list[Row] = []
        calls: list[Row] = []
        told: list[Row] = []
        for session in scan.sessions:
            session_id = self._numbers.session_id(session.facts)
            self._touched.sessions.add(session_id)
            told.append((file_id, session_id, len(told), facts_text(session.facts)))
            self._price(session, file_id, session_id, first, labels, scan.labels, responses)
            for number, key, told_by, *rest in session.calls:
                calls.append((file_id, first_call + len(calls), session_id, names[number], key, told_by, 1, *rest))
        if not anew:  # what it tells of a session now is all that it tells
            of_session = [row[:2] for row in told]
            self._connection.executemany("DELETE FROM told WHERE file_id = ? AND session_id = ?", of_session)
        self._write(_INSERT_TOLD, told)
        self._write(_INSERT_RESPONSE, responses)
        self._write(_INSERT_CALL, calls)
        if not anew:
            fold_repeats(self._connection, self._numbers, file_id, first, first_call)
        if not self._touched.whole:
            self._touched.families.update(row[4] for row in responses if row[4] is not None)
            self._touched.calls.update(row[4] for row in calls)
        self._limits(file_id, scan)

    def _next(self, file_id: int, table: str) -> int:
        sql = f"SELECT COALESCE(MAX(n), -1) + 1 FROM {table} WHERE file_id = ?"  # noqa: S608 - names of the schema
        number: int = self._connection.execute(sql, (file_id,)).fetchone()[0]
        return max(0, number)

    def _price(
        self, session: LeanSession, file_id: int, session_id: int, first: int, labels: Sequence[int],
        told: Sequence[Row], rows: list[Row],
    ) -> None:  # fmt: skip
        """Make the rows of a session's responses, with what they cost."""
        prices, add = self._prices, rows.append
        for (
            label, family, key, standing, told_by, time_ns, requests, failed, input_, output, cache_read, cache_write,
            cache_write_1h, reasoning, recorded, priced, latency, bucket, active,
        ) in session.responses:  # fmt: skip
            usage = TokenUsage(
                input=input_, output=output, cache_read=cache_read, cache_write=cache_write,
                cache_write_1h=cache_write_1h, reasoning=reasoning,
            )  # fmt: skip
            cost, estimate = cost_of(
                prices, told[label], usage, time_ns, recorded, requests, failed=failed, priced=priced
            )
            n = first + len(rows)
            alone = number_of(f"{file_id}.{n}", b"") if told_by and family is None else family
            add((
                file_id, n, session_id, labels[label], alone, alone if family is None else key, standing, told_by, 1,
                time_ns, requests, failed, input_, output, cache_read, cache_write, cache_write_1h, reasoning,
                recorded, cost, estimate, priced, latency, bucket, active,
            ))  # fmt: skip

    def _limits(self, file_id: int, scan: LeanScan) -> None:
        """Keep the latest word of a log on each limit."""
        source = scan.sessions[0].facts.source if scan.sessions else ""
        for limit in scan.limits:
            name = file_id, storable(limit.name)
            known = self._connection.execute(
                "SELECT time_ns, COALESCE(resets_ns, 0), used_percent FROM limits WHERE file_id = ? AND name = ?", name
            ).fetchone()
            if known is None or known <= (limit.time_ns, limit.resets_ns or 0, limit.used_percent):
                self._connection.execute("DELETE FROM limits WHERE file_id = ? AND name = ?", name)
                self._write(_INSERT_LIMIT, [_limit_row(file_id, source, limit)])

    def drop(self, file_id: int) -> None:
        """Take out all that a log told."""
        if self._touched.whole and file_id not in self._entered:
            return
        ask, touched = self._connection.execute, self._touched
        self.touch([file_id])
        families = ask("SELECT family FROM responses WHERE file_id = ? AND family IS NOT NULL", (file_id,))
        touched.families.update(family for (family,) in families)
        touched.calls.update(key for (key,) in ask("SELECT key FROM calls WHERE file_id = ?", (file_id,)))
        for table in ("told", "responses", "calls", "limits", "resumes"):
            ask(f"DELETE FROM {table} WHERE file_id = ?", (file_id,))  # noqa: S608 - names of the schema

    def _take_back(self, file_id: int, count: int) -> None:
        """Take out the last responses that a log told: a scan that goes on tells them again."""
        sql = "SELECT n, family FROM responses WHERE file_id = ? AND n >= 0 ORDER BY n DESC LIMIT ?"
        rows = self._connection.execute(sql, (file_id, count)).fetchall()
        self._touched.families.update(family for _, family in rows if family is not None)
        self._write("DELETE FROM responses WHERE file_id = ? AND n = ?", [(file_id, n) for n, _ in rows])

    def touch(self, file_ids: Iterable[int]) -> None:
        """Note that the sessions of these logs are to be looked at again: a log is gone, or is back."""
        for file_id in file_ids:
            rows = self._connection.execute("SELECT session_id FROM told WHERE file_id = ?", (file_id,))
            self._touched.sessions.update(session_id for (session_id,) in rows)

    def touch_all(self) -> None:
        """Note that everything is to be looked at again."""
        self._touched.whole = True

    def reprice(self) -> None:
        """Estimate every response anew: the prices have changed."""
        rows = self._connection.execute(
            "SELECT file_id, n, label_id, time_ns, requests, failed, input, output, cache_read, cache_write,"
            " cache_write_1h, reasoning, recorded_nano, priced FROM responses WHERE n >= 0"
        )
        changed = []
        for file_id, n, label, time_ns, requests, failed, *tokens, recorded, priced in rows.fetchall():
            names = ("input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning")
            usage = TokenUsage(**dict(zip(names, tokens, strict=True)))
            cost, estimate = cost_of(
                self._prices, self._numbers.label(label), usage, time_ns, recorded, requests,
                failed=bool(failed), priced=bool(priced),
            )  # fmt: skip
            changed.append((cost, estimate, file_id, n))
        self._write("UPDATE responses SET cost_nano = ?, estimate_nano = ? WHERE file_id = ? AND n = ?", changed)
        self.touch_all()

    def settle(self) -> None:
        """Put right what was touched: sessions, which copies count, cells."""
        settle(self._connection, self._numbers, self._touched)

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        try:
            self._connection.executemany(statement, rows)
        except OverflowError:  # rare enough to look at each number only then; rows that are in are entered again
            self._connection.executemany(statement, [within_64_bits(row) for row in rows])


def _limit_row(file_id: int, source: str, limit: Limit) -> Row:
    return (
        file_id, source, storable(limit.name), limit.time_ns, limit.used_percent, limit.window_minutes,
        limit.resets_ns, storable(limit.plan),
    )  # fmt: skip
