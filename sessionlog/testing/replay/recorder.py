"""Recorder: records with real models what a `ReplayModel` answers from later; it has the same doors.

The log is written to a temporary folder. It replaces the old one only when it is saved, whole, and only if it can be
replayed. A request is written together with its response: where several are under way, the log shows which is whose.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Self

from sessionlog import files
from sessionlog.errors import InvalidHistory
from sessionlog.integrations.http import RecordingTransport, library_of
from sessionlog.locks import RLock
from sessionlog.logger.ids import check_session_id
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing.replay.model import ReplayModel
from sessionlog.testing.replay.recording import WHOLE_REQUESTS

Write = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
_PIECE = 1 << 20


class Recorder:
    """Records a session for a replay.

    Args:
        path: Where the log is saved: NAME.jsonl, in a folder that need not exist.

    Attributes:
        log: The logger; what it does not record by itself can be written to it.

    Raises:
        InvalidSessionId: The name of the file is no session's id.
    """

    misses = unused = left_out = ()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        name = check_session_id(os.path.basename(self.path).removesuffix(".jsonl"))
        self._folder = files.temporary_directory("sessionlog-record-")
        self.log = SessionLogger(self._folder, name, on_error="raise", metadata=WHOLE_REQUESTS)
        self._lock = RLock()

    def _write(self, request: Mapping[str, Any], response: Mapping[str, Any]) -> None:
        with self._lock:
            self.log.llm_request(**request)
            self.log.llm_response(**response)

    def pydantic_ai(self, model: Any = None) -> Any:
        """Return a model for agents of pydantic-ai that asks `model`, or the model of that name, and records it.

        Raises:
            TypeError: No model is given.
            MissingExtra: pydantic-ai is not installed.
        """
        from sessionlog.testing.replay.pydantic_ai import RecordedModel

        if model is None:
            raise TypeError("to record, name the real model: replay_model.pydantic_ai('anthropic:claude-opus-4-5')")
        return RecordedModel(model, self._write)

    def transport(self, live: Any = None) -> RecorderTransport:
        """Return a transport for clients of httpx and httpx2 that records what it sends.

        Args:
            live: The transport that sends; None for the library's own.
        """
        return RecorderTransport(_PlainTransport() if live is None else live, self.log, self._write)

    def __call__(self, messages: Any, **options: Any) -> NoReturn:
        """Raise TypeError: a function has no library whose requests could be recorded."""
        del messages, options
        raise TypeError("a function is not recorded; record it with a SessionLogger, and replay that log")

    def save(self) -> None:
        """Replace the log at `path` with the recorded one.

        Raises:
            InvalidHistory: Nothing was recorded.
            OSError: The log cannot be written.
        """
        self.log.end()
        self.log.close()
        try:
            ReplayModel(self.log.path)
        except InvalidHistory as error:
            raise InvalidHistory(str(error).replace(str(self.log.path), self.path)) from error
        files.make_directories(os.path.dirname(self.path))
        with files.open_log(self.log.path) as log:
            files.replace_file(self.path, iter(lambda: log.read(_PIECE), b""))

    def discard(self) -> None:
        """Remove the temporary folder; what is not saved is lost."""
        self.log.close()
        files.remove_directory(self._folder)


class RecorderTransport:
    """A transport of httpx or httpx2, sync and async, that records what another one sends to models.

    Args:
        live: The other one.
        log: Counts what could not be recorded.
        write: Writes the fields of a request and those of its response.
    """

    def __init__(self, live: Any, log: SessionLogger, write: Write) -> None:
        self._live, self._log, self._write = live, log, write

    def handle_request(self, request: Any) -> Any:
        """Send a request; the transport's exceptions pass."""
        return self._recording().handle_request(request)

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request; the transport's exceptions pass."""
        return await self._recording().handle_async_request(request)

    def _recording(self) -> RecordingTransport:
        pair: Any = _Pair(self._log, self._write)  # has what a transport asks of a logger
        return RecordingTransport(self._live, pair)

    def close(self) -> None:
        """Close the transport."""
        self._live.close()

    async def aclose(self) -> None:
        """Close the transport."""
        await self._live.aclose()

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(*error)

    async def __aenter__(self) -> Self:
        await self._live.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._live.__aexit__(*error)


class _Pair:
    """In place of a logger for one request: keeps the request until there is a response."""

    def __init__(self, log: SessionLogger, write: Write) -> None:
        self._write = write
        self._request: dict[str, Any] = {}
        self.count_failure = log.count_failure

    def llm_request(self, messages: Any, **fields: Any) -> None:
        self._request = {"messages": messages, **fields}

    def llm_response(self, **fields: Any) -> None:
        self._write(self._request, fields)


class _PlainTransport:
    """The transport of whichever library sends a request, sync or async."""

    def __init__(self) -> None:
        self._sync: Any = None
        self._async: Any = None

    def handle_request(self, request: Any) -> Any:
        if self._sync is None:
            self._sync = library_of(request).HTTPTransport()
        return self._sync.handle_request(request)

    async def handle_async_request(self, request: Any) -> Any:
        if self._async is None:
            self._async = library_of(request).AsyncHTTPTransport()
        return await self._async.handle_async_request(request)

    def close(self) -> None:
        if self._sync is not None:
            self._sync.close()

    async def aclose(self) -> None:
        if self._async is not None:
            await self._async.aclose()

    def __enter__(self) -> None:
        """The real one is opened by its first request."""

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> None:
        """The real one is opened by its first request."""

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
