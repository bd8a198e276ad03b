"""Records the messages of claude-agent-sdk: a session for each stream of `query()` or `client.receive_response()`.

    async for message in record(query(prompt=task), prompt=task):
        ...

Classes are recognised by name, so the SDK is not imported. Its agent runs in another process, which reports what it has
done: a request is written as soon as all that it sends is known (the prompt, or the results of all open tool calls).

- A response comes as one AssistantMessage for each content block; they share a `message_id`. It is written before the
  first event of its tools. The tokens of blocks that come after a tool's result are added to the session's totals, and
  the next request repeats the blocks.
- ResultMessage ends a run with its cost; its tokens are those of the responses, and are not counted. `total_cost_usd`
  is the agent's own estimate and a running total, also over the responses of one client and in a resumed session: the
  cost of a run is what it grew by since the run before in this process.
- Claude Code writes a log of its own: where that is known, what is recorded here is in reports once, as it is there.
- Events of a sub-agent belong to the session; their `agent` is its type. Its requests are written without messages.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from time import monotonic
from typing import Any

from sessionlog.errors import NotRecorded
from sessionlog.events.billing import read_whole
from sessionlog.events.tokens import TOKEN_CLASSES, TokenUsage
from sessionlog.integrations.runs import Guard, Runs
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.logger.tool_timer import is_cancellation
from sessionlog.messages.content_text import text_of

_PROVIDER = "anthropic"
_SYNTHETIC = "<synthetic>"  # the model of the agent's own notices; with an error it is a failed request
_ABORTED = ("aborted_streaming", "aborted_tools")
_RESULT_FIELDS = ("subtype", "num_turns", "duration_api_ms", "terminal_reason", "model_usage", "permission_denials")
_MAX_SESSIONS = 1000


def record(
    messages: AsyncIterable[Any], log: SessionLogger | None = None, *, prompt: str | None = None, **options: Any
) -> AsyncGenerator[Any, None]:
    """Yield the messages of a stream unchanged, and record them.

    Args:
        messages: What `query()`, `client.receive_response()` or `client.receive_messages()` returns.
        log: The logger; without one the stream has a session of its own.
        prompt: What the agent was asked: the stream does not repeat it.
        options: Arguments of `SessionLogger` for that session.

    Raises:
        TypeError: There are both a logger and options, or an option is unknown.
        ValueError: An option has a value that does not exist.
    """
    return _record(messages, _Recording(log, prompt, options))


async def _record(messages: AsyncIterable[Any], recording: _Recording) -> AsyncGenerator[Any, None]:
    error: BaseException | None = None
    try:
        async for message in messages:
            recording.add(message)
            yield message
    except BaseException as caught:
        error = caught
        raise
    finally:
        recording.finish(error)
        close = getattr(messages, "aclose", None)
        if error is not None and close is not None:  # a host that leaves this stream leaves the other one
            await close()


class _Response:
    """A response of which not all blocks may have come."""

    def __init__(self, message: Any) -> None:
        self.id = getattr(message, "message_id", None)  # older versions of the SDK lack the later fields
        model = getattr(message, "model", None)
        self.model = None if model == _SYNTHETIC else model
        self.error = getattr(message, "error", None)
        self.blocks: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []  # of the provider's own tools, which run within the response
        self.usage: Any = None
        self.stop_reason: Any = None
        self.last = 0.0
        self.is_written = False


class _Thread:
    """A conversation with a model: that of the agent, or of one of its sub-agents."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.has_begun = False
        self.sent = 0  # messages of the last request
        self.pending: list[dict[str, Any]] = []  # messages that the next request adds
        self.asked: float | None = None  # when the last request was written, until it has an answer
        self.response: _Response | None = None
        self.pieces: list[str] = []  # the streamed text of a block that has not come
        self.calls: dict[str, tuple[str, Any, float]] = {}  # tools that run, by id: name, input, start


_past: OrderedDict[str, tuple[float, str, _Thread]] = OrderedDict()
"""By the agent's session, the newest last: its last running total, the log of its last run, and the conversation."""


class _Recording:
    """The state of one stream; `add` is called for each of its messages, `finish` at its end."""

    def __init__(self, log: SessionLogger | None, prompt: str | None, options: dict[str, Any]) -> None:
        self._runs = Runs(log, options)
        self._given, self._prompt, self._options = log, prompt, options
        self._log: SessionLogger | None = None
        self._model: str | None = None
        self._own: dict[str, Any] = {}  # Claude Code's own log has the same, and in better quality
        self._main = _Thread({})
        self._threads: dict[str | None, _Thread] = {None: self._main}
        self._is_ended = False
        self._handlers: Mapping[str, Callable[[SessionLogger, Any], None]] = {
            "StreamEvent": self._piece,
            "AssistantMessage": self._assistant,
            "UserMessage": self._user,
            "SystemMessage": self._system,
            "ResultMessage": self._result,
            "ConversationResetMessage": self._reset,
        }

    def add(self, message: Any) -> None:
        """Record a message."""
        handler = self._handlers.get(type(message).__name__)
        log = self._log or self._begin(message)
        if handler is not None:
            with Guard(log):
                handler(log, message)

    def finish(self, error: BaseException | None) -> None:
        """Record the end of the stream; the run fails with an error, or is cancelled if the host left it."""
        log = self._log or self._begin(None)
        is_left = is_cancellation(error)
        with Guard(log):
            for thread in self._threads.values():
                if error is None:
                    self._close(log, thread)
                else:
                    self._cut(log, thread, None if is_left else error)
            if not self._is_ended and is_left and self._given is None:
                log.end("cancelled")
        if not isinstance(error, NotRecorded):
            with Guard(log):
                self._runs.end(self, error=error)

    def _begin(self, message: Any) -> SessionLogger:
        """Open the session; its first message is mostly the agent's description of itself."""
        data = getattr(message, "data", None)
        init = data if isinstance(data, Mapping) and data.get("subtype") == "init" else {}
        if self._given is None:
            known = {"work_dir": init.get("cwd"), "metadata": {"claude_session": init.get("session_id")}}
            usable = {name: value for name, value in known.items() if init and name not in self._options}
            self._runs = Runs(None, usable | self._options)
        self._model = init.get("model")
        if init.get("session_id"):
            self._own = {"superseded_by": f"claude-code:{init['session_id']}"}
        self._log = self._runs.begin(self, prompt=self._prompt, model=self._model, provider=_PROVIDER)
        with Guard(self._log):
            _, path, thread = _past.get(init.get("session_id", ""), (0.0, "", self._main))
            if path == self._log.path:  # the next run of a client
                thread.asked, thread.pieces, thread.calls = None, [], {}
                self._main = self._threads[None] = thread
            if self._prompt is not None:
                self._main.pending.append({"role": "user", "content": self._prompt})
                self._request(self._log, self._main)
        return self._log

    def _thread(self, log: SessionLogger, parent: str | None) -> _Thread:
        """Return the conversation of the agent, or of the sub-agent that a tool call has started."""
        thread = self._threads.get(parent)
        if thread is None:
            thread = self._threads[parent] = _Thread({"agent": parent, "parent_tool_use_id": parent})
        if not thread.has_begun:
            thread.has_begun = True
            for one in self._threads.values():
                if parent in one.calls:
                    self._write(log, one)  # before the events of its sub-agent
        return thread

    def _resume(self, log: SessionLogger) -> None:
        if self._is_ended:
            self._is_ended = False
            log.begin_run()

    def _request(self, log: SessionLogger, thread: _Thread) -> None:
        """Write a request with the messages since the last one."""
        self._resume(log)
        fields: dict[str, Any] = dict(thread.fields)
        if thread is self._main:
            fields |= {"messages": thread.pending, "earlier_messages": thread.sent or None}
        thread.sent += len(thread.pending)
        thread.pending, thread.asked = [], monotonic()
        log.llm_request(fields.pop("messages", None), model=self._model, **fields)

    def _assistant(self, log: SessionLogger, message: Any) -> None:
        begun = _Response(message)
        if begun.model is None and not begun.error:
            return
        thread, now = self._thread(log, message.parent_tool_use_id), monotonic()
        response = thread.response
        if response is None or begun.id is None or response.id != begun.id:
            self._close(log, thread)
            if thread.asked is None:
                self._request(log, thread)
            response = thread.response = begun
        thread.pieces = []
        before, response.usage = response.usage, getattr(message, "usage", None) or response.usage
        response.stop_reason = getattr(message, "stop_reason", None) or response.stop_reason
        response.last = now
        blocks = [_block(block) for block in message.content]
        response.blocks += blocks
        for block in blocks:
            if block["type"] == "tool_result":
                response.results.append(block)
            elif block["type"].endswith("tool_use"):
                thread.calls[block["id"]] = block["name"], block["input"], now
                given = block["input"]
                kind = given.get("subagent_type") if isinstance(given, Mapping) else None
                if isinstance(kind, str):
                    fields = {"agent": kind, "parent_tool_use_id": block["id"]}
                    self._threads[block["id"]] = _Thread(fields)
        if response.is_written:
            late = [block for block in blocks if block["type"] != "tool_result"]
            thread.pending += [{"role": "assistant", "content": late}] if late else []
            self._add_late(log, before, response.usage)

    def _add_late(self, log: SessionLogger, before: Any, usage: Any) -> None:
        """Add to the totals what a response used beyond the usage that was written."""
        old, new = read_whole(before)[0], read_whole(usage)[0]
        more = {name: max(0, getattr(new, name) - getattr(old, name)) for name in TOKEN_CLASSES}
        log.totals.usage += TokenUsage(**more)

    def _user(self, log: SessionLogger, message: Any) -> None:
        thread = self._thread(log, message.parent_tool_use_id)
        content = message.content
        blocks = [_block(block) for block in content] if isinstance(content, list) else []
        results = [block for block in blocks if block["type"] == "tool_result"]
        self._write(log, thread)
        for block in results:
            self._tool(log, thread, block)
        if thread is self._main and content == self._prompt and thread.asked is not None:
            return  # the agent repeats prompts if it is asked to
        thread.pending.append({"role": "user", "content": blocks or content})
        if not thread.calls:
            self._request(log, thread)

    def _tool(self, log: SessionLogger, thread: _Thread, result: dict[str, Any]) -> None:
        sub_agent = self._threads.get(result["tool_use_id"])
        if sub_agent is not None:
            self._close(log, sub_agent)  # it may go on in the background
        now, output, failed = monotonic(), result["content"], result.get("is_error")
        name, given, start = thread.calls.pop(result["tool_use_id"], ("unknown", None, now))
        error = (text_of(output) or "failed") if failed else None
        log.tool_call(
            name, given, output=output, duration_ms=(now - start) * 1000, error=error, id=result["tool_use_id"],
            **thread.fields, **self._own,
        )  # fmt: skip

    def _piece(self, log: SessionLogger, message: Any) -> None:
        delta = message.event.get("delta")
        if delta is not None and delta.get("type") == "text_delta":
            self._thread(log, message.parent_tool_use_id).pieces.append(delta["text"])

    def _write(
        self, log: SessionLogger, thread: _Thread, partial: str | None = None, failure: BaseException | None = None
    ) -> None:
        """Write the response as far as it has come, once."""
        response = thread.response
        if response is None or response.is_written:
            return
        self._resume(log)
        response.is_written = True
        text, thinking = _joined(response.blocks, "text"), _joined(response.blocks, "thinking")
        calls = [
            {"id": block["id"], "name": block["name"], "arguments": block["input"]}
            for block in response.blocks
            if block["type"] == "tool_use"
        ]
        error: str | BaseException | None = failure
        if response.error:  # its text is that of the error
            text, error = "", f"{response.error}: {text}"
        elif response.blocks:
            thread.pending.append({"role": "assistant", "content": list(response.blocks)})
        latency_ms = None if thread.asked is None else (response.last - thread.asked) * 1000
        thread.asked = None
        fields = {"finish_reason": response.stop_reason, "reasoning": thinking or None, "partial": partial}
        log.llm_response(
            text or None, usage=None if response.error else response.usage, model=response.model,
            tool_calls=calls or None, latency_ms=latency_ms, provider=_PROVIDER, error=error,
            requested_model=response.model or self._model,
            **fields, **thread.fields, **self._own,
        )  # fmt: skip

    def _close(
        self, log: SessionLogger, thread: _Thread, partial: str | None = None, failure: BaseException | None = None
    ) -> None:
        self._write(log, thread, partial, failure)
        response, thread.response = thread.response, None
        for result in response.results if response is not None else ():
            self._tool(log, thread, result)

    def _cut(self, log: SessionLogger, thread: _Thread, error: BaseException | None) -> None:
        """Write what has come of a response that failed, or was cancelled if there is no error."""
        text, thread.pieces = "".join(thread.pieces), []
        if thread.response is None or thread.response.is_written:
            thread.response = None
            if thread.asked is None or not (text or thread is self._main):
                return
            thread.response = _Response(None)
            thread.response.last = monotonic()
        if text:
            thread.response.blocks.append({"type": "text", "text": text})
        self._close(log, thread, partial="cancelled" if error is None else "failed", failure=error)

    def _system(self, log: SessionLogger, message: Any) -> None:
        data = message.data
        if message.subtype == "init":
            self._model = data.get("model") or self._model
        elif message.subtype == "compact_boundary":
            self._close(log, self._main)
            details = data.get("compact_metadata") or {}
            self._main.sent = 0
            fields = {"success": True, "tokens_before": details.get("pre_tokens"), "strategy": details.get("trigger")}
            log.emit("compaction.end", {name: value for name, value in fields.items() if value is not None})

    def _reset(self, log: SessionLogger, message: Any) -> None:
        """Begin another conversation, whose running totals begin at 0."""
        self._close(log, self._main)
        self._main.sent, self._main.pending = 0, []
        _past.pop(message.session_id, None)

    def _result(self, log: SessionLogger, message: Any) -> None:
        """End the run with its cost; with a given logger, which its owner ends, the result is a progress event."""
        is_aborted = getattr(message, "terminal_reason", None) in _ABORTED
        for thread in self._threads.values():
            if is_aborted:
                self._cut(log, thread, None)
            else:
                self._close(log, thread)
        cost_usd = _grown(message.session_id, message.total_cost_usd, log.path, self._main)
        fields = {name: value for name in _RESULT_FIELDS if (value := getattr(message, name, None))}
        if self._given is not None:
            log.emit("progress", {"phase": "result", "total_cost_usd": message.total_cost_usd, **fields})
            return
        self._resume(log)
        error = None
        if message.is_error and not is_aborted:
            error = "; ".join(map(str, getattr(message, "errors", None) or ())) or message.result or message.subtype
        status = "cancelled" if is_aborted else "success" if error is None else "error"
        output = message.result if error is None else None
        log.end(status, output=output, error=error, cost_usd=cost_usd, **fields, **self._own)
        self._is_ended = True


def _grown(session: str, total: float | None, path: str, thread: _Thread) -> float | None:
    """Keep the state of an agent's session after a run; return what its running total has grown by."""
    before = _past.pop(session, (0.0,))[0]
    _past[session] = (before if total is None else total, path, thread)
    while len(_past) > _MAX_SESSIONS:
        _past.popitem(last=False)
    if total is None:
        return None
    return float(round(total - before, 9) if total >= before else total)  # below it: another process began at 0


def _block(block: Any) -> dict[str, Any]:
    """Return a content block in the API's own format; server tools' results as results."""
    kind = type(block).__name__
    if kind == "TextBlock":
        return {"type": "text", "text": block.text}
    if kind == "ThinkingBlock":
        return {"type": "thinking", "thinking": block.thinking}
    if kind in ("ToolUseBlock", "ServerToolUseBlock"):
        word = "tool_use" if kind == "ToolUseBlock" else "server_tool_use"
        return {"type": word, "id": block.id, "name": block.name, "input": block.input}
    if kind in ("ToolResultBlock", "ServerToolResultBlock"):
        content = block.content
        is_error = getattr(block, "is_error", None) or (isinstance(content, Mapping) and "error_code" in content)
        made = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": content}
        return made | {"is_error": True} if is_error else made
    return {"type": kind}


def _joined(blocks: list[dict[str, Any]], kind: str) -> str:
    return "".join(block[kind] for block in blocks if block["type"] == kind)
