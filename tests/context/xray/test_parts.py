"""Parts: which piece belongs where, and how estimates are made to fit what the provider counted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.context.xray.items import Item
from sessionlog.context.xray.parts import NO_TOOLS, NOT_IN_LOG, NOT_SENT, Part, apportion, fit, make_parts, sort_pieces
from sessionlog.context.xray.pieces import Piece


def piece(role, kind="text", tokens=1, **fields):
    return Piece(role=role, kind=kind, tokens=tokens, **fields)


def part(tokens, name="x"):
    return Part(kind="history", name=name, tokens=tokens, count=1)


def fitted(sizes, size, *, is_whole=True, has_prompt=True):
    parts = [part(one, str(n)) for n, one in enumerate(sizes)]
    items = [Item(kind="history", name=str(n), tokens=one) for n, one in enumerate(sizes)]
    return fit(parts, items, size, is_whole=is_whole, has_prompt=has_prompt)


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
    parts, items = fitted([60, 40], 110)
    assert [one.tokens for one in parts] == [66, 44]
    assert [one.tokens for one in items] == [66, 44]
    assert [one.share for one in parts] == [0.6, 0.4]


@pytest.mark.parametrize(
    ("is_whole", "has_prompt", "name"), [(False, False, NOT_IN_LOG), (False, True, NO_TOOLS), (True, True, NOT_SENT)]
)
def test_what_is_not_in_the_log_is_a_part_of_its_own(is_whole, has_prompt, name):
    """Parts that are known keep their estimates."""
    parts, items = fitted([60, 40], 300, is_whole=is_whole, has_prompt=has_prompt)
    assert [(one.name, one.tokens) for one in parts] == [("0", 60), ("1", 40), (name, 200)]
    assert items[0] == Item(kind="not_in_log", name=name, tokens=200)


def test_nothing_is_larger_than_the_whole():
    """An estimate above the count is scaled down, whatever the log holds."""
    for is_whole in (False, True):
        assert [one.tokens for one in fitted([60, 40], 10, is_whole=is_whole)[0]] == [6, 4]


def test_an_estimate_that_is_right_is_left():
    """Nothing to fit."""
    assert [one.tokens for one in fitted([60, 40], 100)[0]] == [60, 40]
    assert fitted([], 0) == ([], [])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 10**6), max_size=20), st.integers(0, 10**7), st.booleans())
def test_parts_sum_to_the_total(sizes, size, is_whole):
    """Always. None is negative, and items keep the same measure."""
    parts, items = fitted(sizes, size, is_whole=is_whole)
    assert sum(one.tokens for one in parts) == sum(one.tokens for one in items) == size
    assert all(one.tokens >= 0 for one in [*parts, *items])
    assert sum(one.share for one in parts) == pytest.approx(1 if size else 0)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.integers(0, 10**9))
def test_shares_are_less_than_one_off(sizes, whole):
    """And their sum is exact."""
    shares = apportion(sizes, whole)
    if sum(sizes):
        assert sum(shares) == whole
        assert all(abs(share - size * whole / sum(sizes)) <= 1 for size, share in zip(sizes, shares, strict=True))
    else:
        assert shares == sizes
