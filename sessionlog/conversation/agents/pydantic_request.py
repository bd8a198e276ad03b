"""A history as pydantic-ai's messages, and what else a run of its agent is given.

System texts are instructions of the run, so that the agent's own system prompt, which no history of ours holds, is put
in front again in every turn.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_ai import FunctionToolset, StructuredDict, ToolFailed
from pydantic_ai import Tool as AgentTool
from pydantic_ai.capabilities import ReinjectSystemPrompt
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.settings import ModelSettings

from sessionlog.conversation.agents.request_parts import object_schema, system_text
from sessionlog.conversation.turns.pieces import Ask
from sessionlog.conversation.turns.tool import Tool, result_message
from sessionlog.messages.message import Content, ContentPart, Message, ToolRequest


def run_of(ask: Ask) -> dict[str, Any]:
    """Return the arguments of `agent.iter` that ask for the next answer."""
    options = dict(ask.options)
    settings = {name: options.pop(name) for name in list(options) if name in ModelSettings.__annotations__}
    given: dict[str, Any] = {"message_history": model_messages(ask.messages)}
    if settings:
        given["model_settings"] = {**(options.pop("model_settings", None) or {}), **settings}
    schema, told = object_schema(ask.schema) if isinstance(ask.schema, Mapping) else (None, "")
    if schema or (ask.schema is not None and not told):
        given["output_type"] = StructuredDict(schema) if schema else ask.schema
    if ask.tools:
        given["toolsets"] = [*options.pop("toolsets", ()), FunctionToolset([_tool(tool) for tool in ask.tools])]
    instructions = [text for text in (system_text(ask), options.pop("instructions", None), told) if text]
    capabilities = [*options.pop("capabilities", ()), ReinjectSystemPrompt()]
    return {**options, **given, "instructions": instructions or None, "capabilities": capabilities}


def model_messages(messages: Iterable[Message]) -> list[ModelMessage]:
    """Spell a history for pydantic-ai: what stands between two answers is one request; ids stay as they are."""
    spelled: list[ModelMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            names |= {call.id: call.name for call in message.tool_calls}
            parts = _said(message)
            spelled += [ModelResponse(parts=parts)] if parts else []
        elif message.role != "system":
            part = _asked(message, names)
            last = spelled[-1] if spelled else None
            if isinstance(last, ModelRequest):
                spelled[-1] = ModelRequest(parts=[*last.parts, part])
            else:
                spelled.append(ModelRequest(parts=[part]))
    return spelled


def _said(message: Message) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = []
    for part in () if isinstance(message.content, str) else message.content:
        if part.type == "text" and part.text:
            parts.append(TextPart(part.text))
        elif part.data is not None:
            parts.append(FilePart(BinaryContent(part.data, media_type=part.media_type or "")))
    if isinstance(message.content, str) and message.content:
        parts.append(TextPart(message.content))
    return [*parts, *(ToolCallPart(call.name, call.arguments, call.id) for call in message.tool_calls)]


def _asked(message: Message, names: Mapping[str, str]) -> ModelRequestPart:
    content = _content(message.content)
    if message.role == "user":
        return UserPromptPart(content)
    called = message.tool_call_id or ""
    return ToolReturnPart(message.name or names.get(called, "unknown"), content, called)


def _content(content: Content) -> Any:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: ContentPart) -> str | BinaryContent | ImageUrl:
    if part.data is not None:
        return BinaryContent(part.data, media_type=part.media_type or "application/octet-stream")
    if part.image_url is None:
        return part.text if part.text is not None else f"[{part.type}]"
    if part.image_url.startswith("data:"):
        return BinaryContent.from_data_uri(part.image_url)
    return ImageUrl(part.image_url)


def _tool(tool: Tool) -> AgentTool[Any]:
    """A tool of the session's own; whatever goes wrong in it is its result, as everywhere."""

    async def call(**arguments: Any) -> Any:
        try:
            result = tool.run(arguments) if tool.is_async else await asyncio.to_thread(tool.run, arguments)
            result = await result if inspect.isawaitable(result) else result
        except Exception as error:
            raise ToolFailed(f"{type(error).__name__}: {error}") from error
        return _content(result_message(ToolRequest("", tool.name), result).content)

    return AgentTool.from_schema(call, tool.name, tool.description, dict(tool.parameters))
