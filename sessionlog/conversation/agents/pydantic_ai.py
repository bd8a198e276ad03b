"""A pydantic-ai agent: it runs its own tools, and each request to its model gives one answer.

The session's system text is added to the agent's instructions. Our history does not hold the agent's own system
prompt, so it is reinjected in every turn. Options that are model settings are passed as `model_settings`, others to the
run, such as `deps=` or `usage_limits=`. Arguments of an output tool become the answer's text, not a tool call.
pydantic-ai's input tokens include cached ones; `TokenUsage` has disjoint classes.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

from pydantic_ai import FunctionToolset, StructuredDict, ToolFailed
from pydantic_ai import Tool as AgentTool
from pydantic_ai.capabilities import ReinjectSystemPrompt
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from sessionlog.conversation.agents.client import object_schema, system_text
from sessionlog.conversation.turns.pieces import (
    AgentRequest,
    NextRequest,
    Piece,
    Reply,
    TextDelta,
    ToolCalled,
    ToolReturned,
)
from sessionlog.conversation.turns.tool import Tool, error_message, result_message
from sessionlog.events.billing import billed_fields
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.logger.tool_timer import describe
from sessionlog.messages.message import Content, ContentPart, Message, ToolRequest, content_of


def iter_arguments(request: AgentRequest) -> dict[str, Any]:
    """Return the keyword arguments of `agent.iter` for a request."""
    options = dict(request.options)
    settings = {name: options.pop(name) for name in list(options) if name in ModelSettings.__annotations__}
    given: dict[str, Any] = {"message_history": model_messages(request.messages)}
    if settings:
        given["model_settings"] = {**(options.pop("model_settings", None) or {}), **settings}
    schema, instruction = object_schema(request.schema) if isinstance(request.schema, Mapping) else (None, "")
    if schema or (request.schema is not None and not instruction):
        given["output_type"] = StructuredDict(schema) if schema else request.schema
    if request.tools:
        given["toolsets"] = [*options.pop("toolsets", ()), FunctionToolset([_tool(tool) for tool in request.tools])]
    instructions = [text for text in (system_text(request), options.pop("instructions", None), instruction) if text]
    capabilities = [*options.pop("capabilities", ()), ReinjectSystemPrompt()]
    return {**options, **given, "instructions": instructions or None, "capabilities": capabilities}


def model_messages(messages: Iterable[Message]) -> list[ModelMessage]:
    """Convert a history to pydantic-ai's messages: all messages between two answers are one request."""
    converted: list[ModelMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            names |= {call.id: call.name for call in message.tool_calls}
            parts = _response_parts(message)
            converted += [ModelResponse(parts=parts)] if parts else []
        elif message.role != "system":
            part = _request_part(message, names)
            last = converted[-1] if converted else None
            if isinstance(last, ModelRequest):
                converted[-1] = ModelRequest(parts=[*last.parts, part])
            else:
                converted.append(ModelRequest(parts=[part]))
    return converted


def _response_parts(message: Message) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = []
    for part in message.parts:
        if part.type == "text" and part.text:
            parts.append(TextPart(part.text))
        elif part.data is not None:
            parts.append(FilePart(BinaryContent(part.data, media_type=part.media_type or "")))
    return [*parts, *(ToolCallPart(call.name, call.arguments, call.id) for call in message.tool_calls)]


def _request_part(message: Message, names: Mapping[str, str]) -> ModelRequestPart:
    content = _content(message.content)
    if message.role == "user":
        return UserPromptPart(content)
    called = message.tool_call_id or ""
    return ToolReturnPart(message.name or names.get(called, "unknown"), content, called)


def _content(content: Content) -> Any:
    return content if isinstance(content, str) else [_user_content(part) for part in content]


def _user_content(part: ContentPart) -> str | BinaryContent | ImageUrl:
    if part.data is not None:
        return BinaryContent(part.data, media_type=part.media_type or "application/octet-stream")
    if part.image_url is None:
        return part.text if part.text is not None else f"[{part.type}]"
    if part.image_url.startswith("data:"):
        return BinaryContent.from_data_uri(part.image_url)
    return ImageUrl(part.image_url)


def _tool(tool: Tool) -> AgentTool[Any]:
    """Convert a session's tool; an exception in it becomes its result."""

    async def call(**arguments: Any) -> Any:
        try:
            result = tool.run(arguments) if tool.is_async else await asyncio.to_thread(tool.run, arguments)
            result = await result if inspect.isawaitable(result) else result
        except Exception as error:
            raise ToolFailed(describe(error)) from error
        return _content(result_message(ToolRequest("", tool.name), result).content)

    return AgentTool.from_schema(call, tool.name, tool.description, dict(tool.parameters))


class PydanticParser:
    """Collects one answer of a model, until its tools have run.

    An answer that may be the run's output is held back, with its tools' pieces, until the run's output is known.
    """

    def __init__(self, provider: str | None) -> None:
        self._provider = provider
        self._held: list[Piece] = []
        self._running: dict[str, tuple[ToolRequest, float]] = {}

    def response_pieces(self, response: ModelResponse, tools: ToolManager[Any], *, streamed: bool) -> Iterator[Piece]:
        """Yield or hold the whole answer; its text was passed on already if `streamed`."""
        parts = [made for part in response.parts if (made := _answered_part(part))]
        submitted = [call for call in response.tool_calls if _is_output(tools.get_tool_def(call.tool_name))]
        calls = [_request(call) for call in response.tool_calls if call not in submitted]
        for text in (call.args if isinstance(call.args, str) else call.args_as_json_str() for call in submitted):
            parts.append(ContentPart.of_text(text))
            if streamed:
                yield TextDelta(text)
        reply = Reply(
            message=Message.assistant(content_of(parts), tool_calls=calls),
            usage=usage_of(response.usage),
            model=response.model_name,
            provider=response.provider_name or self._provider,
            billed=billed_fields({**vars(response.usage), **(response.provider_details or {})}),
            finish_reason=response.finish_reason,
        )
        if calls and not submitted:
            yield reply
        else:
            self._held = [reply]

    def tool_pieces(self, event: Any) -> Iterator[Piece]:
        """Yield or hold the piece for an event of running tools."""
        piece = self._piece(event)
        if piece is not None and self._held:
            self._held.append(piece)
        elif piece is not None:
            yield piece

    def held_pieces(self, output: Any = "") -> Iterator[Piece]:
        """Yield the pieces held back; a reply gets the run's `output`, unless that is the text itself."""
        held, self._held = self._held, []
        for piece in held:
            if isinstance(piece, Reply) and not isinstance(output, str):
                yield replace(piece, output=output, has_output=True)
            else:
                yield piece

    def _piece(self, event: Any) -> Piece | None:
        if isinstance(event, FunctionToolCallEvent):
            request = _request(event.part)
            self._running[request.id] = (request, monotonic())
            return ToolCalled(request)
        if isinstance(event, FunctionToolResultEvent) and event.tool_call_id in self._running:
            request, began = self._running.pop(event.tool_call_id)
            message, error = _result(request, event)
            return ToolReturned(request, message, error, (monotonic() - began) * 1000)
        return None


def usage_of(usage: RequestUsage) -> TokenUsage | None:
    """Return the usage of one request in disjoint classes; None if the model reported none."""
    if usage.unmeasured_requests or not usage.has_values():
        return None
    return read_usage(usage)[0]


def text_in(event: Any) -> Iterator[str]:
    """Yield the text in an event of a model's stream."""
    text = ""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        text = event.part.content
    elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        text = event.delta.content_delta
    if text:
        yield text


def can_stream(model: Any) -> bool:
    """Whether a model can stream its answer."""
    while isinstance(wrapped := getattr(model, "wrapped", None), Model):
        model = wrapped
    return (
        getattr(model, "stream_function", model) is not None and type(model).request_stream is not Model.request_stream
    )


def names_of(model: Any) -> tuple[str | None, str | None]:
    """Return the names of provider and model, as far as known before a run."""
    if isinstance(model, Model):
        return model.system, model.model_name
    provider, _, name = model.rpartition(":") if isinstance(model, str) else ("", "", "")
    return provider or None, name or None


def _is_output(definition: ToolDefinition | None) -> bool:
    return definition is not None and definition.kind == "output"


def _request(call: ToolCallPart) -> ToolRequest:
    return ToolRequest.of_model(call.tool_call_id, call.tool_name, call.args)


def _result(request: ToolRequest, event: FunctionToolResultEvent) -> tuple[Message, str | None]:
    part = event.part
    if part.outcome != "success":
        error = part.model_response_str(wrap_if_error=False)
        return error_message(request, error), error
    items = part.content if isinstance(part.content, list | tuple) else [part.content]
    more = event.content if isinstance(event.content, list | tuple) else [event.content] if event.content else []
    if not more and not any(isinstance(item, BinaryContent | ImageUrl) for item in items):
        return result_message(request, part.model_response_str()), None
    return result_message(request, [_result_part(item) for item in (*items, *more)]), None


def _result_part(item: Any) -> Any:
    if isinstance(item, BinaryContent):
        return ContentPart.of_image(item.data, item.media_type)
    if isinstance(item, ImageUrl):
        return ContentPart.of_image_url(item.url)
    if isinstance(item, str):
        return ContentPart.of_text(item)
    return ContentPart.of_text(ToolReturnPart("", item, "").model_response_str())


def _answered_part(part: Any) -> ContentPart | None:
    if isinstance(part, TextPart):
        return ContentPart.of_text(part.content)
    if isinstance(part, FilePart):
        return ContentPart.of_image(part.content.data, part.content.media_type)
    return None


class PydanticAI:
    """Runs a pydantic-ai agent."""

    runs_tools = True
    is_async = True

    def __init__(self, agent: Any) -> None:
        if not hasattr(agent, "iter"):
            raise TypeError(f"{type(agent).__name__} is no pydantic-ai agent; give Agent(model) of that package")
        self.provider, self.model = names_of(agent.model)
        self._agent = agent

    async def answer(self, request: AgentRequest) -> AsyncIterator[Piece]:
        """Run the agent on a history, and yield its pieces; one task has to iterate over all of them."""
        answer: PydanticParser | None = None
        async with self._agent.iter(None, **iter_arguments(request)) as run:
            try:
                async for node in run:
                    if self._agent.is_model_request_node(node):
                        for piece in (*answer.held_pieces(), NextRequest()) if answer else ():
                            yield piece
                        answer = PydanticParser(self.provider)
                        if can_stream(run.ctx.deps.model):
                            async with node.stream(run.ctx) as events:
                                async for event in events:
                                    for text in text_in(event):
                                        yield TextDelta(text)
                    elif answer and self._agent.is_call_tools_node(node):
                        deps = run.ctx.deps
                        streamed = can_stream(deps.model)
                        for piece in answer.response_pieces(node.model_response, deps.tool_manager, streamed=streamed):
                            yield piece
                        async with node.stream(run.ctx) as events:
                            async for event in events:
                                for piece in answer.tool_pieces(event):
                                    yield piece
                    elif answer and self._agent.is_end_node(node):
                        for piece in answer.held_pieces(node.data.output):
                            yield piece
            except Exception:
                for piece in answer.held_pieces() if answer else ():
                    yield piece
                raise
