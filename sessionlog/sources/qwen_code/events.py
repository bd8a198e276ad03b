"""A session of Qwen Code as native events, row by row."""

from __future__ import annotations

from collections.abc import Iterator

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.gather import first_words
from sessionlog.sources.google_parts import calls_of, is_absolute, read_duration, read_moment, results_of, text_of
from sessionlog.sources.qwen_code.rows import (
    Telemetry,
    agent_of,
    latency_of,
    outcome_of,
    parts_of,
    prompt_of,
    provider_of,
    read_telemetry,
    session_id_of,
)
from sessionlog.sources.qwen_code.usage import fingerprint, read_usage
from sessionlog.sources.record import MAIN, UNKNOWN, read_name
from sessionlog.sources.transcript import Transcript


def read(path: str, session_id: str | None) -> Iterator[Event | Problem]:
    """Yield the session as native events, and problems in place.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A .zst file without a decoder.
    """
    telling: _Telling | None = None
    with Rows(path) as rows:
        for row in rows.all():
            if isinstance(row, Problem):
                yield row
                continue
            if telling is None:
                telling = _Telling(session_id or read_name(row.get("sessionId")) or session_id_of(path))
                yield telling.start(row)
            yield from telling.take(row, rows.place)
    if telling is not None:
        yield from telling.transcript.unanswered()
    if telling is not None and telling.status is not None:
        error = telling.error if telling.status == "error" else ""
        yield telling.transcript.end(None, telling.status, error=error or None)


class _Telling:
    """The state of one reading."""

    def __init__(self, session_id: str) -> None:
        self.transcript = Transcript(session_id)
        self.status: str | None = None
        self.error = ""
        self._session_id = session_id
        self._auth: str | None = None
        self._model: str | None = None
        self._timed: list[list[object]] = []
        self._told: set[str] = set()

    def start(self, row: Row) -> Event:
        """session.start, with what the first row tells."""
        metadata = {
            "harness": "qwen-code", "version": read_name(row.get("version")), "branch": read_name(row.get("gitBranch")),
            "agent": None if agent_of(row) == MAIN else agent_of(row),
        }  # fmt: skip
        return self.transcript.start(
            read_moment(row.get("timestamp")), provider="qwen", model=read_name(row.get("model")),
            work_dir=row["cwd"] if is_absolute(row.get("cwd")) else None, metadata=metadata,
        )  # fmt: skip

    def take(self, row: Row, place: str) -> Iterator[Event]:
        """Tell one row."""
        time_ns, kind, event = read_moment(row.get("timestamp")), row.get("type"), read_telemetry(row)
        payload = row.get("systemPayload")
        self.status = outcome_of(row, event, self.status)
        if isinstance(payload, dict):
            self._auth = read_name(payload.get("authType")) or self._auth
        if event is not None:
            yield from self._telemetry(row, event, time_ns, place)
        elif kind == "user":
            typed = prompt_of(row)
            words = typed or text_of(parts_of(row))
            if words:
                self.transcript.hear("user" if first_words(typed) else "system", words, time_ns)
        elif kind == "assistant":
            yield from self._answer(row, time_ns, place)
        elif kind == "tool_result":
            yield from self._results(row, time_ns)
        elif row.get("subtype") == "chat_compression":
            info = payload.get("info") if isinstance(payload, dict) else None
            facts = info if isinstance(info, dict) else {}
            yield self.transcript.compacted(
                time_ns, tokens_before=facts.get("originalTokenCount"), tokens_after=facts.get("newTokenCount")
            )

    def _answer(self, row: Row, time_ns: int | None, place: str) -> Iterator[Event]:
        parts, counts = parts_of(row), row.get("usageMetadata")
        calls = [
            {"id": call.id, "name": read_name(call.name) or UNKNOWN, "arguments": call.arguments}
            for call in calls_of(parts)
        ]
        if not isinstance(counts, dict) and agent_of(row) != MAIN and not text_of(parts):
            for call in calls:
                self.transcript.call(call["id"], call["name"], call["arguments"], time_ns)
            return
        usage, quality, _ = read_usage(counts) if isinstance(counts, dict) else (None, "exact", None)
        self._model = read_name(row.get("model")) or self._model
        key = read_name(row.get("uuid")) or place
        yield from self.transcript.response(
            time_ns,
            content=text_of(parts),
            reasoning=text_of(parts, thoughts=True),
            tool_calls=calls,
            usage=self._once(key, usage),
            model=self._model,
            provider=read_name(row.get("provider")) or provider_of(self._auth),
            latency_ms=latency_of(self._timed, fingerprint(counts), None, None) if isinstance(counts, dict) else None,
            key=key,
            quality=None if quality == "exact" else quality,
        )

    def _once(self, key: str, usage: TokenUsage | None) -> TokenUsage | None:
        """A row that was written twice used its tokens once."""
        if usage is None or key in self._told:
            return None
        self._told.add(key)
        return usage

    def _telemetry(self, row: Row, event: Telemetry, time_ns: int | None, place: str) -> Iterator[Event]:
        self._auth = event.auth or self._auth
        if (event.failed and event.aborted) or not (event.failed or event.agent):
            if event.duration_ms is not None and not event.failed:
                self._timed = [*self._timed, [fingerprint(event.counts), event.duration_ms]][-8:]
            return
        self.error = event.error if event.failed else self.error
        usage, quality, _ = read_usage(event.counts)
        key = read_name(row.get("uuid")) or place
        yield from self.transcript.response(
            time_ns,
            usage=None if event.failed else self._once(key, usage),
            model=event.model,
            provider=provider_of(self._auth),
            latency_ms=event.duration_ms,
            error=(event.error or "failed") if event.failed else None,
            key=key,
            quality=None if quality == "exact" else quality,
        )

    def _results(self, row: Row, time_ns: int | None) -> Iterator[Event]:
        told = row.get("toolCallResult")
        facts = told if isinstance(told, dict) else {}
        found = results_of(parts_of(row))
        for result in found:
            yield self.transcript.result(
                time_ns, result.id, result.output,
                failed=result.failed or facts.get("status") in ("error", "cancelled"), name=read_name(result.name),
                duration_ms=read_duration(facts.get("durationMs")) if len(found) == 1 else None,
            )  # fmt: skip
