"""The fast path reads a command line as typer does, or not at all."""

import os
import subprocess
import sys

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.cli import fast_path, main
from sessionlog.cli.app import build_app
from sessionlog.cli.options import COMMANDS
from tests.profiles import examples

HEAVY = {"typer", "pydantic", "rich", "dateutil", "orjson", "dataclasses", "typing"}

FORMATS = {"--json", "--csv", "--markdown"}

VALUES = st.sampled_from(
    ["7d", "provider,model", "gpt-*", "/src/api", "a b", "x=y", "=", "é名", "0", "\udcff", "@file"]
)
ODD = st.sampled_from(
    ["--", "-", "-h", "--help", "--lim", "--nope", "-x", "", "--limit", "--json=1", "--limit=x", "--limit=-1", "-V",
     "--limit=1_0", "--limit= 7", "--limit=+7", "--limit=007", "--limit=1.0", "--jobs=0", "--limit=٣", "--since=",
     "--limit=99999999999999999999", "--no-json", "--sort=-x", "--strict", "--wide", "usage", "sessions", "--since"]
)  # fmt: skip


def spelled(option):
    """The well-formed ways to write one option: flag, two words, or one with `=`."""
    if option.kind == "flag":
        return st.just([option.name])
    values = VALUES | st.just("-")  # of an option it is stdout
    if option.kind in ("number", "decimal"):
        least = int(option.least or 0) + 1
        values = st.integers(least, int(option.most or least + 700)).map(str)
    if option.kind == "decimal":
        values |= st.sampled_from(["1.5", "20.", "3.25"])
    return values.flatmap(lambda value: st.sampled_from([[option.name, value], [f"{option.name}={value}"]]))


@st.composite
def well_formed(draw):
    """Options in any order with paths between them, each once that may not be repeated, and one format at most."""
    command = draw(st.sampled_from(["usage", *COMMANDS]))
    once = [o for o in COMMANDS[command] if o.kind != "texts" and o.name]
    often = [o for o in COMMANDS[command] if o.kind == "texts" and o.name]
    [most] = [3 if o.kind in ("texts", "rest") else 1 for o in COMMANDS[command] if not o.name] or [0]
    chosen = draw(st.lists(st.sampled_from(once), unique_by=lambda option: option.name, max_size=6))
    chosen += draw(st.lists(st.sampled_from(often), max_size=4)) if often else []
    kept = [o for o in chosen if o.name not in FORMATS] + [o for o in chosen if o.name in FORMATS][:1]
    pieces = [draw(spelled(option)) for option in kept]
    least = sum(o.required for o in COMMANDS[command])
    pieces += [[path] for path in draw(st.lists(VALUES, min_size=least, max_size=most))]
    return [*command.split(), *(word for piece in draw(st.permutations(pieces)) for word in piece)]


@st.composite
def messy(draw):
    """Well-formed lists into which something odd was put, or out of which something was lost."""
    words = draw(well_formed())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(1, len(words)))
        if draw(st.booleans()):
            words.insert(place, draw(ODD))
        else:
            del words[place : place + 1]
    return words


@pytest.fixture(scope="module")
def typers():
    """What typer's command would be given; None where it says that the command line is wrong, or shows help."""
    received = []

    def pretend(**given):
        """Example."""
        received.append(given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sessionlog.cli.app.function_of", lambda name: pretend)
        command = typer.main.get_command(build_app())

    def read(argv):
        received.clear()
        try:
            command(args=list(argv), prog_name="sessionlog", standalone_mode=False)
        except Exception as error:
            if not hasattr(error, "format_message"):  # else it is a word on wrong usage
                raise
        return received[0] if received else None

    return read


parse = fast_path.parse


@examples(250)
@given(well_formed())
def test_what_is_well_formed_is_read_as_typer_reads_it(typers, argv):
    """Every setting has typer's value, and nothing of this kind is declined."""
    expected = typers(argv)
    assert expected is not None
    assert parse(argv) == expected


@examples(500)
@given(messy())
def test_what_is_odd_is_read_as_typer_reads_it_or_declined(typers, argv):
    """What the fast path takes is never different, and what typer refuses it never takes."""
    parsed = parse(argv)
    if parsed is not None:
        assert parsed == typers(argv)


@pytest.mark.parametrize(
    "words",
    [
        ["--help"], ["-h"], ["--"], ["--", "x"], ["--nope"], ["--lim", "3"], ["-l", "3"], ["--limit"], ["--limit", ""],
        ["--limit", "x"], ["--limit", "-1"], ["--limit", "1.5"], ["--limit", "007"], ["--limit", "٣"], ["--jobs", "0"],
        ["--sort", "-model"], ["--since", "--json"], ["--since="], ["--since", ""], [""], ["-"], ["--json=1"],
        ["--json="], ["--json", "--csv"], ["--json", "--json"], ["--since", "7d", "--since", "7d"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_unusual_is_declined(words):
    """Typer reads it, and says what is wrong if something is."""
    assert fast_path.parse(["usage", *words]) is None


@pytest.mark.parametrize(
    ("words", "command", "quiet"),
    [
        (["claude", "--help"], ["claude", "--help"], False), (["--", "claude", "-q"], ["claude", "-q"], False),
        (["-q", "--", "--odd"], ["--odd"], True), (["make", "--", "x"], ["make", "--", "x"], False),
        (["--quiet", "a", "--quiet"], ["a", "--quiet"], True), (["--", "--", "x"], ["--", "x"], False),
        (["--"], None, False), ([], None, False), ([""], [""], False),
    ],
    ids=str,
)  # fmt: skip
def test_a_command_to_run_keeps_its_own_options(typers, words, command, quiet):
    """What follows its name is its own, whatever it is; typer agrees."""
    settings = parse(["run", *words])
    assert (settings["command"], settings["quiet"]) == (command, quiet)
    assert settings == typers(["run", *words])


@pytest.mark.parametrize("argv", [[], [""], ["usag"], ["--version"], ["--json", "usage"]], ids=str)
def test_other_commands_are_declined(argv):
    """Only what is asked often has a fast path."""
    assert fast_path.parse(argv) is None


def test_a_shell_that_completes_is_typers(monkeypatch):
    """The words are not a command then."""
    assert fast_path.parse(["usage"]) is not None
    monkeypatch.setenv("_SESSIONLOG_COMPLETE", "complete_bash")
    assert fast_path.parse(["usage"]) is None


def test_reading_a_command_line_loads_nothing():
    """In a fresh interpreter: neither what is slow to load nor what that would need."""
    code = (
        "import sys; from sessionlog.cli.fast_path import parse; "
        "assert parse(['usage', 'logs', '--since', '7d', '--limit=3', '--json']); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(name.split(".")[0] for name in ran.stdout.split())


@pytest.mark.parametrize(
    "argv",
    [["usage"], ["usage", "--wide"], ["usage", "--csv"], ["usage", "--markdown"], ["usage", "--json"]],
    ids=" ".join,
)
def test_a_report_into_a_pipe_needs_no_library_of_the_terminal(home, logs, argv):
    """Neither the one that parses nor the one that paints is loaded."""
    code = (
        "import sys; from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *argv, str(logs)], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert ran.stdout
    assert {"typer", "pydantic", "rich"}.isdisjoint(name.split(".")[0] for name in ran.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("ask", [["--since", "7d"], ["--by", "day", "--json"], ["--csv", "--limit", "1"]], ids=" ".join)
def test_both_ways_give_the_same_report(cli, logs, monkeypatch, ask):
    """To the byte."""
    words = ["usage", logs, "--now", "2026-11-21T12:00:00Z", *ask]
    short = cli(*words)
    monkeypatch.setattr(fast_path, "COMMANDS", {})
    assert cli(*words) == short
    assert short.code == 0


@pytest.mark.parametrize("words", [["no-such-folder"], ["--by", "nonsense"], ["--now", "noon"]], ids=" ".join)
def test_both_ways_end_alike(cli, monkeypatch, words):
    """The same sentence and the same exit code."""
    short = cli("usage", *words)
    monkeypatch.setattr(fast_path, "COMMANDS", {})
    assert cli("usage", *words) == short
    assert short.code > 0


def test_the_short_way_is_taken(home, monkeypatch, capsys):
    """A plain question never reaches typer."""
    monkeypatch.setitem(sys.modules, "sessionlog.cli.app", None)
    assert main(["usage"]) == 0
    assert "no sessions" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["--help"], ["usage", "--help"], ["usage", "-h"], ["export", "--help"], ["budget", "check", "-h"]],
    ids=" ".join,
)
def test_help_checks_no_values(words):
    """With pydantic, which typer takes for it, help would take twice as long."""
    code = "import sys; from sessionlog.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Usage: ")
    assert {"pydantic", "sessionlog.sources.registry"}.isdisjoint(ran.stderr.split())
