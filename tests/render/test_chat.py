"""How a chat looks: tools on their lines, figures at the edge, and nothing that was said can act."""

import pytest

from sessionlog.events.tokens import TokenUsage
from sessionlog.render.cells import cell_len
from sessionlog.render.chat import (
    earlier_answer,
    earlier_prompt,
    facts,
    opening,
    outcome,
    prompt,
    remark,
    speaker,
    tool_below,
    tool_line,
    turn_error,
    turn_figures,
)
from sessionlog.render.replay.lines import View, cells
from tests.security.vt import findings

EVIL = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m\r\b"
VIEW = View(width=80, exact=False)


def plain(lines):
    """Lines as text."""
    return ["".join(part.text for part in line).rstrip() for line in lines]


def test_a_tool_is_one_line_with_its_figures_at_the_edge():
    """Its main argument beside its name; a failure says why."""
    [line] = tool_line(VIEW, "read", {"path": "src/app.py"}, outcome(VIEW, None, 12.0, "a\nb\nc\n"))
    assert "".join(part.text for part in line) == f"  ⚙ read  src/app.py{'12 ms · 3 lines':>59}"
    [line] = tool_line(VIEW, "bash", {"command": "pytest"}, outcome(VIEW, "exit 1", 3100.0, ""))
    assert plain([line])[0].endswith("✘ exit 1 · 3.1 s")


def test_a_tool_that_is_called_fits_into_a_row():
    """So that the row can be written again; long arguments are not told."""
    for arguments in ({"command": "x" * 300}, {"path": "a", "content": "b\n" * 40}, "no JSON", None, [1, 2]):
        [line] = tool_line(VIEW, "write", arguments)
        assert cells(line) < 80


def test_figures_that_do_not_fit_go_below():
    """A tool may have a long name."""
    lines = tool_line(View(width=40, exact=False), "tool_" * 12, {}, outcome(VIEW, None, 1500.0, "a\nb"))
    assert len(lines) == 2
    assert plain(lines)[1] == "    1.5 s · 2 lines"


def test_what_became_of_a_tool_that_was_called_before_another():
    """It has its name."""
    assert plain(tool_below(VIEW, outcome(VIEW, None, 12.0, ""), "read")) == ["    ⇢ read · 12 ms"]


def test_what_a_turn_took():
    """As far as it is known, at the right edge; some requests may have told nothing."""
    usage = TokenUsage(input=812, output=96, cache_read=14_100)
    lines = turn_figures(VIEW, duration_ms=4200, usage=usage, cost_usd=0.031)
    assert plain(lines) == [f"{'4.2 s · 812 in · 14.1k cached · 96 out · $0.031':>79}"]
    lines = turn_figures(VIEW, duration_ms=5, usage=usage, cost_usd=None, partial=True)
    assert plain(lines)[0].strip() == "5 ms · at least 812 in · 14.1k cached · 96 out"
    assert plain(turn_figures(View(exact=False), duration_ms=5, usage=None, cost_usd=None)) == ["  5 ms"]
    lines = turn_figures(View(width=30, exact=False), duration_ms=5, usage=usage, cost_usd=0.5)
    assert plain(lines) == [f"{'5 ms · 812 in':>29}", f"{'14.1k cached · 96 out':>29}", f"{'$0.50':>29}"]


@pytest.mark.parametrize("width", [40, 80, 160])
def test_nothing_that_is_told_acts_or_is_too_wide(width):
    """Names, arguments, errors, texts: all of it may come from a model."""
    view, evil = View(width=width, exact=False), f"{EVIL} {'x' * 300}"
    lines = [
        *opening(view, "s-1", evil, evil),
        speaker(view, evil),
        *earlier_prompt(view, evil),
        *earlier_answer(view, evil),
        *tool_line(view, evil, {evil: evil, "b": 1}, outcome(view, evil, 1.0, evil)),
        *tool_below(view, outcome(view, evil, None, ""), evil),
        *turn_error(view, evil),
        *facts(view, [("name", evil)]),
        *remark(view, evil),
        *remark(view, evil, sign=""),
    ]
    assert findings("\n".join(plain(lines)).encode()) == []
    assert max(map(cells, lines)) <= width


def test_what_is_long_is_cut_and_says_so():
    """A prompt that wants to go on need not wait for a book."""
    assert plain(earlier_answer(VIEW, f"{'word ' * 2000}end"))[-1] == "  … +6,003 characters (in the log)"
    assert plain(turn_error(VIEW, "x" * 2000))[-1] == "    … +1,400 characters (in the log)"
    assert plain(earlier_answer(VIEW, "word " * 20))[-1].endswith("word")


def test_the_prompt_tells_the_editor_what_takes_no_room():
    """And is plain where colours are not wanted."""
    assert prompt(first=True, coloured=False, unicode=True, edited=True) == "you ▸ "
    assert prompt(first=True, coloured=False, unicode=False, edited=False) == "you > "
    coloured = prompt(first=True, coloured=True, unicode=True, edited=True)
    assert coloured == "\1\x1b[1;36m\2you ▸\1\x1b[0m\2 "
    assert "\1" not in prompt(first=True, coloured=True, unicode=True, edited=False)
    assert cell_len(prompt(first=False, coloured=False, unicode=True, edited=False)) == 6
