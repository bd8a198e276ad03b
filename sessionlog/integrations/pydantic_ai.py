"""pydantic-ai: a capability that records what an agent's runs ask of models and tools, and what they get.

    agent = Agent("anthropic:claude-opus-4-5", capabilities=[SessionLogCapability()])

A run is a session; runs that its tools begin are recorded there, marked with the name of their agent. It serves `run`,
`run_sync`, `run_stream`, `run_stream_events` and `iter`. Streams are not followed piece by piece: when one ends, the
library has its answer, or as much of it as was received.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from sessionlog.events.billing import billed_fields
from sessionlog.events.usage import read_usage
from sessionlog.integrations.runs import Guard, Runs, library
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.content_text import text_of
from sessionlog.messages.json_value import decode_object, json_text
from sessionlog.messages.message_json import message_to_dict
from sessionlog.messages.read import read_entry

with library("pydantic_ai", "pydantic-ai", "pydantic-ai-slim"):
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.exceptions import (
        ApprovalRequired,
        CallDeferred,
        ModelRetry,
        SkipToolExecution,
        ToolFailed,
        ToolFailedError,
        ToolRetryError,
    )
    from pydantic_ai.messages import BinaryContent, ToolReturn
    from pydantic_core import ValidationError, to_jsonable_python
    from typing_extensions import override

if TYPE_CHECKING:
    from sessionlog.events.tokens import TokenUsage

Json = Any
_SETTINGS = {"stop_sequences": "stop", "thinking": "reasoning"} | {
    name: name for name in ("temperature", "top_p", "top_k", "max_tokens", "seed")
}
_ROLES = {"system-prompt": "system", "user-prompt": "user"}
_open_run: ContextVar[_Recorder | None] = ContextVar("sessionlog_pydantic_ai_run", default=None)
"""The run that the current code is part of; the library hands the context of `wrap_run` on to the run's tools."""


class SessionLogCapability(AbstractCapability[Any]):
    """Records the runs of agents in sessions, one for each root run.

    Args:
        log: The logger of all runs, which its owner ends; None for a session for each root run.
        options: Arguments of `SessionLogger` for these sessions.

    Raises:
        TypeError: There are both a logger and options, or an option is unknown.
        ValueError: An option has a value that does not exist.
    """

    def __init__(self, log: SessionLogger | None = None, **options: Any) -> None:
        self._log, self._runs = log, Runs(log, options)
        self._recorder: _Recorder | None = None

    @override
    def get_ordering(self) -> CapabilityOrdering:
        """Stand next to the model and the tools: other capabilities change requests before, and answers after."""
        return CapabilityOrdering(position="innermost")

    @override
    async def for_run(self, ctx: Any) -> SessionLogCapability:
        """Return a copy for one run, which shares the loggers."""
        return copy(self)

    @override
    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        """Record a run, from the beginning of its session to the end."""
        recorder = self._recorder = self._begin(ctx)
        _open_run.set(recorder)
        try:
            result = await handler()
        except BaseException as error:
            recorder.close(error)
            self._runs.end(recorder.key, error=error)
            raise
        recorder.close()
        self._runs.end(recorder.key, output=recorder.output_of(result))
        return result

    @override
    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Write the request, as other capabilities have left it."""
        if (recorder := self._recorder) is not None:
            with Guard(recorder.log):
                recorder.request(ctx, request_context)
        return request_context

    @override
    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        """Write a response with the error of a request that fails."""
        try:
            return await handler(request_context)
        except BaseException as error:
            if (recorder := self._recorder) is not None:
                with Guard(recorder.log):
                    recorder.fail(error, is_stream=request_context.streaming)
            raise

    @override
    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        """Write the response, as the model gave it."""
        if (recorder := self._recorder) is not None:
            with Guard(recorder.log):
                recorder.respond(response, is_fallback=request_context.attempt > 1)
        return response

    @override
    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Write a call that is not made because its arguments are wrong; the model is asked to correct them."""
        started = monotonic_ns()
        try:
            return await handler(args)
        except (ValidationError, ModelRetry, ToolFailed) as error:
            if (recorder := self._recorder) is not None:
                with Guard(recorder.log):
                    recorder.tool(call, started, error=error)
            raise

    @override
    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Write a tool's call with its result or error; one that is put off, e.g. for an approval, is not written."""
        recorder, started = self._recorder, monotonic_ns()
        try:
            result = await handler(args)
        except (CallDeferred, ApprovalRequired):
            raise
        except BaseException as error:
            if recorder is not None:
                with Guard(recorder.log):
                    if isinstance(error, SkipToolExecution):
                        recorder.tool(call, started, error.result)
                    else:
                        recorder.tool(call, started, error=error)
            raise
        if recorder is not None:
            with Guard(recorder.log):
                recorder.tool(call, started, result)
        return result

    def _begin(self, ctx: Any) -> _Recorder:
        outer = _open_run.get()
        if outer is not None and outer.is_open and outer.run_id != ctx.run_id and self._log in (None, outer.log):
            return _Recorder(outer.log, ctx.run_id, getattr(ctx.agent, "name", None) or "agent")
        known: dict[str, Any] = {}
        with suppress(Exception):  # the same host objects are read again for the request, and errors counted there
            known = {
                "prompt": None if ctx.prompt is None else text_of(ctx.prompt),
                "model": ctx.model.model_name,
                "provider": ctx.model.system,
            }
        key = object()
        return _Recorder(self._runs.begin(key, **known), ctx.run_id, key=key)


class _Call:
    """The last request, and the history that gets what was received of its response."""

    __slots__ = ("began", "ended", "history", "is_answered", "length", "model", "provider")

    def __init__(self, model: Any, history: Sequence[Any]) -> None:
        self.model, self.provider = model.model_name, model.system
        self.history, self.length = history, len(history)
        self.is_answered = False
        self.ended: int | None = None
        self.began = monotonic_ns()


class _Recorder:
    """Writes the events of one run.

    Attributes:
        log: The logger of its root run.
        run_id: The library's id of the run.
        key: The key of a session of its own.
        is_open: The run has not ended.
    """

    def __init__(self, log: SessionLogger, run_id: str, agent: str | None = None, key: object = None) -> None:
        self.log, self.run_id, self.key, self.is_open = log, run_id, key, True
        self._marks: dict[str, Any] = {} if agent is None else {"agent": agent}
        self._call: _Call | None = None
        self._calls: Sequence[Any] = ()  # of the last response
        self._written: set[str] = set()  # ids of calls that have a tool.call
        self._converted: dict[int, tuple[Any, int, list[Json]]] = {}

    def request(self, ctx: Any, context: Any) -> None:
        """Write a request, and before it what is known of earlier calls only now."""
        self._close_call()
        call = self._call = _Call(context.model, ctx.messages)
        self._refusals(context.messages)
        converted = [made for message in context.messages for made in self._convert(message)]
        fields = request_fields(converted, context.model_request_parameters, context.model_settings)
        self.log.llm_request(fields.pop("messages"), model=call.model, **fields, **self._marks)
        call.began = monotonic_ns()

    def respond(self, response: Any, *, is_fallback: bool = False) -> None:
        """Write a response, after the attempts at it with other models.

        The response to a further attempt that another capability asked for lists rejected responses that are written.
        """
        if (call := self._call) is None:
            return
        call.is_answered = True
        attempts = response.failed_attempts or ()
        self._attempts(call, [one for one in attempts if not (is_fallback and one.outcome == "rejected")])
        self._respond(call, response)
        call.began = monotonic_ns()

    def fail(self, error: BaseException, *, is_stream: bool) -> None:
        """Write a response with an error; a stream that is cut has what was received in the history later."""
        if (call := self._call) is None or call.is_answered:
            return
        if is_stream and isinstance(error, CancelledError):
            call.ended = monotonic_ns()
            return
        call.is_answered = True
        if attempts := getattr(error, "attempts", ()):  # of a FallbackModel, all of which failed
            self._attempts(call, attempts)
        else:
            self._respond(call, None, error)

    def tool(
        self, call: Any, began: int | None = None, output: Any = None, error: BaseException | str | None = None
    ) -> None:
        """Write a call of a tool; without its beginning, one that no tool ran for."""
        duration = 0.0 if began is None else _milliseconds(began)
        self._written.add(call.tool_call_id)
        if isinstance(error, ToolRetryError | ToolFailedError):
            error = error.__cause__ or error
        self.log.tool_call(
            call.tool_name,
            _arguments(call),
            output=_jsonable(output.return_value if isinstance(output, ToolReturn) else output),
            error=error,
            duration_ms=duration,
            id=call.tool_call_id,
            **self._marks,
        )

    def close(self, error: BaseException | None = None) -> None:
        """Write what is still open when the run ends."""
        self.is_open = False
        with Guard(self.log):
            self._close_call(error)
            left = [call for call in self._calls if call.tool_call_id not in self._written]
            cause = None if error is None else error.__cause__
            if len(left) == 1 and isinstance(cause, Exception):  # the last of too many refusals has no next request
                self.tool(left[0], error=cause)

    def output_of(self, result: Any) -> str | None:
        """Return a run's output as text."""
        with Guard(self.log):
            output = result.output
            return output if isinstance(output, str) else json_text(_jsonable(output))
        return None

    def _close_call(self, error: BaseException | None = None) -> None:
        """Write what was received of a response that was cut; the error is the run's, or that of its consumer."""
        if (call := self._call) is None or call.is_answered:
            return
        call.is_answered = True
        received = [message for message in call.history[call.length :] if message.kind == "response"]
        self._respond(call, received[-1] if received else None, error or CancelledError())

    def _respond(self, call: _Call, response: Any, error: BaseException | None = None) -> None:
        fields: dict[str, Any] = {"model": call.model, "provider": call.provider}
        if response is not None:
            fields |= self._response_fields(response, call)
        if isinstance(error, Exception):
            fields |= {"error": error} | ({"partial": "failed"} if fields.get("content") else {})
        elif error is not None or response.state in ("incomplete", "interrupted"):
            fields["partial"] = "cancelled"
        latency_ms = _milliseconds(call.began, call.ended)
        self.log.llm_response(**fields, requested_model=call.model, latency_ms=latency_ms, **self._marks)

    def _response_fields(self, response: Any, call: _Call) -> dict[str, Any]:
        self._calls = response.tool_calls
        fields = response_fields(response, self._convert(response))
        return fields | {
            "model": response.model_name or call.model,
            "provider": response.provider_name or call.provider,
        }

    def _attempts(self, call: _Call, attempts: Iterable[Any]) -> None:
        """Write the requests to other models that failed before a model answered."""
        for number, one in enumerate(attempts):
            call.began += int(one.duration.total_seconds() * 1e9)
            self.log.llm_response(
                model=one.model_name,
                requested_model=one.model_name,
                provider=one.provider_name,
                error=one.error or "rejected",
                usage=None if one.usage is None else read_tokens(one.usage),
                latency_ms=round(one.duration.total_seconds() * 1000, 3),
                attempt_index=number,
                **self._marks,
            )

    def _refusals(self, messages: Sequence[Any]) -> None:
        """Write the calls that no tool ran for, and whose model is asked to try again: of unknown tools, of outputs."""
        calls = {call.tool_call_id: call for call in self._calls if call.tool_call_id not in self._written}
        for part in messages[-1].parts if calls else ():
            if getattr(part, "outcome", None) == "retried" and part.tool_call_id in calls:
                self.tool(calls[part.tool_call_id], error=_retry_text(part))

    def _convert(self, message: Any) -> list[Json]:
        """Return a message in the format of our own sessions; those of earlier requests are converted once."""
        known = self._converted.get(id(message))
        if known is None or known[1] != len(message.parts):
            known = self._converted[id(message)] = (message, len(message.parts), convert_message(message))
        return known[2]


def request_fields(converted: Sequence[Json], parameters: Any, settings: Any) -> dict[str, Json]:
    """Return a request to a model under the names of `llm.request`, without its model.

    Args:
        converted: Its messages, each as `convert_message` returns it.
        parameters: Its `ModelRequestParameters`: tools and instructions.
        settings: Its `ModelSettings`.
    """
    instructions = "\n\n".join(part.content for part in parameters.instruction_parts or ())
    system = [{"role": "system", "content": instructions}] if instructions else []
    tools = (*parameters.function_tools, *parameters.output_tools)
    return {
        "messages": [*system, *converted],
        "tools": [_tool_fields(tool) for tool in tools] or None,
        **{_SETTINGS[name]: value for name, value in (settings or {}).items() if name in _SETTINGS},
    }


def response_fields(response: Any, converted: Sequence[Json]) -> dict[str, Json]:
    """Return a `ModelResponse` under the names of `llm.response`.

    Args:
        response: The response.
        converted: The same as `convert_message` returns it.
    """
    usage = response.usage
    fields = {
        "content": "".join(part.content for part in response.parts if part.part_kind == "text") or None,
        "tool_calls": [one for message in converted for one in message.get("tool_calls", ())] or None,
        "usage": _usage(response),
        "pydantic_ai_cost_usd": None if usage.cost is None else float(usage.cost),  # an estimate, mostly
        "model": response.model_name,
        "provider": response.provider_name,
        "finish_reason": response.finish_reason,
    }
    if len(converted) == 1 and not isinstance(converted[0]["content"], str):
        fields["message"] = converted[0]  # thoughts and files
    return fields


def convert_message(message: Any) -> list[Json]:
    """Return a message in the format of our own sessions."""
    made = _plain_messages(message)
    if made is not None:
        return made
    return [message_to_dict(one) for one in read_entry(_with_retry_texts(message)).messages]


def read_tokens(usage: Any) -> TokenUsage | None:
    """Return a `RequestUsage` in classes that do not overlap; None if the model reported none."""
    if usage.unmeasured_requests or not usage.has_values():
        return None
    return read_usage({name: count for name, count in vars(usage).items() if count})[0]  # half the time of the object


def _usage(response: Any) -> TokenUsage | dict[str, Json] | None:
    """Return the tokens of a response, with what is billed beside them."""
    tokens = read_tokens(response.usage)
    billed = billed_fields({**vars(response.usage), **(response.provider_details or {})})
    return tokens if tokens is None or not billed else {**tokens.to_dict(), **billed}


def _tool_fields(tool: Any) -> dict[str, Json]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}


def _plain_messages(message: Any) -> list[Json] | None:
    """Convert a message of texts, calls and results that are texts, as most are, in a tenth of the time.

    None for any other, and for one whose parts `read_entry` would join or sort.
    """
    made: list[Json] = []
    text, calls = None, []
    for part in message.parts:
        kind, content = part.part_kind, getattr(part, "content", "")
        role = _ROLES.get(kind)
        if type(content) is not str or (role is not None and made and made[-1]["role"] == role):
            return None
        if kind == "text" and text is None:
            text = content
        elif kind == "tool-call" and type(arguments := _arguments(part)) is dict:
            calls.append({"id": part.tool_call_id, "name": part.tool_name, "arguments": arguments})
        elif kind == "tool-return" and part.outcome == "success" and (not made or made[-1]["role"] == "tool"):
            name, call_id = part.tool_name, part.tool_call_id
            made.append({"role": "tool", "content": content, "name": name, "tool_call_id": call_id})
        elif role is not None:
            made.append({"role": role, "content": content})
        else:
            return None
    if text is not None or calls:
        made.append({"role": "assistant", "content": text or ""} | ({"tool_calls": calls} if calls else {}))
    return made


def _arguments(call: Any) -> Any:
    """Return the arguments of a call as an object; as the model's text if they are none."""
    if isinstance(call.args, str):
        return decode_object(call.args)
    return {} if call.args is None else call.args


def _with_retry_texts(message: Any) -> Any:
    """Return a message in which refusals are the texts that the model gets, not lists of pydantic's errors."""
    if not any(_has_errors(part) for part in message.parts):
        return message
    parts = [replace(part, content=_retry_text(part)) if _has_errors(part) else part for part in message.parts]
    return replace(message, parts=parts)


def _has_errors(part: Any) -> bool:
    return getattr(part, "retry", None) is not None and not isinstance(part.content, str)


def _retry_text(part: Any) -> str:
    if part.part_kind == "retry-feedback":
        return str(part.model_response())
    return str(part.model_response_str(wrap_if_error=False))


def _jsonable(value: Any) -> Any:
    """Return what a tool or a run gives as JSON types; files as parts of a message."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, BinaryContent):
        return {"type": value.kind, "media_type": value.media_type, "data": value.base64}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    with suppress(Exception):  # the logger writes as text what pydantic cannot convert
        return to_jsonable_python(value, bytes_mode="base64", serialize_unknown=True)
    return value


def _milliseconds(began: int, ended: int | None = None) -> float:
    return round(((monotonic_ns() if ended is None else ended) - began) / 1e6, 3)
