"""The replay of pi's and OpenClaw's rows: one after the other into native events, in the order of the file.

What was said on branches that were left again stays where it was said. A response that is met twice is told once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.money import usd
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.gather import first_words
from sessionlog.sources.openclaw.messages import (
    RESULTS,
    SUMMARIES,
    Dialect,
    Model,
    Outcome,
    Row,
    calls_of,
    changes_model,
    folder_of,
    has_failed,
    is_typed,
    kind_of,
    latency_of,
    message_of,
    read_response_usage,
    role_of,
    summary_key,
    text_of,
    thoughts_of,
    time_of,
)
from sessionlog.sources.record import UNKNOWN, read_name
from sessionlog.sources.transcript import Transcript

Told = Iterator[Event | Problem]
_REASONS = {"toolUse": "tool_use"}  # as the others spell it


class MessageReplay:
    """Takes the rows of one session and tells them as events.

    Args:
        session_id: The session.
        path: The log, for problems.
        dialect: Whose rows they are.
        model: The model in force at the beginning.
    """

    def __init__(self, session_id: str, path: str, dialect: Dialect, model: Model | None = None) -> None:
        self._transcript = Transcript(session_id)
        self._path = path
        self._dialect = dialect
        self._model = model or Model()
        self._outcome = Outcome()
        self._asked_ns: int | None = None
        self._last_ns: int | None = None
        self._told: set[int] = set()

    def take(self, row: Row, *, line: int, place: str, stored_ns: int | None = None) -> Told:
        """Yield the events of the next row, and what is wrong with its numbers; arguments as for the scan."""
        message = message_of(row)
        time_ns = time_of(row, message)
        time_ns = stored_ns if time_ns is None else time_ns
        self._last_ns = time_ns if time_ns is not None else self._last_ns
        kind = kind_of(row)
        if kind == "session" or changes_model(row):
            self._model.change(row)
        yield from self._start(row, time_ns)
        if message is not None:
            yield from self._message(row, message, time_ns, line, place)
        elif kind in SUMMARIES:
            yield from self._side_answer(row, row.get("usage"), time_ns, line, place)
            yield from self._summary(row, time_ns)
        elif kind == "custom_message":
            self._hear("system", row.get("content"), time_ns)

    def close(self) -> Told:
        """Yield the session's end, where the rows tell how it ended."""
        yield from self._transcript.unanswered()
        if self._outcome.status is not None:
            yield self._transcript.end(self._last_ns, self._outcome.status, error=self._outcome.error or None)

    def _start(self, row: Row, time_ns: int | None) -> Told:
        if self._transcript.started:
            return
        header = row if row.get("type") == "session" else {}
        folder = folder_of(header)
        yield self._transcript.start(
            time_ns,
            provider=self._model.provider or None,
            model=self._model.name or None,
            work_dir=None if folder == UNKNOWN else folder,
            metadata={"parent_session": read_name(header.get("parentSession"))},
        )

    def _message(self, row: Row, message: Row, time_ns: int | None, line: int, place: str) -> Told:
        role = role_of(message)
        if role == "assistant":
            if self._dialect.skips(message):
                return
            yield from self._answer(row, message, time_ns, line, place)
        elif role in RESULTS:
            call_id, tool = read_name(message.get("toolCallId")) or "", read_name(message.get("toolName")) or UNKNOWN
            failed = message.get("isError") is True
            yield self._transcript.result(time_ns, call_id, text_of(message.get("content")), failed=failed, name=tool)
            yield from self._side_answer(row, message.get("usage"), time_ns, line, place, tool=tool)
        elif role == "user":
            typed = is_typed(message) and first_words(message.get("content"))
            self._hear("user" if typed else "system", message.get("content"), time_ns)
        elif role == "bashExecution":
            self._hear("system", _shell_text(message), time_ns)
        elif role:
            self._hear("system", message.get("summary") or message.get("content"), time_ns)
        if role != "assistant":
            self._asked_ns = time_ns
        if role != "bashExecution":
            self._outcome.take(message)

    def _hear(self, role: str, content: Any, time_ns: int | None) -> None:
        said = _content(content)
        if said:
            self._transcript.hear(role, said, time_ns)

    def _answer(self, row: Row, message: Row, time_ns: int | None, line: int, place: str) -> Told:
        usage, cost_nano, issues = read_response_usage(message.get("usage"))
        yield from self._problems(issues, line)
        provider, model = self._model.answered(message)
        key = self._dialect.key(row, message, usage) or place
        text, failed, stop = text_of(message.get("content")), has_failed(message), read_name(message.get("stopReason"))
        if not usage and not failed and self._dialect.superseded_by(message, provider):
            self._hear("assistant", text, time_ns)
            return
        if not self._is_new(key):
            return
        yield from self._transcript.response(
            time_ns,
            content=text,
            tool_calls=[{"id": i, "name": name, "arguments": given} for i, name, given in calls_of(message)],
            usage=usage,
            model=read_name(message.get("responseModel")) or model,
            provider=provider,
            latency_ms=latency_of(row, message, self._asked_ns),
            cost_usd=None if cost_nano is None else usd(cost_nano),
            finish_reason=None if failed else _REASONS.get(stop or "", stop),
            reasoning=thoughts_of(message),
            error=(text_of(message.get("errorMessage")) or stop) if failed else None,
            key=key,
        )

    def _side_answer(
        self, row: Row, value: Any, time_ns: int | None, line: int, place: str, tool: str | None = None
    ) -> Told:
        """What wrote a summary, or what a tool asked for by itself, is no part of the conversation."""
        usage, cost_nano, issues = read_response_usage(value)
        yield from self._problems(issues, line)
        key = summary_key(row, usage) or place
        if not usage or not self._is_new(key):
            return
        model = self._model if tool is None else Model()
        yield self._bare_response(usage, model, time_ns, key, None if cost_nano is None else usd(cost_nano), tool)

    def _bare_response(
        self, usage: TokenUsage, model: Model, time_ns: int | None, key: str, cost_usd: float | None, tool: str | None
    ) -> Event:
        data = {
            "usage": usage.to_dict(), "cost_usd": cost_usd, "model": model.name or UNKNOWN,
            "attempt": {"provider_system": model.provider or UNKNOWN}, "key": key, "agent": tool,
        }  # fmt: skip
        return self._transcript.event("llm.response", time_ns, data)

    def _summary(self, row: Row, time_ns: int | None) -> Told:
        summary = text_of(row.get("summary"))
        if row.get("type") == "compaction":
            before = row.get("tokensBefore")
            tokens = before if type(before) is int and before >= 0 else None
            yield self._transcript.compacted(time_ns, summary=summary, tokens_before=tokens)
        else:
            self._hear("system", f"(of the branch that was left) {summary}" if summary else "", time_ns)

    def _is_new(self, key: str) -> bool:
        mark = hash(key)  # 64 bits of a session's keys, not the keys themselves
        known = mark in self._told
        self._told.add(mark)
        return not known

    def _problems(self, issues: tuple[str, ...], line: int) -> Iterator[Problem]:
        for issue in issues:
            yield Problem(path=self._path, line=line, offset=0, kind="bad_number", detail=issue)


def _content(value: Any) -> Any:
    """A message's content as it is sent, without the bytes of its pictures."""
    if not isinstance(value, list):
        return value if isinstance(value, str) else ""
    if all(isinstance(part, Mapping) and part.get("type") == "text" for part in value):
        return text_of(value)
    kept = ({k: v for k, v in part.items() if k != "data"} for part in value if isinstance(part, Mapping))
    return [part for part in kept if isinstance(part.get("type"), str)]


def _shell_text(message: Row) -> str:
    """A command that the user ran by hand, as the model is shown it."""
    lines = [f"! {text_of(message.get('command'))}", text_of(message.get("output"))]
    code = message.get("exitCode")
    if message.get("cancelled") is True:
        lines.append("(cancelled)")
    elif type(code) is int and code:
        lines.append(f"(exit code {code})")
    return "\n".join(part for part in lines if part)
