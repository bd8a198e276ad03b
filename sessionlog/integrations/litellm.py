"""Records the calls of litellm: a callback, which litellm calls before and after each call to a model.

    callback = SessionLogCallback(log)
    litellm.callbacks = [callback]
    ...
    callback.close()

- litellm reports a response later, from a thread or a task, for some calls twice. A call's attempt is recorded once.
- A stream that the host leaves, and a call that is cancelled, are reported by nothing: `close` writes their responses,
  without a content, as cancelled.
- Costs are estimates of litellm and stay out of the recorded cost: `litellm_cost_usd`.
- An answer from litellm's own cache (`cache_hit`) has no usage and costs nothing.
- litellm runs no tools: their results are in the messages of the next request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from itertools import count
from threading import Condition
from time import monotonic
from typing import Any, Self

from sessionlog.events.billing import billed_fields
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.integrations.runs import Guard, Runs, library
from sessionlog.locks import RLock
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.answers import ChatCompletion, ModelResponse

_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "seed", "stop")
_MAX_RECORDED = 10_000
_WAIT_S = 5.0
_numbers = count(1)


class CallRecorder:
    """What `SessionLogCallback` does; it needs no litellm.

    Args:
        log: The logger; without one the callback has a session of its own, which `close` ends.
        options: Arguments of `SessionLogger` for that session.

    Attributes:
        number: Differs in each callback: litellm leaves out one whose class and public attributes another one has.

    Raises:
        TypeError: There are both a logger and options, or an option is unknown.
        ValueError: An option has a value that does not exist.
    """

    def __init__(self, log: SessionLogger | None = None, **options: Any) -> None:
        super().__init__()
        self._runs = Runs(log, options)
        self.number = next(_numbers)
        self._lock = RLock()
        self._changed = Condition(self._lock)  # whose own `with` an interrupt could leave held
        self._open: dict[str, float] = {}  # when the request was written, by call
        self._recorded: OrderedDict[tuple[Any, ...], None] = OrderedDict()

    def log_pre_api_call(self, model: str, messages: Any, kwargs: dict[str, Any]) -> None:
        """Write the request."""
        log = self._runs.begin(self)
        with Guard(log):
            call, given = kwargs["litellm_call_id"], kwargs.get("messages") or messages
            settings = kwargs.get("optional_params") or {}
            self._request(log, call, given, model, settings)

    def log_success_event(self, kwargs: dict[str, Any], *_: Any, **__: Any) -> None:
        """Write the response of a call that was not awaited."""
        self._response(kwargs)

    def log_failure_event(self, kwargs: dict[str, Any], *_: Any, **__: Any) -> None:
        """Write the error of a call that was not awaited."""
        self._response(kwargs)

    async def async_log_success_event(self, kwargs: dict[str, Any], *_: Any, **__: Any) -> None:
        """Write the response of a call that was awaited."""
        self._response(kwargs)

    async def async_log_failure_event(self, kwargs: dict[str, Any], *_: Any, **__: Any) -> None:
        """Write the error of a call that was awaited."""
        self._response(kwargs)

    def close(self, wait_s: float = _WAIT_S) -> None:
        """Wait until litellm has reported all calls; write those it has not as cancelled, and end an own session.

        In an event loop use `aclose`: this would block the tasks that report the calls.
        """
        with self._lock:
            self._changed.wait_for(lambda: not self._open, wait_s)
            left, self._open = self._open, {}
        log = self._runs.find(self)
        if log is None:
            return
        for call, start in left.items():
            with Guard(log):
                log.llm_response(partial="cancelled", latency_ms=(monotonic() - start) * 1000, call_id=call)
        self._runs.end(self)

    async def aclose(self, wait_s: float = _WAIT_S) -> None:
        """Do the same as `close` while the event loop runs."""
        from asyncio import to_thread

        await to_thread(self.close, wait_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(
        self, log: SessionLogger, call: str | None, messages: Any, model: str, settings: Mapping[str, Any]
    ) -> None:
        if call is not None:
            with self._lock:
                self._open[call] = monotonic()
        known = {name: settings[name] for name in _SETTINGS if settings.get(name) is not None}
        log.llm_request(messages, model=model, tools=settings.get("tools"), call_id=call, **known)

    def _response(self, kwargs: dict[str, Any]) -> None:
        log = self._runs.begin(self)
        with Guard(log):
            report = kwargs["standard_logging_object"]
            call: str = report.get("litellm_call_id") or kwargs["litellm_call_id"]
            key = (call, report.get("startTime"), report.get("status"))  # a fallback may have the id of the first call
            with self._lock:
                if key in self._recorded:
                    return
                self._recorded[key] = None
                while len(self._recorded) > _MAX_RECORDED:
                    self._recorded.popitem(last=False)
                is_asked = call in self._open
            if not is_asked:  # it has failed before the call, or was answered from the cache
                settings = report.get("model_parameters") or {}
                self._request(log, None, report.get("messages") or [], report.get("model") or "", settings)
            try:
                fields = read_report(report)
                latency_ms = (report["endTime"] - report["startTime"]) * 1000  # this report comes later, from a queue
                latency_ms, asked = max(0.0, latency_ms), report.get("model")
                log.llm_response(**fields, requested_model=asked, latency_ms=latency_ms, call_id=call)
            finally:
                with self._lock:
                    self._open.pop(call, None)
                    self._changed.notify_all()


def read_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return litellm's `standard_logging_object` under the names of `llm.response`."""
    fields: dict[str, Any] = {}
    body = report.get("response")
    if isinstance(body, Mapping):
        reader = ModelResponse() if "output" in body else ChatCompletion()
        reader.read(body)
        fields = reader.response_fields()
        fields.pop("usage", None)
        choice = (body.get("choices") or [{}])[0]
        if "content" not in fields and isinstance(choice.get("text"), str):
            fields["content"] = choice["text"]
    elif isinstance(body, str) and body:
        fields["content"] = body
    fields["model"] = fields.get("model") or report.get("model") or None
    fields["provider"] = report.get("custom_llm_provider") or None
    if report.get("status") == "failure":
        details = report.get("error_information") or {}
        text = details.get("error_message") or report.get("error_str") or ""
        fields["error"] = f"{details.get('error_class') or 'error'}: {text}"
        return fields
    if report.get("cache_hit"):
        return fields | {"cost_usd": 0.0, "cache_hit": True}
    fields["usage"] = _usage(report)
    if isinstance(report.get("response_cost"), int | float):
        fields["litellm_cost_usd"] = report["response_cost"]
    return fields


def _usage(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the tokens of a call, with what is billed beside them."""
    tokens, usage = read_tokens(report), _usage_object(report)
    if tokens is None:
        return None
    return {**tokens.to_dict(), **billed_fields(usage)}


def _usage_object(report: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = report.get("metadata")
    return (metadata.get("usage_object") if isinstance(metadata, Mapping) else None) or {
        name: report[name] for name in ("prompt_tokens", "completion_tokens") if report.get(name)
    }


def read_tokens(report: Mapping[str, Any]) -> TokenUsage | None:
    """Return the tokens of a call. litellm counts cached tokens as part of the prompt, for all providers."""
    usage = _usage_object(report)
    details = usage.get("prompt_tokens_details")
    kept = details.get("cache_creation_token_details") if isinstance(details, Mapping) else None
    return read_usage({**usage, "cache_creation": kept})[0] if usage else None


@cache
def _callback_class() -> type[Any]:
    with library("litellm", "litellm"):
        from litellm.integrations.custom_logger import CustomLogger
    text = "A callback of litellm that records calls: `litellm.callbacks = [SessionLogCallback(log)]`."
    return type("SessionLogCallback", (CallRecorder, CustomLogger), {"__doc__": text, "__module__": __name__})


def __getattr__(name: str) -> Any:
    """Make `SessionLogCallback` when it is imported: its base is a class of litellm, which takes seconds to load."""
    if name == "SessionLogCallback":
        return _callback_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
