"""remember: packed and archived logs, those of other agents, and those that no session wrote."""

import gzip
import json
import os
import re
import shutil

import pytest

from sessionlog.archive.keep import archive_logs
from sessionlog.archive.manifest import archive_folder
from sessionlog.conversation.log.logged_session import open_log
from sessionlog.errors import InvalidHistory
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, ToolRequest
from tests.conversation.log.logs import USER, record, rewrite, turn
from tests.sources.test_otel import span, write


def test_packed_logs_are_remembered_but_closed(folder, read):
    """A packed log is read as any; it is not gone on with."""
    history = turn(record(folder), [], "a")
    (folder / "s.jsonl.gz").write_bytes(gzip.compress((folder / "s.jsonl").read_bytes()))
    (folder / "s.jsonl").unlink()
    found = read()
    assert list(found.messages) == history
    with pytest.raises(InvalidHistory, match=r"packed and closed; Session\.fork_from"):
        open_log(found)


def test_archived_logs_are_remembered_but_closed(folder, read):
    """A log that is in the archive only is read from there, and called what it was called."""
    history = turn(record(folder), [], "a")
    (folder / "s.jsonl").write_bytes((folder / "s.jsonl").read_bytes() + b'{"session_id":"s","se')
    os.utime(folder / "s.jsonl", (1e9, 1e9))
    env = {"HOME": str(folder), "SESSIONLOG_DIR": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    archive_logs(archive_folder(env), env)
    (folder / "s.jsonl").unlink()
    found = read()
    assert (list(found.messages), found.path, found.session_id) == (history, str(folder / "s.jsonl"), "s")
    assert [problem.path for problem in found.problems] == [found.path]
    with pytest.raises(InvalidHistory, match=r"s\.jsonl is in the archive only"):
        open_log(found)
    with pytest.raises(LookupError, match=re.escape(f"{folder}/s.jsonl: no event")):
        read(at=99)


def test_a_number_that_is_none_hides_nothing_of_what_was_said(folder, read):
    """A count of tokens below zero is named, and the session can be forked."""
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])
    rows = [span(n, at=n, gen_ai__input__messages=said, gen_ai__usage__input_tokens=-n) for n in (0, 3)]
    found = read(write(folder, *rows))
    assert [problem.kind for problem in found.problems] == ["bad_number"]
    assert "hi" in found.messages[0].text


def test_a_log_under_another_name_is_closed(folder, read):
    """A session's log is named as its id: a copy under another name can only be forked."""
    turn(record(folder), [], "a")
    shutil.copy(folder / "s.jsonl", folder / "copy.txt")
    assert "has to end in .jsonl" in read(folder / "copy.txt").closed
    shutil.copy(folder / "s.jsonl", folder / "a b.jsonl")
    assert "a b.jsonl" in read(folder / "a b.jsonl").closed


def test_a_link_leads_to_the_log(folder, read):
    """What is appended goes to the file that the link names."""
    turn(record(folder), [], "a")
    (folder.parent / "link.jsonl").symlink_to(folder / "s.jsonl")
    logger = open_log(read(folder.parent / "link.jsonl"))
    assert (logger.path, logger.session_id) == (str(folder / "s.jsonl"), "s")


def test_logs_of_the_go_original_are_closed(folder, read):
    """Tokens are counted in another way there: two ways in one log would be read wrongly."""
    event = {"session_id": "s", "seq": 0, "type": "session.start", "ts": "2026-01-01T00:00:00Z", "data": {}}
    rewrite(folder, json.dumps(event).encode() + b"\n")
    assert "another program" in read().closed


def test_another_agents_log(folder, read):
    """Its history can be forked, calls without a result among it, and its log is never written to."""
    rows = [
        {"type": "user", "uuid": "1", "sessionId": "c", "timestamp": "2026-11-21T10:00:00Z", "cwd": "/p",
         "message": {"role": "user", "content": "fix it"}},
        {"type": "assistant", "uuid": "2", "sessionId": "c", "timestamp": "2026-11-21T10:00:01Z", "requestId": "r",
         "message": {"id": "m", "role": "assistant", "model": "claude", "usage": {"input_tokens": 5,
                     "output_tokens": 2}, "content": [{"type": "text", "text": "on it"},
                     {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]}},
    ]  # fmt: skip
    path = folder / "c.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read(path)
    assert found.source == "claude-code"
    assert [(one.role, one.text) for one in found.messages] == [("user", "fix it"), ("assistant", "on it")]
    assert found.messages[1].tool_calls == (ToolRequest("t1", "Bash", {"command": "ls"}),)
    assert (found.state, found.usage.total) == ("interrupted", 7)
    with pytest.raises(InvalidHistory, match=r"claude-code's own log; Session\.fork_from"):
        open_log(found)


def test_a_log_of_plain_calls(folder, read):
    """Messages in OpenAI's spelling, whole prompts, tool calls with their arguments as a text."""
    with SessionLogger(folder, "s", prompt="list them") as log:
        system, user = {"role": "developer", "content": "be brief"}, {"role": "user", "content": "list them"}
        calls = [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}]
        log.llm_request([system, user])
        log.llm_response(None, tool_calls=calls)
        log.tool_call("ls", {"path": "."}, output=["a", "b"])
        asks = {"role": "assistant", "content": None, "tool_calls": calls}
        log.llm_request([system, user, asks, {"role": "tool", "tool_call_id": "c", "content": '["a"]'}])
        log.llm_response("a and b", usage={"input": 3, "output": 4})
    found = read()
    asked = Message.assistant("", tool_calls=[ToolRequest("c", "ls", {"path": "."})])
    assert list(found.messages) == [
        Message.system("be brief"), Message.user("list them"), asked, Message.tool('["a"]', "c"),
        Message.assistant("a and b"),
    ]  # fmt: skip
    assert (found.state, found.turns, found.closed, found.earlier) == ("complete", 1, "", 4)
    assert list(read(at=3).messages)[3] == Message("tool", ("a", "b"), tool_call_id="c", name="ls")


def test_what_is_no_message_is_refused_by_its_place(folder, read):
    """The file, the line and the message in it are named."""
    with SessionLogger(folder, "s") as log:
        log.llm_request([{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}])
    with pytest.raises(InvalidHistory, match=r"s\.jsonl:2: messages\[1\].*robot"):
        read()


def test_calls_and_results_that_do_not_belong_together_are_left_out(folder, read):
    """A history that no provider would take is mended, and that is said."""
    with SessionLogger(folder, "s") as log:
        log.llm_request([{"role": "tool", "tool_call_id": "x", "content": "?"}, {"role": "user", "content": "a"}])
    found = read()
    assert (found.messages, len(found.logged), found.earlier) == ((Message.user("a"),), 2, 2)
    assert "do not match" in found.problems[0].detail


def test_the_system_text_is_not_said_twice(folder, read):
    """A prompt that repeats the session's own system text does not make it a message as well."""
    recorder = record(folder)
    recorder.request([Message.system("be brief"), USER])
    assert (read().system, read().messages, len(read().logged)) == ("be brief", (USER,), 2)
