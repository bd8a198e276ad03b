"""Conversations in few words, and the logs that tell them: whole requests, or only what is new in each.

A talk is a list of turns: `(prompt, [answer, …])`; an answer is a text, or `(text, [(tool, arguments, result), …])`.
"""

from sessionlog.analytics.diff.message import diff_message
from sessionlog.events.envelope import Event
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.transcript.digests import digest_message
from tests.sources.logs import answered, asked, ended, event, start

CALM = [("hello", ["Hi."]), ("and now?", [("Let me look.", [("read", {"path": "a"}, "one\ntwo")]), "It is one."])]


def tell(talk, *, whole=True, ids="c", results_beside=True, clock="10:00:00", **facts):
    """The events of a log as dicts; `results_beside` as `tool.call`, else only in the next request."""
    messages, events, told = [], [start(clock, **facts)], 0
    count = 0
    for prompt, answers in talk:
        messages.append({"role": "user", "content": prompt})
        for answer in answers:
            text, calls = answer if isinstance(answer, tuple) else (answer, [])
            new = messages if whole else messages[told:]
            events.append(asked(clock, messages=list(new), **({} if whole or not told else {"earlier_messages": told})))
            told = len(messages)
            named = [(f"{ids}{count + n}", *call) for n, call in enumerate(calls)]
            count += len(named)
            made = [{"id": i, "name": name, "arguments": arguments} for i, name, arguments, _ in named]
            events.append(answered(clock, content=text, tool_calls=made or None, usage={"input": 10, "output": 5}))
            messages.append({"role": "assistant", "content": text} | ({"tool_calls": made} if made else {}))
            for call_id, name, arguments, result in named:
                if results_beside:
                    said = {"tool": name, "id": call_id, "input": arguments, "output": result, "duration_ms": 7}
                    events.append(event("tool.call", clock, said))
                messages.append({"role": "tool", "tool_call_id": call_id, "content": result})
    return [*events, ended(clock)]


def as_events(dicts):
    """The same as the reader gives them."""
    return [
        Event(session_id="s", seq=n, type=one["type"], ts=one["ts"], data=one["data"]) for n, one in enumerate(dicts)
    ]


def make_said(role, text, *, calls=(), call_id=None):
    """Something said; a call is `(tool, arguments, id)`."""
    made = [ToolRequest.of_model(call_id, tool, arguments) for tool, arguments, call_id in calls]
    message = Message(role, text, tool_calls=made, tool_call_id=call_id)
    return diff_message(message, digest_message(message))
