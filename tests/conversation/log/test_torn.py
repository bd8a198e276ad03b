"""torn: an event that a killed writer left unfinished is told from one that was damaged."""

import json

import pytest

from sessionlog.conversation.log.logged_session import is_unfinished
from sessionlog.errors import Problem
from sessionlog.events.decode import decode_line

EVENT = {
    "session_id": "s", "seq": 12, "type": "llm.response", "ts": "2026-11-22T10:00:00.000000Z",
    "data": {"content": "a\n\u0001\\ ä€😀", "n": [-1.5e-7, 12, True, False, None, {}], "tool_calls": []},
}  # fmt: skip
LINE = json.dumps(EVENT, ensure_ascii=False, separators=(",", ":")).encode()
ESCAPED = json.dumps(EVENT, separators=(",", ":")).encode()


def unfinished(line, start=100):
    """Whether the flaw in a line is taken for an unfinished event."""
    _, flaws = decode_line(line)
    made = [Problem(path="x", line=1, offset=start + f.start, kind=f.kind, detail="", length=f.length) for f in flaws]
    return [is_unfinished(problem, line, start) for problem in made]


@pytest.mark.parametrize("line", [LINE, ESCAPED])
def test_every_beginning_of_an_event_is_unfinished(line):
    """Wherever the write broke off: in a text, a number, a word, an escape, or a letter of several bytes."""
    assert json.loads(line) == EVENT
    for size in range(1, len(line)):
        assert unfinished(line[:size] + b"\n") == [True], line[:size]


@pytest.mark.parametrize("line", [LINE, ESCAPED])
def test_a_whole_line_that_was_damaged_is_not(line):
    """A flipped bit breaks the line before its end, but for its last letters and the end of its last text."""
    taken = []
    for at in range(len(line) - 8):
        for bit in range(8):
            damaged = line[:at] + bytes([line[at] ^ 1 << bit]) + line[at + 1 :]
            if b"\n" not in damaged and unfinished(damaged + b"\n") == [True]:
                taken.append(at)
    assert set(taken) <= {line.rindex(b'"')}


def test_an_unfinished_event_with_a_whole_one_behind_it():
    """A writer that could not take the lock may have gone on in the same line."""
    assert unfinished(LINE[:60] + LINE + b"\n") == [True]


@pytest.mark.parametrize("line", [b"rubbish\n", b"\x00\x00\n", b'"text"\n', b'{"type":"x"\n', LINE[5:]])
def test_other_things_are_not(line):
    """Only the beginning of a line of ours is."""
    assert True not in unfinished(line)
