"""Markdown on a terminal: shown, and neither hiding nor doing anything."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from sessionlog.render.escape import strip_line_ends, terminal
from sessionlog.render.replay import markdown
from sessionlog.render.replay.lines import Limit, Limits, View
from sessionlog.render.replay.markdown import markdown_lines, prose
from sessionlog.render.replay.paint import Paint
from tests.profiles import examples

VIEW = View(width=60, exact=False, markdown=True)
SGR = re.compile(r"\x1b\[[0-9;]*m")


def shown(text, width=60):
    """The lines without their styles; None where it is no Markdown."""
    lines = markdown_lines(text, width)
    return None if lines is None else ["".join(part.text for part in line) for line in lines]


def test_the_forms_of_an_answer():
    """Headings, lists, quotes, code as it stands, tables; no blank line twice, none first or last."""
    text = "# Head\n\nSome **bold** and `code`.\n\n- one\n  - two\n\n> said\n\n```py\nif x:\n    y()\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert shown(text) == [
        "# Head", "", "Some bold and code.", "", " • one", "    • two", "", "▌ said", "", "  py", "  if x:", "      y()", "",
        " a  b", " ────", " 1  2",
    ]  # fmt: skip


def test_styles_are_on_the_words():
    """Bold is bold, code has the colour of code."""
    [line] = markdown_lines("a **b** `c`", 60)
    assert [(part.text, part.style.bold if part.style else None) for part in line][:2] == [("a ", None), ("b", True)]
    assert "\x1b[1mb\x1b[0m" in Paint(color_system="standard")(line)


@pytest.mark.parametrize(
    "text",
    [
        "2*3*4", "src/**/*.ts and lib/**/*.js", "*args and **kwargs", "`x` __init__.py and a_b_c", r"`x` C:\_new \* \n",
        "`x` <system-reminder>stay</system-reminder> <!-- a comment --> &lt;b&gt; &#27;[31m &copy;",
        "`x` [text](http://evil.example) ![alt](http://evil.example/a.png) <http://a.example>", "`x`\n\n[r]: http://hidden.example",
        "`x` ~~gone~~", "* a*b*c*", "```hidden words\ncode\n```",
    ],
)  # fmt: skip
def test_nothing_that_was_typed_is_hidden(text):
    """Links, HTML, entities, stars between letters and file names stand as they are."""
    assert " ".join(shown(text, 200)).replace("•", "*").split() == text.replace("`", "").split()


def test_line_ends_stay():
    """A person's lines are lines, as everywhere else that people chat."""
    assert shown("`a`\nb\nc") == ["a", "b", "c"]


@pytest.mark.parametrize(
    "text", ["`" * 99, "```", "> " * 99 + "deep", "1. " * 50 + "deep", "|a|b|\n|-|-|\n" + "|x|y|\n" * 9]
)
def test_no_letter_is_ever_missing(text):
    """What the library leaves out of a text is there, since all of it is shown as it is."""
    letters = "".join(part.text for line in prose(VIEW, text, indent=0) for part in line)
    assert sorted(filter(str.isalpha, letters)) == sorted(filter(str.isalpha, text))
    assert letters


@pytest.mark.parametrize("text", ["plain words", "a\nb", "x" * 99_999 + " **b**", "#hashtag", "1.5 and -1", "a-b"])
def test_what_is_no_markdown_is_left_alone(text):
    """And what is longer than a text that anybody wrote."""
    assert shown(text) is None


def test_what_cannot_be_laid_out_is_shown_as_it_is(monkeypatch):
    """Whatever the library thinks of a text, the text is there."""

    def fails(text, width):
        raise RecursionError(text, width)
        yield

    monkeypatch.setattr(markdown, "_rendered", fails)
    assert [part.text for line in prose(VIEW, "**b**", indent=2) for part in line] == ["  ", "**b**"]


def test_a_long_text_is_cut_and_says_by_how_much():
    """The limit is that of prose; the end is our own words."""
    view = replace(VIEW, limits=Limits(prose=Limit(chars=16)))
    lines = list(prose(view, "**b** " * 20, indent=2))
    assert "".join(part.text for part in lines[-1]) == "  … +104 characters (--full)"
    assert len(lines) == 2


_PIECES = st.sampled_from([
    "# ", "- ", "1. ", "> ", "**", "*", "`", "```\n", "|", "\n", "\n\n", "    ", "\t", "[x](y)", "<b>", "&#27;", "\x1b[31m",
    "\x1b]8;;http://x\x07", "\u202e", "\u200b", "漢字", "👩\u200d👩", "word ", "\\", "\r", "\x00", "---\n", "|a|b|\n|-|-|\n", "é",
])  # fmt: skip


@examples(300)
@given(st.lists(_PIECES | st.text(max_size=5), max_size=40).map("".join), st.integers(1, 70))
def test_no_text_can_act_and_no_line_is_too_wide(text, width):
    """Only our own colours are escape sequences, whatever a log says."""
    for line in markdown_lines(text, width) or ():
        for part in line:
            assert terminal(part.text) == part.text
        assert cell_len("".join(part.text for part in line)) <= max(8, width)
        painted = SGR.sub("", Paint(color_system="truecolor")(line))
        assert terminal(painted) == painted


@examples(200)
@given(st.lists(_PIECES | st.text(max_size=5), max_size=40).map("".join), st.integers(20, 70))
def test_no_letter_of_any_text_is_missing(text, width):
    """Whatever is shown as Markdown, and whatever is not."""
    lines = prose(replace(VIEW, width=width), text, indent=0)
    shown = "".join(part.text for line in lines for part in line)
    typed = terminal(strip_line_ends(text.lstrip("\r\n")), newline=True, tab=True)
    assert sorted(filter(str.isalpha, shown)) == sorted(filter(str.isalpha, typed))
