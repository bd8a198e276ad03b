"""What requests sent, put together from the pieces of a log: each is told as a change of the one before it."""

import json

from sessionlog.events.envelope import Event
from sessionlog.sources import sent_prompts
from sessionlog.sources.find import log_at
from sessionlog.sources.sent_prompts import SentPrompts
from sessionlog.sources.steps import PromptPart, SentRequest
from tests.context.reports import xray

HEAD = PromptPart("h", system=["be brief"], tools=[{"name": "read"}])


def message(text):
    return {"role": "user", "content": text}


def request(key, *messages, base="", keep=0, head="h"):
    return SentRequest(key, base, keep, messages, head)


def made(*steps):
    prompts = SentPrompts()
    for step in steps:
        prompts.take(step)
    return prompts


def test_a_request_is_a_change_of_the_one_before_it():
    """The head comes once; of the messages those behind what both have."""
    prompts = made(HEAD, PromptPart("a", message=message("a")), request("1", "a"))
    assert prompts.sent("1", None) == {
        "keep": 0, "messages": [message("a")], "system": ["be brief"], "tools": [{"name": "read"}],
    }  # fmt: skip
    prompts.take(PromptPart("b", message=message("b")))
    prompts.take(request("2", "b", base="1", keep=1))
    assert prompts.sent("2", None) == {"keep": 1, "messages": [message("b")]}


def test_what_no_piece_holds_is_an_answer():
    """The last of them is the last that the log holds."""
    prompts = made(HEAD, PromptPart("a", message=message("a")), PromptPart("c", message=message("c")))
    answers = [{"role": "assistant", "content": text} for text in ("x", "y")]
    for answer in answers:
        prompts.add_answer(answer)
    prompts.take(request("1", "a", "?", "c"))
    assert prompts.sent("1", None)["messages"] == [message("a"), answers[1], message("c")]


def test_a_request_that_is_not_known_has_the_head_of_its_time():
    """No messages: the log does not hold them."""
    early = PromptPart("", system=["early"])
    prompts = made(early)
    head = prompts.head
    prompts.take(PromptPart("", system=["late"], tools=[]))
    assert prompts.sent("gone", head) == {"system": ["early"], "tools": None}
    assert prompts.sent("gone", head) is None
    assert prompts.sent("gone", prompts.head) == {"system": ["late"], "tools": []}


def test_a_request_that_goes_on_from_another_log_has_no_messages():
    """A fork's first one may."""
    assert made(HEAD, request("2", "b", base="1", keep=3)).sent("2", None) is None


def test_pieces_are_let_go():
    """Those that none of the latest requests has; and all of them where no request names any."""
    prompts = made(HEAD)
    for n in range(200):
        prompts.take(PromptPart(f"h{n}", system=["x"]))
        prompts.take(PromptPart(f"m{n}", message=message("x" * 1000)))
        prompts.take(request(str(n), f"m{n}"))
        prompts.sent(str(n), None)
    assert len(prompts._messages) <= sent_prompts._REQUESTS + 1
    assert len(prompts._heads) <= sent_prompts._HEADS


def test_pieces_that_no_request_names_have_an_end(monkeypatch):
    """A damaged log, or one that was made to be large."""
    monkeypatch.setattr(sent_prompts, "_ROOM", 10_000)
    prompts = SentPrompts()
    for n in range(100):
        prompts.take(PromptPart(f"m{n}", message="x" * 1000))
    assert len(prompts._messages) <= 10


def test_a_request_that_was_forgotten_has_no_messages():
    """An answer may name it all the same."""
    prompts = made(HEAD, PromptPart("a", message=message("a")), request("r0", "a"))
    for n in range(100):
        prompts.take(request(f"r{n + 1}", "a"))
        prompts.sent(f"r{n + 1}", None)
    assert prompts.sent("r0", None) is None


def test_a_base_keeps_its_messages_while_titles_are_asked_for():
    """And an answer is named once."""
    prompts = made(HEAD, *(PromptPart(key, message=message(key)) for key in "abc"), request("r1", *"abc"))
    prompts.sent("r1", None)
    prompts.add_answer({"role": "assistant", "content": "one"})
    for title in ("t1", "t2"):
        prompts.take(PromptPart(title, message=message(title)))
        prompts.take(request(f"q{title}", title))
        prompts.sent(f"q{title}", None)
    prompts.take(PromptPart("d", message=message("d")))
    prompts.take(request("r2", "?", "d", base="r1", keep=3))
    assert [one["content"] for one in prompts.sent("r2", None)["messages"]] == ["a", "b", "c", "one", "d"]


def test_context_is_what_claude_code_has_logged(tmp_path):
    """System prompt, tools with their servers, reminders and memory files by name, and nothing that is not in the log."""
    tools = [
        {"name": name, "description": "d" * 400, "input_schema": {}}
        for name in ("Read", "mcp__git__log", "mcp__git__diff")
    ]
    reminder = (
        "<system-reminder>\nContents of /w/CLAUDE.md (project instructions):\n" + "rule " * 200 + "</system-reminder>"
    )
    content = [{"type": "text", "text": reminder}, {"type": "text", "text": "please do it now"}]
    common = {
        "sessionId": "11111111-1111-4111-8111-111111111111",
        "version": "2.1.330",
        "cwd": "/w",
        "isSidechain": False,
    }
    usage = {"input_tokens": 1500, "output_tokens": 5}
    rows = [
        {"parentUuid": None, **common, "type": "user", "uuid": "u1", "timestamp": "2026-11-20T10:00:00Z",
         "message": {"role": "user", "content": "please do it now"}},
        {"type": "api-request-shape", "sessionId": common["sessionId"], "shapeHash": "s",
         "shape": {"system": [{"type": "text", "text": "you are an agent " * 60}], "tools": tools}},
        {"type": "api-request-blob", "sessionId": common["sessionId"], "hash": "m1",
         "message": {"role": "user", "content": content}},
        {"type": "api-request", "sessionId": common["sessionId"], "id": "r1", "shapeHash": "s", "keep": 0, "tail": ["m1"],
         "params": {"model": "claude-opus-4-5"}},
        {"parentUuid": "u1", **common, "type": "assistant", "uuid": "a1", "timestamp": "2026-11-20T10:00:01Z",
         "requestId": "q1", "requestRef": "r1",
         "message": {"id": "msg_1", "role": "assistant", "model": "claude-opus-4-5", "stop_reason": "end_turn",
                     "content": [{"type": "text", "text": "ok"}], "usage": usage}},
    ]  # fmt: skip
    path = tmp_path / f"{common['sessionId']}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    parts = {(part.kind, part.name): part for part in xray(str(path)).parts}
    assert sum(part.tokens for part in parts.values()) == 1500
    assert {("tools", "Read"), ("tools", "mcp git"), ("system", "memory files")} <= parts.keys()
    assert parts["tools", "mcp git"].count == 2
    log = log_at(str(path))
    assert [one for one in log.source.read(log.path, None) if isinstance(one, Event) and one.data.get("sent")]
