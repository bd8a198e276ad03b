"""Messages to events of a log and back: answers and tool results have events of their own.

An answer is written in the fields that every reader knows (`content`, `tool_calls`, `partial`); where reading these
does not give the same message again, it is written beside them as `message`. Logs written without a session hold
messages in their provider's shape.

A truncation is written as the messages that go, by index, and those that come, by place: what `cut_of(before, after)`
gives, applied to `before` as `transcript.fold` does, is `after`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sessionlog.conversation.history.rules import is_summary
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.history.weight import size_of
from sessionlog.errors import InvalidHistory
from sessionlog.messages.json_value import strict_json
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.messages.message_json import (
    content_from_json,
    message_from_dict,
    message_to_dict,
    request_from_dict,
    request_to_dict,
)
from sessionlog.messages.read import read_entry, read_result

Json = Any


def spell_answer(message: Message) -> dict[str, Json]:
    """Return the fields of `llm.response` that say what an answer says."""
    return {
        "content": message.text,
        "tool_calls": [request_to_dict(call) for call in message.tool_calls] or None,
        "partial": message.partial,
    }


def answer_of(data: Mapping[str, Json], streamed: str = "", place: str = "llm.response") -> Message | None:
    """Return the answer in an `llm.response`; None where there is none.

    Args:
        data: The payload.
        streamed: The pieces before it, which stand for an answer without a text.
        place: Where it was found, for the error's words.

    Raises:
        InvalidHistory: What it says is no message.
    """
    if isinstance(data.get("message"), Mapping):
        return message_from_dict(data["message"], f"{place}: message")
    calls = read_calls(data.get("tool_calls"), place)
    content, word = data.get("content"), data.get("partial")
    partial = word if isinstance(word, str) else "failed" if data.get("error") else None
    if content is None and not calls and not streamed:
        return None
    said = content_from_json(streamed if content is None else content, f"{place}: content")
    return Message("assistant", said, tool_calls=calls, partial=partial)


def spell_result(request: ToolRequest, message: Message) -> dict[str, Json]:
    """Return the fields of `tool.call` that say what was called and what it said."""
    output = message_to_dict(message)["content"]
    return {"tool": request.name, "id": request.id, "input": request.arguments, "output": output}


def result_of(data: Mapping[str, Json], call_id: str, tool: str, place: str = "tool.call") -> Message:
    """Return the result that a `tool.call` has of a call.

    Raises:
        InvalidHistory: What it says is no message.
    """
    if isinstance(data.get("message"), Mapping):
        return message_from_dict(data["message"], f"{place}: message")
    output = data.get("output")
    given = data.get("error") if output is None else output
    [message] = read_result(given, call_id=call_id, name=tool).messages
    return message


def read_message(value: Json, place: str, *, is_transcript: bool = False) -> tuple[Message, ...]:
    """Return the messages that one logged message holds: mostly one; several where results of tools are in it.

    Args:
        value: The message, in any provider's shape.
        place: Where it stands, for the error message.
        is_transcript: It was made from another agent's log: what is no message there becomes text.

    Raises:
        InvalidHistory: It is no message; the error names the place.
    """
    if is_transcript and isinstance(value, Mapping):
        value = {key: item for key, item in value.items() if key != "inherited"}
        value.setdefault("content", None)
    entry = read_entry(value)
    if entry.problems and not is_transcript:
        message_from_dict(value, place)  # its error names the place within the message
        raise InvalidHistory(f"{place}: {entry.problems[0]}")
    return tuple(map(_with_call_ids, entry.messages))


def _with_call_ids(message: Message) -> Message:
    if all(call.id for call in message.tool_calls):
        return message
    calls = (call if call.id else replace(call, id=f"call-{n}") for n, call in enumerate(message.tool_calls))
    return replace(message, tool_calls=tuple(calls))


def read_calls(value: Json, place: str) -> tuple[ToolRequest, ...]:
    """Return the calls of a `tool_calls` list; what is no list, as the count of the oldest logs, gives none.

    A call without an id is given one, by its place in the list.

    Raises:
        InvalidHistory: One of them is no call.
    """
    if not isinstance(value, list | tuple):
        return ()
    calls = []
    for n, item in enumerate(value):
        if isinstance(item, Mapping) and not item.get("id"):
            item = {**item, "id": f"call-{n}"}  # noqa: PLW2901 - the same call, named
        calls.append(request_from_dict(item, f"{place}: tool_calls[{n}]"))
    return tuple(calls)


def spell_tool(tool: Any) -> Json:
    """Return what a request says of a tool: a JSON value as it is, of an object its name, description, parameters."""
    if isinstance(tool, Mapping):
        return dict(tool)
    return {key: getattr(tool, key, None) for key in ("name", "description", "parameters")}


def pieces_of(messages: Sequence[Message], size: int) -> Iterator[Sequence[Message]]:
    """Cut messages into pieces of about so many characters, each of at least one message."""
    start = held = 0
    for n, message in enumerate(messages):
        held += size_of(message)
        if held > size and n > start:
            yield messages[start:n]
            start, held = n, size_of(message)
    if start < len(messages):
        yield messages[start:]


def json_options(options: Mapping[str, Json]) -> dict[str, Json]:
    """Return the options that are JSON; other objects belong to the caller's program and may hold secrets."""
    return {name: value for name, value in options.items() if _is_json(value)}


def _is_json(value: object) -> bool:
    try:
        strict_json(value)
    except InvalidHistory:
        return False
    return True


Span = tuple[int, int]


def cut_of(before: Sequence[Message], after: Sequence[Message]) -> tuple[list[Span], list[tuple[int, Message]]]:
    """Return the half-open spans of indexes that are dropped, and what is added: (index in `after`, message).

    Messages are known again as the very objects, in their order; anything else is dropped and added.
    """
    places: dict[int, list[int]] = defaultdict(list)
    for n in range(len(before) - 1, -1, -1):
        places[id(before[n])].append(n)
    kept: list[int] = []
    added: list[tuple[int, Message]] = []
    for at, message in enumerate(after):
        found = places.get(id(message), [])
        while found and kept and found[-1] <= kept[-1]:
            found.pop()
        if found:
            kept.append(found.pop())
        else:
            added.append((at, message))
    return list(_gaps(kept, len(before))), added


def spell_cut(before: Sequence[Message], after: Sequence[Message], truncation: Truncation) -> dict[str, Any]:
    """Return the payload of the `compaction.end` of a truncation; fields that are None are left out."""
    dropped, added = cut_of(before, after)
    return {
        "success": True,
        "strategy": truncation.strategy,
        "messages_before": len(before),
        "messages_after": len(after),
        "tokens_before": truncation.tokens_before,
        "tokens_after": truncation.tokens_after,
        "no_compaction": None if dropped or added else True,
        "summary": next((message.text for _, message in added if is_summary(message)), None),
        "dropped": [list(span) for span in dropped],
        "added": [{"at": at, "message": message_to_dict(message)} for at, message in added],
        "warning": "still over budget: nothing more can be dropped" if truncation.is_over_budget else None,
    }


def _gaps(kept: Iterable[int], length: int) -> Iterable[Span]:
    end = 0
    for n in [*kept, length]:
        if n > end:
            yield end, n
        end = n + 1
