"""What every command says in the same way: data to stdout, notes to stderr, hostile words made harmless."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.cli.app import COMMANDS
from sessionlog.cli.output import Exit, fail, json_text, note, print_json, print_text, run_command
from sessionlog.errors import (
    AmbiguousSession,
    InvalidPrices,
    InvalidQuery,
    InvalidSettings,
    InvalidWindow,
    LogNotReadable,
    MissingExtra,
    NotRecorded,
)
from tests.profiles import examples

OF_NO_PATH = {
    "demo", "pricing", "sources", "sql", "ledger", "archive", "budget", "mcp", "watch", "diff", "chat",
    "run", "guard", "export", "find", "ui",
}  # fmt: skip
"""Commands that are about this machine, about two logs, or about what is not said yet."""
ACTS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = (
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b2J",
    "a\rb",
    "a\nb",
    "\u202egnp.exe",
    "\udcff",
    "[bold]x[/]",
    ":smile:",
)
TAKES_TEXT = (
    ["{}"], ["usage", "{}"], ["usage", "--{}"], ["usage", "--since", "{}"], ["usage", "--until", "{}"],
    ["usage", "--by", "{}"], ["usage", "--by", "meta.{}"], ["usage", "--sort", "{}"], ["usage", "--tz", "{}"],
    ["usage", "--now", "{}"], ["usage", "--prices", "{}"], ["usage", "--limit", "{}"], ["usage", "--model", "{}"],
    ["sessions", "{}"], ["sessions", "--since", "{}"], ["check", "{}"], ["check", "--max-line", "{}"],
    ["routing-quality", "{}"], ["routing-quality", "--axis", "{}"], ["replay", "{}"], ["replay", "x", "--speed", "{}"],
    ["diff", "{}", "{}"],
    ["replay", "x", "--dir", "{}"], ["pricing", "{}"], ["pricing", "x", "--provider", "{}"], ["pricing", "x", "--at", "{}"],
    ["demo", "{}"], ["chat", "{}"], ["chat", "{}:agent"], ["chat", "{}.py:agent"], ["chat", "--resume", "{}"],
)  # fmt: skip


@pytest.mark.parametrize("words", TAKES_TEXT, ids=" ".join)
def test_hostile_words_come_out_escaped(cli, words):
    """Whatever is typed, or completed from a file name, can be read and does nothing to the terminal."""
    for hostile in HOSTILE:
        ran = cli(*(word.format(hostile) for word in words))
        assert ran.code in {0, 1, 2, 3}
        assert not ACTS.search(ran.out + ran.err)
        assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "words", [["usage", "{}"], ["usage", "--since", "{}"], ["pricing", "{}"], ["replay", "{}"]], ids=" ".join
)
def test_hostile_words_can_be_read(cli, words):
    """They are shown as what they are, not dropped."""
    ran = cli(*(word.format("\x1b[31mred") for word in words))
    assert r"\x1b[31mred" in ran.out + ran.err


def test_a_hostile_file_name_is_escaped_in_every_report(cli, logs, record):
    """Also where all is well."""
    path = record(logs / "\x1b]0;x\x07", "s-in-it", status="error")
    path.write_bytes(path.read_bytes() + b"half a line\n")
    for arguments in (["usage"], ["sessions", "--wide"], ["check", "--notes"], ["routing-quality"]):
        ran = cli(*arguments, logs)
        assert not ACTS.search(ran.out + ran.err)
    for arguments in (["usage", "--json"], ["sessions", "--csv"], ["sessions", "--json"], ["check", "--json"]):
        ran = cli(*arguments, logs)
        assert not ACTS.search(ran.out + ran.err)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidWindow("w"), 2),
        (InvalidQuery("w"), 2),
        (InvalidPrices("w"), 2),
        (InvalidSettings("w"), 2),
        (AmbiguousSession("w", ("w1", "w2")), 2),
        (LogNotReadable("w"), 3),
        (NotRecorded("w"), 3),
        (MissingExtra("w"), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_the_library_is_a_sentence_and_a_code(capsys, error, code):
    """Wrong usage is 2, what cannot be read or written is 3."""

    def command():
        raise error

    assert run_command(command) == code
    assert capsys.readouterr() == ("", f"sessionlog: {error}\n")


def test_a_mistake_of_our_own_is_not_hidden():
    """Only errors of the library's tree become sentences."""
    with pytest.raises(ZeroDivisionError):
        run_command(lambda: 1 // 0)


def test_a_command_gets_its_settings_and_ends_with_0(capsys):
    """Nothing is said about what went well."""
    got = []
    assert run_command(lambda *args, **settings: got.append((args, settings)), 1, limit=2) == 0
    assert got == [((1,), {"limit": 2})]
    assert capsys.readouterr() == ("", "")


def test_a_reader_who_has_gone_is_no_error(capsys):
    """Whoever closes a pipe has read enough."""

    def command():
        raise BrokenPipeError

    assert run_command(command) == 0
    assert capsys.readouterr() == ("", "")


def test_notes_and_failures_go_to_stderr(capsys):
    """Stdout is for data."""
    note("one")
    with pytest.raises(Exit) as stopped:
        fail("two")
    assert stopped.value.code == 2
    assert capsys.readouterr() == ("", "one\nsessionlog: two\n")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
)


@examples(120)
@given(VALUES)
def test_json_is_written_as_the_standard_library_writes_it(value):
    """To the byte, but for DEL, which terminals may act on."""
    assert json_text(value) == json.dumps(value, indent=2).replace("\x7f", "\\u007f")


@pytest.mark.parametrize("value", [{1, 2}, {"name": b"bytes"}, {1: "a number as a name"}], ids=repr)
def test_what_is_no_json_value_is_refused(value):
    """A report is built of JSON types, and names are text."""
    with pytest.raises((TypeError, AttributeError)):
        json_text(value)


def test_json_is_ascii_and_strict(capsys):
    """Hostile strings are escaped by JSON itself; what is no JSON is refused."""
    print_json({"name": "\x1b\u202e\ud800é"})
    text = capsys.readouterr().out
    assert text.isascii()
    assert not ACTS.search(text)
    assert json.loads(text) == {"name": "\x1b\u202e\ud800é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json(float("nan"))


def test_text_is_printed_as_it_is(capsys):
    """Finished text gets no line end of ours."""
    print_text("a  b")
    assert capsys.readouterr().out == "a  b"


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - OF_NO_PATH))
def test_a_missing_path_exits_3(cli, command):
    """It is named, and nothing is on stdout."""
    ran = cli(command, "no-such-folder")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("sessionlog: no-such-folder: no such file")


@pytest.mark.parametrize("command", ["usage", "sessions"])
@pytest.mark.parametrize(
    "formats", [["json", "csv"], ["json", "markdown"], ["csv", "markdown"], ["json", "csv", "markdown"]]
)
def test_two_formats_exit_2(cli, command, formats):
    """The message names them."""
    named = " and ".join([", ".join(f"--{name}" for name in formats[:-1]), f"--{formats[-1]}"])
    ran = cli(command, *(f"--{name}" for name in formats))
    assert ran == (2, "", f"sessionlog: choose only one of {named}\n")


@pytest.mark.parametrize("command", ["usage", "sessions", "routing-quality"])
@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--since", "lately", ["'lately'", "7d", "today", "YYYY-MM-DD", "RFC 3339", "A..B"]),
        ("--until", "lately", ["'lately'"]),
        ("--since", "2026-11-21T10:00", ["2026-11-21T10:00", "zone"]),
        ("--tz", "Mars/Olympus", ["unknown time zone 'Mars/Olympus'", "Europe/Berlin"]),
        ("--now", "noon", ["--now 'noon'", "RFC 3339"]),
    ],
)
def test_wrong_times_and_zones_exit_2(cli, command, option, value, says):
    """The message says what was wrong and which forms there are."""
    ran = cli(command, "--since", "today", option, value)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("sessionlog: ")
    assert [word for word in says if word not in ran.err] == []
