"""A Claude Code session as native events.

The rows of a response come one content block at a time, with results of its tools between them: a response is told when
the next one begins, its results after it. Its numbers are those of the scan, which runs first and also knows how the
session ended. What sub-agents are echoed to have answered is told between their parent's responses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.money import usd
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.claude_code.account import PROVIDER
from sessionlog.sources.claude_code.answer import Head
from sessionlog.sources.claude_code.rows import TranscriptRows
from sessionlog.sources.claude_code.scan import Scan, embedded, hidden, is_wrapped, key_of, scan_log, words_of
from sessionlog.sources.record import UNKNOWN, CopyRank, Record, ScannedSession, read_name
from sessionlog.sources.transcript import Transcript

_Json = Any
_Part = Mapping[str, Any]


def read_session(path: str, session_id: str | None) -> Iterator[Event | Problem]:
    """Yield a session of a log as events.

    Args:
        path: The log.
        session_id: One that only lent its rows to this log, and nothing but those; else all of it is told: the rows
            that a resumed session begins with are its past.

    Raises:
        LogNotReadable: It cannot be opened.
        MissingExtra: A .zst file without a decoder.
    """
    sessions = scan_log(path, None).sessions
    lent = [session for session in sessions[1:] if session.session_id == session_id]
    reader = _Reader(path, lent or sessions, only=session_id if lent else None)
    with TranscriptRows(path) as rows:
        for line in rows.lines():
            for item in [line] if isinstance(line, Problem) else rows.decode(line):
                yield from reader.take(item, rows)
        for item in rows.last():
            yield from reader.take(item, rows)
    yield from reader.end()


class _Reader:
    """Makes the events of one session, row by row."""

    def __init__(self, path: str, sessions: Sequence[ScannedSession], *, only: str | None) -> None:
        self._rows = Scan(path, None)  # it knows how to read a row's head
        self._only = only
        self._session = session = sessions[0] if sessions else None
        self._untold: dict[str, Record] = {}
        for record in (record for told in sessions for record in told.records):
            known = self._untold.get(record.key)
            if known is None or _weight(record) > _weight(known):
                self._untold[record.key] = record
        self._transcript = Transcript(session.session_id if session else "")
        self._record: Record | None = None  # the open response
        self._parts: list[_Part] = []
        self._stop: str | None = None
        self._results: list[tuple[str | None, _Part]] = []
        self._ts: str | None = None
        self._answered_ts: str | None = None

    def take(self, item: Row | Problem, rows: Rows) -> Iterator[Event | Problem]:
        """Yield what one row tells."""
        if isinstance(item, Problem):
            yield item
            return
        if self._session is None:
            return
        head = self._rows.head(item)
        self._ts = item["timestamp"] if isinstance(item.get("timestamp"), str) else self._ts
        if self._only is not None and head.session_id != self._only:
            return
        kind, message = item.get("type"), item.get("message")
        ts = item["timestamp"] if isinstance(item.get("timestamp"), str) else None
        if kind == "progress":
            yield from self._echo(item, rows, head)
        elif kind == "user" and isinstance(message, Mapping):
            yield from self._user(item, message.get("content"), ts, head)
        elif kind in ("assistant", None) and isinstance(message, Mapping):
            yield from self._assistant(item, message, rows, ts, head)
        elif kind == "system" and item.get("subtype") == "compact_boundary":
            yield from self._tell()
            told = item.get("compactMetadata")
            facts = dict(told) if isinstance(told, Mapping) else {}
            yield self._transcript.compacted(ts, trigger=facts.get("trigger"), tokens_before=facts.get("preTokens"))

    def end(self) -> Iterator[Event]:
        """Yield what is still open, and the end where the log tells one."""
        yield from self._tell()
        yield from self._transcript.unanswered()
        session = self._session
        if session is not None and session.status is not None and self._transcript.started:
            yield self._transcript.end(self._ts, session.status, error=session.error or None)

    def _start(self, ts: str | None, head: Head, prompt: str | None = None) -> Iterator[Event]:
        if self._transcript.started:
            return
        facts = {"agent": head.agent, "branch": head.branch, "version": head.version}
        known = {name: value for name, value in facts.items() if value not in {UNKNOWN, "main"} or name == "branch"}
        work_dir = None if head.project == UNKNOWN else head.project
        yield self._transcript.start(ts, provider=PROVIDER, work_dir=work_dir, prompt=prompt, metadata=known)

    def _user(self, row: Row, content: _Json, ts: str | None, head: Head) -> Iterator[Event]:
        parts = _parts_of(content)
        for part in parts:
            if part.get("type") == "tool_result":
                yield from self._start(ts, head)
                if self._stop is not None:
                    yield from self._tell()
                if self._record is None:
                    yield self._result(ts, part)
                else:
                    self._results.append((ts, part))
        told = [part for part in parts if part.get("type") != "tool_result"]
        own = self._is_typed(row, content, head)
        words = _text_of([part for part in told if own and not is_wrapped(part.get("text"))])
        aside = _text_of([part for part in told if not own or is_wrapped(part.get("text"))])
        if words or (aside and self._transcript.started):
            yield from self._tell()
            yield from self._start(ts, head, words or None)
        if aside:
            self._transcript.hear("system", aside, ts)
        if words:
            self._transcript.hear("user", words, ts)

    def _is_typed(self, row: Row, content: _Json, head: Head) -> bool:
        """Whether a row is a prompt; those of side conversations are the agent's own, but in a sub-agent's log."""
        aside = head.side and not (self._session is not None and self._session.part)
        return not aside and not hidden(row) and bool(words_of(content).strip())

    def _assistant(
        self, row: Row, message: Mapping[str, Any], rows: Rows, ts: str | None, head: Head
    ) -> Iterator[Event]:
        key, parts = key_of(row, message, rows), _parts_of(message.get("content"))
        if self._record is None or self._record.key != key:
            yield from self._tell()
            record = self._untold.get(key)
            if record is None or record.copy_rank == CopyRank.EMBEDDED:
                for call in _calls_of(parts):  # a late row of a response that has been told
                    self._transcript.call(call["id"], call["name"], call["arguments"], ts)
                return
            yield from self._start(ts, head)
            self._record = self._untold.pop(key)
        self._answered_ts = ts or self._answered_ts
        self._stop = read_name(message.get("stop_reason"))
        self._parts += parts

    def _tell(self) -> Iterator[Event]:
        """Yield the open response and the results that came meanwhile."""
        record, self._record = self._record, None
        stop, self._stop = self._stop, None
        if record is None:
            return
        parts, self._parts = self._parts, []
        text = _text_of(parts)
        yield from self._transcript.response(
            self._answered_ts,
            content="" if record.failed else text,
            tool_calls=_calls_of(parts),
            usage=record.usage,
            model=record.model,
            latency_ms=record.latency_ms,
            cost_usd=None if record.cost_nano is None else usd(record.cost_nano),
            finish_reason=stop,
            reasoning=_reasoning_of(parts),
            error=(text or "the request failed") if record.failed else None,
            key=record.key,
            quality=None if record.quality == "exact" else record.quality,
        )
        results, self._results = self._results, []
        for ts, part in results:
            yield self._result(ts, part)

    def _result(self, ts: str | None, part: _Part) -> Event:
        content = part.get("content")
        output = _text_of(_parts_of(content)) or content
        failed = part.get("is_error") is True
        return self._transcript.result(ts, read_name(part.get("tool_use_id")) or "", output, failed=failed)

    def _echo(self, row: Row, rows: Rows, head: Head) -> Iterator[Event]:
        """Yield a sub-agent's response that its parent's log shows, once; it is no part of the conversation."""
        found = embedded(row)
        if found is None:
            return
        inner, message = found
        key = key_of(inner, message, rows)
        record = self._untold.get(key)
        if record is None or record.copy_rank != CopyRank.EMBEDDED:
            return
        del self._untold[key]
        if self._stop is not None:
            yield from self._tell()
        ts = inner["timestamp"] if isinstance(inner.get("timestamp"), str) else None
        yield from self._start(ts, head)
        parts = _parts_of(message.get("content"))
        data = {
            "content": _text_of(parts), "tool_calls": _calls_of(parts) or None, "usage": record.usage.to_dict(),
            "model": record.model, "key": record.key, "agent": record.agent, "reasoning": _reasoning_of(parts),
            "cost_usd": None if record.cost_nano is None else usd(record.cost_nano),
            "quality": None if record.quality == "exact" else record.quality,
            "error": "the request failed" if record.failed else None,
        }  # fmt: skip
        yield self._transcript.event("llm.response", ts, data)


def _weight(record: Record) -> tuple[int, int, int]:
    return record.copy_rank, record.usage.output, record.usage.total


def _parts_of(content: _Json) -> list[_Part]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def _text_of(parts: Sequence[_Part]) -> str:
    texts = []
    for part in parts:
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("type") in ("image", "document"):
            texts.append(f"[{part['type']}]")
    return "\n".join(texts)


def _reasoning_of(parts: Sequence[_Part]) -> str | None:
    return "\n".join(part["thinking"] for part in parts if isinstance(part.get("thinking"), str)) or None


def _calls_of(parts: Sequence[_Part]) -> list[dict[str, _Json]]:
    return [
        {"id": read_name(part.get("id")) or "", "name": read_name(part.get("name")) or UNKNOWN,
         "arguments": part.get("input")}
        for part in parts if part.get("type") == "tool_use"
    ]  # fmt: skip
