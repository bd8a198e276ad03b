"""LangChain: a callback handler that records what models, tools and retrievers do; LangGraph reports in the same way.

    model.invoke(question, config={"callbacks": [SessionLogHandler()]})

A root run is a session; the runs below it are recorded there. The same handler serves `invoke`, `stream`, `batch` and
their async forms, on any thread.
"""
# ruff: noqa: ARG002 - the arguments are LangChain's

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from sessionlog.events.billing import billed_fields
from sessionlog.integrations.runs import Guard, Runs, library
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.logger.tool_timer import is_cancellation

with library("langchain_core", "langchain-core"):
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import BaseMessage

if TYPE_CHECKING:
    from uuid import UUID

Json = Any
_ROLES = {"human": "user", "ai": "assistant"}
_CALL_BLOCKS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "function_call", "input_json_delta", "invalid_tool_call"}
)
_TEXT_BLOCKS = _CALL_BLOCKS | {"text"}
_TEXT_KEYS = ("input", "question", "output", "answer", "messages")
"""Where chains keep their prompt and their result."""


class SessionLogHandler(BaseCallbackHandler):
    """Records the runs of a host in sessions, one for each root run.

    Args:
        log: The logger of all runs, which its owner ends; None for a session for each root run.
        options: Arguments of `SessionLogger` for these sessions. With `on_error="raise"`, LangChain's own `raise_error`
            is set as well: it keeps all errors of handlers from the host otherwise.

    Raises:
        TypeError: There are both a logger and options, or an option is unknown.
        ValueError: An option has a value that does not exist.
    """

    run_inline = True  # never in an executor, whose order differs: a request is in the log before its model is called

    def __init__(self, log: SessionLogger | None = None, **options: Any) -> None:
        super().__init__()
        self._runs = Runs(log, options)
        self._trees: dict[UUID, _Tree] = {}  # of each open run, the tree that it belongs to
        self.raise_error = options.get("on_error") == "raise"

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        """Begin a session if this run has no parent here."""
        self._begin(run_id, parent_run_id, lambda: {"prompt": _text_in(inputs, "human")})

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """End the session if the chain is its root run."""
        self._end(run_id, output=outputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End the session with the error if the chain is its root run."""
        self._end(run_id, error=error)

    def on_chat_model_start(
        self, serialized: Any, messages: Sequence[Any], *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        """Write the request; LangChain reports each of several prompts as a run of its own."""
        self._request(messages[0], run_id, parent_run_id, more)

    def on_llm_start(
        self, serialized: Any, prompts: Sequence[Any], *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        """Write the request of a model that completes a text."""
        self._request(prompts[0], run_id, parent_run_id, more)

    def on_llm_new_token(self, *_: Any, run_id: UUID, chunk: Any = None, **__: Any) -> None:
        """Keep a chunk, in case that its stream does not end."""
        tree = self._trees.get(run_id)
        call = tree.calls.get(run_id) if tree is not None else None
        if call is not None and chunk is not None:
            call.chunks.append(chunk)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Write the response."""
        self._respond(run_id, response)
        self._end(run_id, output=response)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, response: Any = None, **_: Any) -> None:
        """Write a response with the error, or with what a cancelled stream has sent."""
        self._respond(run_id, response, error)
        self._end(run_id, error=error)

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: Any = None,
        **more: Any,
    ) -> None:
        """Note when the tool was called, and with what."""
        tree = self._begin(run_id, parent_run_id, dict, watched=True)
        with Guard(tree.log):
            name = more.get("name") or (serialized or {}).get("name") or "tool"
            tree.calls[run_id] = _Call(
                {"tool": name, "input": input_str if inputs is None else inputs, "id": more.get("tool_call_id")}
            )

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Write the tool's result; an error that the tool has handled itself is an error as well."""
        self._result(run_id, output)
        self._end(run_id, output=output)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Write the tool's error."""
        self._result(run_id, error=error)
        self._end(run_id, error=error)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        """Note when the retriever was called; it is recorded as a tool."""
        self.on_tool_start(serialized, query, run_id=run_id, parent_run_id=parent_run_id, **more)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **_: Any) -> None:
        """Write the documents that were found."""
        self._result(run_id, documents)
        self._end(run_id)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Write the retriever's error."""
        self.on_tool_error(error, run_id=run_id)

    def _begin(
        self, run_id: UUID, parent: UUID | None, known: Callable[[], dict[str, Any]], *, watched: bool = False
    ) -> _Tree:
        tree = self._trees.get(parent) if parent is not None else None
        if tree is None:  # also below a run that this handler was not given to
            fields: dict[str, Any] = {}
            with suppress(Exception):  # the same host objects are read again for the request, and errors counted there
                fields = known()
            tree = _Tree(self._runs.begin(run_id, **fields), run_id)
            if watched:
                self._watch(tree)
        self._trees[run_id] = tree
        tree.open.add(run_id)
        return tree

    def _watch(self, tree: _Tree) -> None:
        """End a root run with its task: LangChain reports nothing when an `ainvoke` of a model or tool is cancelled."""
        with suppress(RuntimeError):  # no event loop
            task = asyncio.current_task()
            if task is not None:
                tree.task, tree.on_done = task, lambda done: self._abandon(tree, done)
                task.add_done_callback(tree.on_done)

    def _abandon(self, tree: _Tree, task: asyncio.Task[Any]) -> None:
        streamed = any(call.chunks for call in list(tree.calls.values()))
        if task.cancelled() or not streamed:  # a stream that was begun in one task may be read on in another
            self._end(tree.root, error=CancelledError())

    def _end(self, run_id: UUID, *, error: BaseException | None = None, output: Any = None) -> None:
        tree = self._trees.get(run_id)
        if tree is None:
            return
        if run_id != tree.root:
            del self._trees[run_id]
            tree.open.discard(run_id)
            return
        if tree.task is not None and tree.on_done is not None:
            tree.task.remove_done_callback(tree.on_done)
        for call_id, call in list(tree.calls.items()):  # cancelled, and only the chain around it reported that
            record = self._result if "tool" in call.fields else self._respond
            record(call_id, None, CancelledError())
        for member in list(tree.open):
            self._trees.pop(member, None)
        text = None
        with Guard(tree.log):
            text = _text_in(output)
        self._runs.end(run_id, error=error, output=text)

    def _take(self, run_id: UUID) -> tuple[SessionLogger, _Call] | None:
        tree = self._trees.get(run_id)
        call = tree.calls.pop(run_id, None) if tree is not None else None
        return None if tree is None or call is None else (tree.log, call)

    def _request(self, prompt: Any, run_id: UUID, parent: UUID | None, more: Mapping[str, Any]) -> None:
        metadata, params = more.get("metadata") or {}, more.get("invocation_params") or {}
        model = metadata.get("ls_model_name") or params.get("model") or params.get("model_name")
        served = {"model": model, "provider": metadata.get("ls_provider")}
        tree = self._begin(run_id, parent, lambda: {"prompt": _text_in(prompt, "human"), **served}, watched=True)
        with Guard(tree.log):
            call = tree.calls[run_id] = _Call(served)
            settings = {name: metadata.get(f"ls_{name}") for name in ("temperature", "max_tokens", "stop")}
            settings |= {name: params.get(name) for name in ("top_p", "top_k", "seed")}
            messages = prompt if isinstance(prompt, str) else [_to_message(message) for message in prompt]
            tree.log.llm_request(messages, model=model, tools=params.get("tools"), **settings)
            call.started = monotonic_ns()

    def _respond(self, run_id: UUID, response: Any, error: BaseException | None = None) -> None:
        if (taken := self._take(run_id)) is None:
            return
        log, call = taken
        with Guard(log):
            latency = call.milliseconds()
            fields: dict[str, Any] = dict(call.fields)
            generation = _first_generation(response)
            if error is not None and call.chunks and not (generation and generation.text):
                generation = sum(call.chunks[1:], call.chunks[0])  # a model that streams inside `invoke`
            if generation is not None:
                fields |= _response_fields(generation, getattr(response, "llm_output", None) or {}, call.fields)
            if is_cancellation(error):
                fields["partial"] = "cancelled"
            elif error is not None:
                fields |= {"error": error} | ({"partial": "failed"} if fields.get("content") else {})
            log.llm_response(**fields, requested_model=call.fields.get("model"), latency_ms=latency)

    def _result(self, run_id: UUID, output: Any = None, error: BaseException | None = None) -> None:
        if (taken := self._take(run_id)) is None:
            return
        log, call = taken
        with Guard(log):
            duration, shown, failure = call.milliseconds(), output, _describe(error)
            if isinstance(output, Sequence) and output and hasattr(output[0], "page_content"):
                shown = [{"page_content": found.page_content, "metadata": found.metadata} for found in output]
            elif hasattr(output, "tool_call_id"):  # a ToolMessage
                shown = output.content
                if output.status == "error":
                    shown, failure = None, _text_in(output)
            log.tool_call(**call.fields, output=shown, error=failure, duration_ms=duration)


class _Call:
    """A run of a model or a tool that has begun: what is known of it, and the chunks of its stream."""

    __slots__ = ("chunks", "fields", "started")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.chunks: list[Any] = []
        self.started = monotonic_ns()

    def milliseconds(self) -> float:
        """Return the time since the start."""
        return round((monotonic_ns() - self.started) / 1e6, 3)


class _Tree:
    """A root run, the runs below it that are open, and the models and tools that are running."""

    __slots__ = ("calls", "log", "on_done", "open", "root", "task")

    def __init__(self, log: SessionLogger, root: UUID) -> None:
        self.log, self.root = log, root
        self.open: set[UUID] = set()
        self.calls: dict[UUID, _Call] = {}
        self.task: asyncio.Task[Any] | None = None
        self.on_done: Callable[[asyncio.Task[Any]], None] | None = None


def _first_generation(response: Any) -> Any:
    """Return the first generation of an LLMResult; None where there is none."""
    listed = getattr(response, "generations", None)
    return listed[0][0] if listed and listed[0] else None


def _response_fields(generation: Any, llm_output: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of llm.response for a generation of a chat model or of one that completes a text."""
    message = getattr(generation, "message", None)
    info = {**llm_output, **(generation.generation_info or {}), **getattr(message, "response_metadata", {})}
    model = info.get("model_name") or info.get("model") or info.get("model_id") or asked.get("model")
    reasons = (info.get(name) for name in ("finish_reason", "stop_reason", "stopReason", "done_reason"))
    fields: dict[str, Any] = {
        "content": (generation.text if message is None else _text_in(message)) or None,
        "model": model,
        "provider": asked.get("provider") or info.get("model_provider"),
        "finish_reason": next((reason for reason in reasons if reason), None),
        "usage": info.get("token_usage") or info.get("usage"),
        "service_tier": info.get("service_tier"),
    }
    if message is None:
        return fields
    fields["tool_calls"] = _calls(message) or None
    usage = message.usage_metadata
    if usage and usage.get("total_cost") == 0:  # LangChain's own cache: no request was sent
        fields |= {"usage": {"input": 0, "output": 0}, "cost_usd": 0.0}
    elif usage:
        given = fields["usage"]
        fields["usage"] = read_tokens(usage) | (billed_fields(given) if isinstance(given, Mapping) else {})
    if isinstance(message.content, list) and not _TEXT_BLOCKS.issuperset(map(_kind, message.content)):
        fields["message"] = _to_message(message)
    return fields


def read_tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return the token counts of a `usage_metadata` in classes that do not overlap.

    `input_tokens` includes what was read from a cache or written to it. Names have a prefix where a request was of
    another service tier (`flex_cache_read`), and for Anthropic's two lifetimes `cache_creation` is 0.
    """
    inside, outside = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    read, written = _sum_named(inside, "cache_read"), _sum_named(inside, "cache_creation")
    hour = inside.get("ephemeral_1h_input_tokens") or 0
    written = written or hour + (inside.get("ephemeral_5m_input_tokens") or 0)
    given = usage.get("input_tokens") or 0
    counts = {
        "input": given - read - written if read + written <= given else given,
        "output": usage.get("output_tokens") or 0,
        "cache_read": read,
        "cache_write": written,
        "reasoning": _sum_named(outside, "reasoning"),
        "cache_write_1h": min(hour, written),
    }
    return {name: count for name, count in counts.items() if count or name in ("input", "output")}


def _sum_named(details: Mapping[str, Any], name: str) -> int:
    return sum(count or 0 for key, count in details.items() if key == name or key.endswith(f"_{name}"))


def _to_message(message: Any) -> dict[str, Json]:
    """Convert a message of LangChain to the format that `sessionlog.messages` reads."""
    kind = message.type.removesuffix("MessageChunk").lower()
    role = _ROLES.get(kind) or (message.role if kind == "chat" else kind)
    made: dict[str, Json] = {"role": role, "content": message.content}
    if kind == "ai" and (calls := _calls(message)):
        made["tool_calls"] = calls
        if isinstance(message.content, list):  # Anthropic's content repeats the calls
            made["content"] = [block for block in message.content if _kind(block) not in _CALL_BLOCKS]
    elif kind == "tool":
        made |= {"tool_call_id": message.tool_call_id} | ({"is_error": True} if message.status == "error" else {})
    return made | {"name": message.name} if message.name else made


def _calls(message: Any) -> list[dict[str, Json]]:
    """Return the calls that an AIMessage requests, with those whose arguments are no JSON."""
    listed = (*message.tool_calls, *message.invalid_tool_calls)
    return [{"id": call["id"], "name": call["name"], "arguments": call["args"]} for call in listed]


def _text_in(value: Any, kind: str = "") -> str | None:
    """Return the text of a message, of a list of messages (the last one of a kind), or of a chain's value."""
    if isinstance(value, BaseMessage):  # the only attributes read are those it has: to miss one takes pydantic 5 µs
        content: Any = value.content
        if isinstance(content, list):
            return "".join(block if isinstance(block, str) else block.get("text") or "" for block in content)
        return str(content)
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Mapping):
        found = [value[key] for key in _TEXT_KEYS if key in value] or (list(value.values()) if len(value) == 1 else [])
        return _text_in(found[0], kind) if found else None
    if (generation := _first_generation(value)) is not None:
        return _text_in(getattr(generation, "message", None)) or str(generation.text)
    if hasattr(value, "to_messages"):  # the value of a prompt template
        value = value.to_messages()
    if isinstance(value, list | tuple):
        return next((_text_in(item) for item in reversed(value) if kind in ("", getattr(item, "type", None))), None)
    return None


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else "text"


def _describe(error: BaseException | None) -> BaseException | str | None:
    return "cancelled" if is_cancellation(error) else error
