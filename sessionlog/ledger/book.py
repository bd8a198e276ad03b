"""Book: the ledger open for reading and writing. Here it lives in memory: scanned anew for every report.

Estimates are made when a record enters, at the prices of its own date: tiers depend on the single request. Copies are
told apart when they enter, too (see `copies`), so that reports are plain sums.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sessionlog.errors import Problem
from sessionlog.ledger.copies import Copy, prefers, put_together
from sessionlog.ledger.costs import cost_of
from sessionlog.ledger.histogram import bucket_of
from sessionlog.ledger.rows import metadata_text, saturating_sum, storable, within_64_bits
from sessionlog.ledger.schema import INDEXES, LABEL, RECORD, SCHEMA, SESSION, TOOL, insert
from sessionlog.ledger.sessions import merge_sessions
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit, Problems, Record, ScannedSession, Standing, ToolUse

_MAX_NAMED = 100
_MANY = 4096
_INSERT_SESSION = insert("sessions", ("id", *SESSION))
_INSERT_LABEL = insert("labels", ("id", *LABEL))
_INSERT_RECORD = insert("records", RECORD)
_INSERT_TOOL = insert("tools", TOOL)
_DELETE = "DELETE FROM {} WHERE id = ?"
_LABEL_ID, _KEY, _STANDING = (RECORD.index(name) for name in ("label_id", "key", "standing"))
_ALL_REAL = 0


class Book:
    """Sessions, records and tool calls in SQLite, priced as they enter.

    Attributes:
        problems: The first findings about the logs.
        problem_count: All of them.
        unrecognised: Files that are no log of a known agent.
        limits: (source, name) → the latest word on a rate limit.
    """

    def __init__(self, prices: PriceBook, *, tools: bool = True) -> None:
        """Make an empty book; without `tools` it leaves tool calls out, half of the work of entering a log."""
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self.prices = prices
        self._keeps_tools = tools
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.unrecognised = 0
        self.limits: dict[tuple[str, str], Limit] = {}
        self._connection.executescript(SCHEMA)
        self._connection.execute("BEGIN")
        self._indexed = False
        self._sessions: dict[tuple[str, str, str], tuple[int, list[ScannedSession]]] = {}
        self._told_anew: dict[int, list[ScannedSession]] = {}  # sessions whose row is not what their logs tell
        self._names: list[str] = []
        self._labels: dict[tuple[str, ...], int] = {}
        self._label_names: list[tuple[str, ...]] = []
        self._logs: list[str] = []
        # By hash, as a name itself takes 100 bytes. A family of one is known by the record's id, and only where there
        # are more of them is each in `_keys`: the ids of weaker ones are kept, REAL ones need no list (`_ALL_REAL`).
        self._families: dict[int, int | list[int]] = {}
        self._keys: dict[int, int] = {}
        self._calls: dict[int, int] = {}
        self._calls_told_by: dict[int, set[str]] = {}
        self._told_by: dict[int, set[str]] = {}
        self._new: list[tuple[Any, ...]] = []  # rows that wait: thousands at once are written faster
        self._new_calls: list[tuple[Any, ...]] = []
        self._last_record = 0

    def take(self, scan: LogScan) -> None:
        """Enter what a scan of one log gave."""
        for session in scan.sessions:
            self.add(session)
        for limit in scan.limits:
            source = scan.sessions[0].source if scan.sessions else ""
            known = self.limits.get((source, limit.name))
            if known is None or _word(known) <= _word(limit):
                self.limits[source, limit.name] = limit
        self.note(scan.problems)

    def add(self, session: ScannedSession) -> None:
        """Enter one session, or more of one that is known, with its records and tool calls."""
        session_id = self._enter(session)
        self._logs.append(session.path)
        for record in session.records:
            self._record(session, session_id, record)
        for tool in session.tools if self._keeps_tools else ():
            self._tool(session, session_id, tool)
        if len(self._new) + len(self._new_calls) > _MANY:
            self._flush()

    def _enter(self, session: ScannedSession) -> int:
        """Keep what a log tells of a session until a report asks for the whole of it; return its number."""
        name = (session.source, session.place, session.session_id)
        known = self._sessions.get(name)
        if known is None:
            known = self._sessions[name] = len(self._sessions) + 1, []
            self._names.append(session.session_id)
        session_id, told = known
        told.append(replace(session, records=(), tools=()))
        self._told_anew[session_id] = told
        return session_id

    def _write_sessions(self) -> None:
        rows = []
        for session_id, told in self._told_anew.items():
            whole = merge_sessions(told)
            status = None if whole.status is None else storable(whole.status)
            rows.append((
                session_id, whole.source, storable(whole.session_id), storable(whole.path), storable(whole.parent),
                whole.part, whole.start_ns, whole.last_ns, status, storable(whole.project), storable(whole.harness),
                storable(whole.route), whole.duration_ms, storable(whole.prompt), storable(whole.error),
                metadata_text(whole.metadata), whole.counted,
            ))  # fmt: skip
        self._write(_INSERT_SESSION, rows)
        self._told_anew.clear()

    def _record(self, session: ScannedSession, session_id: int, record: Record) -> None:
        """Enter a record, unless a better copy of it is known."""
        row, label = self._row(session, session_id, record)
        if not record.key:
            self._insert(row, record.told_by)
            return
        name = session.source, record.family or record.key
        family = hash(name)
        known = self._families.get(family)
        if known is None:
            self._families[family] = self._insert(row, record.told_by)
            return
        alone = isinstance(known, int) and known != _ALL_REAL
        row_id = known if isinstance(known, int) and alone else self._keys.get(hash((*name, row[_KEY])))
        copy = None if row_id is None else self._stored(row_id)
        if copy is not None and copy["key"] == row[_KEY]:
            self._families[family] = self._again(known, copy, self._copy(row, label), record.told_by)
        else:
            self._families[family] = self._beside(name, known, copy if alone else None, row, record.told_by)

    def _again(self, family: int | list[int], same: Copy, new: Copy, told_by: str) -> int | list[int]:
        """Enter a copy of a record that is known; return its family."""
        best = put_together(same, new)
        self._replace(same, new, best, told_by)
        if isinstance(family, int) or best["standing"] < Standing.REAL:
            return family
        self._delete("records", (row_id for row_id in family if row_id != same["id"]))
        row_id: int = same["id"]
        return row_id

    def _beside(
        self, name: tuple[str, str], family: int | list[int], only: Copy | None, row: tuple[Any, ...], told_by: str
    ) -> int | list[int]:
        """Enter a record under a key that is new in its family, of which `only` may be the only one; return the family.

        One that is not REAL does not count beside a REAL one, whichever of them was first.
        """
        weaker = row[_STANDING] < Standing.REAL
        others_weaker = isinstance(family, list) if only is None else only["standing"] < Standing.REAL
        if weaker and not others_weaker:
            return family
        if others_weaker and not weaker:
            self._delete("records", [family] if isinstance(family, int) else family)
            return self._insert(row, told_by)
        row_id = self._keys[hash((*name, row[_KEY]))] = self._insert(row, told_by)
        if only is not None:
            self._keys[hash((*name, only["key"]))] = only["id"]
        if not weaker:
            return _ALL_REAL
        ids = [family] if isinstance(family, int) else family
        ids.append(row_id)
        return ids

    def _replace(self, known: Copy, new: Copy, best: Copy, told_by: str) -> None:
        """Put what counts of two copies into the place of the one that is known."""
        tellers = self._told_by.pop(known["id"], set())
        if known["standing"] != best["standing"]:  # what it was told by does not count any more
            tellers = set()
        if told_by and new["standing"] == best["standing"]:
            tellers.add(told_by)
        if tellers:
            self._told_by[known["id"]] = tellers
        label_id = self._label(tuple(best[name] for name in LABEL))
        row = {**best, "id": known["id"], "label_id": label_id}
        self._write(_INSERT_RECORD, [tuple(row[name] for name in RECORD)])

    def _stored(self, row_id: int) -> Copy | None:
        """A record that was entered; None when it had to go: `_keys` still knows it then."""
        self._flush()
        row = self._connection.execute("SELECT * FROM records WHERE id = ?", (row_id,)).fetchone()
        return None if row is None else self._copy(row, self._label_names[row[_LABEL_ID] - 1])

    def _copy(self, row: tuple[Any, ...], label: tuple[str, ...]) -> Copy:
        values = dict(zip((*RECORD, *LABEL), (*row, *label), strict=True))
        return {**values, "path": self._logs[values["log_id"]], "session": self._names[values["session_id"] - 1]}

    def _insert(self, row: tuple[Any, ...], told_by: str) -> int:
        self._last_record += 1
        self._new.append((self._last_record, *row[1:]))
        if told_by:
            self._told_by[self._last_record] = {told_by}
        return self._last_record

    def _delete(self, table: str, rows: Iterable[int]) -> None:
        self._flush()
        self._connection.executemany(_DELETE.format(table), [(row,) for row in rows])

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            self._connection.executemany(statement, rows)
        except OverflowError:  # rare enough to look at each number only then; rows that are in are entered again
            self._connection.executemany(statement, [within_64_bits(row) for row in rows])

    def _flush(self) -> None:
        self._write(_INSERT_RECORD, self._new)
        self._write(_INSERT_TOOL, self._new_calls)
        self._new.clear()
        self._new_calls.clear()

    def _row(self, session: ScannedSession, session_id: int, record: Record) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """A record's row, which has no id yet, and the names of its label."""
        usage = record.usage
        recorded, estimate = cost_of(record, self.prices)
        label = (
            record.provider, record.model, record.response_model or "unknown", record.project or session.project,
            record.branch, record.version, record.agent, record.granularity, record.quality,
        )  # fmt: skip
        row = (
            0, session_id, self._label(label), len(self._logs) - 1, storable(record.key), record.standing,
            record.time_ns, record.requests, record.failed, usage.input, usage.output, usage.cache_read,
            usage.cache_write, usage.cache_write_1h, usage.reasoning, recorded, estimate, record.priced,
            record.latency_ms, None if record.failed else bucket_of(record.latency_ms), record.active_ms,
        )  # fmt: skip
        return row, label

    def _label(self, label: tuple[str, ...]) -> int:
        known = self._labels.get(label)
        if known is None:
            known = self._labels[label] = len(self._labels) + 1
            self._label_names.append(label)
            self._connection.execute(_INSERT_LABEL, (known, *map(storable, label)))
        return known

    def _tool(self, session: ScannedSession, session_id: int, tool: ToolUse) -> None:
        """Enter a tool call; of two copies the finished one stays, then the earlier."""
        key = hash((session.source, tool.key))
        known = self._calls.get(key)
        row = (
            known or len(self._calls) + 1, session_id, len(self._logs) - 1, tool.time_ns, storable(tool.tool),
            storable(tool.server), storable(tool.agent), storable(tool.project or session.project), tool.finished,
            tool.failed, tool.duration_ms, bucket_of(tool.duration_ms), tool.output_bytes,
        )  # fmt: skip
        if tool.told_by:
            self._calls_told_by.setdefault(row[0], set()).add(tool.told_by)
        if known is not None:
            self._flush()
            [values] = self._connection.execute("SELECT * FROM tools WHERE id = ?", (known,))
            if not prefers(self._call(row), self._call(values)):
                return
        self._calls[key] = row[0]
        self._new_calls.append(row)

    def _call(self, row: tuple[Any, ...]) -> Copy:
        values = dict(zip(TOOL, row, strict=True))
        return {**values, "path": self._logs[values["log_id"]], "session": self._names[values["session_id"] - 1]}

    def settle(self) -> None:
        """Leave out what another known session tells better; call it when all logs are in."""
        known = {f"{source}:{session}" for source, _, session in self._sessions}
        for table, told_by in (("records", self._told_by), ("tools", self._calls_told_by)):
            self._delete(table, (row for row, tellers in told_by.items() if not tellers.isdisjoint(known)))
            told_by.clear()

    def note(self, problems: Problems) -> None:
        """Keep damage of the logs for the report: all of it as a number, the first by name."""
        self.problem_count += problems.count
        self.problems += problems.first[: _MAX_NAMED - len(self.problems)]

    def define(self, name: str, function: Any) -> None:
        """Make a Python function of one argument callable in queries."""
        self._connection.create_function(name, 1, function, deterministic=True)

    def query(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Run one query and return its rows; sums beyond 64 bits stop at the largest number instead of failing."""
        parameters = {name: storable(v) if isinstance(v, str) else v for name, v in parameters.items()}
        self._flush()
        self._write_sessions()
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
        if hasattr(self, "_connection"):  # also a book that could not be made is thrown away
            self._connection.close()


def _word(limit: Limit) -> tuple[int, int, float]:
    """The latest word on a limit is the greatest; of words of one moment that of the later period, then of more use."""
    return limit.time_ns, limit.resets_ns or 0, limit.used_percent
