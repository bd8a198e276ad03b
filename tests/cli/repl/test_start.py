"""From the command line to a chat: which agent, which session, and what is refused."""

import json
import os
import shlex
import sys

import pytest

from sessionlog import read_events
from sessionlog.conversation.session import Session

PYDANTIC_AI = """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
agent = Agent(TestModel(custom_output_text="I am a test."), system_prompt="Be brief.")
"""
ASYNC = """
async def agent(messages):
    yield "I am "
    yield f"async: {messages[-1].text}"
"""


@pytest.fixture
def recorded(piped, sessions):
    """The log of a chat in which two things were said."""
    assert piped("one", "two")[0] == 0
    [log] = sessions.iterdir()
    return log


def test_a_session_goes_on_by_its_log_alone(piped, recorded):
    """Who answered is in it; history and log go on where they were."""
    code, out, err = piped("three", arguments=("desk:agent", "--resume", recorded.stem))
    assert (code, out) == (0, "You said: three (5 messages) \n")
    assert f"session {recorded.stem}: {recorded}" in err
    starts = [event.data for event in read_events(str(recorded)) if event.type == "session.start"]
    assert [start["metadata"] for start in starts[:1]] == [{"agent": "desk:agent"}]


def test_a_log_that_was_only_looked_at_stays_as_it_is(piped, recorded):
    """Nothing is written before something is said; a fork of it has an end all the same."""
    before = recorded.read_bytes()
    assert piped("/session", "/status", arguments=("desk:agent", "--resume", recorded.stem))[0] == 0
    assert piped("/fork", arguments=("desk:agent", "--resume", recorded.stem))[0] == 0
    assert recorded.read_bytes() == before
    [fork] = set(recorded.parent.iterdir()) - {recorded}
    assert [event.type for event in read_events(str(fork))] == ["session.start", "history.add", "session.end"]


def test_a_log_of_the_folder_one_is_in(piped, recorded, tmp_path, monkeypatch):
    """It is known by its name there, can be written, and is gone on with by its path: no id is looked for here."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    copy = folder / recorded.name
    copy.write_bytes(recorded.read_bytes())
    agent = f"{os.getcwd()}/desk.py:agent"
    monkeypatch.chdir(folder)
    code, out, err = piped("three", "/session", arguments=(agent, "--resume", copy.name))
    assert code == 0, err
    assert out.startswith("You said: three (5 messages)")
    assert f"--resume {copy}" in out + err


@pytest.mark.parametrize("named", ["{0.stem}", "{0}", "file"])
def test_a_session_goes_on_with_a_named_agent(piped, recorded, named):
    """By its id, by its path, and with an agent that is named by its file."""
    agent = "./desk.py:agent" if named == "file" else "desk:agent"
    code, out, _ = piped(
        "three", arguments=(agent, "--resume", named.format(recorded) if named != "file" else recorded)
    )
    assert (code, out) == (0, "You said: three (5 messages) \n")


def test_the_beginning_of_an_id_is_enough(piped, recorded):
    """As for every command."""
    assert piped("three", arguments=("desk:agent", "--resume", recorded.stem[:-4]))[0] == 0


def test_a_file_is_found_again_from_another_folder(piped, sessions, tmp_path, monkeypatch):
    """Its whole path is recorded."""
    assert piped("one", arguments=("desk.py:agent",))[0] == 0
    [log] = sessions.iterdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    err = piped("two", arguments=("--resume", log.stem))[2]
    agent = f"{tmp_path / 'desk.py'}:agent"
    assert f"sessionlog chat {agent} --resume {log.stem}" in err
    code, out, _ = piped("two", arguments=(agent, "--resume", log.stem))
    assert (code, out) == (0, "You said: two (3 messages) \n")


def test_the_folder_of_sessions_can_be_named(piped, sessions, tmp_path):
    """For a new session and for one that goes on."""
    assert piped("one", arguments=("desk:agent", "--dir", tmp_path / "logs"))[0] == 0
    [log] = (tmp_path / "logs").iterdir()
    assert not sessions.exists()
    assert piped("two", arguments=("desk:agent", "--resume", log.stem, "--dir", tmp_path / "logs"))[0] == 0
    assert len(list((tmp_path / "logs").iterdir())) == 1


def test_the_system_text_can_be_given(piped, sessions):
    """Instead of the agent's own."""
    assert piped("one", arguments=("desk:agent", "--system", "Be long."))[0] == 0
    [log] = sessions.iterdir()
    assert next(iter(read_events(str(log)))).data["system_prompt"] == "Be long."
    assert Session.resume(str(log), lambda messages: "").system == "Be long."


@pytest.mark.parametrize(
    ("code", "says"), [(PYDANTIC_AI, "I am a test."), (ASYNC, "I am async: one")], ids=["pydantic_ai", "async"]
)
def test_another_kind_of_agent(piped, desk, code, says):
    """A pydantic-ai agent, and a function that is async."""
    if "pydantic_ai" in code:
        pytest.importorskip("pydantic_ai")
    (desk / "other_desk.py").write_text(code, "utf-8")
    assert piped("one", arguments=("./other_desk.py:agent",))[:2] == (0, f"{says}\n")
    sys.modules.pop("other_desk")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "which agent? name it as module:agent or path/to/file.py:agent"),
        (("desk",), "'desk' does not name an agent"),
        (("desk:agent", "--resume", "x", "--system", "y"), "choose only one of --resume and --system"),
        (("desk:agent", "--model", "m-2"), "which has its own"),
    ],
)
def test_wrong_usage_is_said(piped, arguments, says):
    """With exit code 2, and nothing on stdout."""
    code, out, err = piped("one", arguments=arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_a_session_that_is_not_there(piped, recorded):
    """Exit code 3; nothing was imported for it."""
    for agent in ((), ("desk:agent",)):
        code, out, err = piped("one", arguments=(*agent, "--resume", "no-such-session"))
        assert (code, out) == (3, "")
        assert "no-such-session: no such file" in err


@pytest.mark.parametrize("place", ["our folder", "a link in it", "elsewhere", "--dir"])
def test_p22_no_log_chooses_what_is_run(piped, recorded, tmp_path, place):
    """What it names is shown as the command to type, and not imported."""
    hostile = tmp_path / "hostile.py"
    hostile.write_text(f"open({str(tmp_path / 'owned')!r}, 'w')\nagent = print\n", "utf-8")
    content = recorded.read_bytes().replace(b'"desk:agent"', json.dumps(f"{hostile}:agent").encode())
    other = (recorded.parent if place == "our folder" else tmp_path) / "other.jsonl"
    other.write_bytes(content.replace(recorded.stem.encode(), b"other"))
    if place == "a link in it":
        (recorded.parent / "other.jsonl").symlink_to(other)
    target = "other" if place in {"our folder", "a link in it"} else other.name if place == "--dir" else str(other)
    options = ("--dir", str(tmp_path)) if place == "--dir" else ()
    code, out, err = piped("three", arguments=("--resume", target, *options))
    assert (code, out) == (2, "")
    assert f"if you trust it: sessionlog chat {hostile}:agent --resume {target}" in err
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("metadata", [None, [], {}, {"agent": 7}])
def test_a_log_that_does_not_say_who_answered(piped, recorded, metadata):
    """One of another program, or an odd one."""
    first, _, rest = recorded.read_bytes().partition(b"\n")
    event = json.loads(first)
    event["data"]["metadata"] = metadata
    recorded.write_bytes(json.dumps(event).encode() + b"\n" + rest)
    code, _, err = piped("three", arguments=("--resume", recorded.stem))
    assert code == 2
    assert "Its log does not name one" in err


def test_a_damaged_log_is_refused(piped, recorded):
    """It is said where, and it stays as it is."""
    lines = recorded.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:2], b"{damaged}\n", *lines[2:]])
    recorded.write_bytes(damaged)
    os.utime(recorded, (1_700_000_000, 1_700_000_000))
    code, out, err = piped("three", arguments=("desk:agent", "--resume", recorded.stem))
    assert (code, out) == (3, "")
    assert f"{recorded}:3" in err
    assert "check --repair" in err
    assert "skip_damage" not in err
    assert recorded.read_bytes() == damaged


def test_a_fork_of_a_session_that_goes_on_says_who_answers(piped, recorded):
    """So that it goes on by its log alone, too."""
    assert piped("/fork", "three", arguments=("desk:agent", "--resume", recorded.stem))[0] == 0
    [fork] = set(recorded.parent.iterdir()) - {recorded}
    assert piped("four", arguments=("desk:agent", "--resume", fork.stem))[:2] == (0, "You said: four (7 messages) \n")


def test_a_chat_that_cannot_be_recorded_says_so(piped, tmp_path):
    """At its start and after each turn, in words of its own; it is answered all the same, and the exit code is 1."""
    (tmp_path / "file").write_text("", "utf-8")
    code, out, err = piped("one", arguments=("desk:agent", "--dir", str(tmp_path / "file" / "x")))
    assert (code, out) == (1, "You said: one (1 messages) \n")
    first, second = [line for line in err.splitlines() if line.startswith("sessionlog: ")]
    assert first.startswith(f"sessionlog: this chat cannot be recorded: {tmp_path / 'file' / 'x'}: ")
    assert first.endswith("; --dir FOLDER names another folder")
    assert second.startswith("sessionlog: this turn is not recorded: ")
    assert "health()" not in err


def test_what_to_type_to_go_on_works_as_it_stands(person, desk):
    """With the folder and the model that were named, quoted for a shell, on a row of its own that nothing wraps."""
    (desk / "a b").mkdir()
    (desk / "a b" / "an agent.py").write_text("def answer(messages):\n    return str(len(messages))\n", "utf-8")
    me = person("a b/an agent.py:answer", "--dir", "a b/logs", "--model", "m-2", columns=42)
    me.sees("you ▸")
    me.types("hello\r")
    me.sees("you ▸")
    me.types("/q\r")
    assert me.ends() == 0
    [line] = [line for line in me.shown.splitlines() if line.startswith("sessionlog chat")]
    [log] = (desk / "a b" / "logs").iterdir()
    told = shlex.split(line)
    assert told == [
        "sessionlog", "chat", f"{desk}/a b/an agent.py:answer", "--resume", log.stem, "--model", "m-2",
        "--dir", f"{desk}/a b/logs",
    ]  # fmt: skip


def test_a_hostile_log_shows_nothing_that_acts(person, recorded):
    """What was said last is shown, and may have been said by anybody."""
    lines = recorded.read_bytes().replace(b"two", rb"\u001b[2J\u001b]0;owned\u0007two")
    recorded.write_bytes(lines)
    me = person("desk:agent", "--resume", recorded.stem, NO_COLOR="1", TERM="dumb")
    me.sees(r"you ▸ \x1b[2J\x1b]0;owned\x07two")
    me.sees(r"You said: \x1b[2J")
    me.sees("you ▸")
    assert "\x1b[2J" not in me.raw
    assert "\x1b]0" not in me.raw
