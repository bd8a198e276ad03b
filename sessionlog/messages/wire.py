"""Messages in the request formats of OpenAI's chat completions and Anthropic's messages API.

Role, content and tool calls are sent; fields such as `partial` are not. OpenAI's tool messages cannot hold pictures, so
pictures that tools return follow in a message of the user.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from sessionlog.messages.entry import arguments_text
from sessionlog.messages.message import ContentPart, Message

Json = dict[str, Any]


def openai_messages(messages: Iterable[Message], system: str | None = None) -> list[Json]:
    """Return a history as the messages of OpenAI's chat completions, the system text first."""
    written: list[Json] = [{"role": "system", "content": system}] if system else []
    pending: list[Json] = []  # pictures that tools returned
    for message in messages:
        if message.role == "tool":
            pictures = [_openai_part(part) for part in message.parts if part.type != "text"]
            text = message.text or ("The result follows." if pictures else "")
            written.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": text})
            pending += pictures
            continue
        written += [{"role": "user", "content": pending}] if pending else []
        pending = []
        written += _openai_message(message)
    return written + ([{"role": "user", "content": pending}] if pending else [])


def anthropic_messages(messages: Iterable[Message]) -> list[Json]:
    """Return a history as Anthropic's messages: adjacent messages of one role are merged, system messages left out."""
    written: list[Json] = []
    for message in messages:
        role, blocks = _anthropic_blocks(message)
        if not blocks or role == "system":
            continue
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        else:
            written.append({"role": role, "content": blocks})
    return written


def _openai_message(message: Message) -> list[Json]:
    made: Json = {"role": message.role, "content": message.text}
    if message.role == "user":
        if not isinstance(message.content, str):
            made["content"] = [_openai_part(part) for part in message.content]
        made |= {"name": message.name} if message.name else {}
    elif message.tool_calls:
        made["content"] = message.text or None
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
            for call in message.tool_calls
        ]
    return [made] if made["content"] or message.tool_calls or message.role == "user" else []


def _openai_part(part: ContentPart) -> Json:
    if part.type == "text":
        return {"type": "text", "text": part.text or ""}
    url = part.image_url
    if part.type == "image" and part.data is not None:
        url = f"data:{part.media_type};base64,{_base64(part)}"
    return {"type": "image_url", "image_url": {"url": url, **part.extra}} if url else {"type": part.type, **part.extra}


def _anthropic_blocks(message: Message) -> tuple[str, list[Json]]:
    blocks = [block for part in message.parts if (block := _anthropic_block(part))]
    if message.role == "tool":
        failed = {"is_error": True} if message.failed else {}
        return "user", [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks, **failed}]
    for call in message.tool_calls:
        given = call.arguments if isinstance(call.arguments, Mapping) else {"arguments": call.arguments}
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(given)})
    return message.role, blocks


def _anthropic_block(part: ContentPart) -> Json | None:
    if part.type == "text":  # Anthropic refuses an empty one
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


def _base64(part: ContentPart) -> str:
    return base64.b64encode(part.data or b"").decode("ascii")
