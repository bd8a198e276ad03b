"""A chat of Gemini CLI as native events.

The log is read twice: first for what each message cost in the end, then row by row. A message's rows follow each other,
so only the one that is open is held; what is said of it later (a masked output) is no news, a late tool result is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.reader.rows import Row
from sessionlog.sources.gather import first_words
from sessionlog.sources.gemini.fold import PROVIDER, Fold, fold_log
from sessionlog.sources.gemini.log import Item, is_api_error, prompt_of, read_rows, read_tokens
from sessionlog.sources.google_parts import read_moment, results_of, text_of
from sessionlog.sources.record import UNKNOWN, ScannedSession, read_name
from sessionlog.sources.transcript import Transcript

_DONE = ("success", "error", "cancelled")


def read(path: str, session_id: str | None) -> Iterator[Event | Problem]:  # noqa: ARG001 - a log is one session
    """Yield the session as native events, and problems in place.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A .zst file without a decoder.
    """
    fold = fold_log(path)
    session = fold.finish()
    if session is None:
        yield from (item for item in read_rows(path) if isinstance(item, Problem))
        return
    told = _Telling(fold, session)
    yield told.start()
    for item in read_rows(path):
        if isinstance(item, Problem):
            yield item
        elif isinstance(item.row.get("type"), str):
            yield from told.take(item)
    yield from told.flush()
    yield from told.transcript.unanswered()
    if "stats" in fold.header and not fold.records:
        yield from told.sums()
    if session.status is not None:
        yield told.transcript.end(session.last_ns, session.status, error=session.error or None)


class _Telling:
    """The state of one reading."""

    def __init__(self, fold: Fold, session: ScannedSession) -> None:
        self.transcript = Transcript(session.session_id)
        self._fold, self._session = fold, session
        self._open: Item | None = None
        self._seen: set[str] = set()
        self._given: set[str] = set()

    def start(self) -> Event:
        session = self._session
        models = [record.model for record in session.records]
        facts = {
            "agent": session.records[0].agent if session.part and models else None,
            "kind": self._fold.header.get("kind"),
        }
        return self.transcript.start(
            session.start_ns, provider=PROVIDER, model=models[0] if models else None,
            work_dir=None if session.project == UNKNOWN else session.project,
            metadata={"harness": "gemini-cli", **facts},
        )  # fmt: skip

    def take(self, item: Item) -> Iterator[Event]:
        key = item.identity
        if self._open is not None and self._open.identity == key:
            self._open = self._open if item.settled else item
            return
        kind = item.row["type"]
        if key in self._seen:
            if kind == "gemini" and not item.settled:
                yield from self._results(item.row, key)
            return
        yield from self.flush()
        self._seen.add(key)
        time_ns = read_moment(item.row.get("timestamp"))
        if kind == "user":
            words = prompt_of(item.row)
            if first_words(words):
                self.transcript.hear("user", words, time_ns)
        elif kind == "gemini":
            self._open = item
        elif is_api_error(item.row):
            record = self._fold.records.get(key)
            error = text_of(item.row.get("content"))
            yield from self.transcript.response(
                time_ns, error=error, model=record.model if record else None, key=record.key if record else None
            )

    def flush(self) -> Iterator[Event]:
        """Tell the message that is open."""
        if self._open is None:
            return
        row, key = self._open.row, self._open.identity
        self._open = None
        record = self._fold.records.get(key)
        usage = record.usage if record else None
        if record is None and isinstance(row.get("tokens"), dict):
            usage, _ = read_tokens(row["tokens"])
        yield from self.transcript.response(
            read_moment(row.get("timestamp")),
            content=text_of(row.get("content")),
            reasoning=_thoughts(row),
            tool_calls=[
                {"id": call_id, "name": read_name(call.get("name")) or UNKNOWN, "arguments": call.get("args")}
                for call_id, call in _calls(row, key)
            ],
            usage=usage,
            model=record.model if record else read_name(row.get("model")),
            key=record.key if record else None,
        )
        yield from self._results(row, key)

    def _results(self, row: Row, key: str) -> Iterator[Event]:
        for call_id, call in _calls(row, key):
            place = f"{key}:{call_id}"
            if place in self._given or (call.get("status") not in _DONE and call.get("result") is None):
                continue
            self._given.add(place)
            yield self.transcript.result(
                read_moment(call.get("timestamp")), call_id, _output(call),
                failed=call.get("status") in ("error", "cancelled"),
                name=read_name(call.get("name")), arguments=call.get("args"),
            )  # fmt: skip

    def sums(self) -> Iterator[Event]:
        """A finished run: what it said stands with the first of its sums."""
        content = self._fold.header.get("response")
        for record in self._session.records:
            yield from self.transcript.response(
                None, content=content if isinstance(content, str) else "", usage=record.usage, model=record.model,
                error=(self._session.error or "failed") if record.failed else None,
            )  # fmt: skip
            content = None


def _calls(row: Row, key: str) -> Iterator[tuple[str, Row]]:
    calls = row.get("toolCalls")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            yield call["id"] if isinstance(call.get("id"), str) else f"{key}:{index}", call


def _output(call: Row) -> Any:
    found = results_of(call.get("result"))
    if found:
        return found[0].output
    shown = call.get("resultDisplay")
    return text_of(call.get("result")) or (shown if isinstance(shown, str) else "")


def _thoughts(row: Row) -> str:
    thoughts = row.get("thoughts")
    told = (
        ": ".join(part for name in ("subject", "description") if isinstance(part := thought.get(name), str) and part)
        for thought in (thoughts if isinstance(thoughts, list) else ())
        if isinstance(thought, dict)
    )
    return "\n".join(filter(None, told)) or text_of(row.get("content"), thoughts=True)
