"""The forms of a replay's lines: what fits, what is cut, and what is said about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.render.escape import terminal
from sessionlog.render.replay.lines import (
    Limit,
    Span,
    View,
    body,
    cells,
    clipped,
    head,
    labelled_text,
    packed,
    rule,
    shorten,
    words,
    wrap,
)
from tests.profiles import examples

WIDE = View(width=40, exact=False)
PLAIN = View()


def text(lines):
    """The lines as text."""
    return ["".join(part.text for part in line) for line in lines]


@pytest.mark.parametrize(
    ("value", "limit", "shown", "left_out"),
    [
        ("ééé", Limit(chars=3), "ééé", ""),
        ("é" * 90, Limit(chars=80), "é" * 90, ""),
        ("é" * 91, Limit(chars=80), "é" * 80, "+11 characters"),
        ("e\u0301" * 50, Limit(chars=79), "e\u0301" * 39, "+22 characters"),
        ("a\nb\nc", Limit(lines=2), "a\nb\nc", ""),
        ("a\nb\nc\nd", Limit(lines=2), "a\nb", "+2 lines, 4 characters"),
        ("x" * 5000, Limit(), "x" * 5000, ""),
        ("a" * 1000 + "\nb", Limit(chars=100), "a" * 100, "+1 line, 902 characters"),
    ],
)
def test_a_text_is_cut_at_characters_and_says_how_much_is_left(value, limit, shown, left_out):
    """Never within a character, never for a trifle, and the size of the rest is named."""
    assert shorten(value, limit) == (shown, left_out)


@examples(200)
@given(
    st.text(alphabet=st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me"])), st.integers(8, 60)
)
def test_no_piece_of_a_wrapped_line_is_too_wide_and_nothing_is_lost(line, width):
    """Wrapping loses only blanks."""
    pieces = list(wrap(line, width))
    assert all(cell_len(piece) <= width for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(line.split())


def test_a_list_item_goes_on_below_its_text():
    """The indent and the bullet stay free."""
    assert list(wrap("  - one two three four", 12)) == ["  - one two", "    three", "    four"]


def test_a_long_word_is_broken():
    """A path wider than the page goes on in the next line."""
    assert list(wrap("x" * 20, 8)) == ["x" * 8, "x" * 8, "x" * 4]


def test_figures_stand_at_the_right_edge_or_below():
    """One line where both fit, else a line of their own; without a width nothing is aligned."""
    left, right = (Span("name"),), [Span("1 ms"), Span(""), Span("2 in")]
    assert text(head(WIDE, left, right)) == ["name" + " " * 25 + "1 ms · 2 in"]
    assert text(head(PLAIN, left, right)) == ["name  1 ms · 2 in"]
    assert text(head(WIDE, (Span("n" * 35),), right)) == ["n" * 35, " " * 29 + "1 ms · 2 in"]


def test_a_rule_is_as_wide_as_the_page():
    """It is filled to the edge; words that do not fit go on below."""
    [line] = text(rule(WIDE, [Span("id"), Span("model")]))
    assert line.startswith("━━ id · model ━━")
    assert len(line) == 40
    assert text(rule(PLAIN, [Span("id"), Span("model")])) == ["━━ id · model ━━"]
    assert text(rule(WIDE, [Span("i" * 30), Span("model")]))[1] == "   model"


def test_parts_are_packed_into_few_lines():
    """Each line takes what fits, and a part wider than all is clipped."""
    parts = [Span("aaaa"), Span("bbbb"), Span("c" * 20)]
    assert text(packed(parts, 12)) == ["aaaa · bbbb", "c" * 11 + "…"]


def test_a_clipped_line_fits_in_cells():
    """East Asian characters take two."""
    line = clipped((Span("日本"), Span("語日本")), 6)
    assert text([line]) == ["日本…"]
    assert cells(line) <= 6


def test_a_label_has_its_text_beside_it():
    """Further lines stand below the first; a label that is too long has all of it below."""
    assert text(labelled_text(PLAIN, (Span("you ▸"),), "a\nb", Limit())) == ["you ▸ a", "      b"]
    assert text(labelled_text(PLAIN, (Span("x" * 40),), "a", Limit())) == ["x" * 40, "  a"]
    assert text(labelled_text(PLAIN, (Span("you ▸"),), "", Limit())) == ["you ▸"]


def test_a_body_loses_empty_lines_at_its_ends_and_keeps_those_between():
    """Models begin with line ends; a person need not see them."""
    assert text(body(PLAIN, "\n\nok\r\n\nso\n\n", Limit(), indent=2, gutter="│ ")) == ["  │ ok", "  │ ", "  │ so"]


def test_tables_are_not_wrapped_as_prose():
    """A row of a table may use the whole terminal; a sentence is set in a column one can read."""
    wide = View(width=200, exact=False)
    assert len(text(body(wide, "| " + "cell " * 30 + "|", Limit(), indent=2))) == 1
    assert len(text(body(wide, "word " * 30, Limit(), indent=2))) == 2


@examples(200)
@given(st.text())
def test_spans_hold_nothing_that_acts(value):
    """Whatever a log says, a span of it is harmless, on one line."""
    for part in (words(value), *(p for line in body(WIDE, value, Limit(), indent=2) for p in line)):
        assert terminal(part.text) == part.text
