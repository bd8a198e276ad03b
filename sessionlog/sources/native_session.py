"""SessionScan: a fold of one native log's events into a `ScannedSession`.

The rules are DESIGN's: time belongs to the record; a session without an end is a session; what session.end reports
beyond its responses is one more record; known cost is never hidden by unknown cost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from sessionlog.events.envelope import Event
from sessionlog.events.money import NANO, read_usd
from sessionlog.events.times import parse_time
from sessionlog.events.tokens import MAX_COUNT, TokenUsage, read_usage
from sessionlog.sources import fizeau_dialect
from sessionlog.sources.gather import ACTIVE_GAP_NS, Findings, first_words, server_of, text_size
from sessionlog.sources.native_records import NOTHING_GIVEN, Built, Response, RunEnd, build_records, is_native
from sessionlog.sources.native_state import (
    end_of,
    given_of,
    is_json,
    keep_end,
    keep_given,
    keep_response,
    keep_start,
    response_of,
    what_stands,
)
from sessionlog.sources.native_turns import Turns
from sessionlog.sources.record import UNKNOWN, ScannedSession, ToolUse, read_name

_NATIVE = "native"
_LENGTH = 27
_POINT, _ZULU = b".Z"
_REMEMBERED = 4096
_minutes: dict[bytes, int] = {}  # see events.times; here without a detour over text
_UNCLEAN = -1
_MILLION = 1e6
_ENDLESS = 1e15
_KEPT = (
    "start_ns", "first_ns", "last_ns", "latest_ns", "active_ns", "worked_on", "rejected", "prompt", "error",
)  # fmt: skip
_WORK = frozenset({"llm.request", "llm.response", "tool.call"})


class SessionScan:
    """Takes the events of one file in order; `finish` says what they amount to.

    Attributes:
        request_model: Tells the model of the last llm.request; asked when a response does not name it.
        asked: The model of the llm.request before the place where the scan goes on.
        overturned: What was read changes records that were given before and stood: all of the log has to be read.
        turns: The prompts in its requests.
        findings: The damage.
    """

    def __init__(self, path: str, session_id: str, state: Mapping[str, Any] | None = None) -> None:
        """Begin, or go on with what `state` gave."""
        self._path = path
        self._session_id = session_id
        self.request_model: Callable[[], str | None] = lambda: None
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
        self._names: dict[Any, tuple[str, str]] = {}  # as logged → tool and server
        self._given = NOTHING_GIVEN
        self._built: Built | None = None
        self.asked: str | None = None
        self.overturned = False
        self.turns = Turns(None if state is None else state["turns"])
        self.findings = Findings()
        if state is not None:
            self._go_on(state)

    def _go_on(self, state: Mapping[str, Any]) -> None:
        for name in _KEPT:
            setattr(self, f"_{name}", state[name])
        self._start_seen, self._start, self._events = True, state["start"], 1
        self._responses = [response_of(kept) for kept in state["responses"]]
        self._ends = end_of(state["end"], self._responses)
        self._given = given_of(state["given"])
        self.asked = state["asked"]

    def state(self) -> dict[str, Any] | None:
        """What a scan that goes on has to know, as JSON; None if it cannot. To be asked after `finish`."""
        start, end = self._start or {}, self._ends[-1] if self._ends else None
        if self._built is None or not is_native(start) or self._begin_ns is None:
            return None
        given = what_stands(self._built, self._responses, self._ends, self._given)
        if given is None:
            return None
        ran_ms = self._took(self._ends[:-1])
        given = replace(given, calls=given.calls + len(self._tools), ran_ms=ran_ms)
        state = {name: getattr(self, f"_{name}") for name in _KEPT} | {
            "start": keep_start(start),
            "responses": [keep_response(response) for response in self._responses[-1:]],
            "end": None if end is None else keep_end(end, is_open=end.until == len(self._responses)),
            "given": keep_given(given),
            "asked": read_name(self.request_model()),
            "turns": self.turns.state(),
        }
        return state if is_json(state) else None

    @property
    def replaced_count(self) -> int:
        """How many of the records that were given before are given again."""
        return self._given.open

    @property
    def _begin_ns(self) -> int | None:
        return self._start_ns if self._start_ns is not None else self._first_ns

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

    def pass_by(self, stamps: list[bytes]) -> None:
        """Account for events of no interest by their times, written as UTC without the `Z`.

        Such texts sort as their times do; where they are in order and near each other, the first and the last say it.
        """
        first, last = time_of(stamps[0] + b"Z"), time_of(stamps[-1] + b"Z")
        if first is not None and last is not None and last - first <= ACTIVE_GAP_NS and stamps == sorted(stamps):
            self.touch(first)
            if len(stamps) > 1:
                self.touch(last)
                self._events += len(stamps) - 2
            return
        for stamp in stamps:
            self.touch(time_of(stamp + b"Z"))

    def take(self, event: Event) -> None:
        """Take one event that is not an llm.request."""
        data = event.data if isinstance(event.data, Mapping) else None
        if event.type == "llm.response":
            self._take_any_response(event, data or {})
            return
        if event.type == "tool.call":
            self.take_tool(event.time_ns, data or {})
            return
        self.touch(event.time_ns, event.type)
        if event.type == "session.start" and not self._start_seen:
            self._start_seen, self._start, self._start_ns = True, data, event.time_ns
            self._prompt = self._prompt or first_words((data or {}).get("prompt"))
        elif event.type == "session.end":
            self._take_end(event, data)
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
        self.overturned |= first == 0 and self._given.responses > 0 and cost is not None
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

    def take_response(self, time_ns: int | None, data: Mapping[str, Any]) -> bool:
        """Take the payload of an llm.response, unless something is wrong with its numbers: then nothing is done."""
        usage = _clean_usage(data.get("usage"))
        cost = _clean_usd(data.get("cost_usd"))
        if usage is None or cost == _UNCLEAN:
            return False
        self.touch(time_ns, "llm.response")
        self._add_response(time_ns, data, usage, cost)
        return True

    def _take_any_response(self, event: Event, data: Mapping[str, Any]) -> None:
        usage, issues = read_usage(data.get("usage"))
        cost, issue = read_usd(data.get("cost_usd"))
        self._complain(f"{event.type} seq {event.seq}", *issues, *([issue] if issue else []))
        self.touch(event.time_ns, event.type)
        self._add_response(event.time_ns, data, usage, cost)

    def _add_response(self, time_ns: int | None, data: Mapping[str, Any], usage: TokenUsage, cost: int | None) -> None:
        attempt = data.get("attempt")
        attempt = attempt if isinstance(attempt, Mapping) else {}
        error = data.get("error")
        if error:
            self._error = first_words(error)
        self._responses.append(
            Response(
                time_ns=time_ns if time_ns is not None else self._last_ns,
                usage=usage,
                cost_nano=cost,
                attempt_priced=fizeau_dialect.cost_is_recorded(cost, attempt),
                latency_ms=_amount(data.get("latency_ms")),
                failed=bool(error),
                asked=read_name(attempt.get("requested_model")) or read_name(self.request_model()),
                answered=read_name(attempt.get("response_model")) or read_name(data.get("model")),
                provider=read_name(attempt.get("provider_system")),
                active_ns=self._active_ns,
            )
        )
        self._active_ns = 0

    def take_tool(self, time_ns: int | None, data: Mapping[str, Any]) -> None:
        """Take the payload of a tool.call; there is nothing about it that could be wrong."""
        self.touch(time_ns, "tool.call")
        called, output = data.get("tool"), data.get("output")
        try:
            named = self._names[called]
        except (KeyError, TypeError):
            named = server_of(read_name(called) or UNKNOWN)
            if type(called) is str and len(self._names) < _REMEMBERED:
                self._names[called] = named
        tools = self._tools
        tools.append(
            ToolUse(
                key=f"{self._path}#{self._given.calls + len(tools)}",
                time_ns=time_ns if time_ns is not None else self._last_ns,
                tool=named[0],
                server=named[1],
                finished=True,
                failed=bool(data.get("error")),
                duration_ms=_amount(data.get("duration_ms")),
                output_bytes=len(output.encode("utf-8", "replace")) if type(output) is str else text_size(output),
            )
        )

    def _complain(self, place: str, *issues: str) -> None:
        self.findings.complain(self._path, 0, *(f"{place}: {issue}" for issue in issues))

    def finish(self) -> ScannedSession | None:
        """Return the session, None if the file held no event."""
        if not self._events:
            return None
        start, end = self._start or {}, (self._ends[-1].data if self._ends else None) or {}
        built = self._built = build_records(
            self._responses, self._ends, start, self._begin_ns, self._active_ns, self._given
        )
        self.overturned |= self._given.records and built.model != self._given.model
        ended = bool(self._ends) and not self._worked_on
        status = read_name(end.get("status")) or ""
        work_dir = start.get("work_dir")
        return ScannedSession(
            source=_NATIVE if is_native(start) else fizeau_dialect.ID,
            session_id=self._session_id,
            path=self._path,
            place=os.path.dirname(self._path),
            start_ns=self._begin_ns,
            last_ns=self._latest_ns,
            status=status if ended else None,
            project=work_dir if isinstance(work_dir, str) and os.path.isabs(work_dir) else UNKNOWN,
            harness=read_name(start.get("resolved_harness")) or read_name(start.get("requested_harness")) or UNKNOWN,
            route=read_name(start.get("selected_route")) or read_name(end.get("selected_route")) or UNKNOWN,
            duration_ms=self._took(self._ends if is_native(start) else self._ends[-1:]) if ended else None,
            prompt=self._prompt,
            error=first_words(end.get("error")) or (self._error if status != "success" else ""),
            metadata={**_table(start.get("metadata")), **_table(end.get("metadata"))},
            parent=_parent_of(start),
            turns=self.turns.count or int(bool(self._prompt)),
            last_turn_ns=self.turns.last_ns if self.turns.count else self._begin_ns if self._prompt else None,
            counted=self._is_counted(),
            records=built.records,
            tools=tuple(self._tools),
        )

    def _took(self, ends: Sequence[RunEnd]) -> int | None:
        """What the runs say that they took together; None when one of them says nothing usable."""
        said = [(end.data or {}).get("duration_ms") for end in ends]
        known = [int(duration) for duration in said if _is_amount(duration) and duration > 0]
        before_ms = self._given.ran_ms
        return before_ms + sum(known) if before_ms is not None and len(known) == len(said) else None

    def _is_counted(self) -> bool:
        if self._responses:
            return True
        if self._rejected and not self._ends:
            return False
        return self._start is not None or (not self._start_seen and any(end.data is not None for end in self._ends))


def _parent_of(start: Mapping[str, Any]) -> str:
    """The session that a fork was made of."""
    return read_name(_table(start.get("parent")).get("session")) or ""


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def time_of(stamp: bytes) -> int | None:
    """What `parse_time` says of the bytes of a line; quick for our own spelling, `2026-11-21T12:34:56.123456Z`."""
    digits = stamp[17:19] + stamp[20:26]
    ours = len(stamp) == _LENGTH and stamp[19] == _POINT and stamp[26] == _ZULU and digits.isdigit() and digits < b"60"
    minute = _minutes.get(stamp[:17])
    if ours and minute is not None:
        return minute + int(digits) * 1000
    time_ns = parse_time(stamp.decode("ascii"))
    if ours and time_ns is not None:
        if len(_minutes) >= _REMEMBERED:
            _minutes.clear()
        _minutes[stamp[:17]] = time_ns - int(digits) * 1000
    return time_ns


def _clean_usage(value: Any) -> TokenUsage | None:
    """Read a usage; None when something is wrong with it."""
    if type(value) is dict and "input" in value:
        get = value.get
        read, output, cached = value["input"], get("output", 0), get("cache_read", 0)
        written, reasoning, long = get("cache_write", 0), get("reasoning", 0), get("cache_write_1h", 0)
        if (
            type(read) is type(output) is type(cached) is type(written) is type(reasoning) is type(long) is int
            and min(read, output, cached, written, reasoning, long) >= 0
            and max(read, output, cached, written, reasoning, long) <= MAX_COUNT
        ):
            return TokenUsage(
                input=read, output=output, cache_read=cached, cache_write=written, reasoning=reasoning,
                cache_write_1h=long,
            )  # fmt: skip
    usage, issues = read_usage(value)
    return None if issues else usage


def _clean_usd(value: Any) -> int | None:
    """Read a cost in nano-dollars; `_UNCLEAN` when something is wrong with it.

    Where the nearest whole nano-dollars give the very same float again, they are what its decimals say: both lie within
    one step of floats, which is far below half a nano-dollar for amounts up to a million dollars.
    """
    if type(value) is float and 0 <= value < _MILLION:
        nano = round(value * NANO)
        if nano / NANO == value:
            return nano
    cost, issue = read_usd(value)
    return _UNCLEAN if issue else cost


def _amount(value: Any) -> float | None:
    if type(value) is float or type(value) is int:
        return float(value) if 0 <= value < _ENDLESS else None
    return float(value) if _is_amount(value) else None


def _is_amount(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _ENDLESS
