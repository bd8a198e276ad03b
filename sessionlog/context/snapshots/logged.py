"""A session read back from its log: the conversation as it stands, its tools, its steps and turns.

The log is the session: whatever a tracker or a snapshot of a living agent says can be rebuilt from it. Requests hold
the whole conversation, or only what is new behind `earlier_messages`; both are put together here. The last answer, and
what tools have said since, are of the conversation although no request has sent them yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sessionlog.context.snapshots.talk import Talk, tool_answer
from sessionlog.context.snapshots.told import Told
from sessionlog.context.snapshots.tools import Tool, read_tools
from sessionlog.context.snapshots.turns import between_ms, fold_turns
from sessionlog.context.steps import RequestUsageSnapshot, StepRecord, read_duration, record_steps
from sessionlog.context.usage import Counts, TurnUsage, tokens_of
from sessionlog.context.xray.reported import Reported
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payloads import UNREPEATED
from sessionlog.events.times import SECOND, utc_time
from sessionlog.messages.content_text import text_of
from sessionlog.messages.entry import Entry
from sessionlog.messages.message import Message
from sessionlog.messages.read import read_entry
from sessionlog.sources.find import log_at

Json = Any
LogLike = str | os.PathLike[str] | Iterable[Event | Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSession:
    """What a log says of its session.

    Attributes:
        session_id: The session's id: of a path the name of its session, of events the first one's.
        model: The model of the last request, as asked for; None where nobody says.
        provider: Who serves it; empty where nobody says.
        messages: The conversation, the last answer included.
        tools: The tools of the last request that names any.
        steps: One for every answer.
        turns: What each turn used.
        served: Who answered last; empty where nobody says.
        apart: What sub-agents used, and whoever wrote a summary: in no step, and in no turn.
        prompt_tokens: What the provider counted at the last request that was answered; None where it did not tell.
        output_tokens: The same of its answer.
        window: How many tokens the model takes in; None where that is not logged.
    """

    session_id: str
    model: str | None
    provider: str
    messages: tuple[Entry, ...]
    tools: tuple[Tool, ...]
    steps: tuple[RequestUsageSnapshot, ...]
    turns: tuple[TurnUsage, ...]
    served: str = ""
    apart: Counts = field(default_factory=Counts)
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    window: int | None = None


def read_logged_session(log: LogLike, *, request: int | None = None) -> LoggedSession:
    """Read a session back.

    Args:
        log: A path (any agent's log), or events in their order; problems among them are passed over.
        request: Stop after the answer to this request, from 1; None reads all.

    Raises:
        LogNotReadable: The path cannot be read, or is no agent's log.
    """
    name, events = _open(log)
    fold, reported, is_over = _Fold(name), Reported(request), False
    for event in events:
        starts = "llm.request" if fold.requests else "llm.response"
        is_over = is_over or (reported.is_answered and event.type == starts)
        if not is_over:
            fold.take(event)
        elif event.type == "llm.response" and "agent" not in event.data:
            fold.told.overheard(event.data)
        reported.take(event)  # how a provider counts shows in all its answers
    prompt, output = reported.counts()
    return replace(fold.result(), prompt_tokens=prompt, output_tokens=output)


def get_step_history(log: LogLike) -> tuple[StepRecord, ...]:
    """Return the steps of a log, as rows for `to_csv`.

    Raises:
        LogNotReadable: The path cannot be read, or is no agent's log.
    """
    session = read_logged_session(log)
    return record_steps(session.steps, session.session_id)


def _open(log: LogLike) -> tuple[str, Iterable[Event]]:
    """The session's name, and its events; a file that is one session is named by its name."""
    items: Iterable[Event | Problem]
    name = ""
    if isinstance(log, str | os.PathLike):
        found = log_at(os.fspath(log))
        name = next(iter(found.source.name_sessions(found.path)), "")
        items = found.source.read(found.path, None)
    else:
        items = log
    return name, (item for item in items if isinstance(item, Event) and isinstance(item.data, Mapping))


class _Fold:
    """The state of a session while its events go by."""

    def __init__(self, session_id: str) -> None:
        self.requests = 0
        self.told = Told()
        self._session_id = session_id
        self._model: str | None = None
        self._provider = self._served = ""
        self._window: int | None = None
        self._system = self._prompt = ""
        self._talk = Talk()
        self._tools: tuple[Tool, ...] = ()
        self._steps: list[RequestUsageSnapshot] = []  # their tokens and tools are told at the end
        self._used: list[tuple[Counts, list[str]]] = []
        self._turn = 0
        self._answered = True
        self._compacted = False
        self._prompts: list[str] = []
        self._asked: str | None = None
        self._names_known = True
        self._spans: dict[int, tuple[int, int]] = {}

    def take(self, event: Event) -> None:
        """Take the next event."""
        self._session_id = self._session_id or event.session_id
        data = event.data
        if event.type == "session.start":
            self._start(data)
        elif event.type == "llm.request":
            self._request(data, utc_time(event.ts))
        elif event.type == "llm.response":
            self._response(data, utc_time(event.ts))
        elif event.type == "tool.call":
            self._tool(data, utc_time(event.ts))
        elif event.type == "compaction.end" and data.get("success") is not False and not data.get("no_compaction"):
            self._compact(data)
        elif event.type.startswith("history."):
            self._change(event.type, data, utc_time(event.ts))
        if event.type in ("llm.request", "llm.response", "tool.call") and event.time_ns is not None:
            first, _ = self._spans.setdefault(max(self._turn, 1), (event.time_ns, event.time_ns))
            self._spans[max(self._turn, 1)] = (first, max(first, event.time_ns))

    def result(self) -> LoggedSession:
        """What is known now."""
        messages = self._talk.messages
        if self._prompt and not self.requests:
            messages.insert(0, read_entry(Message.user(self._prompt)))
        if self._system and not any(message.role == "system" for entry in messages for message in entry.messages):
            messages.insert(0, read_entry(Message.system(self._system)))
        counts = self.told.read()
        messages = [replace(m, usage=counts.get(id(m.usage), m.usage)) if m.usage else m for m in messages]
        steps = [
            replace(step, tool_names=tuple(names), **tokens_of(counts[id(used)]))
            for step, (used, names) in zip(self._steps, self._used, strict=True)
        ]
        seconds = {turn: (last - first) / SECOND for turn, (first, last) in self._spans.items()}
        last = max(self._turn, 1 if self._prompt else 0)
        return LoggedSession(
            session_id=self._session_id,
            model=self._model,
            provider=self._provider,
            messages=tuple(messages),
            tools=self._tools,
            steps=tuple(steps),
            turns=tuple(fold_turns(steps, seconds, last=last).values()),
            served=self._served,
            window=self._window,
            apart=self.told.apart(),
        )

    def _start(self, data: Mapping[str, Json]) -> None:
        self.told.begin(data)
        self._model = word_of(data.get("resolved_model")) or word_of(data.get("model")) or self._model
        self._provider = word_of(data.get("provider"))
        self._system = text_of(data.get("system_prompt"))
        self._prompt = text_of(data.get("prompt"))

    def _request(self, data: Mapping[str, Json], ts: str | None) -> None:
        self.requests += 1
        self._asked = ts
        self._model = word_of(data.get("model")) or self._model
        self._system = text_of(data.get("system")) or self._system
        tools = data.get("tools")
        self._tools = read_tools(tools) if isinstance(tools, list | tuple) and tools else self._tools
        given = data.get("messages")
        if isinstance(given, list | tuple):
            self._talk.listen(given, earlier_messages(data), ts)
        prompts = self._talk.fresh_prompts()
        is_summary = self._compacted and len(prompts) == 1
        if prompts and not is_summary and (self._answered or prompts != self._prompts):
            self._turn += 1
            self._answered = False
            self._prompts = prompts
        self._compacted = False

    def _response(self, data: Mapping[str, Json], ts: str | None) -> None:
        if "agent" in data:  # a sub-agent's, or what wrote a summary: beside the conversation
            self.told.aside(data)
            return
        if data.get("error") and data.get("usage") is None:
            return
        self._answered = True
        self._served = word_of(data.get("model")) or self._served
        size = data.get("context_window")
        self._window = size if type(size) is int and size > 0 else None
        counts = self.told.answered(data)
        said = {key: data.get(key) for key in ("content", "tool_calls", "reasoning")}
        message = replace(read_entry({"role": "assistant", **said}), timestamp=ts, usage=counts)
        if not data.get("error"):
            self._talk.add(message)
        took = read_duration(data.get("latency_ms"))
        self._names_known = isinstance(data.get("tool_calls"), list | tuple)
        self._used.append((counts, list(message.tool_names)))
        self._steps.append(
            RequestUsageSnapshot(
                request_num=len(self._steps) + 1,
                input_tokens=0,
                output_tokens=0,
                timestamp=ts,
                turn_id=max(self._turn, 1),
                duration_ms=between_ms(self._asked, ts) if took is None else took,
            )
        )
        self._asked = None

    def _compact(self, data: Mapping[str, Json]) -> None:
        dropped, added = data.get("dropped"), data.get("added")
        if isinstance(dropped, list | tuple):
            self._talk.cut(dropped, added if isinstance(added, list | tuple) else ())
            return
        self._compacted = True
        self._talk.compact(text_of(data.get("summary")))

    def _change(self, type_: str, data: Mapping[str, Json], ts: str | None) -> None:
        """Take a change of the history between requests."""
        given, count = data.get("messages"), data.get("count")
        if type_ == "history.clear":
            self._talk.compact("")
        elif type_ == "history.pop" and isinstance(count, int):
            self._talk.take_back(count)
        elif type_ == "history.add" and isinstance(given, list | tuple):
            if data.get("reason") in UNREPEATED:
                self._talk.inherit(given, ts)
            else:
                for one in given:
                    self._talk.add(read_entry(one))

    def _tool(self, data: Mapping[str, Json], ts: str | None) -> None:
        if "agent" in data:
            return
        name = word_of(data.get("tool")) or "unknown"
        if self._used and not self._names_known:
            self._used[-1][1].append(name)
        output = data.get("output")
        said = data.get("error") if output is None else output
        call_id = word_of(data.get("id")) or None
        self._talk.add(tool_answer(name, said, call_id=call_id, failed=bool(data.get("error")), ts=ts))


def earlier_messages(data: Mapping[str, Json]) -> int:
    """Return how many messages of the request before a request goes on from; 0 where it does not say."""
    count = data.get("earlier_messages")
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0


def word_of(value: Json) -> str:
    """Return a text; of anything else an empty one."""
    return value if isinstance(value, str) else ""
