"""Transcript: spells another agent's log as native events, so that replay, context and export read every agent alike.

It numbers the events in file order, remembers tool calls until their results come, and collects what was said since the
last request: an agent's log has no requests, so each answer gets one before it that holds the messages that are new,
and says how many earlier ones it does not repeat (`earlier_messages`). Everything is bounded by what is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessionlog.events.envelope import Event
from sessionlog.events.times import format_time, parse_time
from sessionlog.events.tokens import TokenUsage

Json = Any
_MS = 1_000_000
_SHORT = 60  # an output of one line is its own error text; a longer one is not said twice


class Transcript:
    """The events of one session, made in the order of its log.

    Times are RFC 3339 texts or nanoseconds; None repeats the last one.
    """

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._seq = 0
        self._ts = ""
        self._new: list[Json] = []  # said since the last request
        self._told = 0
        self._asked_ts = ""
        self._calls: dict[str, tuple[str, Json, int | None]] = {}

    @property
    def started(self) -> bool:
        """Whether any event has been made."""
        return self._seq > 0

    def event(self, type_: str, ts: str | int | None, data: Mapping[str, Any]) -> Event:
        """Make one event; keys whose value is None are left out."""
        stamp = format_time(ts) if isinstance(ts, int) else ts
        self._ts = stamp or self._ts
        kept = {key: value for key, value in data.items() if value is not None}
        event = Event(session_id=self._session_id, seq=self._seq, type=type_, ts=self._ts, data=kept)
        self._seq += 1
        return event

    def start(
        self,
        ts: str | int | None,
        *,
        provider: str | None = None,
        model: str | None = None,
        work_dir: str | None = None,
        prompt: str | None = None,
        system_prompt: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Event:
        """session.start; it says that token classes are disjoint. Empty metadata is left out."""
        known = {key: value for key, value in (metadata or {}).items() if value not in (None, "")}
        data = {
            "v": 1, "provider": provider, "model": model, "work_dir": work_dir, "prompt": prompt,
            "system_prompt": system_prompt, "metadata": known or None,
        }  # fmt: skip
        return self.event("session.start", ts, data)

    def hear(self, role: str, content: Json, ts: str | int | None = None, *, inherited: bool = False) -> None:
        """Take a message that the next request will send: a user's, or a system's.

        One that was said in another session and is `inherited` from it is marked so.
        """
        self._new.append({"role": role, "content": content} | ({"inherited": True} if inherited else {}))
        self._heard(ts)

    def _heard(self, ts: str | int | None) -> None:
        stamp = format_time(ts) if isinstance(ts, int) else ts
        self._asked_ts = stamp or self._asked_ts

    def response(
        self,
        ts: str | int | None,
        *,
        content: str = "",
        tool_calls: Sequence[Mapping[str, Any]] = (),
        usage: TokenUsage | None = None,
        model: str | None = None,
        provider: str | None = None,
        latency_ms: float | None = None,
        cost_usd: float | None = None,
        finish_reason: str | None = None,
        reasoning: str | None = None,
        error: str | None = None,
        key: str | None = None,
        quality: str | None = None,
    ) -> tuple[Event, Event]:
        """llm.request with what is new, and llm.response.

        Args:
            ts: When the answer was complete.
            content: What it says.
            tool_calls: What it calls: `{"id", "name", "arguments"}`.
            usage: Its tokens, in disjoint classes; None when the log tells none.
            model: The model that answered.
            provider: Who served it, where that is not the session's provider.
            latency_ms: Time of the call; None = since the last thing that was heard, where both times are known.
            cost_usd: The recorded cost.
            finish_reason: Why it stopped, as logged.
            reasoning: The text of its reasoning.
            error: Why the call failed.
            key: The record's key, so that copies can be told.
            quality: `partial` or `estimated` where the numbers are.
        """
        request = self._request(ts, model)
        answered_ns = ts if isinstance(ts, int) else parse_time(ts)
        asked_ns = parse_time(self._asked_ts)
        if latency_ms is None and answered_ns is not None and asked_ns is not None and answered_ns >= asked_ns:
            latency_ms = (answered_ns - asked_ns) / _MS
        data = {
            "content": content, "reasoning": reasoning or None,
            "tool_calls": [dict(call) for call in tool_calls] or None,
            "usage": None if usage is None else usage.to_dict(), "cost_usd": cost_usd, "latency_ms": latency_ms,
            "model": model, "attempt": {"provider_system": provider} if provider else None,
            "finish_reason": finish_reason, "error": error, "key": key, "quality": quality,
        }  # fmt: skip
        response = self.event("llm.response", ts, data)
        if error is None:
            said: dict[str, Any] = {"role": "assistant", "content": content}
            if tool_calls:
                said["tool_calls"] = [dict(call) for call in tool_calls]
            self._new.append(said)
        for call in tool_calls:
            self.call(str(call.get("id") or ""), str(call.get("name") or ""), call.get("arguments"), ts)
        self._asked_ts = ""
        return request, response

    def _request(self, ts: str | int | None, model: str | None) -> Event:
        asked = {"model": model, "messages": self._new, "earlier_messages": self._told or None}
        request = self.event("llm.request", self._asked_ts or ts, asked)
        self._told += len(self._new)
        self._new = []
        return request

    def unanswered(self) -> Iterator[Event]:
        """llm.request with the user's last words, where nothing answers them: to be asked for at the log's end."""
        if any(message["role"] == "user" for message in self._new):
            yield self._request(None, None)

    def call(self, call_id: str, name: str, arguments: Json, ts: str | int | None = None) -> None:
        """Remember a tool call until its result comes; `response` does it for those that it is given."""
        self._calls[call_id] = (name, arguments, ts if isinstance(ts, int) else parse_time(ts))

    def result(
        self,
        ts: str | int | None,
        call_id: str,
        output: Json,
        *,
        failed: bool = False,
        name: str | None = None,
        arguments: Json = None,
        duration_ms: float | None = None,
    ) -> Event:
        """tool.call: a call and its result, which the next request sends; the time since the call is its duration."""
        known_name, known_arguments, called_ns = self._calls.pop(call_id, (name or "unknown", arguments, None))
        done_ns = ts if isinstance(ts, int) else parse_time(ts)
        if duration_ms is None and called_ns is not None and done_ns is not None and done_ns >= called_ns:
            duration_ms = (done_ns - called_ns) / _MS
        self._new.append({"role": "tool", "tool_call_id": call_id, "content": output})
        self._heard(ts)
        said = output if isinstance(output, str) and 0 < len(output) <= _SHORT and "\n" not in output else "failed"
        data = {
            "tool": known_name, "id": call_id, "input": known_arguments, "output": output, "duration_ms": duration_ms,
            "error": said if failed else None,
        }  # fmt: skip
        return self.event("tool.call", ts, data)

    def compacted(self, ts: str | int | None, *, summary: str | None = None, **facts: Any) -> Event:
        """compaction.end: of the earlier messages only a summary is still sent."""
        self._told = min(self._told, 1)
        return self.event("compaction.end", ts, {"success": True, "summary": summary, **facts})

    def end(self, ts: str | int | None, status: str, *, error: str | None = None) -> Event:
        """session.end, where the log tells how it ended; totals are those of its responses."""
        return self.event("session.end", ts, {"status": status, "error": error})
