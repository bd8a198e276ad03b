"""Messages to log events and back: answers and tool results have their own event types.

An answer is written in the fields that every reader knows (`content`, `tool_calls`, `partial`); where these do not give
the same message back, the event has a `message` as well. Logs written without a session hold messages in their
provider's shape.

A truncation is written as the indexes of dropped messages and the added messages with their indexes:
`diff_histories(before, after)`, applied to `before` as `transcript.fold` does, gives `after`.
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


def answer_fields(message: Message) -> dict[str, Json]:
    """Return the fields of `llm.response` that hold an answer."""
    return {
        "content": message.text,
        "tool_calls": [request_to_dict(call) for call in message.tool_calls] or None,
        "partial": message.partial,
    }


def read_answer(data: Mapping[str, Json], streamed: str = "", place: str = "llm.response") -> Message | None:
    """Return the answer in an `llm.response`; None if there is none.

    Args:
        data: The payload.
        streamed: The text of the `llm.delta` events before it, used where the payload has no text.
        place: The event's position, for error messages.

    Raises:
        InvalidHistory: The payload holds no valid message.
    """
    if isinstance(data.get("message"), Mapping):
        return message_from_dict(data["message"], f"{place}: message")
    calls = read_calls(data.get("tool_calls"), place)
    content, reason = data.get("content"), data.get("partial")
    partial = reason if isinstance(reason, str) else "failed" if data.get("error") else None
    if content is None and not calls and not streamed:
        return None
    parts = content_from_json(streamed if content is None else content, f"{place}: content")
    return Message("assistant", parts, tool_calls=calls, partial=partial)


def result_fields(request: ToolRequest, message: Message) -> dict[str, Json]:
    """Return the fields of `tool.call` that hold a call and its result."""
    output = message_to_dict(message)["content"]
    return {"tool": request.name, "id": request.id, "input": request.arguments, "output": output}


def read_tool_result(data: Mapping[str, Json], call_id: str, tool: str, place: str = "tool.call") -> Message:
    """Return the result in a `tool.call` as a message.

    Raises:
        InvalidHistory: The payload holds no valid message.
    """
    if isinstance(data.get("message"), Mapping):
        return message_from_dict(data["message"], f"{place}: message")
    output = data.get("output")
    given = data.get("error") if output is None else output
    [message] = read_result(given, call_id=call_id, name=tool).messages
    return message


def read_message(value: Json, place: str, *, is_transcript: bool = False) -> tuple[Message, ...]:
    """Return the messages in one logged message: usually one; several where it contains tool results.

    Args:
        value: The message, in any provider's shape.
        place: Its position, for error messages.
        is_transcript: It was converted from another agent's log: what is not a message there becomes text.

    Raises:
        InvalidHistory: It is no valid message.
    """
    if is_transcript and isinstance(value, Mapping):
        value = {key: item for key, item in value.items() if key != "inherited"}
        value.setdefault("content", None)
    entry = read_entry(value)
    if entry.problems and not is_transcript:
        message_from_dict(value, place)  # raises an error with the place within the message
        raise InvalidHistory(f"{place}: {entry.problems[0]}")
    return tuple(map(_with_call_ids, entry.messages))


def _with_call_ids(message: Message) -> Message:
    if all(call.id for call in message.tool_calls):
        return message
    calls = (call if call.id else replace(call, id=f"call-{n}") for n, call in enumerate(message.tool_calls))
    return replace(message, tool_calls=tuple(calls))


def read_calls(value: Json, place: str) -> tuple[ToolRequest, ...]:
    """Return the calls of a `tool_calls` list; none for other values: the oldest logs store only a count.

    A call without an id gets one from its index.

    Raises:
        InvalidHistory: An element is no valid call.
    """
    if not isinstance(value, list | tuple):
        return ()
    calls = []
    for n, item in enumerate(value):
        if isinstance(item, Mapping) and not item.get("id"):
            item = {**item, "id": f"call-{n}"}  # noqa: PLW2901 - the same call, with an id
        calls.append(request_from_dict(item, f"{place}: tool_calls[{n}]"))
    return tuple(calls)


def tool_to_json(tool: Any) -> Json:
    """Return the JSON of a tool in a request: a mapping unchanged, else name, description and parameters."""
    if isinstance(tool, Mapping):
        return dict(tool)
    return {key: getattr(tool, key, None) for key in ("name", "description", "parameters")}


def chunk_messages(messages: Sequence[Message], size: int) -> Iterator[Sequence[Message]]:
    """Split messages into chunks of about `size` characters and at least one message."""
    start = total = 0
    for n, message in enumerate(messages):
        total += size_of(message)
        if total > size and n > start:
            yield messages[start:n]
            start, total = n, size_of(message)
    if start < len(messages):
        yield messages[start:]


def json_options(options: Mapping[str, Json]) -> dict[str, Json]:
    """Return the options that are JSON; other objects are the caller's own and may hold secrets."""
    return {name: value for name, value in options.items() if _is_json(value)}


def _is_json(value: object) -> bool:
    try:
        strict_json(value)
    except InvalidHistory:
        return False
    return True


Span = tuple[int, int]


def diff_histories(before: Sequence[Message], after: Sequence[Message]) -> tuple[list[Span], list[tuple[int, Message]]]:
    """Return the half-open spans of dropped indexes, and the added messages as (index in `after`, message).

    Messages are matched by identity and order; any other message counts as dropped or added.
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


def truncation_fields(before: Sequence[Message], after: Sequence[Message], truncation: Truncation) -> dict[str, Any]:
    """Return the payload of a truncation's `compaction.end`; the caller drops fields that are None."""
    dropped, added = diff_histories(before, after)
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
