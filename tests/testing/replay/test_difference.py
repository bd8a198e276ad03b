"""The first difference between two requests, as a person reads it."""

import pytest

from sessionlog.sources.find import log_at
from sessionlog.testing.replay.difference import find_nearest, first_difference
from sessionlog.testing.replay.recording import read_recordings
from sessionlog.testing.replay.request import PARTS, read_request
from tests.testing.replay.logs import CHAT, SYSTEM, calls, user, write

LONG = "word " * 40


def difference(recorded, sent):
    """The first difference between two requests, as text."""
    return str(first_difference(read_request(recorded), read_request(sent), PARTS))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"model": "gpt-6"}, "model: recorded 'gpt-5' · sent 'gpt-6'"),
        ({"messages": CHAT["messages"][1:]}, f"system: recorded '{SYSTEM}' · sent nothing"),
        (
            {"messages": [CHAT["messages"][0], user("What does b.py do?"), *CHAT["messages"][2:]]},
            "messages[0].content: recorded 'What does a.py do?' · sent 'What does b.py do?'",
        ),
        (
            {"messages": [*CHAT["messages"][:2], {**CHAT["messages"][2], "tool_calls": [{"id": "x", "name": "read", "arguments": {"path": "b.py"}}]}, *CHAT["messages"][3:]]},
            "messages[1].tool_calls[0].arguments.path: recorded 'a.py' · sent 'b.py'",
        ),
        ({"messages": CHAT["messages"][:3]}, """messages[2]: recorded tool '{"lines": 1, "text": "print(1)"}' · sent nothing"""),
        ({"messages": [*CHAT["messages"], user("And b.py?")]}, "messages[3]: recorded nothing · sent user 'And b.py?'"),
        (
            {"messages": [*CHAT["messages"], {"role": "assistant", "content": "", **calls("ls", "bash")}]},
            "messages[3]: recorded nothing · sent assistant calls ls, bash",
        ),
        (
            {"tools": [{"name": "read", "description": "Read", "input_schema": {"type": "object"}}]},
            """tools.read.schema.properties: recorded {"path": {"type": "string"}} · sent nothing""",
        ),
        ({"temperature": 0.5}, "parameters.temperature: recorded nothing · sent 0.5"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_difference_is_a_path_with_both_values(change, text):
    """Of the first part that differs, of the first message in it, of the deepest value."""
    same = {**CHAT, "model": "gpt-5"}
    assert difference(same, same | change) == text


def test_long_texts_are_cut_around_the_difference():
    """What is equal before it is shortened, and what follows."""
    found = difference({"messages": [user(f"{LONG}one {LONG}")]}, {"messages": [user(f"{LONG}two {LONG}")]})
    assert found == (
        "messages[0].content: recorded …'word word word word word word one word word word word word word word word word w'…"
        " · sent …'word word word word word word two word word word word word word word word word w'…"
    )


def test_values_that_people_cannot_see_are_escaped():
    """A log's text is not trusted."""
    found = difference({"messages": [user("a")]}, {"messages": [user("a\x1b[31m\nb")]})
    assert found == r"messages[0].content: recorded 'a' · sent 'a\x1b[31m\nb'"


@pytest.mark.parametrize(
    ("messages", "nearest"),
    [
        ([user("Fix the first bug!")], 1),
        ([user("Write a very short title")], 3),
        ([user("Fix the first bug"), {"role": "assistant", "content": "Sure"}, user("Now")], 2),
        ([user("Fix the first bug"), {"role": "assistant", "content": "Done"}, user("And?")], 2),
        ([], 1),
    ],
)
def test_the_nearest_recording_begins_alike(tmp_path, messages, nearest):
    """Then it is as long, then its text is alike."""
    first = user("Fix the first bug")
    path = write(
        tmp_path, [first], "Done", [first, {"role": "assistant", "content": "Done"}, user("Thanks")], "Bye",
        [user("Write a short title")], "Bug",
    )  # fmt: skip
    recordings = read_recordings(log_at(str(path))).recordings
    assert find_nearest(recordings, read_request({"messages": messages}), PARTS).number == nearest
