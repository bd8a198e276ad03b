"""`sessionlog` alone: the short overview on a terminal, the help in a pipe."""

import re
import subprocess
import sys

import pytest

from sessionlog.render.dashboard import COMMANDS, FIRST_STEPS
from tests.cli.test_without_news import settle

HEAVY = {
    "typer",
    "textual",
    "rich.progress",
    "rich.table",
    "orjson",
    "sessionlog.pricing",
    "sessionlog.sources.protocol",
}


def plain(text):
    """A text without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def sessions(home, record):
    """Our own logs in their usual folder."""
    folder = home / ".local" / "state" / "sessionlog" / "sessions"
    record(folder, "s-old", cost=0.25)
    record(folder, "s-failed", status="error", start="2026-11-19T10:00:00Z")
    return folder


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal_shows_the_overview(terminal, sessions, columns):
    """What there is and what to type next, within the width."""
    shown = terminal(columns=columns, notes=False)
    assert "\x1b[1msessionlog " in shown
    lines = plain(shown).splitlines()
    text = " ".join(" ".join(lines).split())
    assert "2 sessions of 1 agent since 19 Nov" in text
    assert [name for name, _ in COMMANDS if name not in text and name != "ui"] == []
    assert max(map(len, lines)) <= columns


def test_without_logs_it_names_the_first_steps(terminal):
    """The demo comes first."""
    text = plain(terminal(columns=80, notes=False))
    assert "no sessions yet" in text
    assert [name for name, _ in FIRST_STEPS if f"\n  {name} " not in text] == []


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_colours_where_none_are_wanted(terminal, sessions, environment):
    """No escape sequence at all."""
    shown = terminal(notes=False, **environment)
    assert "2 sessions" in shown
    assert "\x1b" not in shown


def test_signs_that_an_encoding_lacks_have_look_alikes(terminal, sessions):
    """Every character is ASCII, and none is a question mark."""
    shown = terminal(notes=False, NO_COLOR="1", PYTHONIOENCODING="ascii")
    assert shown.isascii()
    assert "?" not in shown


def test_a_pipe_gets_the_help(process, sessions):
    """Scripts see what they saw before."""
    assert process() == process("--help")


def test_a_wrong_config_exits_2_and_names_the_file(terminal, config):
    """As every report does."""
    path = config("colour = 1")
    assert f"sessionlog: {path}: unknown key 'colour'" in terminal(columns=400)


def test_a_wrong_budget_is_named_and_the_others_are_shown(terminal, sessions, config):
    """The figures do not depend on it."""
    config('[budgets.daily]\nusd = -1\nperiod = "day"\n[budgets.tries]\nrequests = 10\nwindow = "365d"\n')
    shown = plain(terminal(columns=200))
    assert "20 %" in shown
    assert "[budgets.daily]" in shown


def test_without_news_it_loads_little(sessions, home, cli):
    """In a fresh interpreter: no sources, prices or parsers."""
    settle(home / ".local/state")
    assert cli("usage").code == 0
    code = (
        "import sys; sys.stdout.isatty = lambda: True; from sessionlog.cli import main; "
        "code = main([]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "2 sessions" in ran.stdout
    loaded = set(ran.stderr.split())
    assert loaded & HEAVY == set()
