"""Every searcher gives what `bytes.find` gives; the data are long enough for the foreign ones to be asked."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.reader.search import find, searchers

NEEDLES = (b"a", b"ab", b"\n", b"\x00", b'"type":"tool_use"', b"aab", b"b" * 40)
LONG = 1 << 15


@st.composite
def haystacks(draw):
    """Bytes on both sides of the lengths from which foreign searchers are asked, with pieces of needles in them."""
    filler = draw(st.sampled_from((b"x", b"a", b"\x00", b'"type":"tool_us', b"ab\xff")))
    length = draw(st.sampled_from((0, 1, 100, 127, 128, 129, 300, LONG // 2 - 1, LONG // 2, LONG // 2 + 1, LONG)))
    data = bytearray((filler * (length // len(filler) + 1))[:length])
    for place in draw(st.lists(st.integers(0, LONG), max_size=3)):
        piece = draw(st.one_of(st.sampled_from(NEEDLES), st.binary(max_size=20)))
        data[place % (length + 1) : place % (length + 1)] = piece
    return bytes(data)


@pytest.mark.parametrize("name", sorted(searchers()))
@settings(max_examples=250, deadline=None, derandomize=True)
@given(
    data=haystacks(),
    needle=st.one_of(st.sampled_from(NEEDLES), st.binary(max_size=6)),
    start=st.one_of(st.integers(0, 200), st.integers(0, LONG + 200)),
    end=st.one_of(st.integers(0, LONG + 200), st.just(LONG * 4)),
)
def test_each_searcher_finds_what_bytes_find(name, data, needle, start, end):
    """The place is the same for any bytes, start and end, also beyond the data and before the start."""
    assert searchers()[name](data, needle, start, end) == data.find(needle, start, end)


@pytest.mark.parametrize("name", sorted(searchers()))
@pytest.mark.parametrize("place", [0, 1, LONG - 7, LONG - 6])
def test_what_lies_across_the_end_is_not_found(name, place):
    """A needle counts only when all of it is inside."""
    data = b"-" * place + b"needle" + b"-" * (LONG - place)
    search = searchers()[name]
    assert search(data, b"needle", 0, place + 6) == place
    assert search(data, b"needle", 0, place + 5) == -1
    assert search(data, b"needle", place + 1, len(data)) == -1


def test_the_fastest_searcher_is_used():
    """`find` is the first of those there are, and Python's own is always among them."""
    assert "python" in searchers()
    assert find(b"x" * LONG + b"y", b"y", 0, LONG + 1) == LONG
