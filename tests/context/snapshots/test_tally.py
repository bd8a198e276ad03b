"""A tally counts what is sent, as it is sent, and knows whether it guessed."""

import json

import pytest

from sessionlog.context import TokenCount
from sessionlog.context.snapshots.extract import Tally
from sessionlog.context.xray.measure import IMAGE
from sessionlog.messages.entry import Piece


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (Piece(kind="user", text="é"), {"role": "user", "content": [{"type": "text", "text": "é"}]}),
        (
            Piece(kind="tool_call", text='{"a": 1}', name="read", call_id="c", arguments={"a": 1}),
            {"id": "c", "type": "tool_use", "name": "read", "input": {"a": 1}},
        ),
        (Piece(kind="tool_call", text=""), {"id": "", "type": "tool_use", "name": "", "input": {}}),
        (
            Piece(kind="tool_return", text="x", call_id="c", failed=True),
            {"tool_use_id": "c", "type": "tool_result", "content": "x", "is_error": True},
        ),
    ],
)
def test_a_part_is_counted_in_its_json(part, sent):
    """Texts inside a message, calls with all their arguments, results with what they answer."""
    assert Tally(len).piece(part) == len(json.dumps(sent, ensure_ascii=False))


@pytest.mark.parametrize("kind", ["user", "tool_return"])
def test_a_picture_has_one_size(kind):
    """That of the context report, whatever counts the words; it is a guess."""
    tally = Tally(len)
    plain = tally.piece(Piece(kind=kind, text="[binary]"))
    assert not tally.estimated
    assert tally.piece(Piece(kind=kind, text="[binary]", media=2)) == plain + 2 * IMAGE
    assert tally.text_and_media(Piece(kind=kind, text="[binary]", media=2)) == len("[binary]") + 2 * IMAGE
    assert tally.estimated


def test_thinking_is_counted_bare():
    """It is no message."""
    assert Tally(len).piece(Piece(kind="thinking", text="hmm")) == 3


def test_an_estimate_is_remembered():
    """One guess among counts makes the sum a guess; nothing at all is no guess."""
    tally = Tally(lambda text: TokenCount(1, exact=text != "rough"))
    assert tally.text("") == 0
    tally.text("exact")
    assert not tally.estimated
    tally.text("rough")
    tally.text("exact")
    assert tally.estimated


def test_counts_are_plain_numbers():
    """What is summed up does not pretend to know how it was found."""
    assert type(Tally(lambda text: TokenCount(3)).text("x")) is int
