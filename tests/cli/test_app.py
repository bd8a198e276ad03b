"""The words themselves: which commands there are, that each has help worth reading, and that bodies stay short."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module

import pytest

from sessionlog import __version__
from sessionlog.cli.app import COMMANDS, GROUPS
from sessionlog.cli.reports import REPORTS

BODY = 25
BASH = shutil.which("bash")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(cli, command):
    """Help goes to stdout, says what the command is for, and shows one call of it."""
    ran = cli(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"Usage: sessionlog {command} " in ran.out
    assert re.search(rf"^  Example: sessionlog {command}\b", ran.out, re.MULTILINE)


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
@pytest.mark.parametrize("columns", ["80", "60"])
def test_help_fits_the_terminal(cli, monkeypatch, command, columns):
    """Lines fit, no word is cut, no box is drawn, and values have names instead of Python types."""
    monkeypatch.setenv("COLUMNS", columns)
    text = cli(*command, "--help").out
    assert max(map(len, text.splitlines())) <= int(columns)
    assert not re.search(r"(?<!\])\.\.\.|[…│╭╰]|<\w", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_does(cli, command):
    """No option stands in the help without words."""
    text = cli(command, "--help").out
    options = text[re.search("^(What|When|How it is shown|Options):\n", text, re.MULTILINE).start() :]
    assert re.findall(r"^  (-[^ ]+(?:, --[^ ]+)?(?: [A-Z]+)?) *$", options, re.MULTILINE) == []
    assert options.count("\n  -") >= 1


@pytest.mark.parametrize("command", [*sorted(COMMANDS.keys() - REPORTS.keys()), "reports"])
def test_command_bodies_are_words(command):
    """A body parses, calls the library, and hands the value to a renderer: at most 25 lines."""
    module = command.replace("-", "_")
    name = "run_report" if command == "reports" else module
    source = inspect.getsource(import_module(f"sessionlog.cli.{module}"))
    [function] = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == name]
    assert ast.get_docstring(function)
    first, last = function.body[1], function.body[-1]
    assert last.end_lineno - first.lineno + 1 <= BODY


def test_the_overview_names_every_command_in_order(cli):
    """With a summary that is not cut."""
    text = cli("--help").out
    for heading, group in GROUPS.items():
        commands = text.partition(f"{heading}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split(maxsplit=1) for line in commands] == [list(item) for item in group.items()]


def test_no_arguments_is_a_call_for_help(cli):
    """The overview on stdout, and nothing went wrong."""
    assert cli() == cli("--help")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_has_a_short_spelling(cli, command):
    """-h is --help."""
    assert cli(*command, "-h") == cli(*command, "--help")


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--version", "usage"]])
def test_version(cli, arguments):
    """One line; an option before a command wins over it."""
    assert cli(*arguments) == (0, f"sessionlog {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "says", "next_step"),
    [
        (["usgae"], "'usgae'. Did you mean 'usage'?", "sessionlog --help"),
        (["--nope"], "--nope", "sessionlog --help"),
        ([""], "No such command", "sessionlog --help"),
        (["usage", "--nope"], "--nope", "sessionlog usage --help"),
        (["usage", "--limit", "many"], "--limit", "sessionlog usage --help"),
        (["usage", "--limit", "-1"], "--limit", "sessionlog usage --help"),
        (["sessions", "--limit", "1.5"], "--limit", "sessionlog sessions --help"),
        (["check", "--max-line", "10"], "--max-line", "sessionlog check --help"),
        (["routing-quality", "--width", "1"], "--width", "sessionlog routing-quality --help"),
        (["demo", "now"], "now", "sessionlog demo --help"),
        (["pricing", "a", "b"], "b", "sessionlog pricing --help"),
    ],
)
def test_wrong_usage_names_the_word_and_the_next_step(cli, arguments, says, next_step):
    """Exit code 2, two lines on stderr, nothing on stdout."""
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    complaint, step = ran.err.splitlines()
    assert complaint.startswith("sessionlog: ")
    assert says in complaint
    assert step == f"Try: {next_step}"


@pytest.mark.parametrize(
    ("words", "at", "expected"),
    [
        ("sessionlog us", 1, ["usage"]),
        ("sessionlog usage --str", 2, ["--strict"]),
        ("sessionlog usage --by day,mo", 3, ["day,model", "day,month"]),
        ("sessionlog tools --by s", 3, ["server", "source", "session", "status"]),
        ("sessionlog usage --source cl", 3, ["claude-code", "cline"]),
        ("sessionlog tools --sort err", 3, ["errors", "error_rate"]),
        ("sessionlog replay --subagents n", 3, ["none"]),
        ("sessionlog replay s-f", 2, []),
    ],
)
def test_a_shell_can_complete_words(process, words, at, expected):
    """Commands and options, by the protocol of bash."""
    ran = process(_SESSIONLOG_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(at))
    assert (ran.code, ran.out.split(), ran.err) == (0, expected, "")


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_a_shell_can_complete_the_ids_of_sessions(cli, process, home, record):
    """Those in the ledger, without reading a log."""
    record(home / ".local" / "state" / "sessionlog" / "sessions", "s-first")
    assert cli("usage").code == 0
    for command in ("replay", "diff"):
        ran = process(_SESSIONLOG_COMPLETE="complete_bash", COMP_WORDS=f"sessionlog {command} s-f", COMP_CWORD="2")
        assert (ran.out.split(), ran.err) == (["s-first"], "")


def test_the_completion_script_is_shown(home):
    """`--show-completion` finds out which shell asks, and prints the script for it."""
    line = f'"{sys.executable}" -m sessionlog --show-completion; true'
    script = subprocess.run(
        [BASH, "-c", line], capture_output=True, text=True, env=os.environ.copy(), timeout=60
    ).stdout
    assert script.endswith("_sessionlog_completion sessionlog\n")


def test_only_the_named_command_is_imported(home):
    """Start-up does not pay for the others."""
    code = (
        "import sys; from sessionlog.cli import main; main(['pricing', 'no-such-model']); print(*sorted(sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ.copy(), timeout=60
    )
    modules = set(ran.stdout.splitlines()[-1].split())
    assert "sessionlog.cli.pricing" in modules
    assert modules.isdisjoint(
        {"sessionlog.analytics.usage", "sessionlog.cli.replay", "rich.console", "sessionlog.logger"}
    )
