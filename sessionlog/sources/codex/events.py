"""A Codex rollout as native events. The accounts are those of the scan, so both tell the same use.

Codex logs the parts of a response (reasoning, words, calls) one by one and its counter at the end; here a response is
what came since the counter before. Its calls' results may come before its counter: they wait for it. What was never
counted (an interrupted answer, logs older than the counters) is an answer that has only begun. A fork's history is
heard, not told: it is what the first request sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.reader.rows import Row
from sessionlog.sources.codex.scan import ID, Rollout, is_typed
from sessionlog.sources.codex.thread import read_moment
from sessionlog.sources.codex.tools import OUTPUT_TYPES, read_call, read_output
from sessionlog.sources.gather import first_words
from sessionlog.sources.record import MAIN, UNKNOWN, Record, read_name
from sessionlog.sources.transcript import Transcript

_INSTRUCTIONS = 1 << 16


class RolloutEvents:
    """Spells one rollout's rows."""

    def __init__(self, path: str) -> None:
        self.rollout = Rollout(path)
        self._transcript: Transcript | None = None
        self._instructions: str | None = None
        self._ts: str | int | None = None
        self._said: list[str] = []
        self._thought: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._results: list[tuple[str | int | None, str, Any, bool]] = []
        self._heard = ""
        self._prompted = False  # this row is a prompt, told for the first time

    def take(self, row: Row) -> Iterator[Event]:
        """Yield what a row completes."""
        stamp = row.get("timestamp")
        self._ts = stamp if isinstance(stamp, str) else None
        payload = row.get("payload", row)
        if not isinstance(payload, Mapping):
            return
        kind = row.get("type") if "payload" in row else "response_item"
        turns = self.rollout.turns
        self.rollout.take(row)
        self._prompted = self.rollout.turns > turns
        records, self.rollout.records = self.rollout.records, []
        if kind == "session_meta" and self._transcript is None:
            self._instructions = _instructions(payload)
        elif kind == "response_item":
            yield from self._item(payload)
        elif kind == "compacted":
            yield from self._close()
            message = payload.get("message")
            yield from self._start()
            yield self._open().compacted(self._ts, summary=message if isinstance(message, str) else None)
        elif kind == "event_msg":
            yield from self._event(payload)
        for record in records:
            yield from self._respond(record)

    def _event(self, event: Mapping[str, Any]) -> Iterator[Event]:
        kind = event.get("type")
        if kind == "user_message":
            text = event.get("message")
            if isinstance(text, str):
                yield from self._hear_user(text, text)
        elif kind in ("task_complete", "turn_complete", "turn_aborted"):
            yield from self._close()

    def _item(self, item: Mapping[str, Any]) -> Iterator[Event]:
        kind = read_name(item.get("type"))
        if self._results and self.rollout.counter is None and kind not in OUTPUT_TYPES:
            yield from self._close()  # nobody will count it
        if kind == "message":
            text, role = _text(item.get("content")), item.get("role")
            if role == "user":
                yield from self._hear_user(text, item.get("content"))
            elif role != "assistant":
                yield from self._hear(role if isinstance(role, str) else "user", text)
            elif self._is_history():
                yield from self._hear("assistant", text)
            else:
                self._said.append(text)
        elif self._is_history():
            return
        elif kind in OUTPUT_TYPES:
            yield from self._result(item)
        elif kind == "reasoning":
            self._thought += filter(None, (_text(item.get("summary")), _text(item.get("content"))))
        elif kind == "web_search_call":
            self._calls.append({"id": read_name(item.get("id")) or "", "name": kind, "arguments": item.get("action")})
        else:
            call = read_call(item)
            if call is not None:
                call_id, tool, server = call
                name = f"{server}/{tool}" if server else tool
                self._calls.append({"id": call_id, "name": name, "arguments": _arguments(item)})

    def _is_history(self) -> bool:
        """Whether the row is the parent's under a new date; with its own date it is told like any other."""
        return self.rollout.thread.whose(read_moment(self._ts)) == ""

    def _hear_user(self, text: str, content: Any) -> Iterator[Event]:
        """Hear a prompt once, and what Codex says in the user's place as the system's."""
        if self._prompted:
            yield from self._hear("user", text)
        elif self.rollout.thread.whose(read_moment(self._ts)) is not None:
            if text != self._heard:
                yield from self._hear("user", text)
        elif not is_typed(first_words(content)):
            yield from self._hear("system", text)

    def _hear(self, role: str, text: str) -> Iterator[Event]:
        if text:
            yield from self._close()
            self._heard = text if role == "user" else self._heard
            inherited = self.rollout.thread.whose(read_moment(self._ts)) is not None
            self._open().hear(role, text, self._ts, inherited=inherited)

    def _result(self, item: Mapping[str, Any]) -> Iterator[Event]:
        call_id = read_name(item.get("call_id")) or ""
        output = item.get("output", item.get("content"))
        failed = bool(read_output(item)[0])
        if any(call["id"] == call_id for call in self._calls):
            self._results.append((self._ts, call_id, output, failed))
        else:
            yield from self._start()
            yield self._open().result(self._ts, call_id, output, failed=failed)

    def _respond(self, record: Record | None) -> Iterator[Event]:
        """The response that is complete, with what it used; without a record it has only begun."""
        failed = record is not None and record.failed
        ts = self._ts if record is None or record.time_ns is None else record.time_ns
        content = "\n\n".join(filter(None, self._said))
        yield from self._start()
        request, response = self._open().response(
            ts, content=content, tool_calls=self._calls, usage=None if record is None or failed else record.usage,
            reasoning="\n\n".join(self._thought) or None, model=self._model(record),
            latency_ms=None if record is None else record.latency_ms,
            error=(self.rollout.error or "failed") if failed else None, key=None if record is None else record.key,
        )  # fmt: skip
        yield request
        yield response if record is not None else replace(response, type="llm.delta", data={"content": content})
        results, self._results = self._results, []
        self._said, self._thought, self._calls = [], [], []
        for ts, call_id, output, went_wrong in results:
            yield self._open().result(ts, call_id, output, failed=went_wrong)

    def _model(self, record: Record | None) -> str | None:
        model = self.rollout.thread.model if record is None else record.model
        return None if model == UNKNOWN else model

    def _close(self) -> Iterator[Event]:
        """Tell a response whose counter never came."""
        if self._said or self._thought or self._calls:
            yield from self._respond(None)

    def _open(self) -> Transcript:
        if self._transcript is None:
            self._transcript = Transcript(self.rollout.thread.id)
        return self._transcript

    def _start(self) -> Iterator[Event]:
        if self._open().started:
            return
        thread = self.rollout.thread
        began = thread.began_ns if thread.began_ns is not None else self._ts
        metadata = {
            "harness": ID, "cli_version": "" if thread.version == UNKNOWN else thread.version,
            "git_branch": "" if thread.branch == UNKNOWN else thread.branch, "forked_from": thread.parent,
            "parent_session": thread.session if thread.part else "",
            "agent": "" if thread.agent == MAIN else thread.agent,
        }  # fmt: skip
        yield self._open().start(
            began, provider=thread.provider, model=self._model(None),
            work_dir=None if thread.project == UNKNOWN else thread.project, system_prompt=self._instructions,
            metadata=metadata,
        )  # fmt: skip

    def end(self) -> Iterator[Event]:
        """Yield what is left at the end of the file."""
        yield from self._close()
        rollout = self.rollout
        if rollout.thread.named or self._open().started or rollout.turns:
            yield from self._start()
            yield from self._open().unanswered()
            if rollout.status is not None:
                error = rollout.error if rollout.status == "error" else None
                yield self._open().end(rollout.last_ns, rollout.status, error=error or None)


def _text(content: Any) -> str:
    """The text of a message or a summary, whose parts may be pictures."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _arguments(item: Mapping[str, Any]) -> Any:
    """What a tool was given: JSON in a text, free text, or an action."""
    given = item.get("arguments", item.get("input", item.get("action")))
    if isinstance(given, str) and given.startswith("{"):
        try:
            return orjson.loads(given)
        except ValueError:
            return given
    return given


def _instructions(meta: Mapping[str, Any]) -> str | None:
    base = meta.get("base_instructions")
    text = base.get("text") if isinstance(base, Mapping) else meta.get("instructions")
    return text[:_INSTRUCTIONS] if isinstance(text, str) and text else None


def read_rows(path: str, items: Iterator[Row | Problem]) -> Iterator[Event | Problem]:
    """Yield a rollout's events, and what is wrong with it in its place."""
    events = RolloutEvents(path)
    for item in items:
        if isinstance(item, Problem):
            yield item
        else:
            yield from events.take(item)
    yield from events.end()
