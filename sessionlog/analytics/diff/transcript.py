"""A transcript: all that was said in a session, in order and once, whatever its requests repeat.

It goes by what was said, not by what was in the window: what a compaction or a truncation took away was said all the
same, and what is told again after it was said once. Only what a person took back (`undo`) is none of it, though its
tools ran. A sub-agent's words are beside the conversation. What is kept of a text has an end, so that a long log fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import orjson

from sessionlog.analytics.diff.heard import Heard, Meaning, Message, meaning_of
from sessionlog.analytics.diff.said import Said, cut_to, in_order_of_calls, make_called, make_said, numbered, said_in
from sessionlog.analytics.diff.tool_use import ToolUse
from sessionlog.context.snapshots.logged import earlier_messages, word_of
from sessionlog.context.snapshots.splices import placed
from sessionlog.context.snapshots.tools import read_tools
from sessionlog.context.steps import read_duration
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payloads import UNREPEATED
from sessionlog.hashes import digest_of
from sessionlog.messages.content_text import text_of
from sessionlog.messages.json_value import json_text
from sessionlog.messages.read import read_entry

Json = Any
_MEANINGS = 20_000
_STREAMED = 1_000_000  # characters of an answer that never came
_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was said in a session.

    Attributes:
        said: All of it, in order.
        system: The system prompt; empty where the log has none.
        offered: The tools that the model was told of: name → digest of the definition; empty where the log has none.
        tools: How each tool was used.
        turns: Prompts, with everything until the next one.
        inherited: What a fork began with, as its meaning; some of it may have been taken back.
        parted_at: The number (`seq`) of its parent's last event when it was made as a fork; None for what is none.
        taken_back: Messages that were said and taken back.
        problem_count: Damaged pieces of the log.
        problems: The first of them.
    """

    said: tuple[Said, ...]
    system: str
    offered: Mapping[str, bytes]
    tools: Mapping[str, ToolUse]
    turns: int
    inherited: tuple[bytes, ...] = ()
    parted_at: int | None = None
    taken_back: int = 0
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()


def fold_transcript(items: Iterable[Event | Problem], *, own: bool = True, kept: int | None = None) -> Transcript:
    """Fold a session's events.

    Args:
        items: In file order, with the problems the reader met.
        own: Whether requests hold the whole conversation unless they say otherwise, as in our own logs; else each
            continues the one before.
        kept: Characters that are kept of one text; None keeps all.
    """
    fold = _Fold(own=own, kept=kept)
    for item in items:
        if isinstance(item, Problem):
            fold.damage(item)
        else:
            fold.take(item)
    return fold.transcript()


class _Fold:
    """What is known half-way through a log."""

    def __init__(self, *, own: bool, kept: int | None) -> None:
        self._own, self._kept = own, kept
        self._said: list[Said] = []
        self._system: list[str] = []
        self._prompt = ""
        self._heard = Heard()
        self._meanings: dict[bytes, Meaning] = {}
        self._names: dict[str, str] = {}
        self._asked: list[str] = []  # tools that the last answer calls
        self._streamed: list[str] = []
        self._room = _STREAMED
        self._offered: dict[str, bytes] = {}
        self._tools: dict[str, ToolUse] = {}
        self._problems: list[Problem] = []
        self._problem_count = 0
        self._seq = 0  # of the event at hand
        self._parted_at: int | None = None
        self._inherited: list[bytes] = []
        self._taken_back = 0

    def damage(self, problem: Problem) -> None:
        if problem.severity == "damage":
            self._problem_count += 1
            self._problems = [*self._problems, problem][:_PROBLEMS]

    def take(self, event: Event) -> None:
        data = event.data if isinstance(event.data, Mapping) else {}
        self._seq = event.seq
        match event.type:
            case "session.start":
                self._start(data)
            case "llm.request" if "agent" not in data:
                self._request(data)
            case "llm.delta" if "agent" not in data:
                self._delta(data)
            case "llm.response" if "agent" not in data:
                self._response(data)
            case "tool.call":
                self._tool(data)
            case "compaction.end" if data.get("success") is not False and not data.get("no_compaction"):
                self._compact(data)
            case "history.add" | "history.pop" | "history.clear":
                self._change(event.type, data)

    def transcript(self) -> Transcript:
        self._open_prompt()
        self._break_off()
        said = numbered(in_order_of_calls(self._said))
        return Transcript(
            said=said, system="\n\n".join(self._system), offered=self._offered, tools=self._tools,
            turns=max((one.turn for one in said), default=0), inherited=tuple(self._inherited),
            parted_at=self._parted_at, taken_back=self._taken_back,
            problem_count=self._problem_count, problems=tuple(self._problems),
        )  # fmt: skip

    def _start(self, data: Mapping[str, Json]) -> None:
        self._instruct(text_of(data.get("system_prompt")))
        self._prompt = text_of(data.get("prompt")) or self._prompt
        match data.get("parent"):
            case {"seq": int(seq)}:
                self._parted_at = seq

    def _instruct(self, text: str) -> None:
        if text.strip() and text not in self._system:
            self._system.append(text)

    def _request(self, data: Mapping[str, Json]) -> None:
        self._break_off()
        beside = text_of(data.get("system")) or text_of(data.get("instructions"))
        if not self._system:
            self._instruct(beside)
        offered = data.get("tools")
        for tool in read_tools(offered) if isinstance(offered, list | tuple) else ():
            self._offered[tool.name] = digest_of(json_text(tool.definition))
        messages = data.get("messages")
        if not isinstance(messages, list | tuple):
            self._open_prompt()
            return
        self._prompt = ""
        told = earlier_messages(data)
        meanings = [self._meaning(message) for message in messages]
        new = self._heard.new(meanings, lambda index: _read(messages[index]), told if told or not self._own else None)
        for said in new:
            self._hear(said)

    def _meaning(self, message: Json) -> Meaning:
        """What a message means; reading it once for each of its spellings is enough."""
        try:
            spelled = blake2b(orjson.dumps(message), digest_size=16).digest()
        except (TypeError, ValueError, RecursionError):
            return meaning_of(_read(message))
        known = self._meanings.get(spelled)
        if known is None:
            known = self._meanings[spelled] = meaning_of(_read(message))
            if len(self._meanings) > _MEANINGS:
                del self._meanings[next(iter(self._meanings))]
        return known

    def _hear(self, said: Said) -> None:
        """Take what a request tells first: prompts, and results that no event has told."""
        if said.role == "system" and not self._said:
            self._instruct(said.text)
            return
        if said.role == "tool":
            said = replace(said, tool=said.tool or self._names.get(said.call_id, ""))
            self._use(said.tool, failed=said.failed)
        self._keep(said)

    def _keep(self, said: Said) -> None:
        self._names.update((call.call_id, call.tool) for call in said.calls if call.call_id)
        self._said.append(replace(cut_to(said, self._kept), seq=self._seq))

    def _open_prompt(self) -> None:
        """The prompt of a log whose requests tell no messages."""
        if self._prompt:
            prompt, self._prompt = make_said("user", self._prompt), ""
            self._heard.expect(prompt)
            self._keep(prompt)

    def _delta(self, data: Mapping[str, Json]) -> None:
        piece = data.get("content")
        if isinstance(piece, str) and self._room > 0:
            self._streamed.append(piece)
            self._room -= len(piece) + 50  # a list of one-letter pieces weighs more than its letters

    def _break_off(self) -> None:
        """Keep what had arrived of an answer that nothing closed."""
        text = "".join(self._streamed)
        self._streamed, self._room = [], _STREAMED
        if text.strip():
            self._answer(make_said("assistant", text, partial=self._own))  # others tell an answer under way so

    def _response(self, data: Mapping[str, Json]) -> None:
        self._open_prompt()
        streamed = "".join(self._streamed) if data.get("error") else ""
        self._streamed, self._room = [], _STREAMED
        message = read_entry(
            {"role": "assistant", "content": data.get("content"), "tool_calls": data.get("tool_calls")}
        )
        partial = bool(data.get("error") or data.get("partial"))
        found = list(said_in(message))
        if not found and streamed.strip():
            found = [make_said("assistant", streamed)]
        if not found and data.get("content") is not None:
            self._heard.expect()  # an answer that says nothing is a message all the same
        for said in found:
            self._answer(replace(said, partial=partial))
            self._asked = [call.tool for call in said.calls]

    def _answer(self, said: Said) -> None:
        self._heard.expect(cut_to(said, 0))
        self._keep(said)

    def _tool(self, data: Mapping[str, Json]) -> None:
        name, error = word_of(data.get("tool")), data.get("error")
        self._use(name, failed=bool(error), duration_ms=read_duration(data.get("duration_ms")))
        if "agent" in data:
            return
        self._open_prompt()
        content = data.get("output")
        message = {"role": "tool", "tool_call_id": data.get("id"), "content": error if content is None else content}
        for said in said_in(read_entry(message)):
            named = replace(said, tool=name, failed=bool(error))
            self._heard.expect(cut_to(named, 0))
            self._keep(named if self._was_asked(name) else self._with_call(named, data.get("input")))

    def _was_asked(self, name: str) -> bool:
        """Whether an answer has told the call."""
        if name not in self._asked:
            return False
        self._asked.remove(name)
        return True

    def _with_call(self, said: Said, given: Json) -> Said:
        """A result with the call that no answer tells, as in the oldest logs."""
        call = make_called(said.tool, given)
        return make_said(
            "tool", said.text, calls=[call], tool=said.tool, call_id=said.call_id, failed=said.failed
        )  # fmt: skip

    def _use(self, name: str, *, failed: bool, duration_ms: float | None = None) -> None:
        name = name or "unknown"
        self._tools[name] = self._tools.get(name, ToolUse()).plus(failed=failed, duration_ms=duration_ms)

    def _compact(self, data: Mapping[str, Json]) -> None:
        summary, dropped = text_of(data.get("summary")), data.get("dropped")
        if isinstance(dropped, list | tuple):
            self._break_off()
            self._cut(dropped, data.get("added"), summary)
        elif summary.strip():
            self._heard.expect(cut_to(make_said("user", summary), 0))
        if summary.strip():
            self._keep(make_said("summary", summary))

    def _cut(self, dropped: Sequence[Json], added: Json, summary: str) -> None:
        """A history out of which messages were taken, and into which others may be put."""
        put_in = [(at, _read(message)) for at, message in placed(added if isinstance(added, list | tuple) else ())]
        self._heard.cut(dropped, [(at, meaning_of(message)) for at, message in put_in])
        for said in (said for _, message in put_in for said in message):
            if said.text.strip() != summary.strip():
                self._keep(said)

    def _change(self, kind: str, data: Mapping[str, Json]) -> None:
        """A history that was inherited, added to, told again or shortened between two requests."""
        self._break_off()
        count, listed = data.get("count"), data.get("messages")
        if kind == "history.clear":
            self._heard.drop()
        elif kind == "history.pop":
            self._take_back(count if type(count) is int and count > 0 else 0)
        elif isinstance(listed, list | tuple):
            self._add([_read(message) for message in listed], data.get("reason"))

    def _take_back(self, count: int) -> None:
        """Messages that a person took back; a compaction may have dropped some of them before."""
        for digest in chain.from_iterable(reversed([meaning[::-1] for meaning in self._heard.drop(count)])):
            place = next((n for n in range(len(self._said) - 1, -1, -1) if self._said[n].digest == digest), None)
            if place is not None:
                del self._said[place]
                self._taken_back += 1

    def _add(self, messages: Sequence[Message], reason: Json) -> None:
        if reason not in UNREPEATED:
            for message in messages:
                self._heard.expect(*(cut_to(said, 0) for said in message))
            new = list(chain.from_iterable(messages))
        else:
            self._prompt = ""
            new = self._heard.retold([meaning_of(message) for message in messages], messages.__getitem__)
        for said in new:
            if said.role == "system" and not self._said:
                self._instruct(said.text)
                continue
            self._keep(replace(said, tool=said.tool or self._names.get(said.call_id, "")))
            if reason == "fork":
                self._inherited.append(said.digest)


def _read(message: Json) -> Message:
    """What a message of a request says; a role that nobody knows is kept, and a summary is nobody's."""
    read = read_entry(message)
    if isinstance(message, Mapping) and message.get("summary") is True:
        return [make_said("summary", said.text) for said in said_in(read)]
    partial = isinstance(message, Mapping) and bool(message.get("partial"))
    return [replace(said, partial=True) if partial and said.role == "assistant" else said for said in said_in(read)]
