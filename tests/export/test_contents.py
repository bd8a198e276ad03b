"""`--content`: the messages of requests are events beside their spans, without secrets, and only when asked for."""

import pytest

from sessionlog.errors import NotExported
from sessionlog.export.otlp import export_otlp
from tests.export.conftest import USAGE, event
from tests.sources.homes import build_home

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def talk(tmp_path):
    """A native log with a tool call, thoughts and a secret."""
    path = tmp_path / "talk" / "t.jsonl"
    path.parent.mkdir()
    calls = [{"id": "c1", "name": "bash", "arguments": {"command": "ls", "timeout": None}}]
    first = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Use {TOKEN}"}]
    second = [*first, {"role": "assistant", "content": None, "tool_calls": calls},
              {"role": "tool", "tool_call_id": "c1", "content": "a.py"}]  # fmt: skip
    thoughts = [{"type": "thinking", "text": "Hm."}, {"type": "text", "text": "Done."}]
    lines = [
        event(0, 0, "session.start", v=1, model="m"),
        event(1, 1, "llm.request", messages=first),
        event(2, 2, "llm.response", model="m", tool_calls=calls, usage=USAGE, finish_reason="tool_use"),
        event(3, 3, "llm.request", messages=second),
        event(4, 4, "llm.response", model="m", message={"role": "assistant", "content": thoughts}, usage=USAGE),
    ]
    path.write_text("".join(lines))
    return path


def test_messages_are_events_of_their_spans(send, receiver, talk):
    """In the shape of the conventions, structured; well-known secrets are replaced."""
    assert send(talk.parent, content=True).events == 2
    chats = [span.span_id for span in receiver.spans() if span.name == "chat m"]
    (first_id, name, first), (second_id, _, second) = receiver.events()
    assert ([first_id, second_id], name) == (chats, "gen_ai.client.inference.operation.details")
    assert first["gen_ai.usage.input_tokens"] == 107
    system, user = first["gen_ai.input.messages"]
    assert system == {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]}
    assert user["parts"] == [{"type": "text", "content": "Use [redacted]"}]
    call = {"type": "tool_call", "id": "c1", "name": "bash", "arguments": {"command": "ls", "timeout": None}}
    assert first["gen_ai.output.messages"] == [{"role": "assistant", "parts": [call], "finish_reason": "tool_use"}]
    result = {"type": "tool_call_response", "id": "c1", "response": "a.py"}
    assert second["gen_ai.input.messages"][3] == {"role": "tool", "parts": [result]}
    [answer] = second["gen_ai.output.messages"]
    assert answer["parts"] == [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "Done."}]
    assert TOKEN.encode() not in b"".join(message.SerializeToString() for _, _, message in receiver.requests)


def test_messages_are_sent_only_when_asked_for(send, receiver, talk):
    """And later, too: they have a position of their own."""
    assert send(talk.parent).events == 0
    assert receiver.events() == []
    done = send(talk.parent, content=True)
    assert (done.requests, done.events) == (0, 2)
    assert send(talk.parent, content=True).events == 0
    assert send(talk.parent, content=True, again=True, dry_run=True).events == 2


def test_of_a_log_that_has_grown_only_the_new_ones(send, receiver, talk):
    """Though equal counts are near."""
    send(talk.parent, content=True)
    receiver.requests.clear()
    with talk.open("a") as file:
        file.write(event(5, 5, "llm.request", messages=[{"role": "user", "content": "More."}]))
        file.write(event(6, 6, "llm.response", model="m", content="Yes.", usage=USAGE))
    assert send(talk.parent, content=True).events == 1
    [(_, _, fields)] = receiver.events()
    assert fields["gen_ai.output.messages"][0]["parts"] == [{"type": "text", "content": "Yes."}]


def test_refused_messages_are_sent_again(send, receiver, talk):
    """Their position is stored after the collector's answer, as all are."""
    receiver.answers += [(200, {}, b""), (200, {}, b""), (400, {"content-type": "text/plain"}, b"too much")]
    with pytest.raises(NotExported, match="answered 400 to events: too much"):
        send(talk.parent, content=True)
    assert send(talk.parent, content=True).events == 2


def test_large_contents_are_several_requests(send, receiver, talk):
    """A collector takes some megabytes at once."""
    with talk.open("a") as file:
        for number in range(3):
            file.write(event(5 + 2 * number, 5, "llm.request", messages=[{"role": "user", "content": "x" * 1_500_000}]))
            file.write(event(6 + 2 * number, 6 + number, "llm.response", usage={"input": 1, "output": number}))
    assert send(talk.parent, content=True).events == 5
    assert len(receiver.messages("/v1/logs")) == 2


def test_logs_that_are_gone_are_counted(send, receiver, tmp_path, talk):
    """The ledger has their tokens, and no words."""
    env = {"HOME": str(tmp_path), "SESSIONLOG_DIR": str(talk.parent), "XDG_STATE_HOME": str(tmp_path / "a")}
    ledger = {"ledger": str(tmp_path / "ledger.sqlite"), "env": env}
    export_otlp(endpoint=receiver.url, **ledger)
    talk.unlink()
    done = export_otlp(endpoint=receiver.url, content=True, **ledger)
    assert (done.events, done.without_log) == (0, 2)


@pytest.mark.parametrize("case", ["claude-code/every-kind-of-copy", "codex/models", "openclaw/models", "kimi/code"])
def test_logs_of_other_agents_have_their_messages(send, receiver, tmp_path, case):
    """Every event belongs to a span that was sent, and has an answer or what was asked."""
    done = send(build_home(case, tmp_path / "case"), content=True)
    spans = {span.span_id for span in receiver.spans()}
    assert done.events == len(receiver.events()) > 0
    for span, _, fields in receiver.events():
        assert span in spans
        assert {"gen_ai.input.messages", "gen_ai.output.messages"} & fields.keys()
