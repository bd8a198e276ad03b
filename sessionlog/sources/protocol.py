"""The protocol of a source: what a module defines so that an agent's logs can be found, counted and replayed.

A module per agent defines the functions below and one value, `SOURCE`. Its docstring documents the format: where the
logs are, their shape, the traps, the versions seen. A source opens nothing for writing and never uses the network; it
never raises for bad data, only `LogNotReadable` and `MissingExtra` for a log that cannot be opened at all. Other
packages add sources by an entry point in the group `sessionlog.sources` that names such a value;
`sessionlog.testing.check_source` checks whether it keeps the promises made here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.sources.record import NO_PROBLEMS, Limit, Problems, ScannedSession
from sessionlog.sources.steps import Step

HEAD = 1 << 16
"""Bytes of a log, unpacked, that `recognises` gets."""

Env = Mapping[str, str]


class Resume(Struct, frozen=True, kw_only=True):
    """Where a scan ended, and the state from which the next one continues.

    Attributes:
        offset: Bytes that need not be read again; always the end of a whole line.
        line: Lines up to there.
        state: The source's state, which it encodes itself.
    """

    offset: int
    line: int = 0
    state: bytes = b""


class LogScan(Struct, frozen=True, kw_only=True):
    """The result of one pass over a log, or over what was appended to it.

    Attributes:
        sessions: Usually one; a database or a resumed conversation holds several. After a resumed scan they hold the
            new records only, and facts (start, status, prompt …) as of now. A tuple, or for a large log a sequence that
            decodes them on each access.
        problems: The problems of the log.
        limits: The latest report on each rate limit.
        resume: Where the next scan continues; None = it has to read the log from the start and replace this result.
        replaced_count: After a resumed scan, how many of the last records before it are repeated, and replace these.
        full_rescan: A scan that was to be resumed has read all of the log, because what was appended changes earlier
            records: this result replaces them. False for a scan that was to read all of it.
    """

    sessions: Sequence[ScannedSession] = ()
    problems: Problems = NO_PROBLEMS
    limits: tuple[Limit, ...] = ()
    resume: Resume | None = None
    replaced_count: int = 0
    full_rescan: bool = False


class Retention(Struct, frozen=True, kw_only=True):
    """How long an agent keeps its logs.

    Attributes:
        days: Days until they are deleted; None = it keeps them.
        setting: Where users can change that.
    """

    days: int | None
    setting: str


class Parent(Struct, frozen=True, kw_only=True):
    """The session that a log continues, if the log itself does not hold its conversation.

    Attributes:
        session: Its id.
        path: Its log; "" where it is gone.
        read: Yields the part before the log as events of the native types, and problems.
    """

    session: str
    path: str = ""
    read: Callable[[], Iterator[Event | Problem]] = lambda: iter(())


def folders_below(place: str) -> Iterator[str]:
    """Yield a place and all folders below it."""
    yield place
    for folder, names, _ in os.walk(place):
        yield from (os.path.join(folder, name) for name in names)


class Source(Struct, frozen=True, kw_only=True):
    """An agent whose logs can be read.

    Attributes:
        id: Its id in reports, e.g. `claude-code`.
        title: Its full name.
        parser_version: To be raised when a scan gives other numbers for the same bytes, or `Resume.state` changes.
        locate: env → the folders and files where its logs may be, by its own variables, XDG and the platform;
            existing or not, in order of preference.
        list_logs: A folder or file → the logs in it, each once and in a stable order; `Problem`s for what cannot be
            listed. Works for what `locate` gave and for any folder that holds such logs.
        recognises: (path, first `HEAD` bytes unpacked) → whether this is one of its logs. By content: the name may only
            exclude (copies, checkpoints).
        scan: (path, where to resume or None) → records for reports, as fast as possible.
        read: (path, session id or None for the first) → the session as events of the native types, and problems.
        check: path → all of its sessions as `read` yields them, and the problems of a scan, which is made meanwhile.
        read_tail: (path, bytes) → the steps of the rows in the last bytes of a log, for what has just happened.
        read_steps: (path, where to begin or None) → all steps with their texts, for search, each with the offset of its
            row (0 where rows have none). A `Resume` among them is where the next reading may begin: what follows it is
            of an unfinished row. A `Resume` without a state begins at a row in the middle of the log.
        name_sessions: path → the ids of the sessions in it, cheaply; a file that is one session is named by its name.
        retention: env → how long logs are kept; None = nothing is known.
        sidecars: path → other files that a scan of this log reads, existing or not (a database's `-wal` is known): the
            log is read again when they change.
        folders: A place → the folders, itself included, in which a log could be new: while their times are unchanged,
            no logs are listed.
        subagent_logs: path → the logs of its session's sub-agents, which `read` reads with it.
        parent_of: path → the session whose conversation the log continues; None if the log holds all of it.
        caveat: What its logs do not hold, for users, such as counts of newer versions; "" for nothing of note.
    """

    id: str
    title: str
    parser_version: int
    locate: Callable[[Env], Iterable[str]]
    list_logs: Callable[[str], Iterable[str | Problem]]
    recognises: Callable[[str, bytes], bool]
    scan: Callable[[str, Resume | None], LogScan]
    read: Callable[[str, str | None], Iterator[Event | Problem]]
    check: Callable[[str], Iterator[Event | Problem | Problems]]
    name_sessions: Callable[[str], Iterable[str]]
    retention: Callable[[Env], Retention | None] = lambda _: None
    sidecars: Callable[[str], Iterable[str]] = lambda _: ()
    folders: Callable[[str], Iterable[str]] = folders_below
    subagent_logs: Callable[[str], Iterable[str]] = lambda _: ()
    parent_of: Callable[[str], Parent | None] = lambda _: None
    read_tail: Callable[[str, int], Iterable[Step]] = lambda *_: ()
    read_steps: Callable[[str, Resume | None], Iterator[tuple[int, Step] | Resume]] = lambda *_: iter(())
    caveat: str = ""


class Log(Struct, frozen=True, kw_only=True):
    """A log and its source.

    Attributes:
        source: The source that reads it.
        path: The file; for a few agents a folder of small files.
    """

    source: Source
    path: str
