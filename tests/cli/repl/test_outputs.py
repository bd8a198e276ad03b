"""How a chat is told: to a person, to a pipe, to a program."""

import json

import pytest

from sessionlog.cli.repl.outputs import JsonOutput, PlainOutput
from sessionlog.cli.repl.terminal import TerminalOutput
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.turns.pieces import Response, ToolReturned
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import Message, ToolRequest
from tests.security.vt import findings

EVIL = "\x1b[2J\x1b]0;owned\x07\u202e"
READ = ToolRequest("1", "read", {"path": "src/app.py"})
BASH = ToolRequest("2", "bash", {"command": "pytest"})
USAGE = TokenUsage(input=812, output=96)


def returned(request, text="a\nb", error=None, duration_ms=12.0):
    """A tool's result."""
    message = Message.tool(text, request.id, name=request.name)
    return ToolReturned(request, message, error, duration_ms)


def response(text="Hello.", **more):
    """What a turn came to."""
    return Response(message=Message.assistant(text), messages=(), duration_ms=1200.0, **more)


@pytest.fixture
def screen(monkeypatch, capsys):
    """A terminal of 80 columns without colours, and what it shows."""
    monkeypatch.setenv("COLUMNS", "80")
    output = TerminalOutput("/home/me")

    def shown():
        return [row.rpartition("\r")[2].rstrip() for row in capsys.readouterr().out.split("\n")]

    return output, shown


def test_an_answer_on_a_terminal(screen):
    """Who answers, the text, and what it took."""
    output, shown = screen
    output.turn_started("m-1")
    for piece in ("Hel", "lo.\nBye", "."):
        output.text(piece)
    output.done(response(usage=USAGE, cost_usd=0.031))
    assert shown() == ["", "◂ m-1", "  Hello.", "  Bye.", f"{'1.2 s · 812 in · 96 out · $0.031':>79}", "", ""]


def test_a_tool_on_a_terminal(screen, capsys):
    """Its line is finished on its row."""
    output, shown = screen
    output.turn_started("m-1")
    output.text("Let me look.")
    output.tool_called(READ)
    assert capsys.readouterr().out.endswith("\n  ⚙ read  src/app.py")
    output.tool_returned(returned(READ))
    output.text("Done.")
    output.done(response())
    assert shown()[:3] == [f"  ⚙ read  src/app.py{'12 ms · 2 lines':>59}", "  Done.", f"{'1.2 s':>79}"]


def test_two_tools_at_once(screen):
    """What became of each is told below, with its name."""
    output, shown = screen
    output.tool_called(READ)
    output.tool_called(BASH)
    output.tool_returned(returned(READ))
    output.tool_returned(returned(BASH, "", "exit 1"))
    assert shown()[:4] == [
        "  ⚙ read  src/app.py",
        "  ⚙ bash  pytest",
        "    ⇢ read · 12 ms · 2 lines",
        "    ⇢ bash · ✘ exit 1 · 12 ms",
    ]


def test_a_dumb_terminal_writes_no_row_twice(monkeypatch, capsys):
    """It may not know how to go back; and it wraps by itself."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "80")
    output = TerminalOutput()
    output.tool_called(READ)
    output.tool_returned(returned(READ))
    output.text("word " * 40)
    output.done(response())
    out = capsys.readouterr().out
    assert "\r" not in out
    assert "\b" not in out
    assert "\x1b" not in out
    assert out.startswith("  ⚙ read  src/app.py\n    ⇢ read · 12 ms")


def test_an_answer_without_a_text(screen):
    """It is said that there is none; but a tool that ran is an answer."""
    output, shown = screen
    output.turn_started("m-1")
    output.done(response(""))
    assert "  (no text)" in [row.replace("   ", "  ") for row in shown()]
    output.turn_started("m-1")
    output.tool_called(READ)
    output.tool_returned(returned(READ))
    output.done(response(""))
    assert "(no text)" not in "\n".join(shown())


def test_what_was_cut_from_the_history_is_said(screen):
    """And that it was not enough."""
    output, shown = screen
    cut = Truncation((Message.user("a"),) * 3, tokens_before=81_000, tokens_after=40_000, is_over_budget=True)
    output.done(response(truncation=cut))
    text = "\n".join(shown())
    assert "3 older messages left out: ~81,000 → ~40,000 tokens" in text
    assert "over its budget" in text


def test_a_turn_that_was_stopped_and_one_that_failed(screen):
    """Both end the row at hand."""
    output, shown = screen
    output.text("half a")
    output.stopped()
    output.text("half a")
    output.failed("the agent failed: TimeoutError; what was said is kept")
    rows = shown()
    assert rows[:2] == ["  half a", "  ◌ stopped; the partial answer is kept"]
    assert rows[3:5] == ["  half a", "  ✘ the agent failed: TimeoutError; what was said is kept"]


def test_the_last_turn_of_a_session_that_goes_on(screen):
    """As it was, with its mark."""
    output, shown = screen
    output.last_turn(
        [
            Message.user("look"),
            Message.assistant("I will.", tool_calls=[READ]),
            Message.tool("text", "1", name="read"),
            Message.assistant("It is", partial="interrupted"),
        ],
        "m-1",
    )
    assert shown() == [
        "you ▸ look", "", "◂ m-1", "  I will.", "  ⚙ read  src/app.py", "  It is", "  ◌ interrupted", "", "",
    ]  # fmt: skip


def test_a_tool_that_never_returned_is_marked(screen):
    """Whoever goes on with a session that was killed sees that it has no result."""
    output, shown = screen
    output.last_turn(
        [Message.user("look"), Message.assistant("", tool_calls=[READ, BASH]), Message.tool("x", "2")], "m-1"
    )
    rows = [row for row in shown() if "⚙" in row]
    assert rows[0].endswith("◌ interrupted, no result")
    assert rows[1] == "  ⚙ bash  pytest"


def test_what_is_to_be_typed_stands_as_it_is(screen):
    """In one piece and without a home that no shell would find; nothing in it acts."""
    output, shown = screen
    line = f"sessionlog chat '/home/me/{'a' * 90}.py:x' --resume s-1"
    output.facts("left", [("log", "/home/me/s-1.jsonl"), ("go on", f"{line}\x1b[2J")])
    assert shown()[:3] == ["  log    ~/s-1.jsonl", "  go on  type", f"{line}\\x1b[2J"]


@pytest.mark.parametrize("kind", [TerminalOutput, PlainOutput, JsonOutput])
def test_nothing_that_is_told_acts(capfd, monkeypatch, kind):
    """Whoever said it; escape sequences that come in pieces are none."""
    monkeypatch.setenv("COLUMNS", "80")
    output, request = kind(), ToolRequest(EVIL, EVIL, {EVIL: EVIL})
    output.opened("s-1", EVIL, EVIL, EVIL)
    output.last_turn([Message.user(EVIL), Message.assistant(EVIL, tool_calls=[request], partial=EVIL)], EVIL)
    output.turn_started(EVIL)
    for char in EVIL:
        output.text(char)
    output.tool_called(request)
    output.tool_returned(returned(request, EVIL, EVIL))
    output.done(response(EVIL, model=EVIL))
    output.failed(EVIL)
    output.note(EVIL)
    output.facts(EVIL, [(EVIL, EVIL)])
    out, err = capfd.readouterr()
    rows = out.replace("\r", "").replace("\b", "")  # our own
    assert findings(rows.encode(), tab=False) == []
    assert findings(err.encode()) == []
    assert r"\x1b[2J" in out or r"\u001b[2J" in out


def test_a_pipe_gets_the_answers_and_nothing_else(capsys):
    """Tools, notes and errors are beside them."""
    output = PlainOutput()
    output.opened("s-1", "/logs/s-1.jsonl", "desk:agent", "m-1")
    output.turn_started("m-1")
    output.text("  Let me ")
    output.text("look.")
    output.tool_called(READ)
    output.tool_returned(returned(READ))
    output.text("Done.\n")
    output.done(response())
    output.facts("help", [("/quit", "Leave."), ("/s", "It.")])
    output.text("half")
    output.failed("it broke")
    out, err = capsys.readouterr()
    assert out == "  Let me look.\nDone.\nhalf\n"
    assert err.splitlines() == [
        "session s-1: /logs/s-1.jsonl",
        "⚙ read  src/app.py  12 ms · 2 lines",
        "/quit  Leave.",
        "/s     It.",
        "sessionlog: it broke",
    ]


def test_a_program_gets_json_lines(capsys):
    """Each piece as it comes, the schema first; whatever the values are, it is JSON."""
    output = JsonOutput()
    output.opened("s-1", "/logs/s-1.jsonl", "desk:agent", "")
    output.text("né\x7f")
    output.tool_called(ToolRequest("1", "read", {"at": float("nan"), "it": {1, 2}}))
    output.tool_returned(returned(READ))
    output.done(response(usage=USAGE, truncation=Truncation((Message.user("a"),))))
    output.failed("it broke")
    output.stopped()
    output.note("so")
    output.report("usage", lambda: print('{"a":\n 1}'))
    output.report("usage", lambda: None)
    out = capsys.readouterr().out
    assert out.isascii()
    assert "\x7f" not in out
    items = [json.loads(line) for line in out.splitlines()]
    assert [item["type"] for item in items] == [
        "session", "text_delta", "tool_called", "tool_returned", "done", "failed", "stopped", "note", "report",
    ]  # fmt: skip
    assert items[0] == {
        "type": "session", "schema": "sessionlog.chat/1", "session_id": "s-1", "path": "/logs/s-1.jsonl",
        "agent": "desk:agent", "model": None,
    }  # fmt: skip
    assert items[3]["output"] == "a\nb"
    assert (items[4]["text"], items[4]["usage"]["input"], items[4]["truncated_messages"]) == ("Hello.", 812, 1)
    assert items[-1] == {"type": "report", "report": "usage", "document": {"a": 1}}
