"""The loop: lines in, turns and commands out; a chat that ends in any way has saved its session."""

import json
import os
import signal
from contextlib import nullcontext

import pytest

from sessionlog import read_events
from sessionlog.cli.output import Exit
from sessionlog.cli.repl.loop import run_chat
from sessionlog.cli.repl.outputs import PlainOutput
from sessionlog.conversation.agent import Agent
from sessionlog.conversation.session import Session


class Script:
    """Lines of a script; what is an exception is raised."""

    is_empty = True

    def __init__(self, *lines):
        self.lines, self.closed = list(lines), False

    def read(self):
        if not self.lines:
            raise EOFError
        line = self.lines.pop(0)
        if isinstance(line, BaseException):
            raise line
        return line

    def close(self):
        self.closed = True


class Personal(PlainOutput):
    """A person who is told as a pipe is."""

    is_interactive = True


def ends_of(chat):
    """How the session ended, as its log says."""
    return [event.data["status"] for event in read_events(chat.path) if event.type == "session.end"]


def test_each_line_is_a_turn(chat, capsys):
    """Blank ones are none; the session has ended well."""
    talking, lines = chat(), Script("one", "", "  ", "two")
    run_chat(talking, lines)
    assert capsys.readouterr().out == "I heard 'one'.\nI heard 'two'.\n"
    assert ends_of(talking) == ["success"]
    assert lines.closed


def test_a_text_may_begin_with_a_slash(chat, capsys):
    """Typed twice; and one that has a slash further on is a text anyway."""
    run_chat(chat(), Script("//etc/hosts", "a /quit", "///", " /quit"))
    assert capsys.readouterr().out.splitlines() == [
        "I heard '/etc/hosts'.", "I heard 'a /quit'.", "I heard '//'.", "I heard ' /quit'.",
    ]  # fmt: skip


def test_quit_ends_it(chat):
    """What stands behind it is not read."""
    lines = Script("/quit", "one")
    run_chat(chat(), lines)
    assert lines.lines == ["one"]


def test_a_failed_turn_makes_the_exit_code_1(chat, capsys):
    """For scripts; the lines after it are turns all the same."""
    talking = chat()
    with pytest.raises(Exit) as caught:
        run_chat(talking, Script("fail now", "one"))
    assert caught.value.code == 1
    out, err = capsys.readouterr()
    assert out == "I would \nI heard 'one'.\n"
    assert r"the agent failed: ValueError: no such thing\x1b[2J; the partial answer is kept" in err
    assert talking.session.history()[1].partial == "failed"


def test_a_person_has_seen_it_fail(chat):
    """And leaves with 0."""
    run_chat(chat(Personal()), Script("fail now"))


def test_an_answer_that_a_person_stops_is_kept(chat):
    """The chat goes on, and the session has not ended by it."""
    talking = chat(Personal())
    run_chat(talking, Script("stop here", "one"))
    history = talking.session.history()
    assert [message.partial for message in history] == [None, "cancelled", None, None]
    assert history[1].text == "one two "
    assert ends_of(talking) == ["success"]


def test_leaving_after_an_answer_that_was_stopped_is_a_success(chat):
    """The answer was stopped, and not the session; also when a fork takes its place."""
    talking = chat(Personal())
    run_chat(talking, Script("stop here"))
    assert ends_of(talking) == ["success"]
    talking = chat(Personal())
    path = talking.path
    run_chat(talking, Script("stop here", "/fork", "/quit"))
    assert [event.data["status"] for event in read_events(path) if event.type == "session.end"] == ["success"]


@pytest.mark.parametrize("output", [Personal, PlainOutput])
def test_an_agent_that_ends_the_program_does_not_end_the_chat(chat, capsys, output):
    """It is a turn that failed: it is said what it did, and a script goes on to its exit code 1."""
    talking = chat(output())
    with pytest.raises(Exit) if output is PlainOutput else nullcontext():
        run_chat(talking, Script("exit now", "one"))
    out, err = capsys.readouterr()
    assert out == "I would \nI heard 'one'.\n"
    assert "the agent or a tool tried to end the program (sys.exit: 3); the partial answer is kept" in err
    assert len(ends_of(talking)) == 1


def test_a_text_of_several_lines_is_no_command(chat, capsys):
    """Whatever it begins with: it was pasted."""
    run_chat(chat(), Script("/quit\nand more"))
    assert capsys.readouterr().out == "I heard '/quit\\nand more'.\n"


def test_a_script_that_is_stopped_ends(chat):
    """As Ctrl-C does with any program: what was said is kept, and the session is cancelled."""
    talking, lines = chat(), Script("stop here", "one")
    with pytest.raises(KeyboardInterrupt):
        run_chat(talking, lines)
    assert talking.session.history()[1].partial == "cancelled"
    assert ends_of(talking) == ["cancelled"]
    assert lines.closed


def test_ctrl_c_at_the_prompt(chat, capsys):
    """It is said how to leave, but not to who has typed half a line; a script ends."""
    lines = Script(KeyboardInterrupt(), "one")
    run_chat(chat(Personal()), lines)
    assert "Ctrl-D or /quit leaves" in capsys.readouterr().err
    lines = Script(KeyboardInterrupt())
    lines.is_empty = False
    run_chat(chat(Personal()), lines)
    assert "leaves" not in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        run_chat(chat(), Script(KeyboardInterrupt()))


def test_ctrl_c_while_something_is_told(chat, monkeypatch):
    """Also between two pieces the answer is kept as one that was stopped."""
    talking = chat(Personal())
    monkeypatch.setattr(talking.output, "text", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    run_chat(talking, Script("one"))
    assert talking.session.history()[1].partial == "cancelled"


def test_ctrl_c_in_a_command(chat, monkeypatch):
    """The chat goes on."""
    talking = chat(Personal())
    monkeypatch.setattr(talking.output, "facts", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    lines = Script("/help", "one")
    monkeypatch.setattr("sessionlog.cli.repl.chat.Chat.is_recorded", False)
    run_chat(talking, lines)
    assert len(talking.session.history()) == 2


def test_a_pipe_that_is_gone(chat, monkeypatch):
    """What was shown is kept, and the session has ended."""
    talking = chat()
    monkeypatch.setattr(talking.output, "text", lambda _: (_ for _ in ()).throw(BrokenPipeError))
    with pytest.raises(BrokenPipeError):
        run_chat(talking, Script("one"))
    assert talking.session.history()[1].partial == "interrupted"
    assert ends_of(talking) == ["error"]


def test_signals_are_given_back(chat):
    """Whoever had them before."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    run_chat(chat(), Script("one"))
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == before


def test_nothing_said_leaves_nothing(chat, capsys):
    """No log is made of a chat in which nobody spoke."""
    talking = chat(Personal())
    run_chat(talking, Script())
    assert not talking.is_recorded
    assert "--resume" not in capsys.readouterr().err


def test_a_turn_that_is_not_recorded_is_said(chat, capsys):
    """Once each, and the exit code is 1 for a person, too."""
    talking = chat(Personal())
    folder = os.path.dirname(talking.path)
    os.makedirs(os.path.dirname(folder))
    with open(folder, "wb"):
        pass  # where the folder should be
    with pytest.raises(Exit):
        run_chat(talking, Script("one", "two"))
    out, err = capsys.readouterr()
    assert out == "I heard 'one'.\nI heard 'two'.\n"
    assert err.count("\nsessionlog: this turn is not recorded: ") == 2


def test_a_log_that_somebody_else_goes_on_with(chat, capsys):
    """It is said what to do in a chat; the fork has what was said here."""
    talking = chat(Personal())
    talking.take_turn("one")
    Session.resume(talking.path, Agent(lambda _: "elsewhere")).run("there")
    run_chat(talking, Script("two", "/fork", "three"))
    out, err = capsys.readouterr()
    assert out == "I heard 'one'.\nI heard 'three'.\n"
    assert "another process has continued this session: /fork continues" in err
    assert "Session.resume" not in err
    assert "not recorded" not in err


def test_leaving_says_how_to_go_on(chat, capsys):
    """To a person."""
    talking = chat(Personal())
    run_chat(talking, Script("one"))
    assert f"sessionlog chat desk:agent --resume {talking.session.session_id}" in capsys.readouterr().err
    run_chat(chat(), Script("one"))
    assert "--resume" not in capsys.readouterr().err


def test_what_is_piped_is_a_chat(piped, sessions):
    """Without prompts; the whole way through the command line."""
    code, out, err = piped("hello", "look", "/undo", "again")
    assert code == 0
    assert out == "You said: hello (1 messages) \nIt says nothing much. \nYou said: again (3 messages) \n"
    assert "you ▸" not in out + err
    assert "⚙ look  notes.txt" in err
    assert len(list(sessions.iterdir())) == 1


def test_what_an_agent_prints_is_no_answer(piped, desk):
    """It goes beside them, also while it is imported; reports are of our own."""
    code = "print('import')\ndef agent(messages):\n    print('noise')\n    return 'answer'\n"
    (desk / "loud_desk.py").write_text(code, "utf-8")
    _, out, err = piped("hello", "/usage", arguments=("./loud_desk.py:agent",))
    assert out.startswith("answer\nUsage · all time")
    assert "import\n" in err
    assert "noise\n" in err
    _, out, _ = piped("hello", "/usage", arguments=("./loud_desk.py:agent", "--json"))
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["session", "text_delta", "done", "report"]


def test_what_is_piped_and_fails(piped):
    """Exit code 1."""
    code, out, err = piped("fail now", "hello")
    assert (code, out) == (1, "I would \nYou said: hello (3 messages) \n")
    assert "Traceback" not in err


def test_json_lines(piped):
    """One object for each piece, and nothing else on stdout."""
    code, out, err = piped("look", "fail now", "/nope", arguments=("desk:agent", "--json"))
    items = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (1, "")
    assert items[0]["schema"] == "sessionlog.chat/1"
    kinds = [item["type"] for item in items]
    assert [kind for n, kind in enumerate(kinds) if kind != kinds[n - 1]] == [
        "session", "tool_called", "tool_returned", "text_delta", "done", "text_delta", "failed",
    ]  # fmt: skip
    done = next(item for item in items if item["type"] == "done")
    assert (done["text"], done["usage"]["output"], done["status"]) == ("It says nothing much. ", 20, "success")
