"""UsageTracker: the usage of an agent's turns, recorded as they end or rebuilt from a log.

    tracker = UsageTracker()
    tracker.start_turn()
    tracker.record_turn(result.usage)
    tracker.get_turn_usage(), tracker.get_session_usage()

The invariant: the session is the sum of its turns, and a turn holds exactly what was recorded for it. The clock is
monotonic; the duration of a turn without `start_turn` is 0. Token counts are inclusive (see `usage`).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, Self

from sessionlog.context.snapshots.logged import LogLike, read_logged_session
from sessionlog.context.snapshots.snapshot import ContextSnapshot
from sessionlog.context.steps import RequestUsageSnapshot, StepRecord, read_duration, record_steps, save_csv, to_csv
from sessionlog.context.usage import Counts, SessionUsage, TurnUsage, read_counts, sum_turns, tokens_of, usage_to_dict
from sessionlog.events.tokens import read_count

NOT_APPLICABLE = "N/A"
_CALLS = ("codemode_tool_calls", "mcp_tool_calls")


class UsageTracker:
    """Sums the turns of one session. Not thread-safe: a session has one writer.

    Args:
        codemode: The caller counts tool calls cumulatively, and passes the counts to `record_turn`.
        session_id: The session's id in CSV; a new one by default.
        clock: A monotonic clock in seconds, for tests.
    """

    def __init__(
        self,
        codemode: bool = False,
        session_id: str | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.codemode = codemode
        self.session_id = session_id or f"session_{uuid.uuid4().hex[:8]}"
        self._clock = clock
        self._started: float | None = None
        self._turns: list[TurnUsage] = []
        self._data: dict[str, Any] = {}
        self._calls = dict.fromkeys(_CALLS, 0)
        self._last_counts = dict.fromkeys(_CALLS, 0)
        self._steps: list[RequestUsageSnapshot] = []

    @classmethod
    def from_log(cls, log: LogLike, *, session_id: str | None = None) -> Self:
        """Rebuild a tracker from a log: its turns with their times, and its steps.

        Raises:
            LogNotReadable: The path cannot be read, or is no agent's log.
        """
        session = read_logged_session(log)
        tracker = cls(session_id=session_id or session.session_id or None)
        for turn in session.turns:
            usage = tokens_of(turn) | {"requests": turn.requests, "tool_calls": turn.tool_calls}
            tracker.record_turn(usage, turn_duration=turn.duration_seconds, tool_names=turn.tool_names)
        tracker._steps = list(session.steps)
        return tracker

    @property
    def turn_count(self) -> int:
        """Turns recorded so far."""
        return len(self._turns)

    def start_turn(self) -> None:
        """Start the clock of a turn."""
        self._started = self._clock()

    def record_turn(
        self,
        run_usage: object,
        codemode_counts: Mapping[str, Any] | None = None,
        turn_duration: float | None = None,
        *,
        tool_names: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Record a turn that has ended.

        Args:
            run_usage: Its usage: pydantic-ai's `RunUsage`, any other usage object, a mapping, or None.
            codemode_counts: With codemode: `codemode_tool_calls` and `mcp_tool_calls` of the session so far. A count
                that is lower than before has restarted at 0; a missing or invalid one has not changed.
            turn_duration: Seconds; None or an invalid value = since `start_turn`, 0 if that was not called for this
                turn.
            tool_names: The tools it called, one name per call.

        Returns:
            The usage under its own names, with `duration_ms`, `mcp_tool_calls` and `codemode_tool_calls`.
        """
        seconds = read_duration(turn_duration)
        if seconds is None:
            seconds = 0.0 if self._started is None else self._clock() - self._started
        self._started = None
        counts = read_counts(run_usage)
        self._data = usage_to_dict(run_usage)
        self._data["duration_ms"] = seconds * 1000
        calls = self._count_calls(counts, codemode_counts, len(tool_names))
        self._data.pop("tool_calls", None)
        self._turns.append(
            TurnUsage(
                requests=counts.requests,
                tool_calls=calls,
                tool_names=tuple(tool_names),
                duration_seconds=seconds,
                **tokens_of(counts),
            )
        )
        return dict(self._data)

    def get_turn_data(self) -> dict[str, Any]:
        """Return the last turn as it was recorded, with `duration_seconds`; empty before the first."""
        if not self._turns:
            return {}
        return {**self._data, "duration_seconds": round(self._turns[-1].duration_seconds, 2)}

    def get_session_data(self) -> dict[str, Any]:
        """Return the session's sums.

        `total_tokens` is input and output, `cached_tokens` the part of the input that came from a cache, and
        `billable_tokens` the total without it: the tokens at full price.
        """
        session = self.get_session_usage()
        total = session.input_tokens + session.output_tokens
        return {
            "input_tokens": session.input_tokens,
            "output_tokens": session.output_tokens,
            "total_tokens": total,
            "requests": session.requests,
            "cached_tokens": session.cache_read_tokens,
            "billable_tokens": total - session.cache_read_tokens,
            **self._calls,
            **({} if self.codemode else {"codemode_tool_calls": NOT_APPLICABLE}),
            "duration_seconds": session.duration_seconds,
        }

    def get_turn_usage(self) -> TurnUsage:
        """Return the last turn, seconds with two decimals; an empty one before the first."""
        turn = self._turns[-1] if self._turns else TurnUsage()
        return replace(turn, duration_seconds=round(turn.duration_seconds, 2))

    def get_session_usage(self) -> SessionUsage:
        """Return the sum of all turns, seconds with two decimals."""
        session = sum_turns(self._turns)
        return replace(session, duration_seconds=round(session.duration_seconds, 2))

    def record_steps_from_snapshot(self, snapshot: ContextSnapshot) -> None:
        """Keep the steps of a snapshot for the CSV.

        Repeated snapshots of a history add only the new steps, even if its beginning was truncated meanwhile. A
        snapshot of a later run alone is appended as further turns. Steps without a time count as repeated only if a
        longer snapshot begins with all known steps.
        """
        new = snapshot.per_request_usage
        same = _overlap(self._steps, new)
        if same == len(new):
            return
        number, turn = len(self._steps) - same, self._steps[-1].turn_id or 1 if self._steps else 0
        if same:
            turn -= new[same - 1].turn_id or 1
        self._steps += [
            replace(step, request_num=number + place, turn_id=turn + (step.turn_id or 1))
            for place, step in enumerate(new[same:], start=same + 1)
        ]

    def get_step_history(self) -> tuple[StepRecord, ...]:
        """Return the recorded steps as rows of the CSV."""
        return record_steps(self._steps, self.session_id)

    def to_csv(self, *, durations: bool = True) -> str:
        """Return the steps as CSV (see `sessionlog.context.to_csv`)."""
        return to_csv(self.get_step_history(), durations=durations)

    def save_csv(self, path: str | os.PathLike[str], *, durations: bool = True) -> None:
        """Write the steps as CSV, whole or not at all.

        Raises:
            OSError: The file cannot be written.
        """
        save_csv(self.get_step_history(), path, durations=durations)

    def _count_calls(self, counts: Counts, cumulative: Mapping[str, Any] | None, named: int) -> int:
        """Return the turn's tool calls; set their counts in `_data` and add them to `_calls`."""
        if not self.codemode:
            calls = read_count(self._data.get("mcp_tool_calls"))[0] or counts.tool_calls or named
            self._data |= {"mcp_tool_calls": calls, "codemode_tool_calls": NOT_APPLICABLE}
            self._calls["mcp_tool_calls"] += calls
            return max(calls, counts.tool_calls)  # `tool_calls` may include calls that are not of an MCP server
        if not cumulative:
            return 0
        for name in _CALLS:
            before = self._last_counts[name]
            so_far, problem = read_count(cumulative.get(name))
            if problem is not None or cumulative.get(name) is None:
                so_far = before
            self._last_counts[name] = so_far
            self._data[name] = so_far - before if so_far >= before else so_far
            self._calls[name] += self._data[name]
        made: int = self._data["codemode_tool_calls"]
        return made


def _overlap(known: Sequence[RequestUsageSnapshot], new: Sequence[RequestUsageSnapshot]) -> int:
    """Return how many steps at the beginning of a snapshot are known: as the last ones, or all of them anywhere."""
    if not known or not new:
        return 0
    before, now = [_identity(step) for step in known], [_identity(step) for step in new]
    if len(now) > len(before) and now[: len(before)] == before:
        return len(before)
    timed = next(
        (place for place, step in enumerate(new) if step.timestamp is None), len(now)
    )  # equal numbers alone do not prove that two steps are the same
    places = [place for place, key in enumerate(before) if key == now[0]]
    if timed == len(now) and any(before[place : place + timed] == now for place in places):
        return timed
    return next(
        (len(before) - place for place in places if before[place:] == now[: min(timed, len(before) - place)]), 0
    )


def _identity(step: RequestUsageSnapshot) -> tuple[object, ...]:
    """Return what identifies a step; its duration may have become known later."""
    return step.timestamp, step.input_tokens, step.output_tokens, step.tool_names
