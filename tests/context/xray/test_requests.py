"""Requests: names for results."""

import pytest

from sessionlog.context.xray.pieces import Piece
from sessionlog.context.xray.requests import name_results

CALL = Piece(
    role="assistant", kind="call", tokens=1, name="read", target="a.py", is_read=True, call_id="c", digest=b"m"
)


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
    assert (found.name, found.target, found.is_read, found.call_digest) == expected
