"""The kit: makes a `Source` from its description, with the drivers for scans, events and lists of logs.

A source is one file. It describes where the logs are (`places`, `logs`), the shape of a row (`rows`, a Struct), and
what a row means (`steps`). All else is here and in the two folds, once for all agents.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.billing import read_inner, read_region, read_searches, read_speed, read_tier
from sessionlog.events.damaged import LineProblem, find_objects
from sessionlog.events.decoded_size import LARGE, too_large
from sessionlog.events.names import MAIN, UNKNOWN
from sessionlog.events.tokens import TokenUsage
from sessionlog.reader.rows import Rows
from sessionlog.reader.unpack import ROW_BUFFER, open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.sources.contents import (
    first_words,
    measure,
    parts_of,
    read_json,
    reasoning_of,
    text_of,
    tool_uses,
    with_pictures,
)
from sessionlog.sources.find_places import Place, expand_places, first_of
from sessionlog.sources.fold_usage import Findings, FoldState, UsageFold
from sessionlog.sources.protocol import HEAD, Env, LogScan, Parent, Resume, Retention, Source, folders_below
from sessionlog.sources.record import CopyRank, Limit, Problems, ScannedSession
from sessionlog.sources.steps import (
    At,
    BadNumber,
    Compaction,
    Content,
    MoreInput,
    Prompt,
    PromptPart,
    RateLimit,
    Request,
    Response,
    Role,
    SentRequest,
    Session,
    Status,
    Step,
    Text,
    Tokens,
    ToolCall,
    ToolResult,
    Totals,
)
from sessionlog.sources.typed import MISFITS, Typed, TypedRows
from sessionlog.sources.values import (
    Json,
    cost,
    disjoint,
    fingerprint,
    folder,
    is_failure,
    mapping,
    name,
    objects,
    read_counts,
    read_duration,
    read_time,
    text,
    tokens,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.events.envelope import Event
    from sessionlog.sources.find_places import Template
    from sessionlog.sources.fold_events import EventFold

__all__ = [
    "LOG_SUFFIXES",
    "MAIN",
    "SUB_AGENT",
    "UNKNOWN",
    "At",
    "BadNumber",
    "Compaction",
    "Content",
    "CopyRank",
    "Json",
    "Limit",
    "MoreInput",
    "Place",
    "Problem",
    "Prompt",
    "PromptPart",
    "RateLimit",
    "Request",
    "Response",
    "Retention",
    "Role",
    "SentRequest",
    "Session",
    "Source",
    "Status",
    "Step",
    "Steps",
    "Text",
    "TokenUsage",
    "Tokens",
    "ToolCall",
    "ToolResult",
    "Totals",
    "Typed",
    "cost",
    "decode_object",
    "disjoint",
    "either",
    "fingerprint",
    "first_of",
    "first_words",
    "folder",
    "folder_of",
    "head_rows",
    "is_failure",
    "json_lines",
    "mapping",
    "measure",
    "name",
    "objects",
    "parts_of",
    "read_counts",
    "read_document",
    "read_duration",
    "read_head",
    "read_inner",
    "read_json",
    "read_object",
    "read_region",
    "read_searches",
    "read_sidecar",
    "read_speed",
    "read_tier",
    "read_time",
    "read_whole",
    "reasoning_of",
    "source",
    "stem_of",
    "text",
    "text_of",
    "tokens",
    "tool_uses",
    "walk_files",
    "whole_log",
    "with_pictures",
]

R = TypeVar("R")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

Steps = Iterator[Step]
"""What rows mean."""

LONG = 16 << 20
"""Bytes of a log from which it is scanned as it is read, so that its first event does not wait for its end."""

LOOK_AHEAD = 4 << 20
"""Bytes that the scan is ahead of the events, in which a response may get more rows."""

_BLOCKS = 16  # in which steps follow the scan: to look at each step whether it may follow costs a tenth of its time

SUB_AGENT = "sub-agent"
"""The agent's name for a sub-agent whose kind is not logged."""

_SUFFIX = re.compile(r"\.[a-z]+(\.gz|\.zst)?\Z")
_PACKED = re.compile(r"(?<=\.jsonl)\.(gz|zst)\Z")
_OBJECT = Typed(dict[str, Any])
_HEAD_LINES = 40
_LARGEST_SIDECAR = 1 << 26
_MOST_AHEAD = 32 << 20
_ROOM = LONG  # bytes of logs whose steps are in memory between a scan and the events
_ENDINGS = (".gz", ".zst")
_LARGEST_DOCUMENT = 64 << 20


class NoState(Struct):
    """The state of a source whose rows need none."""


def folder_of(path: str) -> str:
    """Return the absolute path of the folder that a log is in."""
    return os.path.dirname(files.absolute_path(path))


def stem_of(path: str) -> str:
    """Return a log's name without its suffixes."""
    return _SUFFIX.sub("", os.path.basename(path))


def read_head(path: str) -> bytes:
    """Return the first bytes of a log, unpacked. Raises what opening it raises."""
    with open_unpacked(path)[0] as file:
        return file.read(HEAD)


def read_sidecar(path: str) -> bytes:
    """Return the bytes of a small sidecar; none if it is missing or cannot be read."""
    try:
        return files.read_small(path, _LARGEST_SIDECAR) or b""
    except (LogNotReadable, OSError, ValueError):
        return b""


def read_object(path: str) -> Json:
    """Return the JSON object in a small sidecar; an empty one if it is missing or cannot be read."""
    return mapping(read_json(read_sidecar(path)))


def decode_object(typed: Typed[T], value: Any) -> tuple[T | None, str]:
    """Decode the JSON object in a text or bytes by type; return (object, "") or (None, the error)."""
    try:
        if isinstance(value, str | bytes) and len(value) > LARGE:
            flaw = too_large(value if isinstance(value, bytes) else value.encode("utf-8", "replace"))
            if flaw:
                return None, flaw
        return typed.decode(value), ""
    except (*MISFITS, TypeError):
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
    flaw = "no JSON object"
    for item in find_objects(data):
        if not isinstance(item, LineProblem):
            return typed.fit(item[0]), ""
        flaw = item.detail
    return None, flaw


def read_document(path: str) -> dict[str, Any] | Problem:
    """Return the JSON object of a log that is one document, or its problem.

    Raises:
        LogNotReadable: It cannot be opened.
    """
    content = read_whole(path)
    if isinstance(content, Problem):
        return content
    found = decode_object(_OBJECT, content)
    return Problem(path=path, kind="not_json", detail=found[1]) if found[0] is None else found[0]


def read_whole(path: str) -> bytes | Problem:
    """Return the bytes of a log that is one JSON document, or a problem if decoding it would take too much memory.

    Raises:
        LogNotReadable: It cannot be opened.
    """
    content = files.read_small(path, _LARGEST_DOCUMENT + 1)
    if content is None:
        raise LogNotReadable(f"{path}: no such file")
    if len(content) > _LARGEST_DOCUMENT:
        detail = f"a document of more than {_LARGEST_DOCUMENT >> 20} MiB is not read"
        return Problem(path=path, kind="too_large", detail=detail)
    if detail := too_large(content):
        return Problem(path=path, kind="too_large", detail=detail, length=len(content))
    return content


class Lines(Protocol):
    """How far a log has been read: lines, and the byte offset after the last of them."""

    @property
    def line(self) -> int: ...
    @property
    def offset(self) -> int: ...


class Reading(Protocol[R_co]):
    """An open log; `lines` is needed only if scans can be resumed."""

    @property
    def lines(self) -> Lines: ...
    def rows(self) -> Iterator[R_co | Problem]: ...
    def last(self) -> Iterator[R_co | Problem]: ...
    def place(self) -> tuple[str, int, int]: ...
    def close(self) -> None: ...


def buffer_of(resume: Resume | None) -> int:
    """Return how many bytes to read at once: without a state to go on from, only a row or a few are wanted."""
    return ROW_BUFFER if resume is not None and not resume.state else files.BUFFER


class _LineReading(Generic[R]):
    """A JSONL log that is open."""

    def __init__(self, typed: TypedRows[R], path: str, resume: Resume | None) -> None:
        offset, line = (resume.offset, resume.line) if resume else (0, 0)
        self.lines = Rows(path, offset=offset, line=line, buffer=buffer_of(resume))
        self._typed = typed

    def rows(self) -> Iterator[R | Problem]:
        """Yield the rows of the whole lines."""
        return self._typed.read(self.lines)

    def last(self) -> Iterator[R | Problem]:
        """Yield the row of an unfinished last line."""
        return self._typed.last(self.lines)

    def place(self) -> tuple[str, int, int]:
        """The place of the present row: (a unique name, line, byte offset)."""
        return self.lines.line_key, self.lines.line, self.lines.start

    def close(self) -> None:
        self.lines.__exit__(None, None, None)


class _WholeReading(Generic[R]):
    """A log that is read whole, by a function of its source."""

    lines: Lines

    def __init__(self, read: Callable[[str], Iterable[R | Problem]], path: str) -> None:
        self._read, self._path = read, path
        self._number = 0
        self._row: R | Problem | None = None

    def rows(self) -> Iterator[R | Problem]:
        """Yield its rows."""
        for number, row in enumerate(self._read(self._path)):
            self._number, self._row = number, row
            yield row

    def last(self) -> Iterator[R | Problem]:
        """There is no unfinished line."""
        return iter(())

    def place(self) -> tuple[str, int, int]:
        """The place of the present row, which may have an attribute `line`."""
        return f"{os.path.basename(self._path)}@{self._number}", getattr(self._row, "line", 0), 0

    def close(self) -> None:
        """Nothing is held open."""


class LogFormat(Struct, Generic[R], frozen=True):
    """How the rows of a log are read; mostly made by `json_lines` or `whole_log`.

    Attributes:
        open: (path, where to resume or None) → the open log.
        can_resume: A scan can resume where an earlier one has ended.
        of_session: Session id → the format that reads only the rows of that session; None = all rows are read.
    """

    open: Callable[[str, Resume | None], Reading[R]]
    can_resume: bool
    of_session: Callable[[str], LogFormat[R]] | None = None


def json_lines(row: type[R], *, row_start: bytes = b"", can_resume: bool = True) -> LogFormat[R]:
    """Describe a JSONL log by the Struct of its rows; `row_start` begins each row, to find rows after torn ones."""
    typed = TypedRows(row, row_start=row_start)
    return LogFormat(lambda path, resume: _LineReading(typed, path, resume), can_resume)


def whole_log(
    read: Callable[[str], Iterable[R | Problem]],
    read_session: Callable[[str, str], Iterable[R | Problem]] | None = None,
) -> LogFormat[R]:
    """Describe any other log (a database, a JSON document) by a function that yields all its rows.

    Where a log holds many sessions, `read_session` may yield the rows of one alone, given its id; then every response
    has to have a key, since the numbers of rows differ.
    """
    of_session = None
    if read_session is not None:
        of_session = lambda session_id: whole_log(lambda path: read_session(path, session_id))  # noqa: E731 - as `open`
    return LogFormat(lambda path, _: _WholeReading(read, path), False, of_session)


def either(is_first: Callable[[str], bool], first: LogFormat[Any], other: LogFormat[Any]) -> LogFormat[Any]:
    """Describe logs of two formats; a function of the path chooses between them. Only the first holds many sessions."""
    of_session = first.of_session
    return LogFormat(
        lambda path, resume: (first if is_first(path) else other).open(path, resume),
        other.can_resume,
        of_session and (lambda session_id: either(is_first, of_session(session_id), other)),
    )


def source(
    *,
    id: str,  # noqa: A002 - the field's name
    title: str,
    places: Iterable[Template],
    logs: str | tuple[str, ...] | Callable[[str], bool],
    rows: LogFormat[R],
    steps: Callable[[R, Any], Iterable[Step]],
    state: Callable[[str], Any] | None = None,
    state_type: type[Any] = NoState,
    finish: Callable[[Any], Iterable[Step]] = lambda _: (),
    complete: Callable[[ScannedSession, Any, int, bool], ScannedSession] = lambda session, *_: session,
    basis: Callable[[Any], Any] = lambda _: True,
    gives_last_again: bool = False,
    full_rows: LogFormat[Any] | None = None,
    is_row: Callable[[Json], bool] | None = None,
    recognises: Callable[[str, bytes], bool] | None = None,
    list_logs: Callable[[str], Iterable[str | Problem]] | None = None,
    not_logs: str = "",
    session_of: Callable[[str], str] = stem_of,
    subagent_of: Callable[[str], str] = lambda _: "",
    name_sessions: Callable[[str], Iterable[str]] | None = None,
    is_apart: bool = False,
    harness: str = "",
    has_totals: bool = False,
    parser_version: int = 1,
    retention: Callable[[Env], Retention | None] = lambda _: None,
    sidecars: Callable[[str], Iterable[str]] = lambda _: (),
    subagent_logs: Callable[[str], Iterable[str]] = lambda _: (),
    parent_of: Callable[[str], Parent | None] = lambda _: None,
    folders: Callable[[str], Iterable[str]] = folders_below,
    caveat: str = "",
) -> Source:
    """Make a source of its description.

    Args:
        id: Its id in reports.
        title: Its full name.
        places: Where its logs are (`find_places`), in order of preference.
        logs: The names of log files: patterns (`*.jsonl` includes packed ones), or a function of the name.
        rows: How a log's rows are read: `json_lines(Row)`, or `whole_log(function)`.
        steps: (row, state) → what the row means. The only place that knows the format. Never raises for bad data.
        state: path → the state that `steps` keeps from row to row, at the log's beginning; None = `state_type()`.
        state_type: The type of that, a Struct.
        finish: state → what the end of the log means.
        complete: (session, state, milliseconds of activity after its last record, whether the log was read from its
            start) → the session, with what is known only at the end of the log.
        basis: state → a value that the records so far depend on. A resumed scan that ends with another value reads the
            log from its start; None if a later scan cannot resume here.
        gives_last_again: `complete` changes the last record by what came after it, so a resumed scan returns it again,
            in place of the earlier one.
        full_rows: How the rows are read for replay, context and export, with what reports do not need (`PromptPart`,
            `SentRequest`); None = as `rows`. `steps` gets both.
        is_row: Whether a decoded object is a row of this agent; its logs are recognised by their first rows.
        recognises: (path, first bytes) → whether this is one of its logs; in place of `is_row`.
        list_logs: A place → its logs; in place of `logs`.
        not_logs: A regular expression of files that are not logs, searched in their paths below a place.
        session_of: path → the session that steps belong to before a `Session` step names one.
        subagent_of: path → the name of a sub-agent's log within its session; "" for a session's own log.
        name_sessions: path → the sessions in a log, read separately if there are several; None = the one of
            `session_of`, followed by the name of `subagent_of`.
        is_apart: A log holds many sessions, each read separately.
        harness: The agent program's name in reports; "" = the id.
        has_totals: `steps` yields `Totals`.
        parser_version: To be raised when a scan gives other numbers for the same bytes, or the state's fields change.
        retention: env → how long logs are kept.
        sidecars: path → other files that a scan of this log reads.
        subagent_logs: path → the logs of its session's sub-agents: their answers are read with the session.
        parent_of: path → the session whose conversation the log continues; None if the log holds all of it.
        folders: A place → the folders in which a log could be new.
        caveat: What its logs do not hold, for users.

    Raises:
        TypeError: `state` without `state_type`, by which a later scan decodes it.
    """
    if state is not None and state_type is NoState:
        raise TypeError(f"{id}: `state` needs `state_type`, the Struct that it returns: it is stored between scans")

    def beside(path: str) -> Iterable[str]:
        return () if subagent_of(path) else subagent_logs(path)

    places = tuple(places)
    names = name_sessions or (lambda path: ["/".join(filter(None, (session_of(path), subagent_of(path))))])
    decode = msgspec.msgpack.Decoder(tuple[FoldState, state_type]).decode  # type: ignore[valid-type]
    decode_state = msgspec.msgpack.Decoder(state_type).decode
    driver = _Driver(
        id, rows, steps, state or (lambda _: state_type()), decode, finish, complete, basis, gives_last_again,
        session_of, names, beside, is_apart, harness, has_totals, full_rows or rows, decode_state,
    )  # fmt: skip
    if recognises is None:
        assert is_row is not None, f"{id}: without `is_row` or `recognises` its logs cannot be recognised"
        recognises = _recogniser(is_row)
    return Source(
        id=id,
        title=title,
        parser_version=parser_version,
        locate=lambda env: expand_places(env, places),
        list_logs=list_logs or _lister(logs, not_logs),
        recognises=recognises,
        scan=driver.scan,
        read=driver.read,
        check=driver.check,
        read_tail=driver.read_tail,
        read_steps=driver.read_steps,
        name_sessions=names,
        retention=retention,
        sidecars=sidecars,
        subagent_logs=beside,
        parent_of=parent_of,
        caveat=caveat,
        folders=folders,
    )


def _lister(
    logs: str | tuple[str, ...] | Callable[[str], bool], not_logs: str
) -> Callable[[str], Iterable[str | Problem]]:
    is_log = logs if callable(logs) else _name_matcher(logs)

    def listed(place: str) -> Iterator[str | Problem]:
        for item in walk_files([place], is_log) if files.exists(place) else ():
            if isinstance(item, Problem) or not not_logs or not re.search(not_logs, item[len(place) :]):
                yield item

    return listed


def _name_matcher(logs: str | tuple[str, ...]) -> Callable[[str], bool]:
    patterns = (logs,) if isinstance(logs, str) else logs
    return lambda name: any(fnmatchcase(_PACKED.sub("", name), pattern) for pattern in patterns)


def head_rows(head: bytes) -> Iterator[Json]:
    """Yield the JSON objects in the first lines of a log, without anything else in them."""
    for line in head.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]:
        for item in find_objects(line):
            if not isinstance(item, LineProblem):
                yield item[0]


def _recogniser(is_row: Callable[[Json], bool]) -> Callable[[str, bytes], bool]:
    """Return a function that searches the first lines for a row of the agent's."""
    return lambda _, head: any(map(is_row, head_rows(head)))


class _Driver(Struct, Generic[R], frozen=True):
    """Reads one source's logs; the fields are the arguments of `source`."""

    _id: str
    _rows: LogFormat[R]
    _steps: Callable[[R, Any], Iterable[Step]]
    _new_state: Callable[[str], Any]
    _decode: Callable[[bytes], tuple[FoldState, Any]]
    _finish: Callable[[Any], Iterable[Step]]
    _complete: Callable[[ScannedSession, Any, int, bool], ScannedSession]
    _basis: Callable[[Any], Any]
    _gives_last_again: bool
    _session_of: Callable[[str], str]
    _name_sessions: Callable[[str], Iterable[str]]
    _subagent_logs: Callable[[str], Iterable[str]]
    _is_apart: bool
    _harness: str
    _has_totals: bool
    _full_rows: LogFormat[Any]
    _decode_state: Callable[[bytes], Any]

    def scan(self, path: str, resume: Resume | None) -> LogScan:
        """Scan a log for reports, or what was appended to it.

        Raises:
            LogNotReadable: It cannot be opened.
            MissingExtra: A packed file without a decoder.
        """
        return self._scan(path, resume, self._rows)

    def _scan(self, path: str, resume: Resume | None, rows: LogFormat[R]) -> LogScan:
        fold_state, state = (None, self._new_state(path)) if resume is None else self._decode(resume.state)
        basis = self._basis(state)
        log = rows.open(path, resume)
        try:
            fold = UsageFold(
                self._id, path, self._session_of(path), place=log.place, harness=self._harness,
                has_totals=self._has_totals, state=fold_state,
            )  # fmt: skip
            replaced_count = fold.give_last_again() if self._gives_last_again else 0
            self._feed(fold, log.rows(), state)
            kept = self._resume(log, fold, state)
            self._feed(fold, log.last(), state)
            for step in self._finish(state):
                fold.take[type(step)](step)
        finally:
            log.close()
        reached = self._basis(state)
        if resume is not None and reached != basis:
            return replace(self.scan(path, None), full_rescan=True)
        is_whole = resume is None
        sessions = fold.finish(lambda session, idle_ms: self._complete(session, state, idle_ms, is_whole))
        fold.take.clear()  # its functions hold the fold: without the cycle it is freed at once
        return LogScan(
            sessions=sessions,
            problems=fold.findings.problems,
            limits=tuple(fold.limits.values()),
            resume=None if fold.is_provisional or reached is None else kept,
            replaced_count=replaced_count,
        )

    def _feed(self, fold: UsageFold, rows: Iterator[R | Problem], state: Any) -> None:
        steps, take = self._steps, fold.take
        for row in rows:
            if type(row) is Problem:
                fold.findings.note(row)
                continue
            for step in steps(row, state):  # type: ignore[arg-type]
                take[type(step)](step)

    def _resume(self, log: Any, fold: UsageFold, state: Any) -> Resume | None:
        if not self._rows.can_resume or isinstance(log, _WholeReading):
            return None
        try:
            encoded = msgspec.msgpack.encode((fold.state(), state))
        except (TypeError, ValueError, OverflowError, RecursionError):
            return None
        return Resume(offset=log.lines.offset, line=log.lines.line, state=encoded)

    def read(self, path: str, session_id: str | None = None) -> Iterator[Event | Problem]:
        """Yield a session of a log as events; None = its first. Raises as `scan` does.

        A log of one session may hold rows of others (those that it was forked from): with another's id only these rows
        are read, otherwise all.
        """
        return self._read(path, session_id, Findings())

    def check(self, path: str) -> Iterator[Event | Problem | Problems]:
        """Yield all sessions of a log as events, and the problems of a scan. Raises as `scan` does."""
        names = list(self._name_sessions(path))
        if len(names) == 1 and self._rows.of_session is None:  # what is read is all of the log
            findings = Findings()
            yield from self._read(path, names[0], findings)
            yield findings.problems
        else:
            yield self.scan(path, None).problems
            for name in names:
                yield from self.read(path, name)

    def _read(self, path: str, session_id: str | None, findings: Findings) -> Iterator[Event | Problem]:
        """Yield a session of a log as `read` does; `findings` gets the problems that a scan has."""
        from sessionlog.sources.fold_events import EventFold

        rows = self._full_rows
        if rows.of_session is not None:
            session_id = session_id or next(iter(self._name_sessions(path)), "")
            rows = rows.of_session(session_id) if session_id else rows
        elif not self._is_apart and session_id in {None, self._session_of(path)} and self._is_long(path):
            yield from self._read_long(path, findings)
            return
        sessions, steps, room = self._scan_and_keep(path, rows, _ROOM, findings)
        own, known = self._session_of(path), [session.session_id for session in sessions]
        named = () if self._is_apart else tuple(self._name_sessions(path))
        is_apart = self._is_apart or len(named) > 1
        if session_id is None and is_apart and known:
            session_id = known[0]
        is_other = session_id is not None and session_id in known and session_id != own
        only = session_id if is_other or is_apart else None
        if self._rows.of_session is not None and session_id not in known and known:
            only = known[0]  # a sub-agent's log has its own name, but its steps belong to its parent's session
        is_known = session_id is None or self._is_apart or session_id in {own, *known}
        if not is_known and session_id not in named:
            return
        beside = [] if only else list(self._subagent_logs(path))
        logs = [self._read_steps(path, rows) if steps is None else steps]
        for other in beside:
            found, steps, room = self._scan_and_keep(other, rows, room, Findings())
            sessions = (*sessions, *found)
            logs.append(self._read_steps(other, rows) if steps is None else steps)
        yield from _events(EventFold(sessions, own_id=own, only=only), logs, beside)

    def _scan_and_keep(
        self, path: str, rows: LogFormat[R], room: int, findings: Findings
    ) -> tuple[Sequence[ScannedSession], list[Step | Problem] | None, int]:
        """Scan a log that is read next; return its sessions, its steps, and the room that is left.

        Room is in bytes of logs. The steps are None if they would need more of it, or if rows have no offsets.
        """
        log = rows.open(path, None)
        if not isinstance(log, _LineReading):
            log.close()
            scan = self._scan(path, None, rows)
            findings.add(scan.problems)
            return scan.sessions, None, room
        fold = UsageFold(
            self._id, path, self._session_of(path), place=log.place, harness=self._harness,
            has_totals=self._has_totals, findings=findings,
        )  # fmt: skip
        state, take = self._new_state(path), fold.take
        kept: list[Step | Problem] | None = []
        for step in self._steps_of(log, state):
            if type(step) is Problem:
                findings.note(step)
            else:
                take[type(step)](step)
            if kept is not None:
                kept.append(step)
                if log.lines.offset > room:
                    kept = None
        sessions = fold.finish(lambda session, idle_ms: self._complete(session, state, idle_ms, True))
        return sessions, kept, room if kept is None else room - log.lines.offset

    def read_tail(self, path: str, count: int) -> Iterator[Step]:
        """Yield the steps of the last rows of a log: of its last `count` bytes, or of all where rows have no offsets.

        What rows mean by those before them is lost, such as the session they belong to. Raises as `scan` does.
        """
        size = status.st_size if (status := files.stat_path(path)) is not None else 0
        is_cut = self._rows.can_resume and size > count and not path.endswith(_ENDINGS)
        log = self._rows.open(path, Resume(offset=size - count) if is_cut else None)
        state = self._new_state(path)
        try:
            for row in chain(log.rows(), log.last()):
                if not isinstance(row, Problem):  # the first row of a tail is cut, and so is one that is being written
                    yield from self._steps(row, state)
        finally:
            log.close()

    def read_steps(self, path: str, resume: Resume | None = None) -> Iterator[tuple[int, Step] | Resume]:
        """Yield all steps with the offsets of their rows; see `Source.read_steps`. Raises as `scan` does."""
        log = self._full_rows.open(path, resume)
        try:
            state = self._decode_state(resume.state) if resume is not None and resume.state else self._new_state(path)
            for row in log.rows():
                if not isinstance(row, Problem):
                    place = log.place()[2]
                    for step in self._steps(row, state):
                        yield place, step
            if self._full_rows.can_resume and not isinstance(log, _WholeReading):
                yield Resume(offset=log.lines.offset, line=log.lines.line, state=msgspec.msgpack.encode(state))
            for row in log.last():
                if not isinstance(row, Problem):
                    for step in self._steps(row, state):
                        yield log.place()[2], step
            for step in self._finish(state):
                yield log.place()[2], step
        finally:
            log.close()

    def _read_long(self, path: str, findings: Findings) -> Iterator[Event | Problem]:
        """Yield all of a long log as events; a scan runs some megabytes ahead."""
        from sessionlog.sources.fold_events import EventFold

        own, beside = self._session_of(path), list(self._subagent_logs(path))
        log = self._full_rows.open(path, None)
        usage = UsageFold(
            self._id, path, own, place=log.place, harness=self._harness, has_totals=self._has_totals, findings=findings
        )
        others = [session for other in beside for session in self.scan(other, None).sessions]
        fold = EventFold(others, own_id=own, facts=usage.facts)
        scanned = chain.from_iterable(self._scanned_ahead(log, path, usage, fold))
        yield from _events(fold, [scanned, *(self._read_steps(one, self._rows) for one in beside)], beside)

    def _scanned_ahead(
        self, log: Reading[R], path: str, usage: UsageFold, fold: EventFold
    ) -> Iterator[list[Step | Problem]]:
        """Yield the steps of a log, block by block, each block once its records are known to `fold`."""
        lines, take, size = log.lines, usage.take, LOOK_AHEAD // _BLOCKS
        ahead: deque[tuple[int, list[Step | Problem]]] = deque()  # (where the block ends, its steps)
        block: list[Step | Problem] = []
        full = size
        for step in self._steps_of(log, self._new_state(path)):
            if type(step) is Problem:
                usage.findings.note(step)
            else:
                take[type(step)](step)
            block.append(step)
            if lines.offset <= full:
                continue
            ahead.append((lines.offset, block))
            block, full = [], lines.offset + size
            while lines.offset - ahead[0][0] > LOOK_AHEAD:
                end, known = ahead.popleft()
                open_keys = usage.open_keys
                at = next((at for at, one in enumerate(known) if type(one) is Response and one.key in open_keys), None)
                if at is not None and lines.offset - end <= _MOST_AHEAD:
                    ahead.appendleft((end, known[at:]))  # it may get more rows
                    fold.know(usage.drain())
                    yield known[:at]
                    break
                if at is not None:
                    usage.close_open()
                fold.know(usage.drain())
                yield known
        usage.close_open()
        fold.know(usage.drain())
        yield from (known for _, known in ahead)
        yield block

    def _is_long(self, path: str) -> bool:
        """Whether a log is read line by line, and too long to be scanned before its first event."""
        status = files.stat_path(path)
        if status is None or status.st_size <= (LONG // 16 if path.endswith(_ENDINGS) else LONG):
            return False
        log = self._rows.open(path, None)
        log.close()
        return isinstance(log, _LineReading)

    def _read_steps(self, path: str, rows: LogFormat[R]) -> Iterator[Step | Problem]:
        """Yield the steps and problems of a log."""
        yield from self._steps_of(rows.open(path, None), self._new_state(path))

    def _steps_of(self, log: Reading[R], state: Any) -> Iterator[Step | Problem]:
        """Yield the steps and problems of an open log, and close it; responses without a key get their place as one."""
        steps = self._steps
        try:
            for row in chain(log.rows(), log.last()):
                if type(row) is Problem:
                    yield row
                    continue
                for step in steps(row, state):  # type: ignore[arg-type]
                    if type(step) is Response and not step.key:
                        yield replace(step, key=log.place()[0])  # a source may return one object for several rows
                    else:
                        yield step
            yield from self._finish(state)
        finally:
            log.close()


def _events(
    fold: EventFold, logs: Sequence[Iterable[Step | Problem]], beside: Sequence[str]
) -> Iterator[Event | Problem]:
    """Yield the events of a log's steps, the first of `logs`, with those of its sub-agents' logs between them."""
    if not beside:
        for step in logs[0]:
            if type(step) is Problem:
                yield step
            elif events := fold.take(step):  # type: ignore[arg-type]
                yield from events
    else:
        for _, number, step in _merged(logs):
            if isinstance(step, Problem):
                if not number:
                    yield step
            elif number:
                fold.take_beside(beside[number - 1], step)
            else:
                yield from fold.take(step)
    yield from fold.end()


def _merged(logs: Sequence[Iterable[Step | Problem]]) -> Iterator[tuple[int, int, Step | Problem]]:
    """Yield (time, number of the log, step) in the order of time; a step without a time has that of the one before."""
    from heapq import merge

    def timed(number: int, steps: Iterable[Step | Problem]) -> Iterator[tuple[int, int, Step | Problem]]:
        time_ns = 0
        for step in steps:
            time_ns = getattr(step, "time", None) or time_ns
            yield time_ns, number, step

    return merge(*(timed(number, steps) for number, steps in enumerate(logs)), key=lambda one: one[0])
