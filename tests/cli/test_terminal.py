"""Colour on a terminal and nowhere else; what a pipe gets is plain text."""

import re

import pytest

ESCAPE = "\x1b"
REPORTS = (["usage"], ["sessions"], ["routing-quality"], ["check", "--notes"])
OTHER_FORMS = (
    ["usage", "--json"], ["usage", "--csv"], ["usage", "--markdown"], ["sessions", "--json"], ["sessions", "--csv"],
    ["sessions", "--markdown"], ["routing-quality", "--json"], ["routing-quality", "--csv"], ["check", "--json"],
)  # fmt: skip


def test_a_terminal_gets_colour(terminal, logs):
    """A failure is red, what is secondary is dim, and the table fits."""
    shown = terminal("sessions", logs, columns=100, notes=False)
    assert "\x1b[31m✘\x1b[0m" in shown
    assert "\x1b[2m" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert ESCAPE not in plain
    assert max(map(len, plain.splitlines())) <= 100


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_plain_text_where_it_is_wanted(terminal, logs, environment):
    """No escape at all; what the colours said is still there in signs."""
    shown = terminal("sessions", logs, notes=False, **environment)
    assert "✘" in shown
    assert ESCAPE not in shown


def test_a_message_on_a_terminal_is_plain(terminal):
    """Errors need no colour."""
    assert ESCAPE not in terminal("usage", "--by", "nonsense")


@pytest.mark.parametrize("arguments", [*REPORTS, *OTHER_FORMS], ids=" ".join)
def test_a_pipe_gets_no_escape(cli, damaged, arguments):
    """Data and notes are plain, whatever TERM says."""
    ran = cli(*arguments, damaged)
    assert ran.out
    assert ESCAPE not in ran.out + ran.err


def test_a_pipe_has_no_edge(cli, monkeypatch, logs):
    """Columns that a terminal of 80 would hide are there, unless `$COLUMNS` says 80."""
    assert "hidden columns" not in cli("usage", logs).out
    monkeypatch.setenv("COLUMNS", "60")
    assert "hidden columns" in cli("usage", logs).out


@pytest.mark.parametrize("arguments", [["usage"], ["sessions"]], ids=" ".join)
@pytest.mark.parametrize("columns", [60, 80, 160])
def test_reports_fit_the_columns(cli, monkeypatch, damaged, arguments, columns):
    """And no line ends in blanks, nor the report in an empty line."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = cli(*arguments, damaged).out.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines == [line.rstrip() for line in lines]
    assert lines[-1]


@pytest.mark.parametrize(
    "arguments",
    [["usage", "--json"], ["sessions", "--json"], ["routing-quality", "--json"], ["check", "--json"]],
    ids=" ".join,
)
def test_json_is_only_json(cli, damaged, arguments):
    """One document with its schema; what else there is to say goes to stderr."""
    ran = cli(*arguments, damaged)
    assert ran.json["schema"].startswith("sessionlog.")
    assert ran.code == (1 if "check" in arguments else 0)
    assert "s-failed.jsonl" in ran.out
