"""Request: what was asked of a model, in one form for all logs and all doors, so that two requests can be compared.

It has five parts: model, system, messages, tools and parameters. What differs from run to run without a change of what
is asked is not in it, and this is the whole rule:

- Ids of tool calls are `call 1`, `call 2`, … in the order of the calls, and results in a row are in that order.
- Of a message remain its role, text, files, calls and call id. Other fields (ids, timestamps, names, cache marks,
  signatures) and reasoning are left out, and messages without a content.
- Texts have line feeds as line ends and no blanks around them; the JSON text of a tool's result is written in one way.
- Well-known secrets are `[redacted]`, as the logger leaves them.
- Several messages of the assistant in a row are one, and system texts at the beginning are the part `system`.
- Of a tool remain its name, description and schema; their order does not count. Of the other fields of a request remain
  those of `PARAMETERS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import orjson

from sessionlog.context.snapshots.tools import read_tool
from sessionlog.events.redact import redact_line
from sessionlog.hashes import blake2b, hash_bytes
from sessionlog.messages.entry import content_text
from sessionlog.messages.json_value import decode_json, json_text, json_value, valid_text
from sessionlog.messages.message import ContentPart, Message
from sessionlog.messages.read import read_entry
from sessionlog.transcript.digests import canonical_json, has_content

Json = Any
PARTS = ("model", "system", "messages", "tools", "parameters")
"""The parts of a request, in the order in which they are compared."""
PARAMETERS = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed", "stop", "reasoning",
)  # fmt: skip
"""The parameters that logs have."""
_EXACT = 2**53  # floats from here on are not exact, and do not fit in 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request.

    Attributes:
        model: The model asked for; None where it is not known.
        system: The system text; empty for none.
        messages: The messages, as JSON; system texts at the beginning are not among them.
        tools: Description and schema of each tool, by name.
        parameters: The sampling parameters.
    """

    model: str | None
    system: str
    messages: tuple[Json, ...]
    tools: Mapping[str, Json]
    parameters: Mapping[str, Json]

    def part(self, name: str) -> Json:
        """Return one of `PARTS`."""
        return getattr(self, name)

    def key(self, parts: Iterable[str]) -> bytes:
        """Return a 16-byte hash of some parts: equal for requests that ask the same."""
        asked = [self.part(name) for name in parts]
        return blake2b(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()

    @property
    def prompt(self) -> str:
        """The text of the last message of the user; empty without one."""
        return next((one["content"] for one in reversed(self.messages) if one["role"] == "user"), "")


def read_request(fields: Mapping[str, Json]) -> Request:
    """Return the request that `fields` has under the names of `llm.request`; `system` is its system text, if apart.

    Messages and tools may have the format of any provider.
    """
    given = fields.get("messages")
    entries = map(read_entry, given if isinstance(given, list | tuple) else ())
    messages = [message for entry in entries for message in entry.messages]
    if isinstance(fields.get("system"), str):
        messages = [Message.system(fields["system"]), *messages]
    return make_request([plain for message in messages if (plain := plain_message(message)) is not None], fields)


def plain_message(message: Message) -> Json | None:
    """Return a message as JSON without what is not compared, with the ids of calls as given; None for an empty one."""
    if not has_content(message):
        return None
    text = content_text(message)[0].replace("\r\n", "\n").strip()
    made: dict[str, Json] = {"role": message.role, "content": _redacted(text)}
    files = [_file(part) for part in message.parts if part.is_media]
    if files:
        made["files"] = files
    if message.role == "tool":
        made |= {"content": canonical_json(made["content"]), "tool_call_id": message.tool_call_id, "name": message.name}
    elif message.tool_calls:
        made["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": _redacted(_plain(decode_json(call.arguments)))}
            for call in message.tool_calls
        ]
    return made


def make_request(messages: Sequence[Json], fields: Mapping[str, Json]) -> Request:
    """Return a request.

    Args:
        messages: Its messages, from `plain_message`.
        fields: Its model, tools and parameters, under the names of `llm.request`.
    """
    begin = next((n for n, message in enumerate(messages) if message["role"] != "system"), len(messages))
    numbered = map(_CallNumbers().apply, _joined(messages[begin:]))
    in_order = (sorted(group, key=_number) for _, group in groupby(numbered, key=lambda one: one["role"] == "tool"))
    model = fields.get("model")
    return Request(
        model=valid_text(model) if isinstance(model, str) and model else None,
        system="\n\n".join(message["content"] for message in messages[:begin]),
        messages=tuple(message for group in in_order for message in group),
        tools=dict(_tools(fields.get("tools"))),
        parameters={name: _plain(fields[name]) for name in PARAMETERS if fields.get(name) is not None},
    )


def without_system(request: Request) -> Request:
    """Return a request without any text of the system, also between other messages."""
    return replace(request, system="", messages=tuple(one for one in request.messages if one["role"] != "system"))


def _joined(messages: Iterable[Json]) -> Iterator[Json]:
    """Yield messages; those of the assistant in a row become one."""
    for role, group in groupby(messages, key=lambda one: one["role"]):
        if role != "assistant":
            yield from group
            continue
        several = list(group)
        calls = [call for one in several for call in one.get("tool_calls", ())]
        content = "\n".join(filter(None, (one["content"] for one in several)))
        yield {**several[0], "content": content} | ({"tool_calls": calls} if calls else {})


class _CallNumbers:
    """Numbers the calls of one request."""

    def __init__(self) -> None:
        self._count = 0
        self._by_id: dict[str, int] = {}
        self._open: list[tuple[str, int]] = []  # (tool, number) of calls without a result

    def apply(self, message: Json) -> Json:
        """Return a message with numbers in place of the ids of calls."""
        if message["role"] == "tool":
            rest = {key: value for key, value in message.items() if key != "name"}
            return rest | {"tool_call_id": self._answered(message)}
        if "tool_calls" in message:
            return {**message, "tool_calls": [{**call, "id": self._called(call)} for call in message["tool_calls"]]}
        return message

    def _called(self, call: Json) -> str:
        self._count += 1
        self._by_id[call["id"]] = self._count
        self._open.append((call["name"], self._count))
        return f"call {self._count}"

    def _answered(self, result: Json) -> str:
        """Return the name of the call that a result answers: by its id, else the oldest open call of its tool."""
        number = self._by_id.get(result["tool_call_id"] or "", 0)
        if not number:
            number = next((one for tool, one in self._open if result["name"] in (None, tool)), 0)
        self._open = [(tool, one) for tool, one in self._open if one != number]
        return f"call {number}" if number else "no call"


def _number(message: Json) -> int:
    """Return the number of the call that a message answers; 0 for none."""
    number = str(message.get("tool_call_id", "")).removeprefix("call ")
    return int(number) if number.isdecimal() else 0


def _file(part: ContentPart) -> str:
    """Return a name for a file: its type and its address, or a hash of its content."""
    if part.image_url is not None and not part.image_url.startswith("data:"):
        return f"{part.type} {part.image_url}"
    content = part.data if part.data is not None else json_text([part.image_url, _plain(part.extra)]).encode()
    return f"{part.media_type or part.type} {hash_bytes(content)}"


def _tools(given: Json) -> Iterator[tuple[str, Json]]:
    for value in given if isinstance(given, list | tuple) else ():
        declared = value.get("functionDeclarations") if isinstance(value, Mapping) else None
        for one in declared if isinstance(declared, list) else [value]:
            tool = read_tool(one)
            if tool is not None:
                yield (
                    valid_text(tool.name),
                    _redacted({"description": valid_text(tool.description or ""), "schema": _plain(tool.schema)}),
                )


def _plain(value: Json) -> Json:
    """Return a value as JSON in which 1.0 is 1: writers differ there."""
    value = json_value(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _redacted(value: Json) -> Json:
    """Return a JSON value as a log holds it."""
    encoded = orjson.dumps(value)
    redacted = redact_line(encoded)
    return value if redacted is encoded else orjson.loads(redacted)
