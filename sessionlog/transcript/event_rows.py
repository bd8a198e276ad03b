"""Event rows: a session's events as flat rows with typed columns, for SQL.

Numbers are those of reports: tokens in disjoint classes, and what a session used beyond its responses is in the row of
its end, so that a log's sums are those of `usage` before copies of other logs are left out. Texts are what an event
adds to the conversation: a request has only the user's new words, although it repeats all messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from sessionlog.events.billing import read_whole
from sessionlog.events.envelope import Event
from sessionlog.events.names import MAIN, UNKNOWN
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.messages.content_text import text_of
from sessionlog.sources.protocol import Log
from sessionlog.sources.record import Record
from sessionlog.transcript.fold import OWN

Row = dict[str, Any]

COLUMNS: Mapping[str, str] = {
    "time": "TIMESTAMPTZ", "time_ns": "BIGINT", "source": "VARCHAR", "session": "VARCHAR", "position": "BIGINT",
    "seq": "BIGINT", "type": "VARCHAR", "role": "VARCHAR", "agent": "VARCHAR", "project": "VARCHAR",
    "provider": "VARCHAR", "model": "VARCHAR", "input_tokens": "BIGINT", "output_tokens": "BIGINT",
    "cache_read_tokens": "BIGINT", "cache_write_tokens": "BIGINT", "reasoning_tokens": "BIGINT",
    "known_cost_usd": "DOUBLE", "latency_ms": "DOUBLE", "tool": "VARCHAR", "tool_call_id": "VARCHAR",
    "duration_ms": "DOUBLE", "failed": "BOOLEAN", "error": "VARCHAR", "status": "VARCHAR", "response_key": "VARCHAR",
    "inherited": "BOOLEAN", "log": "VARCHAR", "text": "VARCHAR", "data": "JSON",
}  # fmt: skip
"""Column → DuckDB's type. `time` is made from `time_ns`, and in no row."""

_INT64 = 1 << 63
_ROLES = {"llm.request": "user", "llm.response": "assistant", "llm.delta": "assistant", "tool.call": "tool"}
_RESULTS = frozenset({"tool_result", "function_call_output", "tool-return"})
_MOST_MILLISECONDS = 1e15
_NUMBERS = frozenset({
    "provider", "model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
    "known_cost_usd", "latency_ms",
})  # fmt: skip
"""Columns of a record."""
_FACTS = _NUMBERS | {"tool", "tool_call_id", "duration_ms", "failed", "error", "status", "response_key"}
"""Columns that only some types have."""
_CLASSES = tuple((f"{name}_tokens", name) for name in ("input", "output", "cache_read", "cache_write", "reasoning"))


class EventRows:
    """Makes the rows of one session.

    Attributes:
        project: Its working folder, `unknown` before a session.start that names it.
    """

    def __init__(self, log: Log, session: str, columns: Collection[str]) -> None:
        """Begin.

        Args:
            log: The log; a native one is scanned for the numbers of its responses, if they are wanted.
            session: The session's id.
            columns: Those of `COLUMNS` that are wanted; a row has no others.
        """
        self._session = session
        self._same = {
            name: value for name, value in (("source", log.source.id), ("session", session), ("log", log.path))
            if name in columns
        }  # fmt: skip
        self._getters = tuple((name, get) for name, get in _GETTERS.items() if name in columns)
        self._has_position, self._has_project = "position" in columns, "project" in columns
        self._has_text, self._has_data = "text" in columns, "data" in columns
        self._facts = _FACTS.intersection(columns)
        self._has_numbers = not _NUMBERS.isdisjoint(columns)
        is_own = log.source.id in OWN and self._has_numbers
        self._records = _native_records(log) if is_own else None
        self._next: Record | None = next(self._records, None) if self._records is not None else None
        self._used = TokenUsage()
        self._position = 0
        self._start: Mapping[str, Any] = {}
        self.project = UNKNOWN

    def row(self, event: Event) -> Row:
        """Return the row of the next event; what it does not have is missing."""
        data: Mapping[str, Any] = event.data if isinstance(event.data, dict) else {}
        kind = event.type
        if kind == "session.start" and not self._start:
            self._start = data
            self.project = _name(data.get("work_dir")) or UNKNOWN
        row: Row = self._same.copy()
        for name, get in self._getters:
            row[name] = get(event, data)
        if self._has_position:
            row["position"] = self._position
        self._position += 1
        if self._has_project:
            row["project"] = self.project
        if self._facts:
            self._add_facts(row, kind, data)
        if self._has_text:
            row["text"] = _text(kind, data)
        if self._has_data:
            row["data"] = event.data
        return row

    def _add_facts(self, row: Row, kind: str, data: Mapping[str, Any]) -> None:
        """Add what events of some types have, as far as it is wanted."""
        found: Row = {}
        match kind:
            case "llm.request":
                found["model"] = _name(data.get("model")) or None
            case "llm.response":
                self._add_response(found, data)
            case "tool.call":
                _add_call(found, data)
            case "session.end":
                self._add_end(found, data)
        if found:
            facts = self._facts
            row.update({name: value for name, value in found.items() if name in facts})

    def _add_response(self, row: Row, data: Mapping[str, Any]) -> None:
        row["failed"] = bool(data.get("error"))
        row["error"] = _words(data.get("error"))
        row["response_key"] = _name(data.get("key")) or None
        if not self._has_numbers:
            return
        if self._records is not None:
            while self._next is not None and self._next.parent:  # inside a response, of which it has no event
                self._next = next(self._records, None)
            if self._next is not None and self._next.requests:
                _add_record(row, self._next)
                self._next = next(self._records, None)
            return
        attempt = data.get("attempt")
        system = attempt.get("provider_system") if isinstance(attempt, dict) else None
        usage = read_usage(data.get("usage"))[0]
        self._used += read_whole(data.get("usage"))[0]
        row["provider"] = _name(system) or _name(self._start.get("provider")) or UNKNOWN
        row["model"] = _name(data.get("model")) or UNKNOWN
        row["latency_ms"] = _milliseconds(data.get("latency_ms"))
        row["known_cost_usd"] = data.get("cost_usd")
        _add_usage(row, usage)

    def _add_end(self, row: Row, data: Mapping[str, Any]) -> None:
        row["status"] = _name(data.get("status")) or None
        row["error"] = _words(data.get("error"))
        if not self._has_numbers:
            return
        if self._records is not None:
            while self._next is not None and (not self._next.requests or self._next.granularity == "session"):
                _add_record(row, self._next)
                self._next = next(self._records, None)
            return
        total = read_usage(data.get("tokens"))[0]
        if total:
            _add_usage(row, total.beyond(self._used))
            row["known_cost_usd"] = data.get("cost_usd")
            row["provider"] = _name(self._start.get("provider")) or UNKNOWN
            row["model"] = _name(self._start.get("model")) or UNKNOWN


def _native_records(log: Log) -> Iterator[Record]:
    """Yield the records of a native log: one for each response, and what an end has beyond them after these."""
    for session in log.source.scan(log.path, None).sessions:
        yield from session.records


def _add_call(row: Row, data: Mapping[str, Any]) -> None:
    row["tool"] = _name(data.get("tool")) or UNKNOWN
    row["tool_call_id"] = _name(data.get("id")) or None
    row["duration_ms"] = _milliseconds(data.get("duration_ms"))
    row["failed"] = bool(data.get("error"))
    row["error"] = _words(data.get("error"))


def _add_record(row: Row, record: Record) -> None:
    """Add a record's numbers to a row, which may have those of another one already."""
    row["provider"], row["model"] = record.provider, record.model
    row["latency_ms"] = record.latency_ms
    if record.cost_nano is not None:
        row["known_cost_usd"] = row.get("known_cost_usd", 0) + record.cost_nano / 1e9
    _add_usage(row, record.usage)


def _add_usage(row: Row, usage: TokenUsage) -> None:
    for column, name in _CLASSES:
        row[column] = row.get(column, 0) + getattr(usage, name)


def _int64(value: Any) -> int | None:
    return value if type(value) is int and -_INT64 <= value < _INT64 else None


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _words(value: Any) -> str | None:
    return text_of(value) or None


def _milliseconds(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _MOST_MILLISECONDS else None


def _text(kind: str, data: Mapping[str, Any]) -> str | None:
    """Return what an event adds to the conversation; None for nothing."""
    match kind:
        case "llm.request":
            return _new_words(data.get("messages")) or None
        case "llm.response" | "llm.delta":
            return text_of(data.get("content")) or None
        case "tool.call":
            return text_of(data.get("output")) or None
        case "session.start":
            return text_of(data.get("prompt")) or None
        case "compaction.end":
            return text_of(data.get("summary")) or None
        case "progress":
            return text_of(data.get("message")) or None
        case "planning.turn":
            return text_of(data.get("plan")) or None
    return None


def _new_words(messages: Any) -> str:
    """Return the user's words since the last answer in a request's messages."""
    words: list[str] = []
    message: Any
    for message in reversed(messages if isinstance(messages, list) else ()):
        role = message.get("role") if isinstance(message, Mapping) else ""
        if role in ("assistant", "model"):
            break
        if role == "user":
            words.append(text_of(_without_results(message.get("content", message.get("parts")))))
    return "\n".join(word for word in reversed(words) if word)


def _without_results(content: Any) -> Any:
    """Return a message's content without tool results, which have events of their own."""
    if not isinstance(content, list):
        return content
    return [part for part in content if not (isinstance(part, Mapping) and _is_result(part))]


def _is_result(part: Mapping[str, Any]) -> bool:
    return part.get("type") in _RESULTS or "functionResponse" in part


_GETTERS: Mapping[str, Callable[[Event, Mapping[str, Any]], Any]] = {
    "time_ns": lambda event, _: _int64(event.time_ns),
    "seq": lambda event, _: _int64(event.seq),
    "type": lambda event, _: event.type,
    "role": lambda event, _: _ROLES.get(event.type),
    "agent": lambda _, data: _name(data.get("agent")) or MAIN,
    "inherited": lambda _, data: True if data.get("inherited") is True else None,
}
"""Columns that every event has, from the event and its payload."""
