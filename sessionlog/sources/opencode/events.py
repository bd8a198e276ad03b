"""A session of opencode as native events: its messages in order, and in between what its sub-agents answered.

The database holds the sub-agents' sessions too. Their responses and tool calls are told where they fall in time, with
the name of the `agent`, but not as parts of the conversation: the main agent never sees them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.money import usd
from sessionlog.events.times import epoch_ns
from sessionlog.sources.gather import first_words
from sessionlog.sources.opencode.parts import Message, Part, Session, as_map, as_text, prompt_of, root_of
from sessionlog.sources.opencode.store import Store, name_roots, open_store
from sessionlog.sources.opencode.usage import Answer, read_answer
from sessionlog.sources.record import UNKNOWN
from sessionlog.sources.transcript import Transcript


def read_events(path: str, session_id: str | None) -> Iterator[Event | Problem]:
    """Yield a session with its sub-agents; None = the first one of the log.

    Raises:
        LogNotReadable: The log cannot be opened.
    """
    problems: list[Problem] = []
    with closing(open_store(path, problems.append)) as store:
        known = store.sessions()
        wanted = session_id or next(iter(name_roots(store, known)), None)
        if wanted is not None:
            family = [other for other in dict.fromkeys((wanted, *store.own(known))) if root_of(other, known) == wanted]
            teller = _Teller(store, known.get(wanted, Session(id=wanted)), known)
            if os.path.isdir(path):  # of a sub-agent's own log it is the conversation
                teller.main = os.path.basename(os.path.abspath(path))
            for message in store.messages(family):
                yield from _drain(problems)
                yield from teller.tell(message)
            yield from teller.finish()
        yield from _drain(problems)


def _drain(problems: list[Problem]) -> Iterator[Problem]:
    while problems:
        yield problems.pop(0)


class _Teller:
    """Turns messages into events."""

    def __init__(self, store: Store, session: Session, known: Mapping[str, Session]) -> None:
        self._store, self._session, self._known = store, session, known
        self.main = session.id
        self._transcript = Transcript(session.id)
        self._seen: set[str] = set()  # v1 and v2 of a database may tell the same
        self._owners: dict[str, str] | None = None
        self._last: Answer | None = None
        self._last_ns: int | None = None

    def tell(self, message: Message) -> Iterator[Event]:
        created = epoch_ns(as_map(message.data.get("time")).get("created"))
        if not self._transcript.started:
            yield self._start(created)
        main = message.session_id == self.main
        parts = self._store.parts(message)
        if message.role == "assistant":
            yield from self._assistant(message, parts, main)
        elif main and message.role == "compaction":
            yield self._transcript.compacted(created, summary=as_text(message.data.get("summary")) or None)
        elif main:
            self._hear(message, parts, created)

    def _assistant(self, message: Message, parts: list[Part], main: bool) -> Iterator[Event]:
        answer = read_answer(message)
        if answer.key in self._seen:
            return
        self._seen.add(answer.key)
        text = _words(parts, "text")
        if self._copied(message, answer):
            if main and text:
                self._transcript.hear("assistant", text, answer.time_ns)
        elif answer.happened:
            self._last_ns = answer.time_ns or self._last_ns
            yield from self._answer(message, answer, parts) if main else self._aside(answer, parts)
        elif main and text:
            yield self._transcript.event("llm.delta", answer.start_ns, {"content": text})

    def _copied(self, message: Message, answer: Answer) -> bool:
        """Whether a message was made in another session, of which this one is a fork: it is older than its own."""
        began = epoch_ns(self._known.get(message.session_id, self._session).created)
        if began is None or answer.start_ns is None or answer.start_ns >= began:
            return False
        if self._owners is None:
            self._owners = owners_of(self._store)
        return root_of(self._owners.get(answer.key, message.session_id), self._known) != self._session.id

    def _start(self, created: int | None) -> Event:
        started = epoch_ns(self._session.created)
        return self._transcript.start(
            created if started is None else started,
            work_dir=self._session.directory if os.path.isabs(self._session.directory) else None,
            metadata={"version": self._session.version},
        )

    def _hear(self, message: Message, parts: list[Part], created: int | None) -> None:
        text = _words(parts, "text")
        known = f"{message.role}@{created}:{text}"
        if text and known not in self._seen:
            self._seen.add(known)
            self._last = None
            typed = message.role == "user" and first_words(prompt_of(parts))
            self._transcript.hear("user" if typed else "system", text, created)

    def _answer(self, message: Message, answer: Answer, parts: list[Part]) -> Iterator[Event]:
        tools = [part for part in parts if part.kind == "tool"]
        for number, part in enumerate(tools):
            part.call_id = part.call_id or f"{message.id}:{number}"
        text = _words(parts, "text")
        yield from self._transcript.response(
            _answered(answer, tools), content=text, reasoning=_words(parts, "reasoning"),
            tool_calls=[{"id": part.call_id, "name": part.name, "arguments": part.arguments} for part in tools],
            usage=answer.usage or None, model=answer.model, provider=answer.provider, latency_ms=answer.latency_ms,
            cost_usd=_cost(answer), finish_reason="aborted" if answer.aborted else answer.finish or None,
            error=answer.error if answer.failed else None, key=answer.key, quality=_quality(answer),
        )  # fmt: skip
        for part in tools:
            if part.status in {"completed", "error"}:
                yield self._transcript.result(
                    epoch_ns(part.end), part.call_id, part.text, failed=part.status == "error", duration_ms=_took(part)
                )
        self._last = answer
        if message.data.get("summary") is True:
            yield self._transcript.compacted(answer.time_ns, summary=text or None)

    def _aside(self, answer: Answer, parts: list[Part]) -> Iterator[Event]:
        """A sub-agent's answer: beside the conversation, so that no request seems to send it."""
        tools = [part for part in parts if part.kind == "tool"]
        yield self._transcript.event("llm.response", _answered(answer, tools), {
            "content": _words(parts, "text"), "reasoning": _words(parts, "reasoning") or None,
            "tool_calls": [{"id": p.call_id, "name": p.name, "arguments": p.arguments} for p in tools] or None,
            "usage": answer.usage.to_dict() if answer.usage else None, "cost_usd": _cost(answer),
            "latency_ms": answer.latency_ms, "model": answer.model, "attempt": {"provider_system": answer.provider},
            "finish_reason": "aborted" if answer.aborted else answer.finish or None,
            "error": answer.error if answer.failed else None, "key": answer.key, "quality": _quality(answer),
            "agent": answer.agent,
        })  # fmt: skip
        for part in tools:
            if part.status in {"completed", "error"}:
                yield self._transcript.event("tool.call", epoch_ns(part.end), {
                    "tool": part.name or UNKNOWN, "id": part.call_id, "input": part.arguments, "output": part.text,
                    "duration_ms": _took(part), "error": (part.text or "failed") if part.status == "error" else None,
                    "agent": answer.agent,
                })  # fmt: skip

    def finish(self) -> Iterator[Event]:
        if not self._transcript.started:
            yield self._start(None)
        yield from self._transcript.unanswered()
        status = self._last.status if self._last is not None else None
        if self._last is not None and status is not None:
            yield self._transcript.end(self._last_ns, status, error=self._last.error or None)


def owners_of(store: Store) -> dict[str, str]:
    """Return the session of each answer; of copies, that of the session which began first."""
    ranks: dict[str, int] = {}
    owners: dict[str, str] = {}
    for message in store.messages():
        rank = ranks.setdefault(message.session_id, len(ranks))
        if message.role == "assistant":
            answer = read_answer(message)
            owner = owners.setdefault(answer.key, message.session_id)
            if rank < ranks[owner]:
                owners[answer.key] = message.session_id
    return owners


def _words(parts: list[Part], kind: str) -> str:
    return "\n\n".join(part.text for part in parts if part.kind == kind and part.text)


def _answered(answer: Answer, tools: list[Part]) -> int | None:
    """A message is complete when its tools have run; the model had answered when the first of them began."""
    starts = [start for start in (epoch_ns(part.start) for part in tools) if start is not None]
    first = min(starts, default=None)
    if first is None or answer.time_ns is None or not (answer.start_ns or 0) <= first <= answer.time_ns:
        return answer.time_ns
    return first


def _took(part: Part) -> float | None:
    start, end = epoch_ns(part.start), epoch_ns(part.end)
    return (end - start) / 1_000_000 if start is not None and end is not None and end >= start else None


def _cost(answer: Answer) -> float | None:
    return None if answer.cost_nano is None else usd(answer.cost_nano)


def _quality(answer: Answer) -> str | None:
    return None if answer.quality == "exact" else answer.quality
