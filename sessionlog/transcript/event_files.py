"""Event files: the rows of logs as JSON lines in temporary files, for a database that reads JSON.

This runs in workers. Each file holds whole rows of some megabytes; a log that cannot be read is a problem.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import BinaryIO, Self

import orjson
from msgspec import Struct

from sessionlog import files
from sessionlog.errors import Problem, log_problem
from sessionlog.events.redact import redact_line
from sessionlog.events.sanitise import sanitise
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import source_of
from sessionlog.transcript.event_rows import COLUMNS, EventRows, Row

_PIECE = 32 << 20
_NAMED = 5
_UNREAD = frozenset({"unreadable", "source_failed"})


class LogPart(Struct, frozen=True, kw_only=True):
    """A log, and which of its sessions are wanted.

    Attributes:
        source: The id of its source.
        path: The log.
        sessions: Ids of its sessions.
    """

    source: str
    path: str
    sessions: tuple[str, ...]


class Wanted(Struct, frozen=True, kw_only=True):
    """Which rows and columns are written.

    Attributes:
        columns: Names of columns; others are missing in rows.
        start_ns: The earliest time; None for any.
        end_ns: The time before which events are; None for any. Events without a time are in no window.
        projects: Glob patterns in lower case of which one has to match the session's project; none for all.
        redact: Replace well-known secrets.
    """

    columns: tuple[str, ...] = tuple(COLUMNS)
    start_ns: int | None = None
    end_ns: int | None = None
    projects: tuple[str, ...] = ()
    redact: bool = False

    @property
    def narrows(self) -> bool:
        """Whether not all rows are wanted."""
        return self.start_ns is not None or self.end_ns is not None or bool(self.projects)

    def fits(self, time_ns: int | None, project: str) -> bool:
        """Whether an event of this time is in the window, and its session's project is wanted."""
        if self.start_ns is not None and (time_ns is None or time_ns < self.start_ns):
            return False
        if self.end_ns is not None and (time_ns is None or time_ns >= self.end_ns):
            return False
        return not self.projects or any(fnmatchcase(project.lower(), pattern) for pattern in self.projects)


class EventFile(Struct, frozen=True, kw_only=True):
    """A file of rows.

    Attributes:
        path: The temporary file.
        rows: Their number.
        longest: Bytes of the longest of them.
    """

    path: str
    rows: int
    longest: int


class Written(Struct, frozen=True, kw_only=True):
    """What was made of some logs.

    Attributes:
        files: The files of their rows, in order.
        problem_count: Problems of the logs.
        problems: The first of them.
        unread: The logs of which something could not be read, though it may be there.
    """

    files: tuple[EventFile, ...]
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()
    unread: tuple[str, ...] = ()


def write_rows(parts: Sequence[LogPart], wanted: Wanted, folder: str) -> Written:
    """Write the rows of logs as files in a folder; what cannot be read is a problem of the result.

    Raises:
        OSError: There is no room for them.
    """
    with _Writer(folder) as writer:
        count, problems, unread = 0, list[Problem](), dict[str, None]()
        for part, item in _rows(parts, wanted):
            if isinstance(item, Problem):
                count += item.severity == "damage"
                if item.severity == "damage" and len(problems) < _NAMED:
                    problems.append(item)
                if item.kind in _UNREAD:
                    unread[part.path] = None
                continue
            line = encode_row(item)
            writer.add(redact_line(line) if wanted.redact else line)
        return Written(
            files=tuple(writer.finish()), problem_count=count, problems=tuple(problems), unread=tuple(unread)
        )


def _rows(parts: Sequence[LogPart], wanted: Wanted) -> Iterator[tuple[LogPart, Row | Problem]]:
    columns = frozenset(wanted.columns)
    for part in parts:
        log = Log(source=source_of(part.source), path=part.path)
        for session in part.sessions:
            yield from ((part, item) for item in _read(log, session, columns, wanted))


def _read(log: Log, session: str, columns: Collection[str], wanted: Wanted) -> Iterator[Row | Problem]:
    """Yield the rows of a session that fit."""
    try:
        rows, narrows = EventRows(log, session, columns), wanted.narrows
        for item in log.source.read(log.path, session):
            if isinstance(item, Problem):
                yield item
                continue
            row = rows.row(item)
            if not narrows or wanted.fits(item.time_ns, rows.project):
                yield row
    except Exception as error:  # noqa: BLE001 - a bug in a source must not break the query of all others
        yield log_problem(log.path, error, log.source.id)


def encode_row(row: Mapping[str, object]) -> bytes:
    """Return a row as a JSON line: what JSON cannot hold is replaced, unpaired surrogates and deep nesting, too."""
    try:
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError, RecursionError):
        return orjson.dumps(sanitise(row), option=orjson.OPT_APPEND_NEWLINE)


class _Writer:
    """Writes lines into one temporary file after the other."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._path = ""
        self._size = self._rows = self._longest = 0
        self._done: list[EventFile] = []

    def add(self, line: bytes) -> None:
        if self._file is None:
            self._file, self._path = files.open_temporary(self._folder)
        self._file.write(line)
        self._size += len(line)
        self._rows += 1
        self._longest = max(self._longest, len(line))
        if self._size >= _PIECE:
            self._end()

    def finish(self) -> list[EventFile]:
        """End the last file, and return all."""
        self._end()
        return self._done

    def _end(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._done.append(EventFile(path=self._path, rows=self._rows, longest=self._longest))
        self._file, self._size, self._rows, self._longest = None, 0, 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
