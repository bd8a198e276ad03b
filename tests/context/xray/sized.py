"""Sessions of which every size is known: a token is a letter, and each kind of event is made in one line."""

import pytest

from sessionlog.context.tokens import TokenCount
from sessionlog.context.xray import measure
from sessionlog.events.envelope import Event


@pytest.fixture
def _letters(monkeypatch):
    """Count letters: no tokenizer, no estimate, no framing."""
    monkeypatch.setattr(measure, "count_tokens", lambda text, _=None: TokenCount(len(text)))
    monkeypatch.setattr(measure, "count_tokens_json", lambda value, _=None: TokenCount(len(str(value))))
    for name in ("MESSAGE", "CALL", "RESULT"):
        monkeypatch.setattr(measure, name, 0)


def event(type_, /, seq=0, **data):
    """One event."""
    return Event(session_id="s", seq=seq, type=type_, ts=f"2026-11-21T10:00:{seq % 60:02}Z", data=data)


def start(**data):
    return event("session.start", **({"v": 1, "provider": "p", "model": "m"} | data))


def ask(*messages, **data):
    """A request with its whole prompt, unless `earlier_messages` says otherwise."""
    return event("llm.request", messages=list(messages), **data)


def answer(content="ok", *, prompt=None, **data):
    """A response, with what the provider counted."""
    usage = {} if prompt is None else {"usage": {"input": prompt, "output": 1}}
    return event("llm.response", content=content, **usage, **data)


def ran(call_id, output, tool="read", **data):
    return event("tool.call", id=call_id, tool=tool, output=output, **data)


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def said(text="", *calls):
    """An assistant's message with calls: (id, tool, arguments)."""
    made = [{"id": i, "name": name, "arguments": given} for i, name, given in calls]
    return {"role": "assistant", "content": text, "tool_calls": made}


def result(call_id, text):
    return {"role": "tool", "tool_call_id": call_id, "content": text}
