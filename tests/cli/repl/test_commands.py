"""What begins with a slash: every word on a session with a scripted agent."""

import json
import os
import stat

import pytest

from sessionlog import files, read_events
from sessionlog.cli.repl.commands import COMMANDS, help_rows, run_slash_command
from sessionlog.cli.repl.outputs import JsonOutput
from sessionlog.conversation.agent import Agent
from sessionlog.conversation.session import Session


def types_of(chat):
    """The types of its log's events."""
    return [event.type for event in read_events(chat.path)]


def test_help_is_made_of_the_table(chat, capsys):
    """Every word with its line, and what else can be typed."""
    talking = chat()
    run_slash_command(talking, "/help")
    said = capsys.readouterr().err
    for name, command in COMMANDS.items():
        assert any(line.startswith(name) and line.endswith(command.help) for line in said.splitlines())
    assert "//text" in said
    assert [name.split()[0] for name, _ in help_rows()][: len(COMMANDS)] == list(COMMANDS)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/hepl", "there is no /hepl; did you mean /help?"),
        ("/zzz", "there is no /zzz; /help lists the commands"),
        ("/zzz", "begin a text with //"),
        ("/undo 3", "/undo takes no argument"),
        ("/\x1b[2J", r"there is no /\x1b[2J"),
    ],
)
def test_a_word_that_is_none_is_said_with_the_nearest(chat, capsys, line, says):
    """And it counts as a failure for scripts."""
    talking = chat()
    run_slash_command(talking, line)
    assert says in capsys.readouterr().err
    assert talking.has_failed


def test_undo_takes_the_newest_turn_back(chat, capsys):
    """In the history and in the log; the turn before it is there."""
    talking = chat()
    talking.take_turn("one")
    talking.take_turn("look\nhere")
    run_slash_command(talking, "/undo")
    assert "removed: “look here” and 3 messages after it" in capsys.readouterr().err
    assert [message.text for message in talking.session.history()] == ["one", "I heard 'one'."]
    assert types_of(talking)[-1] == "history.pop"
    run_slash_command(talking, "/undo")
    run_slash_command(talking, "/undo")
    assert "there is no turn to remove" in capsys.readouterr().err
    assert not talking.has_failed


def test_undo_of_a_turn_in_which_nothing_was_answered(chat, capsys):
    """Only what was said is named."""
    talking = chat(agent=Agent(lambda messages: 1 / 0))
    talking.take_turn("x" * 100)
    run_slash_command(talking, "/undo")
    assert f"removed: “{'x' * 59}…”\n" in capsys.readouterr().err


def test_clear_begins_anew(chat):
    """The session and its log stay."""
    talking = chat()
    talking.take_turn("one")
    before = talking.session.session_id
    run_slash_command(talking, "/clear")
    assert talking.session.history() == []
    assert talking.session.session_id == before
    assert types_of(talking)[-1] == "history.clear"
    talking.take_turn("two")
    assert [message.text for message in talking.session.history()] == ["two", "I heard 'two'."]


def test_a_fork_goes_on_alone(chat, capsys):
    """The session before stays as it is, and has ended."""
    talking = chat()
    talking.take_turn("one")
    first, path = talking.session, talking.path
    run_slash_command(talking, "/fork")
    talking.take_turn("two")
    assert len(first.history()) == 2
    assert len(talking.session.history()) == 4
    assert talking.path != path
    assert types_of(talking)[0] == "session.start"
    assert [event.type for event in read_events(path)][-1] == "session.end"
    assert f"a fork of {first.session_id}" in capsys.readouterr().err
    assert ("fork of", first.session_id) in talking.facts()
    start = next(iter(read_events(talking.path))).data
    assert (start["parent"]["session"], start["metadata"]) == (first.session_id, {"agent": "desk:agent"})


def test_session_says_where_everything_is(chat, capsys):
    """And what to type to go on."""
    talking = chat()
    talking.take_turn("one")
    run_slash_command(talking, "/session")
    said = dict(line.split("  ", 1) for line in capsys.readouterr().err.splitlines()[1:])
    said = {name: text.strip() for name, text in said.items()}
    assert said["session"] == talking.session.session_id
    assert said["log"] == talking.path
    assert said["system"] == "Be brief."
    assert said["tools"] == "look"
    assert said["history"].startswith("2 messages, 1 turn, ~")
    assert said["state"] == "complete"
    assert said["go on"] == f"sessionlog chat desk:agent --resume {talking.session.session_id}"


def test_status_usage_and_context_answer_from_the_log(chat, capsys):
    """As the commands do that have their names."""
    talking = chat()
    talking.take_turn("one")
    run_slash_command(talking, "/status")
    out = capsys.readouterr().out
    assert f"Session {talking.session.session_id}" in out
    assert "$0.25" in out
    run_slash_command(talking, "/usage")
    out = capsys.readouterr().out
    assert "m-1" in out
    assert "$0.25" in out
    run_slash_command(talking, "/context")
    assert "Context at request 1 of 1" in capsys.readouterr().out
    assert not talking.has_failed


def test_status_says_that_the_window_is_unknown(chat, capsys):
    """Where nobody has told tokens; the estimate is elsewhere."""
    talking = chat(agent=Agent(lambda _: "hello"))
    talking.take_turn("one")
    run_slash_command(talking, "/status")
    assert "the context fill is not known" in capsys.readouterr().err
    talking = chat()
    talking.take_turn("one")
    run_slash_command(talking, "/status")
    assert "not known" not in capsys.readouterr().err


@pytest.mark.parametrize("word", ["/status", "/usage", "/context"])
def test_nothing_is_recorded_before_something_was_said(chat, capsys, word):
    """It is no failure to ask; and no log is made for it."""
    talking = chat()
    run_slash_command(talking, word)
    assert "nothing is recorded yet" in capsys.readouterr().err
    assert not os.path.exists(talking.path)


def test_reports_for_a_program_are_documents(chat, capsys):
    """The same that --json gives."""
    talking = chat(JsonOutput())
    talking.take_turn("one")
    capsys.readouterr()
    for word in ("/status", "/usage", "/context", "/session", "/help"):
        run_slash_command(talking, word)
    items = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [item.get("document", {}).get("schema", "")[:16] for item in items[:3]] == [
        "sessionlog.statu", "sessionlog.usage", "sessionlog.conte",
    ]  # fmt: skip
    assert items[0]["document"]["usage"]["session"]["cost"] == 0.25
    assert items[3]["facts"]["session"] == talking.session.session_id
    assert "/help" in items[4]["facts"]


@pytest.mark.parametrize("word", ["/quit", "/exit", "/q"])
def test_leaving(chat, word):
    """There are several words for it."""
    talking = chat()
    run_slash_command(talking, word)
    assert talking.is_over


def test_save_writes_what_a_session_can_be_made_of(chat, capsys, tmp_path, monkeypatch):
    """A private JSON file, named by the session's id unless told otherwise; a second time it is written over."""
    monkeypatch.chdir(tmp_path)
    talking = chat()
    talking.take_turn("one")
    run_slash_command(talking, "/save")
    path = tmp_path / f"{talking.session.session_id}.json"
    assert f"saved as {path.name}" in capsys.readouterr().err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    talking.take_turn("two")
    run_slash_command(talking, f"/save {path}")
    document = json.loads(path.read_text("utf-8"))
    assert document["schema"] == "sessionlog.session/1"
    again = Session.from_dict(document, lambda messages: "")
    assert again.history() == talking.session.history()
    assert (again.session_id, again.system) == (talking.session.session_id, "Be brief.")


def test_save_leaves_other_files_alone(chat, capsys, tmp_path):
    """Whatever they are, also other sessions."""
    talking = chat()
    talking.take_turn("one")
    for content in (b"my notes", b'{"session_id": "another", "messages": []}', b'{"session_id": 1}', b"[1]"):
        path = tmp_path / "taken.json"
        path.write_bytes(content)
        run_slash_command(talking, f"/save {path}")
        assert "exists, and is not this session" in capsys.readouterr().err
        assert path.read_bytes() == content
    assert talking.has_failed


def test_save_says_why_it_cannot(chat, capsys, tmp_path, monkeypatch):
    """No folder, a folder in its place, a full disk: the chat goes on."""
    talking = chat()
    talking.take_turn("one")
    run_slash_command(talking, f"/save {tmp_path}/no/such/folder.json")
    assert "no such file or directory" in capsys.readouterr().err
    run_slash_command(talking, f"/save {tmp_path}")
    assert str(tmp_path) in capsys.readouterr().err

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "replace_file", full)
    run_slash_command(talking, f"/save {tmp_path}/full.json")
    assert "no space left on device" in capsys.readouterr().err
    assert os.listdir(tmp_path / "home") == [".local"]
