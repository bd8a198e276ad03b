"""Pieces: their sums, and values as bytes, whatever the values are."""

import pytest

from sessionlog.context.xray.pieces import Piece, bytes_of, digest_of, size_of, sum_up, total


def nested(depth):
    """Lists in lists."""
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


def test_sums_keep_what_is_of_one_kind():
    """Tokens and counts add up; what tells pieces apart is gone."""
    one = Piece(role="tool", kind="result", tokens=3, name="ls", digest=b"1", call_id="c")
    other = Piece(role="tool", kind="result", tokens=4, name="ls", digest=b"2", count=2)
    text = Piece(role="user", kind="text", tokens=5)
    made = sum_up([one, text, other])
    assert made == (Piece(role="tool", kind="result", tokens=7, name="ls", count=3), text)
    assert total(made) == total([one, text, other]) == 12


@pytest.mark.parametrize(
    "value", ["\ud800", {1: 2}, {"k": float("nan")}, 10**30, nested(300), nested(100_000), object()]
)
def test_any_value_has_bytes(value):
    """What JSON cannot hold is spelled in another way."""
    assert size_of(value) == len(bytes_of(value)) > 0


def test_equal_values_have_equal_digests():
    """Others have others."""
    assert digest_of({"a": [1]}) == digest_of({"a": [1]}) != digest_of({"a": [2]})
    assert digest_of("x") == digest_of("x")
