"""Flow: texts are wrapped whatever their pieces are, and nothing in them can act."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.render.cells import cell_len
from sessionlog.render.flow import Flow
from tests.profiles import examples
from tests.security.vt import findings

EVIL = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m\r\b"


def screen(written):
    r"""What a terminal shows: `\b` goes back a cell, and what is written there stands instead."""
    rows, column = [[]], 0
    for char in written:
        if char == "\n":
            rows.append([])
            column = 0
        elif char == "\b":
            column -= 1
        else:
            size = cell_len(char)
            row = rows[-1]
            if not size and column:  # an accent belongs to the letter before it
                row[column - 1] += char
                continue
            row += [" "] * (column + size - len(row))
            row[column : column + size] = [char, *[""] * (size - 1)]
            column += size
    return ["".join(row).rstrip() for row in rows]


def flowed(pieces, width):
    """What is on the screen after these pieces."""
    flow = Flow(width)
    return screen("".join(map(flow.feed, pieces)) + flow.end())


def test_words_are_wrapped_below_each_other():
    """Indented by two, and what is behind a list's sign stays behind it."""
    text = "The offset is written before the row is committed.\n- a point that is rather long and goes on\n\n    code"
    assert flowed([text], 31) == [
        "  The offset is written before",
        "  the row is committed.",
        "  - a point that is rather",
        "    long and goes on",
        "",
        "      code",
        "",
    ]


def test_a_word_longer_than_a_row_is_cut():
    """Nothing of it is lost."""
    rows = flowed(["see http://example.com/" + "x" * 80], 30)
    assert "".join(row.strip() for row in rows).endswith("x" * 80)
    assert max(map(len, rows)) <= 29


def test_wide_characters_take_two_cells():
    """A row may end between any two of them."""
    rows = flowed(["日本語の文章はどこでも折り返すことができます"], 30)
    assert [cell_len(row) for row in rows[:1]] == [28]
    assert "".join(row.strip() for row in rows) == "日本語の文章はどこでも折り返すことができます"


@given(
    st.text(st.sampled_from("ab é日\n\t -1.|\r\x1b\u0301👍"), max_size=150),
    st.lists(st.integers(0, 150), max_size=12),
    st.sampled_from([24, 31, 80]),
)
@examples(150)
def test_how_a_text_is_cut_makes_no_difference(text, cuts, width):
    """Its pieces come as they like; the screen is the same, no row is too long, and nothing visible is lost."""
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    rows = flowed(pieces, width)
    assert rows == flowed([text], width)
    assert max(map(cell_len, rows)) < max(width, 26)
    visible = text.removesuffix("\r").replace("\r\n", "").replace("\x1b", r"\x1b").replace("\r", r"\r")
    assert "".join("".join(rows).split()) == "".join(visible.split())


@pytest.mark.parametrize("width", [60, None])
def test_what_flows_cannot_act(width):
    """An escape sequence that comes in two pieces is none either."""
    flow = Flow(width)
    written = "".join(flow.feed(char) for char in f"a{EVIL}b") + flow.end()
    assert findings(written.encode()) == []
    assert r"\x1b[2J" in written


def test_without_a_width_a_text_stays_as_it_is():
    """Pipes get what was said, and one line end."""
    flow = Flow(None)
    assert flow.feed("a\n\n  b ") + flow.feed("c") + flow.end() == "a\n\n  b c\n"
    assert flow.feed("d\n") + flow.end() == "d\n"
    assert flow.end() == ""


def test_a_flow_begins_anew_after_its_end():
    """Blank lines at either side of a text are nobody's."""
    flow = Flow(40)
    assert flow.feed("\n\nfirst\n\n\n") + flow.end() == "  first\n"
    assert flow.feed("second") + flow.end() == "  second\n"


@pytest.mark.parametrize(
    "text",
    ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f469\u200d\U0001f4bb", "\u0915\u094d\u200d\u0937"],
)
def test_joiners_inside_words_and_emoji_stay(text):
    """However the text is cut; nothing is broken behind them."""
    for width in (None, 80):
        flow = Flow(width)
        assert "".join(flow.feed(char) for char in text).strip() == text
    narrow = Flow(30)
    shown = narrow.feed("x" * 24 + "\U0001f469\u200d\U0001f4bb")
    assert "\u200d\U0001f4bb" in shown


@pytest.mark.parametrize(
    "text", ["a\u200db", "\u0645\u200c\u200c\u0645", "\u200d", "\u0645\u202e", "\u0645\u200b", "\u0645\u200f"]
)
def test_what_only_hides_is_shown(text):
    """Joiners of ASCII, or behind each other; what turns the direction round."""
    assert "\\u20" in Flow(None).feed(text)
