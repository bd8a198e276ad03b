"""Transcript: all messages of a session, in order and once each, whatever its requests repeat.

It has all messages, not only those in the context: also messages that a compaction or a truncation dropped, and a
message that is repeated afterwards only once. Undone messages are left out, although their tools ran, and so are
sub-agents. Long texts are cut, so that a long log fits into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from sessionlog.analytics.diff.message import KEPT_LATER, MOST_HELD, DiffCall, DiffMessage, cut_to, diff_message
from sessionlog.analytics.diff.message_list import MessageList
from sessionlog.context.snapshots.tools import read_tools
from sessionlog.context.steps import read_duration
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.hashes import digest_of
from sessionlog.messages.content_text import text_of
from sessionlog.messages.entry import Entry
from sessionlog.messages.json_value import json_text, valid_text
from sessionlog.sources.values import text
from sessionlog.transcript.damage import Damage
from sessionlog.transcript.digests import canonical_json, digests_of
from sessionlog.transcript.fold import ConversationFold
from sessionlog.transcript.splice import Added, Splice, answer_entry, result_entry

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The messages of a session, and its use of tools.

    Attributes:
        messages: All messages, in order.
        system: The system prompt; empty if the log has none.
        offered: The tool definitions of its requests: name → digest; empty if the log has none.
        tools: Tool name → its use.
        turns: The number of prompts, as in other reports: without those of a parent.
        inherited: The digests of a fork's initial messages; some may have been undone.
        forked_at: Of a fork, the number (`seq`) of its parent's last event at that time; None for others.
        taken_back: The number of undone messages.
        problem_count: Problems in the log.
        problems: The first of them.
    """

    messages: MessageList
    system: str
    offered: Mapping[str, bytes]
    tools: Mapping[str, ToolUse]
    turns: int
    inherited: tuple[bytes, ...] = ()
    forked_at: int | None = None
    taken_back: int = 0
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()


def fold_transcript(items: Iterable[Event | Problem], *, own: bool = True, kept: int | None = None) -> Transcript:
    """Fold a session's events.

    Args:
        items: Events in file order, with the reader's problems.
        own: Whether requests have the whole conversation unless marked otherwise, as in native logs; else each request
            continues the one before.
        kept: Characters that are kept of one text, fewer of later texts in a long session; None keeps all.
    """
    fold = _Fold(own=own, kept=kept)
    for event in fold.damage.events(items):
        fold.take(event)
    return fold.transcript()


class _Fold:
    """Folds events into a transcript, one after the other."""

    def __init__(self, *, own: bool, kept: int | None) -> None:
        self.damage = Damage()
        self._own, self._kept = own, kept
        self._conversation = ConversationFold(own=own)
        self._messages = MessageList()
        self._system: list[str] = []
        self._names: dict[str, str] = {}
        self._called: list[str] = []  # tools that the last response calls
        self._offered: dict[str, bytes] = {}
        self._tools: dict[str, ToolUse] = {}
        self._seq = 0  # of the current event
        self._forked_at: int | None = None
        self._inherited: list[bytes] = []
        self._taken_back = 0
        self._held = 0  # characters of all texts

    def take(self, event: Event) -> None:
        data = event.data if isinstance(event.data, Mapping) else {}
        self._seq = event.seq
        streamed = self._conversation.streamed if event.type == "llm.response" else ""
        splices = self._conversation.apply(event)
        match event.type:
            case "session.start":
                self._start(data)
            case "llm.request" if "agent" not in data:
                self._request(data)
            case "llm.response" if "agent" not in data and not splices:
                self._failed(data, streamed)
            case "tool.call":
                self._use(data.get("tool"), failed=bool(data.get("error")), duration_ms=data.get("duration_ms"))
                if "agent" not in data and not splices:  # no response has called it
                    self._result(_messages_of(result_entry(data)), data)
        for splice in splices:
            self._apply(splice, data)

    def transcript(self) -> Transcript:
        for splice in self._conversation.finish():
            self._apply(splice, {})
        return Transcript(
            messages=self._messages.finish(), system="\n\n".join(self._system),
            offered=self._offered, tools=self._tools,
            turns=self._conversation.turns, inherited=tuple(self._inherited),
            forked_at=self._forked_at, taken_back=self._taken_back,
            problem_count=self.damage.count, problems=self.damage.problems,
        )  # fmt: skip

    def _start(self, data: Mapping[str, Json]) -> None:
        self._add_system(text_of(data.get("system_prompt")))
        match data.get("parent"):
            case {"seq": int(seq)}:
                self._forked_at = seq

    def _add_system(self, text: str) -> None:
        if text.strip() and text not in self._system:
            self._system.append(text)

    def _request(self, data: Mapping[str, Json]) -> None:
        if not self._system:
            self._add_system(text_of(data.get("system")) or text_of(data.get("instructions")))
        offered = data.get("tools")
        for tool in read_tools(offered) if isinstance(offered, list | tuple) else ():
            self._offered[tool.name] = digest_of(json_text(tool.definition))

    def _failed(self, data: Mapping[str, Json], streamed: str) -> None:
        """Keep the text of a failed response: later requests do not repeat it, but the user saw it."""
        if data.get("content") is None and not streamed and not isinstance(data.get("message"), Mapping):
            return
        for kept in _messages_of(answer_entry(data, streamed)):
            if kept.text.strip():
                self._keep(structs.replace(kept, partial=True))

    def _apply(self, splice: Splice, data: Mapping[str, Json]) -> None:
        if splice.cause == "undone":
            self._take_back(splice.removed_digests)
        for one in splice.added:
            if splice.cause == "result":
                self._result(_new_of(one), data)
            elif splice.cause in ("answer", "partial"):
                is_partial = bool(data.get("error") or data.get("partial")) or (splice.cause == "partial" and self._own)
                self._answer(one, is_partial=is_partial)
            else:
                self._add_new(one, splice, is_fork=data.get("reason") == "fork")

    def _answer(self, one: Added, *, is_partial: bool) -> None:
        for answer in _new_of(one):
            self._called = [call.tool for call in answer.calls]
            self._keep(structs.replace(answer, partial=is_partial))

    def _result(self, messages: Iterable[DiffMessage], data: Mapping[str, Json]) -> None:
        for result in messages:
            kept = structs.replace(result, tool=text(data.get("tool")))
            if kept.tool in self._called:
                self._called.remove(kept.tool)
            else:  # the oldest logs do not list calls in the response: show the call with its result
                given = data.get("input")
                arguments = given if isinstance(given, str) else "" if given is None else json_text(given)
                call = DiffCall(tool=kept.tool, arguments=canonical_json(arguments))
                digest = digest_of("called", kept.digest.hex(), call.tool, call.arguments)
                kept = structs.replace(kept, calls=(call,), digest=digest)
            self._keep(kept)

    def _add_new(self, one: Added, splice: Splice, *, is_fork: bool) -> None:
        """Keep new messages of a request or a changed history: prompts, summaries, results without their own event."""
        for new in _new_of(one, role="summary" if one.is_summary else ""):
            kept = new
            if kept.role == "system" and not self._messages:
                self._add_system(kept.text)
                continue
            if kept.role == "tool":
                kept = structs.replace(kept, tool=kept.tool or self._names.get(kept.call_id, ""))
                if splice.cause == "request":
                    self._use(kept.tool, failed=kept.failed)
            self._keep(kept)
            if is_fork:
                self._inherited.append(kept.digest)

    def _keep(self, kept: DiffMessage) -> None:
        for call in kept.calls:
            if call.call_id:
                self._names[call.call_id] = call.tool
        most = self._kept if self._kept is None or self._held < MOST_HELD else min(self._kept, KEPT_LATER)
        kept = cut_to(structs.replace(kept, seq=self._seq), most)
        self._held += kept.length
        self._messages.append(kept)

    def _use(self, name: Json, *, failed: bool, duration_ms: Json = None) -> None:
        name = text(name) or "unknown"
        if name not in self._tools:
            self._tools[name] = ToolUse()
        self._tools[name].add(failed=failed, duration_ms=read_duration(duration_ms))

    def _take_back(self, gone: Iterable[bytes]) -> None:
        """Remove undone messages; a compaction may have dropped some of them before."""
        for digest in reversed(tuple(gone)):
            self._taken_back += self._messages.remove_last(digest)


def _messages_of(entry: Entry) -> Iterator[DiffMessage]:
    """Yield the messages of an element that no request or answer has."""
    return map(diff_message, entry.messages, digests_of(entry))


def _new_of(one: Added, *, role: str = "") -> Iterator[DiffMessage]:
    """Yield the new messages of an element; a `role` replaces their own."""
    if not one.is_new:
        return
    if one.role and not role:  # it need not be read
        [digest] = one.digests
        yield DiffMessage(one.role, valid_text(one.text), digest)
        return
    new = set(map(id, one.new))
    for message, digest in zip(one.entry.messages, one.digests, strict=True):
        if id(message) in new:
            yield diff_message(message, digest, role=role)


@dataclass(slots=True, kw_only=True)
class ToolUse:
    """A session's use of a tool.

    Attributes:
        calls: The number of calls.
        errors: The number of failed calls.
        duration_ms: The sum of durations; None if the log has none.
    """

    calls: int = 0
    errors: int = 0
    duration_ms: float | None = None

    def add(self, *, failed: bool, duration_ms: float | None) -> None:
        """Add one more call."""
        self.calls += 1
        self.errors += failed
        if duration_ms is not None:
            self.duration_ms = (self.duration_ms or 0) + duration_ms

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"calls": self.calls, "errors": self.errors, "duration_ms": self.duration_ms}
