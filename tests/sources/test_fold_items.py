"""Items are what people read: texts joined from their pieces, calls by their values, paths by themselves, each once."""

import json

import pytest
from msgspec import Raw

from sessionlog.sources.fold_items import Item, ItemFold, ItemState, Kind, paths_of
from sessionlog.sources.names import OURS
from sessionlog.sources.protocol import Resume
from sessionlog.sources.registry import load_source
from sessionlog.sources.steps import At, Compaction, MoreInput, Prompt, Response, Session, Text, ToolCall, ToolResult
from tests.sources.logs import write_log


def fold(*steps):
    """(kind, text) of the items of steps."""
    found = ItemFold(ItemState("s"))
    items = [item for place, step in enumerate(steps) for item in found.take(place, step)]
    return [(item.kind.name, item.text) for item in [*items, *found.end()]]


def test_every_source_gives_its_steps():
    """Also databases, documents and packed logs."""
    assert {name for name in OURS if load_source(name).read_steps.__name__ != "read_steps"} == set()


def test_pieces_are_one_text():
    """Those of the answer and of its reasoning apart; a time between them does not cut them."""
    steps = (
        Text(1, "a wo", is_piece=True), Text(1, reasoning="hm ", is_piece=True), At(2), Text(2, "rd", is_piece=True),
        Text(2, reasoning="yes", is_piece=True), Prompt(3, "next"),
    )  # fmt: skip
    assert fold(*steps) == [("ANSWER", "a word"), ("THINKING", "hm yes"), ("PROMPT", "next")]


def test_a_response_stands_for_its_pieces():
    """A log may have both; pieces of an answer that was cut off stand alone."""
    assert fold(Text(1, "a wo", is_piece=True), Response(time=2, text="a word")) == [("ANSWER", "a word")]
    assert fold(Text(1, "a wo", is_piece=True), Response(time=2)) == [("ANSWER", "a wo")]


def test_a_call_s_text_is_its_values():
    """Its tool, then the arguments without keys; a picture's bytes are left out."""
    arguments = {"path": "/a.py", "edits": [{"new": "x = 1"}, {"line": 7, "all": True}], "data": "QUJD" * 400}
    assert fold(ToolCall(1, "c", "edit", Raw(json.dumps(arguments).encode()))) == [
        ("CALL", "edit\n/a.py\nx = 1\n7"), ("PATHS", "/a.py"),
    ]  # fmt: skip
    assert fold(ToolCall(1, "c", "sh", '{"cmd":'), MoreInput(1, '["ls"]}')) == [("CALL", "sh\nls")]


def test_results_and_errors():
    """A result's text, or the values of its JSON; facts about a result to come are none."""
    steps = (
        ToolResult(1, "c", [{"type": "text", "text": "ok"}]), ToolResult(1, "d", {"stdout": "1", "code": 2}, failed=True),
        ToolResult(1, "e", "", pending=True),
    )  # fmt: skip
    assert fold(*steps) == [("RESULT", "ok"), ("ERROR", "1\n2")]


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"file_path": "/a"}, ["/a"]),
        ({"files": [{"path": "a"}, {"path": "b"}], "mode": "c"}, ["a", "b"]),
        (
            {"input": "*** Begin Patch\n*** Update File: a b.py\n@@\n-x\n*** Add File: c\n*** End Patch"},
            ["a b.py", "c"],
        ),
        ({"patch": "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@"}, ["x.py"]),
        ("*** Delete File: gone", ["gone"]),
        ({"path": "not\na path"}, []),
        (None, []),
    ],
)
def test_paths(given, paths):
    """Of arguments that are named as paths, and of patches."""
    assert paths_of(given) == paths


def test_what_an_agent_adds_is_no_item():
    """System prompts, instructions, reminders, and the summary of a compaction."""
    steps = (
        Prompt(1, "You are", "system"),
        Prompt(2, "hello"),
        Prompt(3, "AGENTS.md", "developer"),
        Compaction(4, "sum"),
    )
    assert fold(*steps) == [("PROMPT", "hello")]


def test_what_is_inherited_is_a_copy():
    """It has the digest of its original, whatever its session."""
    found = ItemFold(ItemState("s"))
    list(found.take(0, Session(id="fork", inherited=True)))
    [copy] = found.take(0, Prompt(1, "hello"))
    original = Item(Kind.PROMPT, 9, "hello", 0, "other")
    assert (copy.is_copy, copy.session, copy.digest == original.digest) == (True, "fork", True)
    assert Item(Kind.ANSWER, 9, "hello", 0, "other").digest != copy.digest


def request(seq, *messages, **more):
    """A line of a request in the native format."""
    return line(seq, "llm.request", {"messages": list(messages), **more})


def line(seq, kind, data):
    """A line of a native log."""
    event = {"session_id": "n", "seq": seq, "type": kind, "ts": f"2026-11-20T10:{seq:02}:00.000000Z", "data": data}
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


USER, AGAIN = {"role": "user", "content": "fix it"}, {"role": "user", "content": "continue"}
ANSWER = {
    "role": "assistant",
    "content": "I look",
    "tool_calls": [{"id": "c1", "name": "read", "arguments": {"path": "a"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x = 1"}
NATIVE = (
    line(0, "session.start", {"v": 1, "prompt": "fix it", "work_dir": "/src"}),
    request(1, USER),
    line(2, "llm.delta", {"content": "I lo"}),
    line(3, "llm.response", {"content": "I look", "tool_calls": ANSWER["tool_calls"]}),
    line(4, "tool.call", {"tool": "read", "id": "c1", "input": {"path": "a"}, "output": "x = 1"}),
    request(5, USER, ANSWER, RESULT),
    line(6, "llm.response", {"content": "Done"}),
    request(7, USER, ANSWER, RESULT, {"role": "assistant", "content": "Done"}, AGAIN),
    request(8, RESULT, AGAIN),
)
SAID = [
    ("PROMPT", "fix it"), ("ANSWER", "I look"), ("CALL", "read\na"), ("PATHS", "a"), ("RESULT", "x = 1"),
    ("ANSWER", "Done"), ("PROMPT", "continue"),
]  # fmt: skip


def test_a_native_log_s_requests_repeat_nothing(tmp_path):
    """Each text is one item, in the session's order, also where a history was cut."""
    path = write_log(tmp_path / "n.jsonl", *NATIVE)
    assert fold(*(one[1] for one in load_source("native").read_steps(str(path), None) if type(one) is tuple)) == SAID


@pytest.mark.parametrize("cut", range(1, len(NATIVE)))
def test_two_readings_are_one(tmp_path, cut):
    """A log that is read in two parts gives the same items."""
    path = write_log(tmp_path / "n.jsonl", *NATIVE[:cut])
    read = load_source("native").read_steps
    first = list(read(str(path), None))
    [resume] = [one for one in first if isinstance(one, Resume)]
    write_log(tmp_path / "n.jsonl", *NATIVE)
    steps = [one[1] for one in [*first, *read(str(path), resume)] if type(one) is tuple]
    assert fold(*steps) == SAID
