"""A `wire.jsonl` of Kimi as native events: a step is gathered until the next one begins, for its usage may come last.

What the parent tells of a sub-agent's steps is told beside the conversation: the main agent never sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.reader.rows import Rows
from sessionlog.sources.gather import first_words
from sessionlog.sources.kimi.place import default_model, place_of, work_dir
from sessionlog.sources.kimi.steps import Response, Steps
from sessionlog.sources.kimi.wire import Move, read_move
from sessionlog.sources.record import UNKNOWN
from sessionlog.sources.transcript import Transcript


@dataclass(slots=True)
class _Step:
    """What has been said and done in one step."""

    text: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    uses: list[tuple[Response, Move]] = field(default_factory=list)
    results: list[Move] = field(default_factory=list)


def read_events(path: str) -> Iterator[Event | Problem]:
    """Yield the session of a file.

    Raises:
        LogNotReadable: The file cannot be opened.
    """
    with Rows(path) as rows:
        teller = _Teller(path)
        for row in rows.all():
            if isinstance(row, Problem):
                yield row
                continue
            move = read_move(row)
            if move is not None:
                yield from teller.tell(move, rows.start)
        yield from teller.finish()


class _Teller:
    def __init__(self, path: str) -> None:
        place = place_of(path)
        default = default_model(place)
        project = work_dir(place)
        self._steps = Steps(place, default)
        self._transcript = Transcript(place.session_id)
        self._work_dir = None if project == UNKNOWN else project
        self._agent = place.agent
        self._step = _Step()
        self._asides: dict[str, _Step] = {}  # a sub-agent's latest step
        self._done: list[tuple[str, _Step]] = []
        self._told: set[str] = set()
        self._last_ns: int | None = None
        self._status: str | None = None

    def tell(self, move: Move, start: int) -> Iterator[Event]:
        self._steps.follow(move)
        if not self._transcript.started and (move.time_ns is not None or move.kind != "other"):
            yield self._start(move.time_ns)
        self._last_ns = self._last_ns if move.time_ns is None else move.time_ns
        if move.agent:
            self._aside(move, start)
            return
        if move.kind in {"prompt", "step", "compacted", "cancelled"}:
            yield from self._flush()
        if move.kind == "prompt":
            self._status = None
            self._transcript.hear("user" if first_words(move.text) else "system", move.text, move.time_ns)
        elif move.kind == "step":
            self._status = None
        elif move.kind == "compacted":
            yield self._transcript.compacted(move.time_ns, summary=move.text or None)
        elif move.kind in {"done", "cancelled"}:
            self._status = "success" if move.kind == "done" else "cancelled"
        elif move.kind == "result":
            self._step.results.append(move)
        else:
            self._gather(self._step, move, start)

    def _start(self, time_ns: int | None) -> Event:
        return self._transcript.start(time_ns, work_dir=self._work_dir, metadata={"agent": self._agent})

    def _gather(self, step: _Step, move: Move, start: int) -> None:
        if move.kind == "text":
            step.text.append(move.text)
        elif move.kind == "think":
            step.thought.append(move.text)
        elif move.kind == "call":
            step.calls.append({"id": move.id, "name": move.text or UNKNOWN, "arguments": move.arguments or ""})
        elif move.kind == "arguments" and step.calls and isinstance(step.calls[-1]["arguments"], str):
            step.calls[-1]["arguments"] += move.text
        elif move.kind == "usage":
            use = self._steps.response(move, start), move
            same = next((at for at, (known, _) in enumerate(step.uses) if known.key == use[0].key), None)
            if same is None:
                step.uses.append(use)
            elif _size(step.uses[same][1]) < _size(move):
                step.uses[same] = use

    def _flush(self) -> Iterator[Event]:
        """Tell the step, its responses first; one that was cut off has words but no tokens."""
        step, self._step = self._step, _Step()
        _settle(step.calls)
        content, reasoning = "".join(step.text), "".join(step.thought)
        uses = self._untold(step)
        for response, move in uses[:-1]:
            yield from self._transcript.response(response.time_ns, **_facts(response, move))
        if uses:
            response, move = uses[-1]
            yield from self._transcript.response(
                response.time_ns, content=content, reasoning=reasoning, tool_calls=step.calls, **_facts(response, move)
            )
        elif step.calls or content or reasoning:
            facts = {"content": content or None, "reasoning_content": reasoning or None}
            yield self._transcript.event("llm.delta", None, facts)
            for call in step.calls:
                self._transcript.call(call["id"], call["name"], call["arguments"])
        for result in step.results:
            yield self._transcript.result(result.time_ns, result.id, result.text, failed=result.failed)
        asides, self._done, self._asides = self._done, [], {}
        for kind, aside in asides:
            yield from self._tell_aside(kind, aside)

    def _untold(self, step: _Step) -> list[tuple[Response, Move]]:
        """The responses of a step that have not been told before, under the same name."""
        uses = [use for use in step.uses if use[0].key not in self._told]
        self._told.update(response.key for response, _ in uses)
        return uses

    def _aside(self, move: Move, start: int) -> None:
        """Keep what a sub-agent does until the step that started it has been told."""
        if move.kind == "step" or move.agent not in self._asides:
            self._asides[move.agent] = _Step()
            self._done.append((move.agent_kind, self._asides[move.agent]))
        step = self._asides[move.agent]
        if move.kind == "result":
            step.results.append(move)
        else:
            self._gather(step, move, start)

    def _tell_aside(self, kind: str, step: _Step) -> Iterator[Event]:
        """Tell a sub-agent's step beside the conversation, so that no request seems to send it."""
        _settle(step.calls)
        said = {
            "content": "".join(step.text), "reasoning": "".join(step.thought) or None, "tool_calls": step.calls or None
        }  # fmt: skip
        for response, move in self._untold(step):
            facts = {**_facts(response, move), "attempt": {"provider_system": response.provider}, "agent": kind}
            facts["usage"] = move.usage.to_dict() if move.usage else None
            del facts["provider"]
            yield self._transcript.event("llm.response", response.time_ns, {**said, **facts})
            said = {"content": ""}
        for result in step.results:
            call = next((call for call in step.calls if call["id"] == result.id), {"name": UNKNOWN, "arguments": None})
            yield self._transcript.event("tool.call", result.time_ns, {
                "tool": call["name"], "id": result.id, "input": call["arguments"], "output": result.text,
                "error": (result.text or "failed") if result.failed else None, "agent": kind,
            })  # fmt: skip

    def finish(self) -> Iterator[Event]:
        if not self._transcript.started:
            yield self._start(None)
        yield from self._flush()
        yield from self._transcript.unanswered()
        if self._status is not None:
            yield self._transcript.end(self._last_ns, self._status)


def _size(move: Move) -> tuple[int, int]:
    return (move.usage.output, move.usage.total) if move.usage else (0, 0)


def _facts(response: Response, move: Move) -> dict[str, Any]:
    return {
        "usage": move.usage or None, "model": response.model, "provider": response.provider,
        "latency_ms": response.latency_ms, "key": response.key, "quality": None if move.usage else "partial",
    }  # fmt: skip


def _settle(calls: list[dict[str, Any]]) -> None:
    """Arguments that are JSON in a text become what they say."""
    for call in calls:
        if isinstance(call["arguments"], str):
            try:
                call["arguments"] = orjson.loads(call["arguments"])
            except ValueError:
                continue
