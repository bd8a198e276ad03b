"""Lines are built in pieces, wrapped between words, and shown without blanks at any end."""

import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from sessionlog.render.cells import cell_len
from sessionlog.render.console import make_console, print_line
from sessionlog.render.line import Line, wrap_lines
from tests.profiles import examples

LAW = examples(300)
PARTS = st.lists(
    st.tuples(st.text(st.sampled_from("ab c   –名é"), max_size=12), st.sampled_from(["", "note", "failed"])), max_size=6
)


def shown(lines, width=20):
    return [line.plain for line in wrap_lines(lines, width)]


def test_laying_out_a_report_loads_nothing_slow():
    """In a fresh interpreter; only a terminal's console may, and the values that are reported."""
    parts = ("bar", "cells", "escape", "line", "notes", "numbers", "stream", "table")
    code = f"import sys; import {', '.join(f'sessionlog.render.{part}' for part in parts)}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"rich", "typing", "dataclasses", "datetime", "html"}.isdisjoint(ran.stdout.split())


def test_a_line_is_its_pieces():
    """In order, each with its style; nothing is not a piece."""
    line = Line.of(("Usage", "title"), " · all time", ("", "note"))
    line.append("!", "failed")
    line.append("")
    assert line.parts == [("Usage", "title"), (" · all time", ""), ("!", "failed")]
    assert line.plain == "Usage · all time!"
    assert bool(line) is True
    assert bool(Line()) is bool(Line("")) is False
    assert Line("a", "note").parts == [("a", "note")]


def test_blanks_at_the_end_go():
    """Through as many pieces as there are."""
    line = Line.of("a b ", ("  ", "note"), " ")
    line.rstrip()
    assert line.parts == [("a b", "")]
    blank = Line("  ")
    blank.rstrip()
    assert not blank


def test_a_short_line_is_not_wrapped():
    """Nor one that is laid out, however long."""
    for line in (Line("a b c"), Line("a b c" * 9, no_wrap=True)):
        assert line.wrapped(5) == [line]


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one  two   three", 7, ["one", "two", "three"]),
        ("  one two", 6, ["  one", "two"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("ab cdefghi k", 4, ["ab", "cdef", "ghi", "k"]),
        ("名前名前 名前", 5, ["名前", "名前", "名前"]),
        ("ab", 0, ["a", "b"]),
    ],
)
def test_lines_end_between_words(text, width, expected):
    """A word that is longer than a line is cut."""
    assert shown([Line(text)], width) == expected


def test_styles_stay_with_their_text():
    """Across the ends of lines."""
    line = Line.of(("one two", "note"), " three")
    assert [part.parts for part in line.wrapped(6)] == [
        [("one ", "note")],
        [("two", "note"), (" ", "")],
        [("three", "")],
    ]


def test_blank_lines_stand_only_between_others():
    """Before and after them too, but none at the end."""
    assert shown([Line("a "), Line(), Line("  "), Line("b"), Line(), Line(" ")]) == ["a", "", "", "b"]
    assert shown([Line(), Line()]) == []


@LAW
@given(PARTS, st.integers(2, 24))
def test_wrapping_is_richs(parts, width):
    """The same lines, as a terminal and a pipe are to see the same; only blanks at their ends may differ."""
    console = make_console(io.StringIO(), width=width)
    lines = Line.of(*parts).wrapped(width)
    text = Text.assemble(*parts).wrap(console, width)
    assert [line.plain.rstrip() for line in lines] == [line.plain.rstrip() for line in text]
    assert "".join(line.plain for line in lines) == "".join(part for part, _ in parts)


@LAW
@given(PARTS, st.integers(2, 24))
def test_no_line_is_too_wide(parts, width):
    """And none ends in a blank."""
    for line in shown([Line.of(*parts)], width):
        assert cell_len(line) <= width
        assert line == line.rstrip()


@LAW
@given(PARTS)
def test_a_console_without_colours_shows_the_plain_line(parts):
    """What a pipe gets is what a terminal shows."""
    out = io.StringIO()
    line = Line.of(*parts)
    print_line(make_console(out, width=10), line)
    assert out.getvalue() == f"{line.plain}\n"


def test_a_terminal_gets_the_colours_of_the_styles(monkeypatch):
    """A piece without a style has none."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = io.StringIO()
    print_line(make_console(out, width=80), Line.of(("bad", "failed"), " and ", ("dim", "note")))
    assert out.getvalue() == "\x1b[31mbad\x1b[0m and \x1b[2mdim\x1b[0m\n"
