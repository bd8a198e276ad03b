"""Book: the ledger open for reading and writing. Here it lives in memory: scanned anew for every report.

Estimates are made when a record enters, at the prices of its own date: tiers depend on the single request. Copies are
told apart when they enter, too (see `copies`), so that reports are plain sums.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sessionlog.errors import Problem
from sessionlog.ledger.copies import Copy, weigh, yields
from sessionlog.ledger.histogram import bucket_of
from sessionlog.ledger.rows import metadata_text, saturating_sum, storable
from sessionlog.ledger.schema import INDEXES, LABEL, RECORD, SCHEMA, SESSION, TOOL, insert
from sessionlog.ledger.sessions import merge_sessions
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit, Problems, Record, ScannedSession, ToolUse

_MAX_NAMED = 100
_INSERT_SESSION = insert("sessions", ("id", *SESSION))
_INSERT_LABEL = insert("labels", ("id", *LABEL))
_INSERT_RECORD = insert("records", RECORD)
_INSERT_TOOL = insert("tools", TOOL)
_PLACE = ("session_id", "label_id", "log_id", "time_ns")


class Book:
    """Sessions, records and tool calls in SQLite, priced as they enter.

    Attributes:
        problems: The first findings about the logs.
        problem_count: All of them.
        unrecognised: Files that are no log of a known agent.
        limits: (source, name) → the latest word on a rate limit.
    """

    def __init__(self, prices: PriceBook) -> None:
        self.prices = prices
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.unrecognised = 0
        self.limits: dict[tuple[str, str], Limit] = {}
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.executescript(SCHEMA)
        self._connection.execute("BEGIN")
        self._indexed = False
        self._sessions: dict[tuple[str, str, str], tuple[int, ScannedSession]] = {}
        self._labels: dict[tuple[str, ...], int] = {}
        self._logs: list[str] = []
        self._families: dict[int, int | tuple[int, ...]] = {}  # hash → ids of records: a key itself takes 100 bytes
        self._calls: dict[int, tuple[int, bool]] = {}
        self._told_by: dict[str, list[int]] = {}
        self._new: list[tuple[Any, ...]] = []
        self._last_record = 0

    def take(self, scan: LogScan) -> None:
        """Enter what a scan of one log gave."""
        for session in scan.sessions:
            self.add(session)
        for limit in scan.limits:
            source = scan.sessions[0].source if scan.sessions else ""
            known = self.limits.get((source, limit.name))
            if known is None or known.time_ns <= limit.time_ns:
                self.limits[source, limit.name] = limit
        self.note(scan.problems)

    def add(self, session: ScannedSession) -> None:
        """Enter one session, or more of one that is known, with its records and tool calls."""
        session_id = self._enter(session)
        self._logs.append(session.path)
        for record in session.records:
            self._record(session, session_id, record)
        self._flush()
        for tool in session.tools:
            self._tool(session, session_id, tool)

    def _enter(self, session: ScannedSession) -> int:
        name = (session.source, session.place, session.session_id)
        known = self._sessions.get(name)
        if known is None:
            session_id, whole = len(self._sessions) + 1, merge_sessions(session, session)
        else:
            session_id, whole = known[0], merge_sessions(known[1], session)
        self._sessions[name] = session_id, whole
        row = (
            session_id, whole.source, storable(whole.session_id), storable(whole.path), whole.parent, whole.part,
            whole.start_ns, whole.last_ns, whole.status, whole.project, whole.harness, whole.route, whole.duration_ms,
            whole.prompt, whole.error, metadata_text(whole.metadata), whole.counted,
        )  # fmt: skip
        self._connection.execute(_INSERT_SESSION, row)
        return session_id

    def _record(self, session: ScannedSession, session_id: int, record: Record) -> None:
        """Enter a record, unless a better copy of it is known."""
        if not record.key:
            self._insert(session, session_id, record)
            return
        family = hash((session.source, record.family or record.key))
        known = self._families.get(family)
        if known is None:
            self._families[family] = self._insert(session, session_id, record)
            return
        usage = record.usage
        copy = Copy(record.key, record.standing, usage.output, usage.total, record.time_ns, session.path)
        ids = (known,) if isinstance(known, int) else known
        self._flush()
        copies = {row: self._copy(row) for row in ids}
        same = next((row for row, other in copies.items() if other.key == copy.key), None)
        if same is not None:
            self._replace(session, session_id, record, same, copies[same], copy)
        elif not any(yields(copy, other) for other in copies.values()):
            weaker = {row for row, other in copies.items() if yields(other, copy)}
            for row in weaker:
                self._connection.execute("DELETE FROM records WHERE id = ?", (row,))
            kept = tuple(row for row in ids if row not in weaker)
            self._families[family] = (*kept, self._insert(session, session_id, record))

    def _copy(self, row: int) -> Copy:
        sql = "SELECT key, standing, output, input + cache_read + cache_write + output, time_ns, log_id FROM records"
        [(key, standing, output, total, time_ns, log)] = self._connection.execute(f"{sql} WHERE id = ?", (row,))
        return Copy(key, standing, output, total, time_ns, self._logs[log])

    def _replace(
        self, session: ScannedSession, session_id: int, record: Record, row: int, known: Copy, new: Copy
    ) -> None:
        """Put the better parts of a copy into the place of the one that is known."""
        [values] = self._connection.execute("SELECT * FROM records WHERE id = ?", (row,))
        old = dict(zip(RECORD, values, strict=True))
        verdict = weigh(known, new)
        fresh = dict(zip(RECORD, self._row(session, session_id, record, row), strict=True))
        base, place = (fresh if verdict.counts else old), (fresh if verdict.place else old)
        merged = {**base, **{name: place[name] for name in _PLACE}}
        if old["session_id"] == fresh["session_id"]:
            merged["active_ms"] = max(old["active_ms"], fresh["active_ms"])
        self._connection.execute(_INSERT_RECORD, tuple(merged.values()))

    def _insert(self, session: ScannedSession, session_id: int, record: Record) -> int:
        self._last_record += 1
        self._new.append(self._row(session, session_id, record, self._last_record))
        if record.told_by:
            self._told_by.setdefault(record.told_by, []).append(self._last_record)
        return self._last_record

    def _flush(self) -> None:
        if self._new:
            self._connection.executemany(_INSERT_RECORD, self._new)
            self._new.clear()

    def _row(self, session: ScannedSession, session_id: int, record: Record, row: int) -> tuple[Any, ...]:
        usage = record.usage
        recorded, estimate = record.cost_nano, None
        if record.priced and not recorded:
            estimate = self._estimate(record)
            if recorded == 0 and estimate:
                recorded = None  # a recorded 0 is free only where there is no list price
            elif recorded == 0:
                estimate = None
        return (
            row, session_id, self._label(session, record), len(self._logs) - 1, record.key, record.standing,
            record.time_ns, record.requests, record.failed, usage.input, usage.output, usage.cache_read,
            usage.cache_write, usage.cache_write_1h, usage.reasoning, recorded, estimate, record.priced,
            record.latency_ms, None if record.failed else bucket_of(record.latency_ms), record.active_ms,
        )  # fmt: skip

    def _label(self, session: ScannedSession, record: Record) -> int:
        label = (
            record.provider, record.model, record.response_model or "unknown", record.project or session.project,
            record.branch, record.version, record.agent, record.granularity, record.quality,
        )  # fmt: skip
        known = self._labels.get(label)
        if known is None:
            known = self._labels[label] = len(self._labels) + 1
            self._connection.execute(_INSERT_LABEL, (known, *label))
        return known

    def _estimate(self, record: Record) -> int | None:
        """The list price of the model that answered, else of the one asked for; tiers are for single requests.

        An answer that names no tokens has used some: its price is unknown, not 0.
        """
        if record.requests and not record.failed and not record.usage:
            return None
        single = record.granularity == "request" and record.requests == 1
        for model in (record.response_model, record.model):
            if model is None:
                continue
            price = self.prices.price(record.provider, model, record.usage, record.time_ns, single=single)
            if price is not None:
                return price
        return None

    def _tool(self, session: ScannedSession, session_id: int, tool: ToolUse) -> None:
        """Enter a tool call; of two copies the finished one stays."""
        key = hash((session.source, tool.key))
        row, finished = self._calls.get(key, (0, False))
        if row and (finished or not tool.finished):
            return
        row = row or len(self._calls) + 1
        self._calls[key] = row, tool.finished
        values = (
            row, session_id, tool.time_ns, tool.tool, tool.server, tool.agent, tool.project or session.project,
            tool.finished, tool.failed, tool.duration_ms, bucket_of(tool.duration_ms), tool.output_bytes,
        )  # fmt: skip
        self._connection.execute(_INSERT_TOOL, values)

    def settle(self) -> None:
        """Leave out what another known session tells better; call it when all logs are in."""
        known = {f"{source}:{session}" for source, _, session in self._sessions}
        for teller, rows in self._told_by.items():
            if teller in known:
                self._connection.executemany("DELETE FROM records WHERE id = ?", [(row,) for row in rows])
        self._told_by.clear()

    def note(self, problems: Problems) -> None:
        """Keep damage of the logs for the report: all of it as a number, the first by name."""
        self.problem_count += problems.count
        self.problems += problems.first[: _MAX_NAMED - len(self.problems)]

    def define(self, name: str, function: Any) -> None:
        """Make a Python function of one argument callable in queries."""
        self._connection.create_function(name, 1, function, deterministic=True)

    def query(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Run one query and return its rows; sums beyond 64 bits stop at the largest number instead of failing."""
        if not self._indexed:
            self._indexed = True
            for statement in INDEXES.strip().split("\n"):
                self._connection.execute(statement)
        try:
            return list(self._connection.execute(sql, parameters))
        except sqlite3.OperationalError as error:
            if "overflow" not in str(error):
                raise
            saturating_sum(self._connection)
            return list(self._connection.execute(sql.replace("SUM(", "saturating_sum("), parameters))

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def __del__(self) -> None:
        self._connection.close()
