"""Parts: which piece belongs where, and how estimates are made to fit what the provider counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context.xray.parts import (
    NO_PROMPT,
    NO_TOOLS,
    NOT_IN_LOG,
    NOT_SENT,
    Part,
    apportion,
    fit,
    make_parts,
    missing_of,
    name_missing,
    sort_pieces,
    with_shares,
)
from sessionlog.context.xray.pieces import Piece
from tests.profiles import examples


def piece(role, kind="text", tokens=1, **fields):
    return Piece(role=role, kind=kind, tokens=tokens, **fields)


def fitted(sizes, size, *, is_whole=True):
    pieces, missing = fit([piece("user", tokens=one) for one in sizes], size, is_whole=is_whole)
    return [one.tokens for one in pieces], missing


def test_the_turn_is_the_last_prompt_and_all_after_it():
    """Before it results and the rest of history; system words only at the head."""
    pieces = [
        piece("system"), piece("user"), piece("assistant", "call"), piece("tool", "result"), piece("system"),
        piece("user"), piece("user", "image"), piece("assistant", "call"), piece("tool", "result"),
    ]  # fmt: skip
    assert sort_pieces(pieces) == ["system", *["history"] * 2, "tool_results", "history", *["turn"] * 4]


def test_without_a_prompt_there_is_no_turn():
    """After a compaction in the middle of one."""
    assert sort_pieces([piece("summary"), piece("tool", "result")]) == ["history", "tool_results"]
    assert sort_pieces([piece("system")]) == ["system"]
    assert sort_pieces([]) == []


def test_parts_are_sums_by_kind_and_name():
    """Roles of history, tools of results; the largest first."""
    pieces = [
        piece("user"),
        piece("assistant", tokens=5),
        piece("user"),
        piece("tool", "result", 9, name="ls"),
        piece("user"),
    ]
    pieces.append(piece("tool", "result", 3, name="ls"))
    tools = [piece("system", "tool", 4, name="ls")]
    made = make_parts(sort_pieces(pieces), pieces, tools, system="system prompt")
    assert [(part.kind, part.name, part.tokens, part.count) for part in made] == [
        ("tools", "ls", 4, 1), ("history", "assistant", 5, 1), ("history", "user", 2, 2), ("tool_results", "ls", 9, 1),
        ("turn", "results of ls", 3, 1), ("turn", "user", 1, 1),
    ]  # fmt: skip


def test_a_whole_prompt_is_scaled_to_the_count():
    """The difference is the estimate's error."""
    assert fitted([60, 40], 110) == ([66, 44], 0)


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_is_lacking_is_not_spread(is_whole):
    """Pieces that are known keep their estimates."""
    assert fitted([60, 40], 300, is_whole=is_whole) == ([60, 40], 200)


@pytest.mark.parametrize(
    ("size", "is_whole", "missing"),
    [(90, False, 0), (100, False, 0), (101, False, 1), (125, True, 0), (126, True, 26), (90, True, 0), (0, True, 0)],
)
def test_a_quarter_more_than_the_estimate_is_its_error_where_all_is_told(size, is_whole, missing):
    """Beyond that, and where a part of the prompt is not told at all, the difference is something in the window."""
    assert missing_of(100, size, is_whole=is_whole) == missing


@pytest.mark.parametrize(
    ("has_prompt", "has_tools", "name"),
    [(False, False, NOT_IN_LOG), (True, False, NO_TOOLS), (False, True, NO_PROMPT), (True, True, NOT_SENT)],
)
def test_what_is_lacking_has_the_name_of_what_may_be_it(has_prompt, has_tools, name):
    """The provider is said to add it only where the log records both prompt and tools."""
    assert name_missing(has_prompt=has_prompt, has_tools=has_tools) == name


def test_nothing_is_larger_than_the_whole():
    """An estimate above the count is scaled down, whatever the log holds."""
    for is_whole in (False, True):
        assert fitted([60, 40], 10, is_whole=is_whole) == ([6, 4], 0)


def test_an_estimate_that_is_right_is_left():
    """Nothing to fit."""
    assert fitted([60, 40], 100) == ([60, 40], 0)
    assert fitted([], 0) == ([], 0)


def test_shares_are_of_the_whole():
    """Of nothing there is none."""
    parts = [Part(kind="turn", name="x", tokens=tokens, count=1) for tokens in (66, 44)]
    assert [part.share for part in with_shares(parts)] == [0.6, 0.4]
    assert with_shares([Part(kind="turn", name="x", tokens=0, count=1)])[0].share == 0


@examples(200)
@given(st.lists(st.integers(0, 10**6), max_size=20), st.integers(0, 10**7), st.booleans())
def test_pieces_sum_to_the_total(sizes, size, is_whole):
    """Always, with what is lacking. None is negative."""
    made, missing = fitted(sizes, size, is_whole=is_whole)
    assert sum(made) + missing == size
    assert all(one >= 0 for one in [*made, missing])


@examples(100)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.integers(0, 10**9))
def test_shares_are_less_than_one_off(sizes, whole):
    """And their sum is exact."""
    shares = apportion(sizes, whole)
    if sum(sizes):
        assert sum(shares) == whole
        assert all(abs(share - size * whole / sum(sizes)) <= 1 for size, share in zip(sizes, shares, strict=True))
    else:
        assert shares == sizes
