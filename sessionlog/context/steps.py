"""Steps: the usage of each request of a session, also as CSV.

A step has its turn and its duration. The CSV escapes texts that a spreadsheet would run as formulas; times are UTC.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessionlog import files
from sessionlog.context.usage import CamelCase

RESPONSE = "Response"
"""The `Tool_Name` of a step without tool calls."""

COLUMNS = (
    "Session_ID", "Turn_ID", "Step_Number", "Tool_Name", "Input_Tokens", "Output_Tokens", "Duration_ms", "Timestamp",
)  # fmt: skip
SHORT_COLUMNS = tuple(name for name in COLUMNS if name != "Duration_ms")
_MAX_DURATION = 1e12  # also excludes NaN and infinity


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUsageSnapshot(CamelCase):
    """The usage of one request.

    Attributes:
        request_num: Its number in the session, from 1.
        input_tokens: The whole prompt, cached or not.
        output_tokens: The generated tokens.
        cache_read_tokens: The part of the prompt that came from a cache.
        cache_write_tokens: The part of the prompt that was written to a cache.
        tool_names: The tools that the answer calls, one name per call.
        timestamp: The time of the answer, RFC 3339; None if unknown.
        turn_id: The number of its turn, from 1.
        duration_ms: From the request to its answer; None if unknown.
    """

    request_num: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    tool_names: tuple[str, ...] = ()
    timestamp: str | None = None
    turn_id: int | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One row of the CSV.

    Attributes:
        session_id: The session.
        turn_id: The number of the turn, from 1.
        step_number: The number of the request in the session, from 1.
        tool_names: The tools that the answer calls, one name per call.
        input_tokens: The whole prompt, cached or not.
        output_tokens: The generated tokens.
        duration_ms: From the request to its answer; None if unknown.
        timestamp: The time of the answer, as given; None if unknown.
    """

    session_id: str
    turn_id: int
    step_number: int
    tool_names: tuple[str, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    duration_ms: float | None = None
    timestamp: str | None = None

    @property
    def tool_name(self) -> str:
        """All names in order, or `Response` if no tool was called."""
        return ", ".join(self.tool_names) or RESPONSE


def record_steps(steps: Iterable[RequestUsageSnapshot], session_id: str) -> tuple[StepRecord, ...]:
    """Return the rows of a session's requests."""
    return tuple(
        StepRecord(
            session_id=session_id,
            turn_id=step.turn_id or 1,
            step_number=step.request_num,
            tool_names=step.tool_names,
            input_tokens=step.input_tokens,
            output_tokens=step.output_tokens,
            duration_ms=step.duration_ms,
            timestamp=step.timestamp,
        )
        for step in steps
    )


def to_csv(steps: Sequence[StepRecord], *, durations: bool = True) -> str:
    """Return steps as CSV with a heading, quoted as in RFC 4180.

    Args:
        steps: The rows.
        durations: False leaves out `Duration_ms`, and writes a turn's id as its bare number.
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(to_table(steps, durations=durations))
    return out.getvalue()


def to_table(steps: Sequence[StepRecord], *, durations: bool = True) -> list[list[str]]:
    """Return the cells of the CSV, the heading first: escaped, formatted, not yet quoted."""
    from sessionlog.render.steps import make_steps_table

    return make_steps_table(steps, durations=durations)


def save_csv(steps: Sequence[StepRecord], path: str | os.PathLike[str], *, durations: bool = True) -> None:
    """Write `to_csv` to a file, whole or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    files.replace_file(os.fspath(path), [to_csv(steps, durations=durations).encode()])


def read_duration(value: object) -> float | None:
    """Return a duration, in any unit, as float; None if it is not a number, negative, infinite or absurdly long."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MAX_DURATION else None
