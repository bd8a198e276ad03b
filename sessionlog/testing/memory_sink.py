"""MemorySink: a `SessionLogger` without a file, and the stepping clock that makes its events comparable."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sessionlog.events.decode import decode_line
from sessionlog.events.envelope import Event
from sessionlog.events.times import parse_time
from sessionlog.logger.log_file import LogFile
from sessionlog.logger.session_logger import SessionLogger

_NOWHERE = os.path.join(os.sep, "memory")  # the directory that paths and messages show; it is never accessed


class FixedClock:
    """A clock for `SessionLogger(clock=…)`: each call returns the current instant and advances by one step.

    Args:
        start: The first instant, RFC 3339.
        step_ns: Nanoseconds between two calls; with 0 the clock stands still.

    Attributes:
        now_ns: What the next call returns, in nanoseconds since 1970.

    Raises:
        ValueError: `start` is not a time.
    """

    def __init__(self, start: str = "2026-11-21T10:00:00Z", *, step_ns: int = 1_000_000_000) -> None:
        instant = parse_time(start)
        if instant is None:
            raise ValueError(f"{start!r} is not an RFC 3339 time")
        self.now_ns = instant
        self._step_ns = step_ns

    def __call__(self) -> int:
        """Return the current instant in nanoseconds, and step."""
        now = self.now_ns
        self.now_ns += self._step_ns
        return now

    def advance(self, seconds: float) -> None:
        """Move the clock, backwards with a negative number."""
        self.now_ns += round(seconds * 1_000_000_000)


class MemorySink(SessionLogger):
    """A `SessionLogger` that keeps its log in memory; no file is opened and no folder made.

    Args:
        session_id: As for `SessionLogger`.
        clock: Stamps the events; a `FixedClock` by default, so that tests can compare them.
        options: Every other option of `SessionLogger`.

    Attributes:
        notices: The lines that a logger would have written to stderr.
    """

    def __init__(
        self, session_id: str = "test-session", *, clock: Callable[[], int] | None = None, **options: Any
    ) -> None:
        self.notices: list[str] = []
        options.setdefault("notify", self.notices.append)
        super().__init__(_NOWHERE, session_id, clock=clock or FixedClock(), **options)
        self._file = self._memory = _MemoryFile(_NOWHERE, f"{self.session_id}.jsonl", "os")
        self._siblings = 0

    def sibling(self, session_id: str | None = None) -> MemorySink:
        """Make another sink with the same options and its own notices; its default ids are numbered."""
        options = dict(self._options)
        if options["notify"] == self.notices.append:
            del options["notify"]
        if session_id is None:
            self._siblings += 1
            session_id = f"{self.session_id}-sibling" + (f"-{self._siblings}" if self._siblings > 1 else "")
        return MemorySink(session_id, **options)

    @property
    def failure(self) -> OSError | None:
        """While set, appending raises it, as on a full disk: test that your code continues."""
        return self._memory.failure

    @failure.setter
    def failure(self, error: OSError | None) -> None:
        self._memory.failure = error

    @property
    def content(self) -> bytes:
        """The log's bytes, as they would be in the file."""
        return bytes(self._memory.content)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the log in order, read back from its lines; `session.start` comes first."""
        return tuple(event for line in self.content.split(b"\n") for event in decode_line(line)[0])

    def of_type(self, type: str) -> tuple[Event, ...]:  # noqa: A002 - the envelope's own word
        """Return the events of one type, in order."""
        return tuple(event for event in self.events if event.type == type)


class _MemoryFile(LogFile):
    """A log file without a file."""

    def __init__(self, directory: str, name: str, durability: str) -> None:
        super().__init__(directory, name, durability)
        self.content = bytearray()
        self.failure: OSError | None = None
        self._opened = False

    @property
    def is_open(self) -> bool:
        return self._opened

    def is_empty(self) -> bool:
        return not self.content

    def open(self) -> tuple[bool, int]:
        self._opened = True
        return not self.content, 0

    def release(self) -> None:
        self._opened = False

    def append(self, lines: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        self.content += lines
