"""Steps as CSV: two sets of columns, nothing that a spreadsheet computes, times in UTC."""

import csv
import io
import os
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context.steps import COLUMNS, SHORT_COLUMNS, StepRecord, read_duration, save_csv, to_csv
from sessionlog.events.times import utc_time
from sessionlog.render.escape import csv_cell
from tests.profiles import examples

STEP = StepRecord(
    session_id="s", turn_id=3, step_number=12, tool_names=("read", "grep"), input_tokens=100, output_tokens=7,
    duration_ms=1234.5, timestamp="2026-11-21T12:00:00+02:00",
)  # fmt: skip


def rows(steps, **options):
    return list(csv.reader(io.StringIO(to_csv(steps, **options))))


def test_a_row():
    """Names joined in one quoted cell, whole milliseconds, UTC, the real turn."""
    assert to_csv([STEP]).splitlines()[1] == 's,turn_03,12,"read, grep",100,7,1234,2026-11-21T10:00:00.000000Z'


def test_the_first_set_of_columns():
    """Seven, with the turn's bare number."""
    heading, row = rows([STEP], durations=False)
    assert tuple(heading) == SHORT_COLUMNS
    assert row == ["s", "3", "12", "read, grep", "100", "7", "2026-11-21T10:00:00.000000Z"]


def test_nothing_known_is_an_empty_cell():
    """No duration and no time are no 0; a step without tools is a response."""
    step = StepRecord(session_id="s", turn_id=1, step_number=1)
    assert rows([step])[1] == ["s", "turn_01", "1", "Response", "0", "0", "", ""]


def test_no_steps_have_a_heading():
    """A program that reads it finds its columns."""
    assert rows([]) == [list(COLUMNS)]


@examples(150)
@given(st.text(max_size=20), st.lists(st.text(max_size=8), max_size=3), st.text(max_size=20))
def test_texts_of_a_log_are_harmless(session, names, time):
    """Cells are what the one escape for CSV makes of them: no formula, no control; quoting keeps them apart."""
    step = StepRecord(session_id=session, turn_id=1, step_number=1, tool_names=tuple(names), timestamp=time)
    row = rows([step])[1]
    assert len(row) == len(COLUMNS)
    assert [row[0], row[3]] == [csv_cell(session), csv_cell(step.tool_name)]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row)


def test_saving_replaces_a_file_whole(tmp_path):
    """What was there is gone, and nothing else is left beside it."""
    path = tmp_path / "steps.csv"
    path.write_text("before")
    save_csv([STEP], path)
    assert path.read_bytes().decode() == to_csv([STEP])
    assert os.listdir(tmp_path) == ["steps.csv"]


def test_a_file_that_cannot_be_written(tmp_path):
    """Is the caller's to know."""
    with pytest.raises(OSError, match="nowhere"):
        save_csv([STEP], tmp_path / "nowhere" / "steps.csv")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=2))), "2026-11-21T10:00:00.000000Z"),
        (datetime(2026, 11, 21, 12, 0, 0, 1, tzinfo=UTC), "2026-11-21T12:00:00.000001Z"),
        (datetime(2026, 11, 21, 12), "2026-11-21T12:00:00.000000Z"),
        ("2026-11-21T12:00:00Z", "2026-11-21T12:00:00Z"),
        ("2026-11-21T12:00:00-01:30", "2026-11-21T13:30:00.000000Z"),
        ("yesterday", "yesterday"),
        ("", None),
        (None, None),
        (12, None),
    ],
)
def test_times_are_utc(value, expected):
    """Datetimes and texts; what is no time stays what it is."""
    assert utc_time(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0.0), (12, 12.0), (0.5, 0.5), (1e12, None), (10**400, None), (-1, None), (float("nan"), None),
     (float("inf"), None), (True, None), ("3", None), (None, None)],
)  # fmt: skip
def test_a_duration_is_a_number(value, expected):
    """Finite and not negative; what is none is not known."""
    assert read_duration(value) == expected


def test_a_step_as_json():
    """CamelCase, with its turn, its duration and its cached tokens."""
    from sessionlog.context import RequestUsageSnapshot

    step = RequestUsageSnapshot(request_num=1, input_tokens=5, output_tokens=2, turn_id=4, duration_ms=0.5)
    assert step.to_dict() == {
        "requestNum": 1, "inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 0, "cacheWriteTokens": 0,
        "toolNames": [], "timestamp": None, "turnId": 4, "durationMs": 0.5,
    }  # fmt: skip
