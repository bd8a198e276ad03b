"""Colours and encodings: the only escape sequences of a replay, and signs where there is no Unicode."""

from sessionlog.render.console import THEME
from sessionlog.render.replay.lines import Span
from sessionlog.render.replay.paint import Paint

LINE = (Span("✘ failed", "failed"), Span(" · 3 ms", "note"), Span("  "))


def test_without_colour_a_line_is_its_text():
    """Nothing is added, and no blanks hang at the end."""
    assert Paint()(LINE) == "✘ failed · 3 ms"


def test_with_colour_styles_are_the_themes():
    """Meaning is coloured; a style never comes from a log."""
    assert Paint(color_system="standard")(LINE) == "\x1b[31m✘ failed\x1b[0m\x1b[2m · 3 ms\x1b[0m"


def test_every_style_that_is_used_exists():
    """The layout's words are the theme's."""
    for style in ("note", "title", "you", "model", "tool", "failed", "unfinished", "estimated", "cached"):
        assert style in THEME.styles


def test_a_terminal_without_unicode_gets_signs_of_ascii():
    """Our signs have a stand-in of the same width; a letter that cannot be shown is a question mark."""
    assert Paint(encoding="ascii")((Span("━━ ⚙ é → … ▸"),)) == "== * ? > ~ >"
    assert Paint(encoding="iso8859-1")((Span("◂ é"),)) == "< é"
    assert Paint(encoding="UTF-8")((Span("◂ é"),)) == "◂ é"
