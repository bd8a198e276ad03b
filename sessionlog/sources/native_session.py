"""SessionScan: a fold of one native log's events into a `ScannedSession`.

The rules are DESIGN's: time belongs to the record; a session without an end is a session; what session.end reports
beyond its responses is one more record; known cost is never hidden by unknown cost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from sessionlog.events.envelope import Event
from sessionlog.events.money import read_usd
from sessionlog.events.tokens import read_usage
from sessionlog.sources import fizeau_dialect
from sessionlog.sources.gather import ACTIVE_GAP_NS, Findings, first_words, server_of, text_size
from sessionlog.sources.native_records import Response, RunEnd, build_records, is_native
from sessionlog.sources.record import UNKNOWN, ScannedSession, ToolUse, read_name

_NATIVE = "native"
_WORK = frozenset({"llm.request", "llm.response", "tool.call"})


class SessionScan:
    """Takes the events of one file in order; `finish` says what they amount to."""

    def __init__(self, path: str, session_id: str, request_model: Callable[[], str | None]) -> None:
        self._path = path
        self._session_id = session_id
        self._request_model = request_model
        self._start: Mapping[str, Any] | None = None
        self._start_seen = False
        self._ends: list[RunEnd] = []
        self._worked_on = False  # after the last end
        self._start_ns: int | None = None
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._latest_ns: int | None = None
        self._active_ns = 0
        self._rejected = False
        self._events = 0
        self._prompt = ""
        self._error = ""
        self._responses: list[Response] = []
        self._tools: list[ToolUse] = []
        self.findings = Findings()

    @property
    def wants_prompt(self) -> bool:
        """No words of the user have been seen yet."""
        return not self._prompt

    def touch(self, time_ns: int | None, type_: str = "") -> None:
        """Account for an event's time: gaps of up to five minutes are activity, longer ones are pauses."""
        self._events += 1
        self._worked_on |= type_ in _WORK
        if time_ns is None:
            return
        if self._last_ns is None:
            self._first_ns = self._latest_ns = time_ns
        else:
            gap = time_ns - self._last_ns
            if 0 < gap <= ACTIVE_GAP_NS:
                self._active_ns += gap
            if self._latest_ns is None or time_ns > self._latest_ns:
                self._latest_ns = time_ns
        self._last_ns = time_ns

    def take(self, event: Event) -> None:
        """Take one event that is not an llm.request."""
        self.touch(event.time_ns, event.type)
        data = event.data if isinstance(event.data, Mapping) else None
        if event.type == "llm.response":
            self._take_response(event, data or {})
        elif event.type == "session.start" and not self._start_seen:
            self._start_seen, self._start, self._start_ns = True, data, event.time_ns
            self._prompt = self._prompt or first_words((data or {}).get("prompt"))
        elif event.type == "session.end":
            self._take_end(event, data)
        elif event.type == "tool.call":
            self._take_tool(event, data or {})
        elif event.type == "rejected_override":
            self._rejected = True
            self._error = first_words((data or {}).get("rejection_error")) or "pin rejected"

    def _take_end(self, event: Event, data: Mapping[str, Any] | None) -> None:
        """Close a run: it covers the responses since the end before; a second end of the same run replaces it."""
        first = 0
        if self._ends:
            last = self._ends[-1]
            first = self._ends.pop().first if last.until == len(self._responses) else last.until
        total, issues = read_usage((data or {}).get("tokens"))
        cost, issue = read_usd((data or {}).get("cost_usd"))
        self._complain(f"{event.type} seq {event.seq}", *issues, *([issue] if issue else []))
        time_ns = event.time_ns or self._last_ns
        end = RunEnd(data=data, time_ns=time_ns, total=total, cost_nano=cost, first=first, until=len(self._responses))
        self._ends.append(end)
        self._worked_on = False

    def take_request(self, events: Iterable[Event]) -> None:
        """Look for the user's first words in an llm.request."""
        for event in events:
            messages = event.data.get("messages") if isinstance(event.data, Mapping) else None
            for message in messages if isinstance(messages, list) else []:
                if not self._prompt and isinstance(message, Mapping) and message.get("role") == "user":
                    self._prompt = first_words(message.get("content"))

    def _take_response(self, event: Event, data: Mapping[str, Any]) -> None:
        usage, issues = read_usage(data.get("usage"))
        cost, issue = read_usd(data.get("cost_usd"))
        self._complain(f"{event.type} seq {event.seq}", *issues, *([issue] if issue else []))
        attempt = data.get("attempt")
        attempt = attempt if isinstance(attempt, Mapping) else {}
        error = data.get("error")
        if error:
            self._error = first_words(error)
        latency = data.get("latency_ms")
        asked = read_name(attempt.get("requested_model")) or read_name(self._request_model())
        self._responses.append(
            Response(
                time_ns=event.time_ns if event.time_ns is not None else self._last_ns,
                usage=usage,
                cost_nano=cost,
                attempt_priced=fizeau_dialect.cost_is_recorded(cost, attempt),
                latency_ms=float(latency) if _is_amount(latency) else None,
                failed=bool(error),
                asked=asked,
                answered=read_name(attempt.get("response_model")) or read_name(data.get("model")),
                provider=read_name(attempt.get("provider_system")),
                active_ns=self._active_ns,
            )
        )
        self._active_ns = 0

    def _take_tool(self, event: Event, data: Mapping[str, Any]) -> None:
        duration = data.get("duration_ms")
        name, server = server_of(read_name(data.get("tool")) or UNKNOWN)
        self._tools.append(
            ToolUse(
                key=f"{self._path}#{len(self._tools)}",
                time_ns=event.time_ns if event.time_ns is not None else self._last_ns,
                tool=name,
                server=server,
                finished=True,
                failed=bool(data.get("error")),
                duration_ms=float(duration) if _is_amount(duration) else None,
                output_bytes=text_size(data.get("output")),
            )
        )

    def _complain(self, place: str, *issues: str) -> None:
        self.findings.complain(self._path, 0, *(f"{place}: {issue}" for issue in issues))

    def finish(self) -> ScannedSession | None:
        """Return the session, None if the file held no event."""
        if not self._events:
            return None
        start, end = self._start or {}, (self._ends[-1].data if self._ends else None) or {}
        start_ns = self._start_ns if self._start_ns is not None else self._first_ns
        ended = bool(self._ends) and not self._worked_on
        status = read_name(end.get("status")) or ""
        work_dir = start.get("work_dir")
        return ScannedSession(
            source=_NATIVE if is_native(start) else fizeau_dialect.ID,
            session_id=self._session_id,
            path=self._path,
            place=os.path.dirname(self._path),
            start_ns=start_ns,
            last_ns=self._latest_ns,
            status=status if ended else None,
            project=work_dir if isinstance(work_dir, str) and os.path.isabs(work_dir) else UNKNOWN,
            harness=read_name(start.get("resolved_harness")) or read_name(start.get("requested_harness")) or UNKNOWN,
            route=read_name(start.get("selected_route")) or read_name(end.get("selected_route")) or UNKNOWN,
            duration_ms=self._duration(self._ends if is_native(start) else self._ends[-1:]) if ended else None,
            prompt=self._prompt,
            error=first_words(end.get("error")) or (self._error if status != "success" else ""),
            metadata={**_table(start.get("metadata")), **_table(end.get("metadata"))},
            counted=self._is_counted(),
            records=build_records(self._responses, self._ends, start, start_ns, self._active_ns),
            tools=tuple(self._tools),
        )

    def _duration(self, ends: Sequence[RunEnd]) -> int | None:
        """What the runs say that they took together; None when one of them says nothing usable."""
        said = [(end.data or {}).get("duration_ms") for end in ends]
        known = [int(duration) for duration in said if _is_amount(duration) and duration > 0]
        return sum(known) if len(known) == len(said) else None

    def _is_counted(self) -> bool:
        if self._responses:
            return True
        if self._rejected and not self._ends:
            return False
        return self._start is not None or (not self._start_seen and any(end.data is not None for end in self._ends))


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_amount(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
