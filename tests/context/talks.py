"""Message histories made by hand: objects with pydantic-ai's attributes, and nothing of it."""

from types import SimpleNamespace


def user(text):
    """A user's words."""
    return SimpleNamespace(part_kind="user-prompt", content=text)


def call(name, call_id, args=None):
    """A call of a tool."""
    return SimpleNamespace(part_kind="tool-call", tool_name=name, tool_call_id=call_id, args=args)


def result(call_id, text):
    """What a tool answers."""
    return SimpleNamespace(part_kind="tool-return", tool_call_id=call_id, content=text)


def ask(*parts, ts=None):
    """A request."""
    return SimpleNamespace(kind="request", parts=list(parts), timestamp=ts)


def answer(*parts, tokens=None, ts=None):
    """A response; a plain text is its text."""
    made = [SimpleNamespace(part_kind="text", content=part) if isinstance(part, str) else part for part in parts]
    usage = None if tokens is None else SimpleNamespace(input_tokens=tokens[0], output_tokens=tokens[1])
    return SimpleNamespace(kind="response", parts=made, usage=usage, timestamp=ts)


def tool_loop():
    """Two turns: a tool and an answer, two tools and an answer."""
    return [
        ask(SimpleNamespace(part_kind="system-prompt", content="Be brief."), user("First?")),
        answer(call("read", "c1", {"path": "a.py"}), tokens=(100, 10), ts="2026-11-21T10:00:01Z"),
        ask(result("c1", "body"), ts="2026-11-21T10:00:02Z"),
        answer("One.", tokens=(150, 12), ts="2026-11-21T10:00:03Z"),
        ask(user("Second?"), ts="2026-11-21T10:01:00Z"),
        answer(call("read", "c2", '{"path":"b.py"}'), call("grep", "c3"), tokens=(200, 14), ts="2026-11-21T10:01:01Z"),
        ask(result("c2", "body"), result("c3", "none"), ts="2026-11-21T10:01:02Z"),
        answer("Two.", tokens=(260, 9), ts="2026-11-21T10:01:04Z"),
    ]
