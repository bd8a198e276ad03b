"""Lay out the steps of a session as the cells of a CSV."""

from __future__ import annotations

from collections.abc import Iterable

from sessionlog.context.steps import COLUMNS, SHORT_COLUMNS, StepRecord
from sessionlog.events.times import utc_time
from sessionlog.render.escape import csv_cell


def make_steps_table(steps: Iterable[StepRecord], *, durations: bool = True) -> list[list[str]]:
    """Return the heading and a row for each step: formulas escaped, times in UTC, durations in whole ms.

    With `durations` a turn is called `turn_01`, without `1`: each of the two CSV formats keeps its own form.
    """
    return [list(COLUMNS if durations else SHORT_COLUMNS), *(_row(step, durations) for step in steps)]


def _row(step: StepRecord, durations: bool) -> list[str]:
    turn = f"turn_{step.turn_id:02d}" if durations else str(step.turn_id)
    took = "" if step.duration_ms is None else f"{step.duration_ms:.0f}"
    return [
        csv_cell(step.session_id),
        turn,
        str(step.step_number),
        csv_cell(step.tool_name),
        str(step.input_tokens),
        str(step.output_tokens),
        *([took] if durations else []),
        csv_cell(utc_time(step.timestamp) or ""),
    ]
