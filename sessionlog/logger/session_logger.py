"""SessionLogger: what an agent records with; methods for the common events on top of `EventWriter`.

    with SessionLogger(provider="anthropic", model="claude-opus-4-5", prompt=task) as log:
        log.llm_request(messages, tools=tools)
        log.llm_response(text, usage={"input": 812, "output": 96, "cache_read": 14_100}, latency_ms=4200)
        with log.tool_call("bash", {"command": "pytest -q"}) as call:
            call.output = run("pytest -q")

Token classes are disjoint: `input` is what was neither read from nor written to a cache.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from time import monotonic_ns, time_ns
from types import TracebackType

from sessionlog.events.limits import MAX_LINE
from sessionlog.events.redact import Hook
from sessionlog.logger.event_writer import EventWriter
from sessionlog.logger.notices import Notify
from sessionlog.logger.tool_timer import ToolTimer, describe, is_cancellation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from sessionlog.events.envelope import Event
    from sessionlog.events.tokens import TokenUsage
    from sessionlog.logger.event_writer import Durability, OnError
    from sessionlog.logger.totals import Totals

Callback = Callable[..., bool]

_SIGTERM_EXIT, _SIGINT_EXIT = 143, 130


class SessionLogger(EventWriter):
    """Records one session; a context manager that ends it with the right status.

    Args:
        directory: Folder of the logs; `$SESSIONLOG_DIR`, else `$XDG_STATE_HOME/sessionlog/sessions`.
        session_id: The session's id and file name; a new one by default. An existing session is continued.
        durability: `os` survives kill -9; `interval` syncs at most 500 ms later (one thread); `fsync` syncs each event.
        redact: True removes well-known secrets; a function is also applied to every string; False writes as is.
        on_error: `count` never raises; `raise` raises `NotRecorded` for an event that was not written.
        provider: Who serves the model, for session.start.
        model: The model asked for.
        prompt: The user's first prompt.
        work_dir: The project's folder; the current one by default.
        metadata: Values to group and filter reports by (`--by meta.KEY`).
        catch_sigterm: Inside `with`, turn SIGTERM into SystemExit(143), so that the session ends as `cancelled`.
        max_event: Largest line in bytes, at most 32 MiB; a larger event has its strings cut and is marked `truncated`,
            and so is one that would take a reader more than 130 MiB (a long text with emoji, very many small values).
        clock: Nanoseconds since 1970, for tests.
        notify: Called with one line per cause and minute when events are dropped; stderr by default.

    Attributes:
        owner: Identifies who writes the session's history to this log: two writers would corrupt it. None if no one.

    Raises:
        InvalidSessionId: The id could leave the folder or is no file name somewhere.
        ValueError: An option has a value that does not exist.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        *,
        durability: Durability = "os",
        redact: bool | Hook = True,
        on_error: OnError = "count",
        provider: str | None = None,
        model: str | None = None,
        prompt: str | None = None,
        work_dir: str | os.PathLike[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        catch_sigterm: bool = False,
        max_event: int = MAX_LINE,
        clock: Callable[[], int] = time_ns,
        notify: Notify | None = None,
    ) -> None:
        start = {
            "provider": provider,
            "model": model,
            "work_dir": os.fspath(work_dir) if work_dir is not None else _current_directory(),
            "prompt": prompt,
            "metadata": dict(metadata) if metadata else None,
        }
        options: dict[str, Any] = {
            "durability": durability, "redact": redact, "on_error": on_error, "max_event": max_event, "clock": clock,
            "notify": notify,
        }  # fmt: skip
        super().__init__(directory, session_id, start=_without_none(start), **options)
        self._options = options | {"provider": provider, "model": model, "work_dir": work_dir, "metadata": metadata}
        self._started = monotonic_ns()
        self._written_before = 0
        self._catch_sigterm = catch_sigterm
        self._previous_handler: Any = None
        self.owner: object = None

    def sibling(self, session_id: str | None = None) -> SessionLogger:
        """Make a logger for another session in the same folder, with the same options but its own prompt.

        Raises:
            InvalidSessionId: As for a new logger.
        """
        return SessionLogger(os.path.dirname(self.path), session_id, **self._options)

    def begin_run(self, totals: Totals | None = None) -> None:
        """Continue the session after its end: the next `end` is written with the totals from now on.

        Args:
            totals: The usage since the last end by a process that is gone.
        """
        self._ended = False
        self._totals = totals
        self._written_before = self._counters.written
        self._started = monotonic_ns()

    def callback(self) -> Callback:
        """Return a plain function for an agent loop: call it with an event, a mapping with `type`, or (type, data)."""
        from sessionlog.events.envelope import Event

        def record(event: Event | Mapping[str, Any] | str, data: Any = None) -> bool:
            if isinstance(event, str):
                return self.emit(event, data)
            made: Event | None = None
            with suppress(Exception):  # a mapping is the caller's code; what cannot be read is logged as it is
                if isinstance(event, Event):
                    made = event
                elif isinstance(event, Mapping) and isinstance(event.get("type"), str):
                    made = _to_event(event)
            return self.emit("unknown", event) if made is None else self.write(made)

        return record

    def llm_request(
        self,
        messages: Iterable[Any] | str,
        *,
        model: str | None = None,
        tools: Sequence[Any] | None = None,
        **more: Any,
    ) -> bool:
        """Record what is sent to a model: the whole prompt, the tools, and sampling settings as keywords.

        A plain text is one message of the user.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        fields = {"model": model, "messages": _as_list(messages), "tools": tools, **more}
        return self.emit("llm.request", _without_none(fields))

    def llm_response(
        self,
        content: str | None = None,
        *,
        usage: TokenUsage | Mapping[str, Any] | object | None = None,
        model: str | None = None,
        tool_calls: Sequence[Any] | None = None,
        cost_usd: float | None = None,
        latency_ms: float | None = None,
        error: str | BaseException | None = None,
        **more: Any,
    ) -> bool:
        """Record a response, or with `error` a failed call. `cost_usd` None is unknown, 0 is free.

        `usage` has our names, or is the usage object of an SDK: OpenAI's, Anthropic's, Google's, pydantic-ai's.
        """
        from sessionlog.events.usage import loggable_usage

        if more:
            self._check_names("llm.response", more)
        fields = {
            "content": content,
            "model": model,
            "tool_calls": tool_calls,
            "usage": loggable_usage(usage),
            "cost_usd": cost_usd,
            "latency_ms": latency_ms,
            "error": describe(error) if isinstance(error, BaseException) else error,
            **more,
        }
        return self.emit("llm.response", _without_none(fields))

    def tool_call(
        self,
        tool: str,
        input: Any = None,  # noqa: A002 - the payload's own word
        *,
        output: Any = None,
        duration_ms: float | None = None,
        error: str | BaseException | None = None,
        **more: Any,
    ) -> ToolTimer:
        """Record a tool's run: at once if its result is given, else as context manager or decorator (see ToolTimer)."""
        if more:
            self._check_names("tool.call", more)
        timer = ToolTimer(self._record_tool, {"tool": tool, **_without_none({"input": input, **more})})
        if output is not None or duration_ms is not None or error is not None:
            timer.output = output
            timer.error = describe(error) if isinstance(error, BaseException) else error
            timer.finish(duration_ms)
        return timer

    def _record_tool(self, fields: dict[str, Any]) -> bool:
        return self.emit("tool.call", fields)

    def end(self, status: str = "success", *, output: str | None = None, error: str | None = None, **more: Any) -> bool:
        """Write session.end with the totals of what this logger recorded; once, later calls do nothing."""
        if self._ended:
            return False
        self._ended = True
        if more:
            self._check_names("session.end", more)
        fields = {
            "status": status,
            "output": output,
            "tokens": self.totals.usage.to_dict() if self.totals.counted else None,
            "cost_usd": self.totals.cost_usd,
            "duration_ms": (monotonic_ns() - self._started) // 1_000_000,
            "error": error,
            **more,
        }
        return self.emit("session.end", _without_none(fields))

    def close(self) -> None:
        """Write what is pending and close the file. Idempotent.

        A session without an end gets a session.end with the status `closed`: it counts as unfinished.
        """
        if not (self._ended or self._closed) and self._counters.written > self._written_before:
            self._ended = True
            duration_ms = (monotonic_ns() - self._started) // 1_000_000
            with suppress(Exception):  # closing must not break the agent
                self.emit("session.end", {"status": "closed", "duration_ms": duration_ms})
        super().close()

    def _check_names(self, type_: str, names: Mapping[str, Any]) -> None:
        with suppress(Exception):
            from sessionlog.events.near_names import misspelt

            self._counters.warn("field", misspelt(type_, names))

    def __enter__(self) -> Self:
        if self._catch_sigterm and threading.current_thread() is threading.main_thread():
            import signal

            self._previous_handler = signal.signal(signal.SIGTERM, _exit_on_sigterm)
        if self.is_new():
            self.emit("session.start", {})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._ended:
                status = _status(error)
                self.end(status, error=describe(error) if error is not None and status != "success" else None)
        finally:
            self.close()
            if self._previous_handler is not None:
                import signal

                signal.signal(signal.SIGTERM, self._previous_handler)
                self._previous_handler = None


def _status(error: BaseException | None) -> str:
    """Return the status of a session that ended so."""
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return "success"
    if is_cancellation(error) or (isinstance(error, SystemExit) and error.code in (_SIGTERM_EXIT, _SIGINT_EXIT)):
        return "cancelled"
    return "error"


def _exit_on_sigterm(signum: int, _frame: object) -> None:
    raise SystemExit(128 + signum)


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _as_list(messages: Any) -> list[Any] | None:
    """Copy messages into a list; a single message becomes a list of one, an exception of the iterator its last item."""
    if messages is None:
        return None
    if type(messages) in (list, tuple):
        return list(messages)
    if isinstance(messages, Mapping | bytes) or not isinstance(messages, Iterable):
        return [messages]
    from sessionlog.events.sanitise import MAX_ITEMS

    listed: list[Any] = []
    try:
        for message in messages:
            if len(listed) == MAX_ITEMS and not isinstance(messages, Sized):  # a generator may have no end
                listed.append("[too many items]")
                break
            listed.append(message)
    except Exception as error:  # noqa: BLE001 - the iterator is the caller's code
        listed.append(f"[unreadable {type(messages).__name__}: {type(error).__name__}]")
    return listed


def _to_event(value: Mapping[str, Any]) -> Event:
    """Make an event of a mapping; without `data`, the keys that are not the envelope's are its payload."""
    from sessionlog.events.envelope import Event
    from sessionlog.events.sanitise import distinct_keys

    envelope = ("session_id", "seq", "type", "ts", "data")
    rest = distinct_keys((str(key), item) for key, item in value.items() if key not in envelope)
    session_id, ts = value.get("session_id"), value.get("ts")
    return Event(
        session_id=session_id if isinstance(session_id, str) else "",
        seq=0,
        type=value["type"],
        ts=ts if isinstance(ts, str) else "",
        data=value.get("data", rest),
        extra=rest if "data" in value else {},
    )


def _current_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None
