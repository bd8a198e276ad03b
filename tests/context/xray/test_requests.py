"""Requests: names for results, and what providers reported."""

import pytest

from sessionlog.context.xray.pieces import Piece
from sessionlog.context.xray.requests import Usages, name_results
from sessionlog.events.tokens import TokenUsage

CALL = Piece(role="assistant", kind="call", tokens=1, name="read", target="a.py", is_read=True, call_id="c", mark=b"m")


def result(**fields):
    return Piece(**({"role": "tool", "kind": "result", "tokens": 1, "call_id": "c"} | fields))


@pytest.mark.parametrize(
    ("pieces", "known", "expected"),
    [
        ([CALL, result()], {}, ("read", "a.py", True, b"m")),
        ([CALL, result(name="own")], {}, ("own", "a.py", True, b"m")),
        ([result()], {"c": "bash"}, ("bash", "", False, b"")),
        ([result(), CALL], {}, ("unknown", "", False, b"")),
    ],
)
def test_a_result_is_named_by_the_call_before_it(pieces, known, expected):
    """By its own name first; by calls that are known from elsewhere last."""
    found = next(piece for piece in name_results(pieces, known) if piece.kind == "result")
    assert (found.name, found.target, found.is_read, found.asked) == expected


def told(*answers, start=None):
    """What is reported for requests of which each has an answer; None for none."""
    usages = Usages()
    for answer in answers:
        usages.asked()
        if answer is not None:
            usages.answered(TokenUsage(**answer), "p")
    return [(one.reported, one.cached) for one in usages.samples([0] * len(answers), start or {"v": 1})]


def test_prompt_tokens_are_all_that_was_sent():
    """Read from a cache, written to it, or neither; an unanswered request has none."""
    assert told({"input": 1, "cache_read": 20, "cache_write": 300}, None, {"output": 5}) == [
        (321, 20), (None, None), (None, None)
    ]  # fmt: skip


def test_inclusive_input_is_told_by_all_of_a_providers_answers():
    """Only in the Go dialect, whose start has no version."""
    inclusive, exclusive = {"input": 100, "cache_read": 40}, {"input": 10, "cache_read": 40}
    assert told(inclusive, start={"provider": "p"}) == [(100, 40)]
    assert told(inclusive, exclusive, start={"provider": "p"}) == [(140, 40), (50, 40)]
    assert told(inclusive, start={"resolved_harness": "claude"}) == [(140, 40)]
