"""Read a session back from its log: its conversation, tools, steps and turns.

Everything that a tracker or a snapshot of a live agent shows can be rebuilt from the log. The conversation includes the
last answer and the tool results after it, although no request has sent them yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessionlog.context.snapshots.tools import Tool, read_tools
from sessionlog.context.snapshots.turns import between_ms, fold_turns
from sessionlog.context.steps import RequestUsageSnapshot, StepRecord, read_duration, record_steps
from sessionlog.context.usage import TurnUsage, counts_of, tokens_of
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.times import SECOND, utc_time
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.entry import Entry
from sessionlog.messages.message import Message
from sessionlog.messages.read import read_entry
from sessionlog.sources.find import log_at, name_of_session
from sessionlog.sources.values import text
from sessionlog.transcript.fold import OWN, ConversationFold
from sessionlog.transcript.inherited import read_session
from sessionlog.transcript.splice import Splice, answer_entry
from sessionlog.transcript.usages import ResponseUsages

Json = Any
LogLike = str | os.PathLike[str] | Iterable[Event | Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInput:
    """The input of snapshots: a session as read from its log; `gather` adds the data of a live agent.

    Attributes:
        session_id: The session's id, from the log's path or the first event; or the agent's.
        model: The model that the last request asked for; None if unknown.
        provider: The provider; empty if the log does not name it.
        served: The model that answered last; empty if the log does not name it.
        messages: The conversation, the last answer included.
        tools: The tool definitions sent to the model; from a log those of the last request with any.
        steps: The usage of each answered request.
        turns: The usage of each turn.
        prompt_tokens: The provider's count for the last answered request; None where the log has no count.
        output_tokens: The same of its answer.
        window: The context window in tokens; 0 if unknown.
        is_window_known: Whether it is the model's or the caller's, not the default.
        prompts: System prompts and instructions, each once.
        settings: The model's settings.
        is_live: There is a live agent.
    """

    session_id: str = ""
    model: str | None = None
    provider: str = ""
    served: str = ""
    messages: tuple[Entry, ...] = ()
    tools: tuple[Tool, ...] = ()
    steps: tuple[RequestUsageSnapshot, ...] = ()
    turns: tuple[TurnUsage, ...] = ()
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    window: int = 0
    is_window_known: bool = True
    prompts: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_live: bool = False


def read_logged_session(log: LogLike, *, request: int | None = None) -> SnapshotInput:
    """Read a session back from a log.

    Args:
        log: A path (any agent's log), or events in order; problems among them are ignored.
        request: Stop after the answer to this request, from 1; None reads all.

    Raises:
        LogNotReadable: The path cannot be read, or is no agent's log.
    """
    name, events, own = _open(log)
    fold, usages, answers, is_over = _Fold(name, own=own), ResponseUsages(), list[int](), False
    for event in events:
        kind, is_subagent = event.type, "agent" in event.data
        starts = "llm.request" if fold.conversation.requests else "llm.response"
        is_over = is_over or (request is not None and len(answers) >= request and kind == starts)
        if not is_over:
            fold.apply(event, len(usages))
            if fold.conversation.answers > len(answers):
                answers.append(len(usages))
        if kind == "session.start":
            usages.begin(event.data)
        elif kind == "llm.response" and not is_subagent:
            usages.add(event.data)  # all answers show how the provider counts
        elif kind == "llm.response" and not is_over:
            usages.observe(event.data)
    reported = list(usages.reported())
    counted = [reported[n] for n in answers]
    wanted = [usage for usage in counted if usage.prompt] if request is None else counted if request > 0 else []
    last = wanted[-1] if wanted else TokenUsage()
    return replace(
        fold.result(list(usages.read())),
        prompt_tokens=last.prompt or None,
        output_tokens=last.output if last.prompt else None,
    )


def get_step_history(log: LogLike) -> tuple[StepRecord, ...]:
    """Return the steps of a log, as rows for `to_csv`.

    Raises:
        LogNotReadable: The path cannot be read, or is no agent's log.
    """
    session = read_logged_session(log)
    return record_steps(session.steps, session.session_id)


def _open(log: LogLike) -> tuple[str, Iterable[Event], bool]:
    """Return the session's name (for a path), its events, and whether its requests hold whole prompts."""
    name, own = "", True
    if isinstance(log, str | os.PathLike):
        found = log_at(os.fspath(log))
        name, own, log = name_of_session(found), found.source.id in OWN, read_session(found)
    return name, (item for item in log if isinstance(item, Event) and isinstance(item.data, Mapping)), own


class _Fold:
    """The state of a session after the events so far."""

    def __init__(self, session_id: str, *, own: bool) -> None:
        self.conversation = ConversationFold(own=own)
        self._known: dict[str, Any] = {
            "session_id": session_id,
            "model": None,
            "served": "",
        }  # fields of `SnapshotInput`
        self._start: Mapping[str, Json] = {}
        self._entries: list[tuple[Entry, int | None]] = []  # each with the number of its response, from 0
        self._steps: list[tuple[RequestUsageSnapshot, int, list[str]]] = []  # tokens and tools are filled in at the end
        self._request_ts: str | None = None
        self._has_call_names = True
        self._spans: dict[int, tuple[int, int]] = {}

    def apply(self, event: Event, response: int) -> None:
        """Apply the next event; `response` is its number if it is a response, else that of the next response."""
        known = self._known
        known["session_id"] = known["session_id"] or event.session_id
        data, ts = event.data, utc_time(event.ts)
        for splice in self.conversation.apply(event):
            self._apply_splice(splice, ts, response)
        if event.type == "session.start" and not self._start:  # the first one counts
            self._start = data
            known["model"] = text(data.get("resolved_model")) or text(data.get("model")) or known["model"]
            known["provider"] = text(data.get("provider"))
        elif event.type == "llm.request":
            self._request(data, ts)
        elif event.type == "llm.response" and "agent" not in data:
            self._response(data, ts, response)
        elif event.type == "tool.call" and "agent" not in data and self._steps and not self._has_call_names:
            self._steps[-1][2].append(text(data.get("tool")) or "unknown")
        if event.type in ("llm.request", "llm.response", "tool.call") and event.time_ns is not None:
            turn = max(self.conversation.turn, 1)
            first, _ = self._spans.setdefault(turn, (event.time_ns, event.time_ns))
            self._spans[turn] = (first, max(first, event.time_ns))

    def result(self, usages: Sequence[TokenUsage]) -> SnapshotInput:
        """Return the state; `usages` are those of all responses."""
        counts = [counts_of(usage) for usage in usages]
        entries = [
            entry if response is None else replace(entry, usage=counts[response]) for entry, response in self._entries
        ]
        prompt, system = self.conversation.prompt, self.conversation.system
        if prompt and not entries:
            entries.insert(0, read_entry(Message.user(prompt)))
        if system and not any(message.role == "system" for entry in entries for message in entry.messages):
            entries.insert(0, read_entry(Message.system(system)))
        steps = tuple(
            replace(step, tool_names=tuple(names), **tokens_of(counts[response]))
            for step, response, names in self._steps
        )
        seconds = {turn: (last - first) / SECOND for turn, (first, last) in self._spans.items()}
        last = max(self.conversation.turn, 1 if prompt else 0)
        turns = tuple(fold_turns(steps, seconds, last=last).values())
        return SnapshotInput(messages=tuple(entries), steps=steps, turns=turns, **self._known)

    def _apply_splice(self, splice: Splice, ts: str | None, response: int) -> None:
        """Apply a change of the conversation; repeated elements keep their time, and answers their usage."""
        splice.split(self._entries, lambda held: [(replace(held[0], messages=(m,)), held[1]) for m in held[0].messages])
        before = self._entries[splice.start : splice.start + splice.removed]
        came: list[tuple[Entry, int | None]] = []
        for n, one in enumerate(splice.added):
            entry, (old, used) = one.entry, before[n] if n < len(before) else (None, None)
            if old is None or (old.messages != entry.messages and not (old.is_response and entry.is_response)):
                old, used = None, response if splice.cause == "answer" else None
            stamp = None if splice.cause == "compaction" else old.timestamp if old else ts
            came.append((replace(entry, timestamp=entry.timestamp or stamp), used))
        splice.put(self._entries, came)

    def _request(self, data: Mapping[str, Json], ts: str | None) -> None:
        self._request_ts = ts
        sent = data.get("sent")
        tools = data.get("tools") or (sent.get("tools") if isinstance(sent, Mapping) else None)
        if isinstance(tools, list | tuple) and tools:
            self._known["tools"] = read_tools(tools)
        self._known["model"] = text(data.get("model")) or self._known["model"]

    def _response(self, data: Mapping[str, Json], ts: str | None, response: int) -> None:
        if data.get("error") and data.get("usage") is None:
            return
        size = data.get("context_window")
        self._known["window"] = size if type(size) is int and size > 0 else 0
        self._known["served"] = text(data.get("model")) or self._known["served"]
        took, calls = read_duration(data.get("latency_ms")), data.get("tool_calls")
        self._has_call_names = isinstance(calls, list | tuple)
        step = RequestUsageSnapshot(
            request_num=len(self._steps) + 1,
            input_tokens=0,
            output_tokens=0,
            timestamp=ts,
            turn_id=max(self.conversation.turn, 1),
            duration_ms=between_ms(self._request_ts, ts) if took is None else took,
        )
        self._steps.append((step, response, list(answer_entry(data).tool_names)))
        self._request_ts = None
