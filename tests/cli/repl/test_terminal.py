"""A person at a terminal: a conversation that is stopped, forked, killed, and gone on with."""

import os
import re
import signal

import pytest

from sessionlog import read_events


def id_in(text):
    """The last session id in a text."""
    return re.findall(r"\d{8}T\d{6}Z-[0-9a-f]{8}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)[-1]


def types_of(path):
    """The types of a log's events."""
    return [event.type for event in read_events(str(path))]


def test_a_conversation(person, sessions):
    """It is answered, recorded, and ended; what to type to go on is the last thing that is said."""
    me = person("desk:agent")
    assert "Ctrl-C stops an answer" in me.sees("you ▸")
    me.types("hello there\r")
    assert "◂ m-1" in me.sees("You said: hello there (1 messages)")
    assert "$0.25" in me.sees("you ▸")
    me.types("look\r")
    me.sees("⚙ look  notes.txt")
    me.sees("It says nothing much.")
    me.sees("you ▸")
    me.types("\x04")
    me.sees("sessionlog chat desk:agent --resume")
    assert me.ends() == 0
    [log] = sessions.iterdir()
    kinds = types_of(log)
    assert kinds[0] == "session.start"
    assert kinds[-1] == "session.end"
    assert kinds.count("llm.request") == 3
    assert kinds.count("tool.call") == 1
    assert [e.data["status"] for e in read_events(str(log)) if e.type == "session.end"] == ["success"]


def test_stopped_forked_killed_and_gone_on_with(person, sessions):
    """Nothing that was said is lost, and the agent is found again by the log."""
    me = person("desk:agent")
    me.sees("you ▸")
    first = id_in(me.shown)
    me.types("wait for it\r")
    me.sees("one two")
    me.stops("◌ stopped; the partial answer is kept")
    me.sees("you ▸")
    me.types("/fork\r")
    me.sees(f"a fork of {first}")
    me.sees("you ▸")
    second = id_in(me.shown)
    assert second != first
    me.types("and here?\r")
    me.sees("You said: and here? (3 messages)")
    me.sees("you ▸")
    me.types("wait once more\r")
    me.sees("one two")
    os.kill(me.running.pid, signal.SIGKILL)
    assert me.ends() == -signal.SIGKILL
    again = person("desk:agent", "--resume", second)
    before = again.sees("you ▸ wait once more")
    assert "desk:agent" in before
    assert "one two" in again.sees("◌ interrupted")
    again.sees("you ▸ ")
    again.types("on we go\r")
    again.sees("You said: on we go (7 messages)")
    again.sees("you ▸")
    again.types("/quit\r")
    assert again.ends() == 0
    assert sorted(path.stem for path in sessions.iterdir()) == sorted([first, second])
    assert types_of(sessions / f"{first}.jsonl")[-1] == "session.end"
    start = next(iter(read_events(str(sessions / f"{second}.jsonl"))))
    assert start.data["parent"]["session"] == first


def test_ctrl_c_where_nothing_is_said_tells_how_to_leave(person):
    """And where something was typed it is only thrown away."""
    me = person("desk:agent")
    me.sees("you ▸")
    me.stops("Ctrl-D or /quit leaves")
    me.sees("you ▸ ")
    me.types("half a line")
    me.sees("half a line")
    assert "leaves" not in me.stops("you ▸ ")
    me.types("/q\r")
    assert me.ends() == 0


def test_lines_can_be_edited_and_come_back(person, home):
    """Words are completed; an earlier chat's text is there with the arrow, from a private file."""
    me = person("desk:agent")
    me.sees("you ▸")
    me.types("helo\x1b[Dl\r")
    me.sees("You said: hello (1 messages)")
    me.sees("you ▸")
    me.types("/ses\t\r")
    me.sees("log ")
    me.sees("you ▸")
    me.types("\x04")
    assert me.ends() == 0
    kept = home / ".local" / "state" / "sessionlog" / "chat_history.jsonl"
    assert kept.read_text().splitlines() == ['"hello"', '"/session "']
    assert kept.stat().st_mode & 0o777 == 0o600
    me = person("desk:agent")
    me.sees("you ▸")
    me.types("\x1b[A\x1b[A\r")
    me.sees("You said: hello (1 messages)")


@pytest.mark.parametrize(
    ("number", "code", "where"),
    [
        (signal.SIGTERM, 143, "in an answer"),
        (signal.SIGTERM, 143, "at the prompt"),
        (signal.SIGHUP, 129, "in an answer"),
    ],
)
def test_a_signal_saves_and_ends_as_cancelled(person, sessions, number, code, where):
    """Wherever it comes."""
    me = person("desk:agent")
    me.sees("you ▸")
    me.types("hello\r")
    me.sees("You said: hello")
    me.sees("you ▸")
    if where == "in an answer":
        me.types("wait for it\r")
        me.sees("one two")
    assert me.is_told_to_end(number) == code
    assert "Traceback" not in me.shown
    [log] = sessions.iterdir()
    events = list(read_events(str(log)))
    assert [event.data["status"] for event in events if event.type == "session.end"] == ["cancelled"]
    if where == "in an answer":
        [partial] = [event.data for event in events if event.type == "llm.response" and event.data.get("partial")]
        assert (partial["content"], partial["partial"]) == ("one two ", "cancelled")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_plain_text_where_it_is_wanted(person, environment):
    """No colour at all; the editor's own switches are not ours."""
    me = person("desk:agent", **environment)
    me.sees("you ▸")
    me.types("hello\r")
    me.sees("You said: hello")
    me.sees("you ▸")
    assert "\x1b[1" not in me.raw
    assert "\x1b[3" not in me.raw
    assert "m-1" in me.raw


def test_a_failed_turn_is_told_and_the_chat_goes_on(person):
    """In a line or two, with nothing in it that acts."""
    me = person("desk:agent")
    me.sees("you ▸")
    me.types("fail now\r")
    me.sees(r"✘ the agent failed: ValueError: no such thing\x1b[2J; the partial answer is")
    me.sees("you ▸")
    me.types("hello\r")
    me.sees("You said: hello (3 messages)")
    assert "Traceback" not in me.shown


def test_a_text_of_several_lines_can_be_pasted(person, home):
    """It is one turn, and one text of the history."""
    me = person("desk:agent")
    me.sees("you ▸")
    assert "\x1b[?2004h" in me.raw  # the terminal is asked to say what is pasted
    me.types("\x1b[200~first line\n/quit\nlast line\x1b[201~")
    me.sees("last line")
    me.types("\r")
    me.sees("You said: first line\n  /quit\n  last line (1 messages)")
    me.sees("you ▸")
    me.types("third\\\rfourth\r")
    me.sees("┆")
    me.sees("You said: third\n  fourth (3 messages)")
    kept = home / ".local" / "state" / "sessionlog" / "chat_history.jsonl"
    assert kept.read_text().splitlines() == [r'"first line\n/quit\nlast line"', r'"third\nfourth"']


def test_an_async_agent_can_be_stopped(person, desk):
    """Its task is cancelled, and the chat goes on."""
    (desk / "slow_desk.py").write_text(
        "import asyncio\n"
        "async def agent(messages):\n"
        "    yield f'{len(messages)} '\n"
        "    if messages[-1].text == 'wait':\n"
        "        for _ in range(6_000):\n"
        "            await asyncio.sleep(0.01)\n",
        "utf-8",
    )
    me = person("slow_desk:agent")
    me.sees("you ▸")
    me.types("wait\r")
    me.sees("◂ agent\n  1 ")
    me.stops("◌ stopped; the partial answer is kept")
    me.sees("you ▸")
    me.types("hello\r")
    me.sees("◂ agent\n  3 ")
    me.sees("you ▸")
    assert "Traceback" not in me.shown
