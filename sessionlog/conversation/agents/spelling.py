"""Our messages as OpenAI's chat completions and Anthropic's messages spell them.

Sent is what was said: role, content and tool calls; marks of ours are not. Where a provider has no place for something,
it goes to the nearest one: a picture that a tool gave follows OpenAI's tool messages as the user's.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessionlog.conversation.turns.pieces import Ask
from sessionlog.messages.message import ContentPart, Message

Json = dict[str, Any]

_ONLY_JSON = "Answer with JSON and nothing else."


def system_text(ask: Ask) -> str:
    """Return all that the agent is told to be: the session's text, and the history's own system messages after it."""
    texts = [ask.system or "", *(message.text for message in ask.messages if message.role == "system")]
    return "\n\n".join(text for text in texts if text)


def object_schema(schema: Any) -> tuple[Json | None, str]:
    """Return a schema that a provider can enforce, or what a model has to be told instead; neither without a schema.

    Providers enforce objects only. An empty schema asks for any JSON.
    """
    if schema is None:
        return None, ""
    wanted = dict(schema) if isinstance(schema, Mapping) else _schema_of(schema)
    if wanted.get("type") == "object" and wanted.get("properties"):
        return wanted, ""
    return None, f"{_ONLY_JSON} Its JSON schema: {json.dumps(wanted)}" if wanted else _ONLY_JSON


def read_arguments(text: str | None) -> Any:
    """Return a tool call's arguments by name, or the text itself where it is no JSON object."""
    try:
        found = json.loads(text or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def content_of(parts: Sequence[ContentPart]) -> str | tuple[ContentPart, ...]:
    """Return parts as a message's content: a text where there is nothing but text."""
    if all(part.type == "text" and not part.extra for part in parts):
        return "".join(part.text or "" for part in parts)
    return tuple(parts)


def openai_messages(ask: Ask) -> list[Json]:
    """Spell a history for OpenAI."""
    spelled: list[Json] = [{"role": "system", "content": ask.system}] if ask.system else []
    shown: list[Json] = []
    for message in ask.messages:
        if message.role == "tool":
            pictures = [_openai_part(part) for part in _parts(message) if part.type != "text"]
            text = message.text or ("The result follows." if pictures else "")
            spelled.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": text})
            shown += pictures
            continue
        spelled += [{"role": "user", "content": shown}] if shown else []
        shown = []
        spelled += _openai_said(message)
    return spelled + ([{"role": "user", "content": shown}] if shown else [])


def anthropic_messages(messages: Iterable[Message]) -> list[Json]:
    """Spell a history for Anthropic: whoever speaks twice does so in one message, system texts stand elsewhere."""
    spelled: list[Json] = []
    for message in messages:
        role, blocks = _anthropic_said(message)
        if not blocks or role == "system":
            continue
        if spelled and spelled[-1]["role"] == role:
            spelled[-1]["content"] += blocks
        else:
            spelled.append({"role": role, "content": blocks})
    return spelled


def _openai_said(message: Message) -> list[Json]:
    said: Json = {"role": message.role, "content": message.text}
    if message.role == "user":
        if not isinstance(message.content, str):
            said["content"] = [_openai_part(part) for part in message.content]
        said |= {"name": message.name} if message.name else {}
    elif message.tool_calls:
        said["content"] = message.text or None
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _written(call.arguments)}}
            for call in message.tool_calls
        ]
    return [said] if said["content"] or message.tool_calls or message.role == "user" else []


def _openai_part(part: ContentPart) -> Json:
    if part.type == "text":
        return {"type": "text", "text": part.text or ""}
    url = part.image_url
    if part.type == "image" and part.data is not None:
        url = f"data:{part.media_type};base64,{_base64(part)}"
    return {"type": "image_url", "image_url": {"url": url, **part.extra}} if url else {"type": part.type, **part.extra}


def _anthropic_said(message: Message) -> tuple[str, list[Json]]:
    blocks = [block for part in _parts(message) if (block := _anthropic_block(part))]
    if message.role == "tool":
        return "user", [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks}]
    for call in message.tool_calls:
        given = call.arguments if isinstance(call.arguments, Mapping) else {"arguments": call.arguments}
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(given)})
    return message.role, blocks


def _anthropic_block(part: ContentPart) -> Json | None:
    if part.type == "text":  # an empty one is refused
        return {"type": "text", "text": part.text} if (part.text or "").strip() else None
    if part.data is not None:
        source = {"type": "base64", "media_type": part.media_type, "data": _base64(part)}
        return {"type": "image", "source": source}
    if part.image_url is not None:
        return {"type": "image", "source": _anthropic_source(part.image_url)}
    if part.type == "thinking" and not part.extra.get("signature"):
        return None
    return {"type": part.type, **part.extra} if part.extra else None


def _anthropic_source(url: str) -> Json:
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        return {"type": "base64", "media_type": head[5:-7].partition(";")[0], "data": data}
    return {"type": "url", "url": url}


def _parts(message: Message) -> Sequence[ContentPart]:
    return (ContentPart.of_text(message.content),) if isinstance(message.content, str) else message.content


def _base64(part: ContentPart) -> str:
    return base64.b64encode(part.data or b"").decode("ascii")


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _schema_of(wanted: Any) -> Json:
    from pydantic import TypeAdapter  # noqa: PLC0415 - who asks for a type has it

    return TypeAdapter(wanted).json_schema()


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
