"""Pictures in other agents' logs: on the page of the session, in prompts and in tools' results."""

import base64
import json

import pytest

from sessionlog.errors import Problem
from sessionlog.render.html.session import SessionPage, render_session
from sessionlog.render.replay.fold import fold_replay
from sessionlog.sources.registry import load_source
from tests.render.html.hostile import Page, findings
from tests.render.html.test_session import PNG, VIEW

SVG = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>').decode()
ASKED, RETURNED = PNG, base64.b64encode(base64.b64decode(PNG) + b"\0").decode()
"""Two pictures that differ."""


def _claude(prompt, result):
    def source(data):
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    common = {"sessionId": "s", "cwd": "/src", "version": "2.1.0", "isSidechain": False, "parentUuid": None}
    call = {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "a.png"}}
    answer = {"id": "m1", "role": "assistant", "model": "claude-opus-4-5", "content": [call],
              "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    returned = [{"type": "tool_result", "tool_use_id": "c1", "content": [source(result)]}]
    asked = {"role": "user", "content": [{"type": "text", "text": "look here"}, source(prompt)]}
    rows = [("user", asked), ("assistant", answer), ("user", {"role": "user", "content": returned})]
    return [
        common | {"type": kind, "uuid": f"u{n}", "timestamp": f"2026-11-22T10:00:0{n}.000Z", "message": message}
        for n, (kind, message) in enumerate(rows)
    ]


def _codex(prompt, result):
    def part(data):
        return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}

    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look here"}, part(prompt)]}
    call = {"type": "function_call", "name": "view_image", "arguments": '{"path":"a.png"}', "call_id": "c1"}
    rows = [
        ("session_meta", {"id": "s", "cwd": "/src", "cli_version": "0.118.0"}),
        ("response_item", asked),
        ("event_msg", {"type": "user_message", "message": "look here", "images": []}),
        ("response_item", call),
        ("response_item", {"type": "function_call_output", "call_id": "c1", "output": [part(result)]}),
    ]
    return [
        {"timestamp": f"2026-11-22T10:00:0{n}.000Z", "type": kind, "payload": payload}
        for n, (kind, payload) in enumerate(rows)
    ]


def _gemini(prompt, result):
    def part(data):
        return {"inlineData": {"mimeType": "image/png", "data": data}}

    returned = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "read"}}}
    call = {"id": "c1", "name": "read_file", "args": {"path": "a.png"}, "status": "success",
            "timestamp": "2026-11-22T10:00:02.000Z", "result": [returned, part(result)]}  # fmt: skip
    return [
        {"sessionId": "s", "projectHash": "p", "startTime": "2026-11-22T10:00:00.000Z"},
        {"id": "1", "timestamp": "2026-11-22T10:00:01.000Z", "type": "user", "content": [{"text": "look here"}, part(prompt)]},
        {"id": "2", "timestamp": "2026-11-22T10:00:02.000Z", "type": "gemini", "content": "", "toolCalls": [call],
         "model": "gemini-2.5-pro", "tokens": {"input": 1, "output": 1, "total": 2}},
    ]  # fmt: skip


def _pi(prompt, result):
    def part(data):
        return {"type": "image", "data": data, "mimeType": "image/png"}

    asked = {"role": "user", "content": [{"type": "text", "text": "look here"}, part(prompt)]}
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.png"}}
    answer = {"role": "assistant", "content": [call], "provider": "p", "model": "m",
              "usage": {"input": 1, "output": 1}, "stopReason": "toolUse"}  # fmt: skip
    returned = {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": [part(result)]}
    start = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-22T10:00:00.000Z", "cwd": "/src"}
    return [start] + [
        {"type": "message", "id": str(n), "parentId": None if n == 1 else str(n - 1), "message": message,
         "timestamp": f"2026-11-22T10:00:0{n}.000Z"}
        for n, message in enumerate((asked, answer, returned), 1)
    ]  # fmt: skip


LOGS = {"claude-code": _claude, "codex": _codex, "gemini": _gemini, "pi": _pi}


@pytest.fixture(params=sorted(LOGS))
def page(request, tmp_path):
    """Makes the page of an agent's session with a picture in its prompt, and one in a tool's result."""

    def make(prompt, result):
        path = tmp_path / "s.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in LOGS[request.param](prompt, result)))
        events = [one for one in load_source(request.param).read(str(path), None) if not isinstance(one, Problem)]
        blocks = fold_replay(events, session_id="s")
        return "".join(render_session(blocks, VIEW, SessionPage(session="s", agent=request.param)))

    return make


def test_pictures_of_prompts_and_results_are_shown(page):
    """Each once, beside the words."""
    made = page(ASKED, RETURNED)
    shown = [attributes["src"] for name, attributes in Page(made).elements if name == "img"]
    assert shown == [f"data:image/png;base64,{one}" for one in (ASKED, RETURNED)]
    assert "look here" in Page(made).text
    assert findings(made) == []


@pytest.mark.parametrize("data", [SVG, "no base64!", "QUJD"])
def test_what_is_no_picture_is_named_and_not_shown(page, data):
    """SVG can hold scripts; other bytes are none of the four kinds."""
    made = page(data, data)
    assert [name for name, _ in Page(made).elements if name == "img"] == []
    assert "look here" in Page(made).text
    assert findings(made) == []
