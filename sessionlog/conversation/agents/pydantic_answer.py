"""What a pydantic-ai agent's model answers, and what its tools say, as pieces.

Its input tokens include those of the cache; ours do not overlap. What a model hands to an output tool is no tool call
but the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ImageUrl,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import Model
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from sessionlog.conversation.turns.pieces import Piece, Reply, TextDelta, ToolCalled, ToolReturned
from sessionlog.conversation.turns.tool import error_message, result_message
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.messages.message import ContentPart, Message, ToolRequest, content_of


class PydanticAnswer:
    """One answer of a model, until its tools have run.

    An answer that may be the run's output is held until that is known, with the tools that were called beside it.
    """

    def __init__(self, provider: str | None) -> None:
        self._provider = provider
        self._held: list[Piece] = []
        self._running: dict[str, tuple[ToolRequest, float]] = {}

    def whole(self, response: ModelResponse, tools: ToolManager[Any], *, streamed: bool) -> Iterator[Piece]:
        """Take the whole answer, whose text was passed on if it was streamed."""
        parts = [made for part in response.parts if (made := _part(part))]
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
            finish_reason=response.finish_reason,
        )
        if calls and not submitted:
            yield reply
        else:
            self._held = [reply]

    def tools(self, event: Any) -> Iterator[Piece]:
        """Take what happens while tools run."""
        piece = self._piece(event)
        if piece is not None and self._held:
            self._held.append(piece)
        elif piece is not None:
            yield piece

    def rest(self) -> Iterator[Piece]:
        """Give what was held."""
        held, self._held = self._held, []
        yield from held

    def final(self, output: Any) -> Iterator[Piece]:
        """Give what was held as what ends the run; a text is its own output."""
        for piece in self.rest():
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
    """Return the usage of one request in disjoint classes; None where the model told none."""
    if usage.unmeasured_requests or not usage.has_values():
        return None
    return read_usage(usage)[0]


def text_in(event: Any) -> Iterator[str]:
    """Give the next text of a model's stream."""
    text = ""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        text = event.part.content
    elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        text = event.delta.content_delta
    if text:
        yield text


def can_stream(model: Any) -> bool:
    """Whether a model gives its answer as it comes."""
    while isinstance(wrapped := getattr(model, "wrapped", None), Model):
        model = wrapped
    return (
        getattr(model, "stream_function", model) is not None and type(model).request_stream is not Model.request_stream
    )


def names_of(model: Any) -> tuple[str | None, str | None]:
    """Return the provider's and the model's name, as far as an agent says before it runs."""
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
    return result_message(request, [_shown(item) for item in (*items, *more)]), None


def _shown(item: Any) -> Any:
    if isinstance(item, BinaryContent):
        return ContentPart.of_image(item.data, item.media_type)
    if isinstance(item, ImageUrl):
        return ContentPart.of_image_url(item.url)
    if isinstance(item, str):
        return ContentPart.of_text(item)
    return ContentPart.of_text(ToolReturnPart("", item, "").model_response_str())


def _part(part: Any) -> ContentPart | None:
    if isinstance(part, TextPart):
        return ContentPart.of_text(part.content)
    if isinstance(part, FilePart):
        return ContentPart.of_image(part.content.data, part.content.media_type)
    return None
