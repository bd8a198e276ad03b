"""What all integrations share: the logger of each run, and a guard that keeps their errors from the host.

An integration observes its host. Whatever goes wrong in it is counted in the logger's `health()` and ends there; with
`on_error="raise"` it reaches the host as `NotRecorded`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from sessionlog.errors import MissingExtra, NotRecorded
from sessionlog.locks import RLock
from sessionlog.logger.session_logger import SessionLogger


@contextmanager
def library(module: str, name: str, package: str = "") -> Iterator[None]:
    """Return a context for the imports of a library: its module, its name for people, and what to install.

    Raises:
        MissingExtra: The library is not installed, or lacks a name that is imported.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        state = "not installed" if isinstance(error, ModuleNotFoundError) else "too old"
        raise MissingExtra(f"{name} is {state}: pip install {package or name}") from error


def take_call_id(requested: list[dict[str, Any]], name: str, arguments: Any) -> str | None:
    """Remove the first requested call with this name and these arguments, and return its id, which spans may lack."""
    for index, call in enumerate(requested):
        if (call["name"], call["arguments"]) == (name, arguments):
            found: str | None = requested.pop(index)["id"]
            return found
    return None


class Guard:
    """A context in which an exception is counted by a logger and goes no further.

    Exceptions that end a program or a task (KeyboardInterrupt, CancelledError, …) pass.
    """

    __slots__ = ("_log",)

    def __init__(self, log: SessionLogger) -> None:
        self._log = log

    def __enter__(self) -> None:
        """Begin the guarded part."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, NotRecorded) or not isinstance(error, Exception):
            return False
        self._log.count_failure(error)
        return True


class Runs:
    """The loggers of the runs of a host.

    Args:
        log: The logger of all runs, which its owner ends; None for a session for each run.
        options: Arguments of `SessionLogger` for these sessions.

    Raises:
        TypeError: There are both a logger and options, or an option is unknown.
        ValueError: An option has a value that does not exist.
    """

    def __init__(self, log: SessionLogger | None, options: Mapping[str, Any]) -> None:
        if log is not None and options:
            raise TypeError(f"a logger has its options already; leave out {', '.join(sorted(options))}")
        if log is None:
            SessionLogger(**options)  # a wrong option is an error of the call here; a logger without events has no file
        self._log, self._options = log, dict(options)
        self._own: dict[Hashable, SessionLogger] = {}
        self._lock = RLock()

    def begin(
        self,
        run: Hashable,
        *,
        prompt: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> SessionLogger:
        """Return the logger of a run that begins; one that has begun already is continued.

        What is known of the run goes into its session.start, unless the options have it. A session that exists already
        under the id is continued, too.
        """
        if self._log is not None:
            return self._log
        with self._lock:  # requests of a new session may begin in several threads
            if run not in self._own:
                known: dict[str, Any] = {
                    "prompt": prompt,
                    "model": model,
                    "provider": provider,
                    "session_id": session_id,
                }
                known |= self._options
                known["metadata"] = {**(metadata or {}), **(self._options.get("metadata") or {})}
                self._own[run] = SessionLogger(**known)
                self._own[run].__enter__()
            return self._own[run]

    def find(self, run: Hashable) -> SessionLogger | None:
        """Return the logger of a run that has begun and has not ended; None for any other."""
        return self._log or self._own.get(run)

    def end(self, run: Hashable, *, error: BaseException | None = None, output: str | None = None) -> None:
        """End the session of a run: `success`, or by its error `error` or `cancelled`. Unknown runs are ignored."""
        log = self._own.pop(run, None)
        if log is None:
            return
        if error is None:
            log.end(output=output)
        log.__exit__(None if error is None else type(error), error, None)
