"""The replay command: what it refuses, what it prints where, and how it ends."""

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sessionlog.cli import replay as command
from sessionlog.cli.app import build_app
from sessionlog.cli.output import UNREADABLE, USAGE
from sessionlog.render.replay import replay
from sessionlog.sources.find import log_at

LOGS = Path(__file__).parents[2] / "testdata" / "replay"
STORY = str(LOGS / "story.jsonl")


@pytest.fixture(autouse=True)
def _no_logs_of_this_machine(monkeypatch, tmp_path):
    """Totals come from a ledger of an empty home."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


def run(*arguments, **environment):
    """Run `sessionlog replay` on some arguments."""
    app = build_app(("replay", "usage"))
    return CliRunner().invoke(
        app, ["replay", *arguments], env={"TERM": "xterm", "SESSIONLOG_CONFIG": str(LOGS / "none.toml"), **environment}
    )


def test_a_pipe_gets_the_plain_replay():
    """With the estimates that a terminal shows: exactly the text of the Python function."""
    result = run(STORY)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == list(replay(STORY))
    assert "~$" in result.stdout
    assert run(STORY, "--plain").stdout == result.stdout


def test_a_session_is_written_as_a_page(tmp_path):
    """To a file, or in a folder under the session's name; another's file stays unless --force is given."""
    assert run(STORY, "--html", str(tmp_path)).exit_code == 0
    assert "<main" in (tmp_path / "story.html").read_text("utf-8")
    own = tmp_path / "own.html"
    own.write_text("mine", "utf-8")
    assert run(STORY, "--html", str(own)).exit_code == USAGE
    assert own.read_text("utf-8") == "mine"
    assert run(STORY, "--html", str(own), "--force").exit_code == 0
    assert run(STORY, "--html", "-").stdout.startswith("<!doctype html>")


@pytest.mark.parametrize("other", [["--json"], ["--plain"], ["--follow"], ["--speed", "2x"], ["--markdown"]])
def test_a_page_is_no_other_form(other):
    """What does not go with a page is named."""
    result = run(STORY, "--html", "-", *other)
    assert result.exit_code == USAGE
    assert f"leave out {other[0]}" in result.stderr


def test_scrub_writes_nothing_where_a_secret_may_be_left(tmp_path):
    """The places are named, never the values; without them the known secrets are replaced."""
    log = tmp_path / "s.jsonl"
    key, value = "ghp_" + "a1B2c3D4e5F6" * 3, "Zq8x.Lw3RtVb7-Yp2Nc5Kd9=Jf4Hs6Ga1"
    log.write_text(
        f'{{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-21T09:58:00Z","data":{{"v":1,"prompt":"{key}"}}}}\n'
        f'{{"session_id":"s","seq":1,"type":"tool.call","ts":"","data":{{"tool":"env","output":"MY_AUTH={value}"}}}}\n',
        "utf-8",
    )
    page = tmp_path / "s.html"
    for words in (["--html", str(page)], ["--markdown"]):
        result = run(str(log), *words, "--scrub")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "tool.call: a random value behind 'auth'" in result.stderr
        assert value not in result.stderr
    assert not page.exists()
    clean = run(str(log), "--markdown", "--scrub", "--only", "session.*,user").stdout
    assert key not in clean
    assert run(str(log), "--scrub").exit_code == USAGE


def test_options_reach_the_replay():
    """Full, all messages, a selection and a zone."""
    result = run(STORY, "--full", "--all-messages", "--tz", "Europe/Berlin", "--only", "session.start, llm.request")
    lines = list(replay(STORY, full=True, all_messages=True, tz="Europe/Berlin", only=["session.start", "llm.request"]))
    assert result.stdout.splitlines() == lines


def test_a_session_is_found_by_the_beginning_of_its_id():
    """In the folder that is named, or that the settings name."""
    assert run("stor", "--dir", str(LOGS)).stdout == run(STORY).stdout
    assert run("stor", SESSIONLOG_DIR=str(LOGS)).stdout == run(STORY).stdout


def test_an_ambiguous_session_is_a_usage_error_with_the_candidates():
    """Two sessions begin alike."""
    result = run("h", "--dir", str(LOGS))
    assert result.exit_code == USAGE
    assert "harness, hostile" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere"], UNREADABLE, "nowhere: no such file"),
        ([str(LOGS)], UNREADABLE, "is a folder"),
        ([STORY, "--speed", "fast"], USAGE, "not a factor such as 1x"),
        ([STORY, "--speed", "0"], USAGE, "not a factor such as 1x"),
        ([STORY, "--speed", "nan"], USAGE, "not a factor such as 1x"),
        ([STORY, "--speed", "2x", "--follow"], USAGE, "choose only one"),
        ([STORY, "--tz", "Mars/Olympus"], USAGE, "zone"),
    ],
)
def test_wrong_calls_are_refused_in_one_sentence(arguments, code, says):
    """The message names the thing; nothing goes to stdout."""
    result = run("--dir", str(LOGS), *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr


def test_json_is_one_event_a_line():
    """Every event, its keys in order, problems beside it on stderr."""
    result = run(str(LOGS / "unknown-and-damaged.jsonl"), "--json")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["seq"] for event in events] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    assert list(events[0])[:5] == ["session_id", "seq", "type", "ts", "data"]
    assert "unknown-and-damaged.jsonl:6 not_json" in result.stderr


def test_json_can_be_selected():
    """By type, or by a pattern of types."""
    result = run(STORY, "--json", "--only", "llm.re*")
    assert {json.loads(line)["type"] for line in result.stdout.splitlines()} == {"llm.request", "llm.response"}


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_selection_of_nothing_names_what_there_is(option):
    """A type that the log does not have is probably a slip; an answer is data, a note is not."""
    result = run(str(LOGS / "harness.jsonl"), "--only", "bogus", *option)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "nothing to show: the log's event types are progress, session.end, session.start\n"
    assert run(STORY, "--only", "tool.call", *option).stderr == ""


def test_damage_is_not_what_was_selected():
    """It is told, and so is that there is nothing else."""
    result = run(str(LOGS / "unknown-and-damaged.jsonl"), "--only", "bogus")
    assert "not_json" in result.stdout
    assert "the log's event types are" in result.stderr


def test_the_types_that_are_named_have_an_end(tmp_path):
    """A hostile log may have a million types, long ones, with escapes."""
    log = tmp_path / "s.jsonl"
    log.write_text(
        "".join(f'{{"session_id":"s","seq":{n},"type":"{n:03}\\u001b{"x" * 999}"}}\n' for n in range(99)), "utf-8"
    )
    stderr = run(str(log), "--only", "bogus").stderr
    assert stderr.endswith(" and more\n")
    assert "\x1b" not in stderr
    assert len(stderr) < 2000


def test_hostile_json_is_ascii():
    """Programs get the characters, terminals get escapes."""
    result = run(str(LOGS / "hostile.jsonl"), "--json")
    assert result.stdout.isascii()
    assert result.stdout.replace("\n", "").isprintable()


def test_follow_ends_with_the_session():
    """A session that has ended is shown, and the command with it."""
    assert run(STORY, "--follow").stdout == run(STORY).stdout


def test_speed_shows_the_same_at_its_pace(monkeypatch):
    """Only time differs."""
    paced = []
    monkeypatch.setattr(command, "pace", lambda items, speed: paced.append(speed) or items)
    assert run(STORY, "--speed", "10x").stdout == run(STORY).stdout
    assert paced == [10.0]


def test_an_empty_log_prints_nothing(tmp_path):
    """And that is no error."""
    (tmp_path / "empty.jsonl").write_bytes(b"")
    result = run(str(tmp_path / "empty.jsonl"))
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.fixture
def terminal(monkeypatch):
    """Let the command believe that it writes to a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    for name in ("NO_COLOR", "LESS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_a_pager(tmp_path):
    """Everything goes to $PAGER as it is made, with colours; `less` is told to let them through."""
    seen = tmp_path / "seen"
    program = f"import os,sys; open({str(seen)!r},'w').write(os.environ['LESS'] + sys.stdin.read())"
    result = run(STORY, "--tz", "UTC", PAGER=f'{sys.executable} -c "{program}"')
    assert (result.exit_code, result.stdout) == (0, "")
    text = seen.read_text("utf-8")
    assert text.startswith("RFX\x1b[2m━━ ")
    assert "4.2 s" in text


@pytest.mark.usefixtures("terminal")
def test_a_pager_that_is_left_early_is_no_error(tmp_path):
    """The pipe breaks; nobody needs to hear of it."""
    log = tmp_path / "long.jsonl"
    log.write_bytes(Path(STORY).read_bytes() * 300)
    result = run(str(log), PAGER=f'{sys.executable} -c "pass"')
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("pager", ["no-such-pager-here", ""])
def test_without_a_pager_it_prints(pager):
    """A missing program is no reason to show nothing."""
    assert run(STORY, PAGER=pager).stdout.startswith("\x1b[2m━━ ")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("option", [["--no-pager"], ["--speed", "1000000x"], ["--follow"]])
def test_what_is_shown_live_needs_no_pager(option):
    """Following and pacing print straight, and so does whoever says so."""
    assert run(STORY, *option, PAGER="false").stdout.startswith("\x1b[2m━━ ")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("option", ["--plain", "--json"])
def test_stable_forms_are_the_same_at_a_terminal(option):
    """No colour, no pager, no local time."""
    assert run(STORY, option, PAGER="false").stdout == run(STORY, option, FORCE_COLOR="").stdout


@pytest.mark.usefixtures("terminal")
def test_no_color_is_respected():
    """Without colour the columns stay."""
    text = run(STORY, "--no-pager", NO_COLOR="1").stdout
    assert "\x1b" not in text
    assert "4.2 s" in text


def test_a_followed_log_is_shown_before_it_is_finished(tmp_path):
    """The first block is there before the second event has been written."""
    log = tmp_path / "s.jsonl"
    lines = Path(STORY).read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0])
    texts = command._painted(
        command.fold_replay(command._items(log_at(str(log)), None, follow=True, factor=None), session_id="s"),
        command.View(),
        None,
    )
    assert next(texts).startswith("━━ s · anthropic")
    with log.open("ab") as file:
        file.write(b"".join(lines[1:]))
    assert list(texts)[-1].endswith(" ━━")
    assert os.path.getsize(log) == os.path.getsize(STORY)


def test_types_may_be_given_one_by_one():
    """As in one list with commas; none is dropped."""
    types = ("--only", "tool.call", "--only", "llm.response")
    assert run(STORY, "--json", *types).stdout == run(STORY, "--json", "--only", "tool.call,llm.response").stdout
