"""SessionScan: a fold of one native log's events into a `ScannedSession`.

The rules are DESIGN's: time belongs to the record; a session without an end is a session; what session.end reports
beyond its responses is one more record; known cost is never hidden by unknown cost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.money import read_usd
from sessionlog.events.tokens import TokenUsage, read_usage
from sessionlog.sources import fizeau
from sessionlog.sources.record import UNKNOWN, Problems, Record, ScannedSession

_NATIVE = "native"
_ACTIVE_GAP_NS = 300 * 1_000_000_000
_PROMPT_LENGTH = 200
_LONGEST_NAME = 400  # nobody's model is called longer; a hostile name must not fill tables and spreadsheets
_MAX_NAMED = 100


@dataclass(slots=True)
class _Response:
    """What is kept of an llm.response until the whole file has been read."""

    time_ns: int | None
    usage: TokenUsage
    cost_nano: int | None
    attempt_priced: bool
    latency_ms: float | None
    failed: bool
    asked: str | None
    answered: str | None
    provider: str | None
    active_ns: int


class SessionScan:
    """Takes the events of one file in order; `finish` says what they amount to."""

    def __init__(self, path: str, session_id: str, request_model: Callable[[], str | None]) -> None:
        self._path = path
        self._session_id = session_id
        self._request_model = request_model
        self._start: Mapping[str, Any] | None = None
        self._start_seen = False
        self._end: Mapping[str, Any] | None = None
        self._end_seen = False
        self._end_ns: int | None = None
        self._end_seq = 0
        self._start_ns: int | None = None
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._latest_ns: int | None = None
        self._active_ns = 0
        self._rejected = False
        self._events = 0
        self._prompt = ""
        self._error = ""
        self._responses: list[_Response] = []
        self._named: list[Problem] = []
        self._problem_count = 0

    @property
    def problems(self) -> Problems:
        """The damage that was noted."""
        return Problems(count=self._problem_count, first=tuple(self._named))

    def note(self, problem: Problem) -> None:
        """Count a piece of damage, and keep it if it is among the first; news cost nothing and are left out."""
        if problem.severity == "info":
            return
        self._problem_count += 1
        if len(self._named) < _MAX_NAMED:
            self._named.append(problem)

    @property
    def wants_prompt(self) -> bool:
        """No words of the user have been seen yet."""
        return not self._prompt

    def touch(self, time_ns: int | None) -> None:
        """Account for an event's time: gaps of up to five minutes are activity, longer ones are pauses."""
        self._events += 1
        if time_ns is None:
            return
        if self._last_ns is None:
            self._first_ns = self._latest_ns = time_ns
        else:
            gap = time_ns - self._last_ns
            if 0 < gap <= _ACTIVE_GAP_NS:
                self._active_ns += gap
            if self._latest_ns is None or time_ns > self._latest_ns:
                self._latest_ns = time_ns
        self._last_ns = time_ns

    def take(self, event: Event) -> None:
        """Take one event that is not an llm.request."""
        self.touch(event.time_ns)
        data = event.data if isinstance(event.data, Mapping) else None
        if event.type == "llm.response":
            self._take_response(event, data or {})
        elif event.type == "session.start" and not self._start_seen:
            self._start_seen, self._start, self._start_ns = True, data, event.time_ns
            self._prompt = self._prompt or _words((data or {}).get("prompt"))
        elif event.type == "session.end":
            self._end_seen, self._end, self._end_ns = True, data, event.time_ns or self._last_ns
            self._end_seq = event.seq
        elif event.type == "rejected_override":
            self._rejected = True
            self._error = _words((data or {}).get("rejection_error")) or "pin rejected"

    def take_request(self, events: Iterable[Event]) -> None:
        """Look for the user's first words in an llm.request."""
        for event in events:
            messages = event.data.get("messages") if isinstance(event.data, Mapping) else None
            for message in messages if isinstance(messages, list) else []:
                if not self._prompt and isinstance(message, Mapping) and message.get("role") == "user":
                    self._prompt = _words(message.get("content"))

    def _take_response(self, event: Event, data: Mapping[str, Any]) -> None:
        usage, issues = read_usage(data.get("usage"))
        cost, issue = read_usd(data.get("cost_usd"))
        self._complain(f"{event.type} seq {event.seq}", *issues, *([issue] if issue else []))
        attempt = data.get("attempt")
        attempt = attempt if isinstance(attempt, Mapping) else {}
        error = data.get("error")
        if error:
            self._error = _words(error)
        latency = data.get("latency_ms")
        asked = _name(attempt.get("requested_model")) or self._request_model()
        self._responses.append(
            _Response(
                time_ns=event.time_ns if event.time_ns is not None else self._last_ns,
                usage=usage,
                cost_nano=cost,
                attempt_priced=fizeau.cost_is_recorded(cost, attempt),
                latency_ms=float(latency) if _is_amount(latency) else None,
                failed=bool(error),
                asked=asked,
                answered=_name(attempt.get("response_model")) or _name(data.get("model")),
                provider=_name(attempt.get("provider_system")),
                active_ns=self._active_ns,
            )
        )
        self._active_ns = 0

    def _complain(self, place: str, *issues: str) -> None:
        for issue in issues:
            detail = f"{place}: {issue}"
            self.note(Problem(path=self._path, line=0, offset=0, kind="bad_number", detail=detail))

    def finish(self) -> ScannedSession | None:
        """Return the session, None if the file held no event."""
        if not self._events:
            return None
        start, end = self._start or {}, self._end or {}
        start_ns = self._start_ns if self._start_ns is not None else self._first_ns
        records = self._records(start, end, start_ns)
        work_dir = start.get("work_dir")
        status = end.get("status") if self._end_seen else None
        duration = end.get("duration_ms")
        metadata = {**_table(start.get("metadata")), **_table(end.get("metadata"))}
        return ScannedSession(
            source=_NATIVE if self._is_native(start) else fizeau.ID,
            session_id=self._session_id,
            path=self._path,
            start_ns=start_ns,
            last_ns=self._latest_ns,
            status=(status if isinstance(status, str) else "") if self._end_seen else None,
            project=work_dir if isinstance(work_dir, str) and os.path.isabs(work_dir) else UNKNOWN,
            harness=_name(start.get("resolved_harness")) or _name(start.get("requested_harness")) or UNKNOWN,
            route=_name(start.get("selected_route")) or _name(end.get("selected_route")) or UNKNOWN,
            duration_ms=int(duration) if _is_amount(duration) and duration > 0 else None,
            prompt=self._prompt,
            error=_words(end.get("error")) or (self._error if status != "success" else ""),
            metadata=metadata,
            counted=self._is_counted(),
            records=records,
            problems=self.problems,
        )

    def _is_native(self, start: Mapping[str, Any]) -> bool:
        version = start.get("v")
        return type(version) is int and version >= 1

    def _is_counted(self) -> bool:
        if self._responses:
            return True
        if self._rejected and not self._end_seen:
            return False
        return self._start is not None or (self._end is not None and not self._start_seen)

    def _records(self, start: Mapping[str, Any], end: Mapping[str, Any], start_ns: int | None) -> tuple[Record, ...]:
        native = self._is_native(start)
        harness = _name(start.get("resolved_harness")) or ""
        provider = _name(start.get("provider")) or harness or UNKNOWN
        model = _name(start.get("resolved_model")) or _name(start.get("model")) or _name(end.get("model"))

        def normal(usage: TokenUsage, who: str, total: TokenUsage | None = None) -> TokenUsage:
            return usage if native else fizeau.normalise_usage(usage, harness=harness, provider=who, total=total)

        records = [
            Record(
                time_ns=r.time_ns if r.time_ns is not None else start_ns,
                provider=r.provider or provider,
                model=r.asked or (r.answered if native else None) or model or r.answered or UNKNOWN,
                response_model=r.answered,
                usage=normal(r.usage, r.provider or provider),
                cost_nano=r.cost_nano if native or r.attempt_priced else None,
                latency_ms=r.latency_ms,
                failed=r.failed,
                active_ms=r.active_ns // 1_000_000,
            )
            for r in self._responses
        ]
        total, issues = read_usage(end.get("tokens"))
        cost, issue = read_usd(end.get("cost_usd"))
        self._complain(f"session.end seq {self._end_seq}", *issues, *([issue] if issue else []))
        # As logged: responses that read differently from the totals would leave a rest that nobody used.
        rest = total.beyond(_sum(r.usage for r in self._responses))
        whole = Record(
            time_ns=start_ns,
            provider=provider,
            model=model or UNKNOWN,
            response_model=None,
            usage=normal(rest, provider, total),
            cost_nano=cost,
            requests=1 if total else 0,
            granularity="session",
            priced=self._end_seen,
        )
        if not records:
            return (replace(whole, active_ms=self._active_ns // 1_000_000),)
        records[-1] = replace(records[-1], active_ms=(self._responses[-1].active_ns + self._active_ns) // 1_000_000)
        return tuple(_with_remainder(records, replace(whole, time_ns=self._end_ns or start_ns)))


def _with_remainder(records: list[Record], whole: Record) -> list[Record]:
    """Add what session.end reports beyond the responses: `whole` has the rest of the tokens and all of the cost.

    That cost covers responses that name none, so that nothing is estimated beside it.
    """
    cost, covered = whole.cost_nano, bool(whole.cost_nano)
    if cost == 0:
        records = [r if r.cost_nano is not None else replace(r, cost_nano=0) for r in records]
    elif cost is not None:
        records = [replace(r, priced=False) for r in records]
        cost -= sum(r.cost_nano or 0 for r in records)
        cost = cost if cost > len(records) else None  # a nano-dollar per response is rounding
    if not whole.usage and not cost:
        return records
    return [*records, replace(whole, cost_nano=cost, requests=0, granularity="request", priced=not covered)]


def _sum(usages: Iterable[TokenUsage]) -> TokenUsage:
    total = TokenUsage()
    for usage in usages:
        total += usage
    return total


def _name(value: Any) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) and value else None


def _words(value: Any) -> str:
    """The beginning of a text, on one line."""
    if isinstance(value, list):
        value = " ".join(p["text"] for p in value if isinstance(p, Mapping) and isinstance(p.get("text"), str))
    return " ".join(value[: 4 * _PROMPT_LENGTH].split())[:_PROMPT_LENGTH] if isinstance(value, str) else ""


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_amount(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
