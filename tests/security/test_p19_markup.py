"""P19: what a log says is never read as rich markup, emoji codes, Markdown or links: it is shown letter by letter."""

import re

import pytest

from sessionlog.render.escape import terminal
from tests.security.commands import command_lines, run, run_on_tty
from tests.security.fragments import MARKUP
from tests.security.hostile import everywhere

CODES = (
    "[bold]x[/bold]",
    "[/nope]",
    "[link=https://evil.example]a[/link]",
    ":smile:",
    "[@click=app.quit]x",
    "\\[x]",
    "[red",
)
SHOWN_BY = ("usage", "sessions", "tools", "replay", "diff", "context", "blocks")
_SGR = re.compile(r"\x1b\[[0-9;]*m")


def shown(text):
    """What can be seen of an output, on one line."""
    return "".join(_SGR.sub("", text).split())


@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("code", CODES)
def test_p19_markup_is_shown_as_it_is(tmp_path, monkeypatch, code):
    """In tables and conversations, in a pipe and on a terminal, whatever field it is in."""
    monkeypatch.setenv("COLUMNS", "400")
    path = tmp_path / "log.jsonl"
    path.write_bytes(everywhere(code))
    found = 0
    for arguments in command_lines(str(path), first_only=True, commands=SHOWN_BY):
        for outcome in (run(*arguments), run_on_tty(*arguments)):
            assert outcome.code in {0, 1}
            text = outcome.out.decode()
            assert "\x1b]8" not in text
            assert "😄" not in text
            found += shown(terminal(code)) in shown(text)
    assert found >= 6


@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("name", [name for name in MARKUP if name.startswith(("rich", "emoji", "html", "markdown"))])
def test_p19_no_command_adds_a_style_for_it(tmp_path, name):
    """A terminal gets the same colours for a log that is full of markup as for one with plain letters."""
    codes = []
    for text in (MARKUP[name], "x" * len(MARKUP[name])):
        path = tmp_path / "log.jsonl"
        path.write_bytes(everywhere(text))
        used = set()
        for command in ("replay", "usage", "sessions"):
            used |= set(_SGR.findall(run_on_tty(command, str(path)).out.decode()))
        codes.append(used)
    assert codes[0] <= codes[1] | {"\x1b[0m"}


@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("name", MARKUP)
def test_p21_markdown_tables_hold_no_markup(tmp_path, name):
    """Each command that writes Markdown puts a log's words into a cell in which they are words."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(everywhere(MARKUP[name]))
    for command in ("usage", "sessions", "tools", "blocks"):
        arguments = [command, str(path), "--markdown", "--now", "2026-11-21T12:00:00Z", "--tz", "UTC"]
        text = run(*arguments).out.decode()
        for raw in ("](", "```", "~~~", "<script", "<img"):
            assert raw not in text.replace("\\" + raw[0], ""), (command, raw)
