"""The cells of a session's steps: what a log says does nothing in a spreadsheet."""

from sessionlog.context.steps import COLUMNS, SHORT_COLUMNS, StepRecord
from sessionlog.render.steps import make_steps_table


def test_cells():
    """The heading, then a row of finished texts for each step."""
    step = StepRecord(session_id="s", turn_id=1, step_number=2, input_tokens=-3, duration_ms=0.4)
    assert make_steps_table([step]) == [list(COLUMNS), ["s", "turn_01", "2", "Response", "-3", "0", "0", ""]]
    assert make_steps_table([], durations=False) == [list(SHORT_COLUMNS)]


def test_texts_are_escaped_and_numbers_are_not():
    """A formula becomes a text, a control is seen; a turn over 99 keeps all its digits."""
    step = StepRecord(session_id="=1+1", turn_id=123, step_number=1, tool_names=("@x", "y\x1b"), timestamp="+1")
    assert make_steps_table([step])[1] == ["'=1+1", "turn_123", "1", "'@x, y\\x1b", "0", "0", "", "'+1"]
