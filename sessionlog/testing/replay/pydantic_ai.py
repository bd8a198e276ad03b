"""pydantic-ai: a model that answers from a replay, and one that records another model for a replay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

from sessionlog.conversation.agents.pydantic_ai import names_of
from sessionlog.events.tokens import TokenUsage
from sessionlog.integrations.pydantic_ai import convert_message, request_fields, response_fields
from sessionlog.integrations.runs import library
from sessionlog.messages.answer_bodies import finish_word, words_of
from sessionlog.testing.replay.matcher import Matcher
from sessionlog.testing.replay.recording import Recording
from sessionlog.testing.replay.request import read_request
from sessionlog.testing.replay.transport import split_status

with library("pydantic_ai", "pydantic-ai", "pydantic-ai-slim"):
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
    from pydantic_ai.messages import (
        ModelResponse,
        ModelResponsePart,
        PartDeltaEvent,
        PartStartEvent,
        TextPart,
        TextPartDelta,
        ThinkingPart,
        ThinkingPartDelta,
        ToolCallPart,
    )
    from pydantic_ai.models import CompletedStreamedResponse, Model, infer_model
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.usage import RequestUsage
    from typing_extensions import override


class ReplayedModel(Model[Any]):
    """A model that gives the answers of a replay.

    Args:
        matcher: Finds the recordings.
        model: The model that it stands for, or its name; its name is compared. None: it is not compared. A model's
            settings and its profile are parts of the requests that agents make, so they are those of this one.
    """

    def __init__(self, matcher: Matcher, model: Any = None) -> None:
        if isinstance(model, Model):
            super().__init__(settings=model.settings, profile=model.profile)
        else:
            super().__init__(profile=ModelProfile(supports_json_schema_output=True, supports_json_object_output=True))
        self._matcher = matcher
        self._provider_name, self._name = names_of(model)

    @property
    @override
    def model_name(self) -> str:
        """The name of the model: the given one, else that of the first recording."""
        return self._name or next((one.answer.model for one in self._matcher.rules.recordings), "")

    @property
    @override
    def system(self) -> str:
        """The provider: of the given model, else of the first recording."""
        return self._provider_name or next((one.provider for one in self._matcher.rules.recordings), "")

    @override
    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        """Return the recorded response; raise a recorded error."""
        recording = self._find(messages, model_settings, model_request_parameters)
        if recording is None:
            return await infer_model(self._matcher.rules.live).request(
                messages, model_settings, model_request_parameters
            )
        return self._response(recording)

    @override
    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncIterator[Any]:
        """Return the recorded response as a stream; raise a recorded error."""
        recording = self._find(messages, model_settings, model_request_parameters)
        if recording is None:
            live = infer_model(self._matcher.rules.live)
            async with live.request_stream(messages, model_settings, model_request_parameters, run_context) as stream:
                yield stream
        else:
            response = self._response(recording)
            yield CompletedStreamedResponse(
                response, model_request_parameters=model_request_parameters, replay_events=[*_events(response)]
            )

    def _find(self, messages: Any, settings: Any, parameters: Any) -> Recording | None:
        converted = [made for message in messages for made in convert_message(message)]
        request = read_request({**request_fields(converted, parameters, settings), "model": self._name})
        return self._matcher.find(request, unknown=() if self._name else ("model",))

    def _response(self, recording: Recording) -> ModelResponse:
        if recording.error:
            status, _ = split_status(recording.error)
            if status is None:
                raise ModelAPIError(self.model_name, recording.error)
            raise ModelHTTPError(status, self.model_name, body=recording.error)
        answer = recording.answer
        parts: list[ModelResponsePart] = [ThinkingPart(answer.thoughts)] if answer.thoughts else []
        parts += [TextPart(answer.text)] if answer.text else []
        parts += [ToolCallPart(call.name, call.arguments, call.id) for call in answer.calls]
        return ModelResponse(
            parts=parts, usage=_usage(answer.usage), model_name=answer.model or None,
            provider_name=recording.provider or None, finish_reason=finish_word(answer),
        )  # fmt: skip


def _events(response: ModelResponse) -> Iterator[PartStartEvent | PartDeltaEvent]:
    """Yield the events of a stream: texts word by word, tool calls whole."""
    for index, part in enumerate(response.parts):
        if isinstance(part, TextPart | ThinkingPart):
            first, *rest = words_of(part.content)
            yield PartStartEvent(index=index, part=replace(part, content=first))
            for word in rest:
                delta = TextPartDelta(word) if isinstance(part, TextPart) else ThinkingPartDelta(content_delta=word)
                yield PartDeltaEvent(index=index, delta=delta)
        else:
            yield PartStartEvent(index=index, part=part)


def _usage(usage: TokenUsage) -> RequestUsage:
    return RequestUsage(
        input_tokens=usage.prompt, output_tokens=usage.output, cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write, cache_write_1h_tokens=usage.cache_write_1h,
        output_reasoning_tokens=usage.reasoning,
    )  # fmt: skip


class RecordedModel(WrapperModel):
    """A model that records the requests to another one, and its responses.

    Args:
        model: The other model, or its name.
        write: Writes the fields of a request and those of its response.
    """

    def __init__(self, model: Any, write: Callable[[Mapping[str, Any], Mapping[str, Any]], None]) -> None:
        super().__init__(model)
        self._write = write

    @override
    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        """Ask the other model, and record what it answers."""
        fields, began = self._fields(messages, model_settings, model_request_parameters), monotonic()
        try:
            response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        except Exception as error:
            self._record(fields, began, error=error)
            raise
        self._record(fields, began, response)
        return response

    @override
    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncIterator[Any]:
        """Stream from the other model, and record what was received when the stream ends."""
        fields, began = self._fields(messages, model_settings, model_request_parameters), monotonic()
        stream: Any = None
        try:
            async with self.wrapped.request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream:
                yield stream
        except Exception as error:
            self._record(fields, began, stream and stream.get(), error)
            raise
        self._record(fields, began, stream.get())

    def _fields(self, messages: Any, settings: Any, parameters: Any) -> dict[str, Any]:
        converted = [made for message in messages for made in convert_message(message)]
        return request_fields(converted, parameters, settings)

    def _record(
        self, fields: dict[str, Any], began: float, response: Any = None, error: Exception | None = None
    ) -> None:
        latency_ms = round((monotonic() - began) * 1000, 3)
        answered = {} if response is None else response_fields(response, convert_message(response))
        named = {"requested_model": self.model_name, "provider": self.system}
        self._write(
            {**fields, "model": self.model_name}, {**named, **answered, "error": error, "latency_ms": latency_ms}
        )
