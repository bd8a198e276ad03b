"""LoggedSession: a session read from its log alone.

The log is only read. Redacted texts stay redacted. A line that a killed writer left unfinished is no damage, even if a
later writer appended after it; any other damage raises InvalidHistory, because the lost content is unknown.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sessionlog.archive.find import open_session
from sessionlog.conversation.history.rules import is_valid, repair_history
from sessionlog.conversation.log.fold import Fold, TurnState
from sessionlog.errors import InvalidHistory, InvalidSessionId, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.limits import MAX_LINE
from sessionlog.events.tokens import TokenUsage
from sessionlog.files import stat_path
from sessionlog.logger.ids import check_session_id
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.logger.totals import Totals
from sessionlog.messages.message import Message
from sessionlog.reader.stream import EventStream, is_young
from sessionlog.reader.unpack import open_unpacked
from sessionlog.settings import session_directory
from sessionlog.sources.find import name_of_session
from sessionlog.sources.native import SOURCE
from sessionlog.sources.protocol import Env, Log
from sessionlog.transcript.inherited import NOT_LOGGED, read_session

_HEAD = b'{"session_id":'
_OPEN_END = re.compile(r"(?:\\u[0-9a-fA-F]{0,4}|-|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|\d\.|\d[eE][+-]?)\Z")
"""An unfinished JSON value at the end of a line, other than an unterminated string."""

Json = Any
_HIDES_NOTHING = frozenset({"bad_number"})
"""Damage that loses no message, such as an invalid token count."""

_PACKED = re.compile(r"\.jsonl\.(gz|zst)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSession:
    """A session as read from its log.

    Attributes:
        path: The log.
        source: The id of the agent that wrote it; `native` is ours.
        session_id: The session.
        messages: The history; a partial answer is marked.
        system: The system text.
        usage: Tokens of all answers.
        requests: The number of answers without an error.
        turns: The number of user prompts sent to the agent, without inherited ones.
        state: `new` (no turn yet), `complete`, `failed`, `cancelled`, or `interrupted` (the log ends with a request
            without a whole answer, or with calls without a result).
        is_unanswered: The last message is a prompt without an answer: its request failed or was interrupted.
        parent: The fork point `{"session", "path", "seq"}`; None without a parent.
        start_ns: The start in nanoseconds since 1970; None where the log has no times.
        last_seq: The number of the last event that was read.
        problems: Damage that was skipped, and notes.
        logged: The history exactly as the log counts it, before `messages` was repaired.
        inherited: The message objects that a fork inherited; they are no turns of its own.
        earlier: The number of messages in `logged` that the next request need not repeat.
        size: The log's length in bytes when it was read.
        run: Totals since the last session.end; None if there were no answers.
        closed: Why the log cannot be appended to; empty if it can.
    """

    path: str
    source: str
    session_id: str
    messages: tuple[Message, ...]
    system: str | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    requests: int = 0
    turns: int = 0
    state: TurnState = "new"
    is_unanswered: bool = False
    parent: Mapping[str, Json] | None = None
    start_ns: int | None = None
    last_seq: int | None = None
    problems: tuple[Problem, ...] = ()
    logged: tuple[Message, ...] = field(default=(), repr=False)
    inherited: tuple[Message, ...] = field(default=(), compare=False, repr=False)
    earlier: int = 0
    size: int = field(default=0, compare=False, repr=False)
    run: Totals | None = field(default=None, compare=False, repr=False)
    closed: str = ""

    def as_parent(self) -> dict[str, Json]:
        """Return the `parent` field for the log of a fork."""
        return {"session": self.session_id, "path": self.path, "seq": self.last_seq}


def find_logged_session(
    target: str | os.PathLike[str],
    *,
    directory: str | os.PathLike[str] | None = None,
    env: Env | None = None,
    at: int | None = None,
    skip_damage: bool = False,
) -> LoggedSession:
    """Read a session from its log; packed and archived logs and those of other agents are read as well.

    Args:
        target: A path, or a session id, its first or its last characters.
        directory: The folder of our own sessions, instead of the default.
        env: Environment variables that locate the logs; None uses `os.environ`.
        at: The number (`seq`) of the last event to read; None reads all.
        skip_damage: Skip what cannot be read; the history may lack messages.

    Raises:
        LogNotReadable: No log matches, or it cannot be read.
        AmbiguousSession: Several sessions match.
        InvalidHistory: The log is damaged, holds an invalid message, or lacks messages that it refers to.
        LookupError: No event, or several, have the number `at`.
    """
    known: Env = os.environ if env is None else env
    folder = session_directory(known) if directory is None else os.fspath(directory)
    with open_session(os.fspath(target), folder, known) as (log, session_id, entry):
        shown = log.path if entry is None else entry.path
        found = _fold(log, shown, session_id, at, skip_damage=skip_damage)
        return found if entry is None else replace(found, closed=f"{shown} is in the archive only")


def read_logged_session(path: str, *, skip_damage: bool = False) -> LoggedSession:
    """Read one of our own logs; see `find_logged_session`."""
    return _fold(Log(source=SOURCE, path=path), path, None, None, skip_damage=skip_damage)


def open_log(logged: LoggedSession, **options: Any) -> SessionLogger:
    """Return a logger that appends to the log of a session.

    Args:
        logged: The session.
        options: As for `SessionLogger`.

    Raises:
        InvalidHistory: The log is packed, archived or another agent's.
    """
    if logged.closed:
        raise InvalidHistory(f"{logged.closed}; Session.fork_from starts a new session from it")
    path = os.path.realpath(logged.path)
    return SessionLogger(os.path.dirname(path), _stem(path), **options)


def _fold(log: Log, shown: str, session_id: str | None, at: int | None, *, skip_damage: bool) -> LoggedSession:
    """Fold a log; `shown` is the path for messages, where `log.path` is a temporary unpacked copy."""
    is_native, status = log.source.id == SOURCE.id, stat_path(log.path)
    fold, problems = Fold(own=is_native), list[Problem]()
    found: list[str] = []  # places of events with the number `at`
    numbers: tuple[int, ...] = ()  # the lowest and the highest number
    for item, place, cut in _read_native(log.path, shown) if is_native else _read_foreign(log, shown, session_id):
        if at is not None and isinstance(item, Event) and item.seq != NOT_LOGGED:
            numbers = min((item.seq, *numbers)), max((item.seq, *numbers))
            found += [place] if item.seq == at else []
        if found and found != [place]:
            continue  # read on only to find a second event of this number
        if isinstance(item, Event):
            fold.apply(item, place)
            problems += [_gap(item, shown, place)] if item.type == "log.gap" else []
        elif item.severity == "damage" and not (cut or skip_damage) and item.kind not in _HIDES_NOTHING:
            raise InvalidHistory(
                f"{item}; its content is lost: `sessionlog check --repair` moves it aside, skip_damage=True skips it, "
                "fork_from(…, at=SEQ) continues from an event before it"
            )
        else:
            problems.append(item)
    if at is not None and len(found) != 1:
        raise LookupError(_not_one(shown, at, found, numbers))
    logged = messages = fold.messages()
    if messages and messages[0].role == "system" and messages[0].text == fold.system and not fold.has_changes:
        messages = messages[1:]  # the session's own system text
    if not is_valid(messages):
        detail = "tool calls and results that do not match were left out"
        problems.append(Problem(path=shown, line=0, offset=0, kind="bad_payload", detail=detail, severity="info"))
        messages = repair_history(messages)
    return LoggedSession(
        path=shown,
        source=log.source.id,
        session_id=name_of_session(log, session_id),
        messages=tuple(messages),
        system=fold.system,
        usage=fold.usage,
        requests=fold.requests,
        turns=fold.turns,
        state=fold.state,
        is_unanswered=bool(messages) and fold.is_unanswered,
        parent=fold.parent,
        start_ns=fold.start_ns,
        last_seq=fold.last_seq,
        problems=tuple(problems),
        logged=tuple(logged),
        inherited=tuple(fold.inherited),
        earlier=fold.earlier,
        size=0 if status is None else status.st_size,  # from before reading: later bytes were not read
        run=fold.run if fold.run.responses else None,
        closed=_why_closed(log, fold),
    )


def _read_native(path: str, shown: str) -> Iterator[tuple[Event | Problem, str, bool]]:
    """Yield (event or problem, its place, whether it is an unfinished line) of one of our logs."""
    file, unpacked = open_unpacked(path)
    stream = EventStream(shown, max_line=MAX_LINE)
    start, before = 0, b""  # the reader may report an object over several lines only at the next line
    with file:
        while piece := file.readline(MAX_LINE + 1):
            for item in stream.feed_bytes(piece):
                torn = isinstance(item, Problem) and is_unfinished(item, before + piece, start - len(before))
                yield item, f"{shown}:{stream.line}", torn
            start, before = start + len(piece), piece
        for item in stream.finish(young=is_young(path)):
            torn = isinstance(item, Problem) and item.kind == "torn_tail"
            yield item, f"{shown}:{stream.line + 1}", torn
        if unpacked is not None and unpacked.failure is not None:
            line, offset, detail = stream.line, stream.offset, unpacked.failure
            problem = Problem(path=shown, line=line, offset=offset, kind="bad_compression", detail=detail)
            yield problem, f"{shown}:{line}", False


def _read_foreign(log: Log, shown: str, session_id: str | None) -> Iterator[tuple[Event | Problem, str, bool]]:
    for item in read_session(log, session_id):
        place = f"{shown} event {item.seq}" if isinstance(item, Event) else shown
        yield item, place, isinstance(item, Problem) and item.kind == "torn_tail"


def _gap(event: Event, path: str, place: str) -> Problem:
    """A `log.gap` as a problem: events that were never written. Requests that need them fail on their own."""
    data = event.data if isinstance(event.data, Mapping) else {}
    line = place.rpartition(":")[2]
    detail = f"{data.get('events', 'some')} events were not recorded: {data.get('reason', 'unknown')}"
    number = int(line) if line.isdigit() else 0
    return Problem(path=path, line=number, offset=0, kind="seq_gap", detail=detail, severity="info")


def _why_closed(log: Log, fold: Fold) -> str:
    """Why a session cannot append to a log; empty if it can."""
    path = log.path
    if log.source.id != SOURCE.id:
        return f"{path} is {log.source.id}'s own log"
    if _PACKED.search(path):
        return f"{path} is packed and closed"
    if not fold.is_ours and fold.last_seq is not None:
        return f"{path} was written by another program, which counts tokens differently"
    real = os.path.realpath(path)
    try:
        check_session_id(_stem(real))
    except InvalidSessionId as error:
        return f"{path}: its name is no session id: {error}"
    return "" if real.endswith(".jsonl") else f"{path}: a log's name has to end in .jsonl"


def _not_one(path: str, at: int, found: list[str], numbers: tuple[int, ...]) -> str:
    if not found:
        shown = "`sessionlog replay --json` shows them"
        there = f"there are {numbers[0]} to {numbers[1]}, {shown}" if numbers else "there are no events"
        return f"{path}: no event has seq {at}; {there}"
    return f"{path}: {len(found)} events have seq {at}: {', '.join(found[:8])}"


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def is_unfinished(problem: Problem, line: bytes, start: int) -> bool:
    """Whether the problem is an event cut short at the end of its line, which begins at offset `start`.

    A killed writer leaves such a line, and no event in it was acknowledged. A line damaged later is invalid before its
    end; only damage to its last characters, or to the end of its last string, looks like a torn line.
    """
    if problem.kind != "not_json":
        return False
    text = line[problem.offset - start :][: problem.length].rstrip(b"\r\n")
    if not (text.startswith(_HEAD) or _HEAD.startswith(text)):
        return False
    decoded = text.decode("utf-8", "replace")
    try:
        json.loads(decoded)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string") or error.pos >= len(decoded):
            return True
        found = _OPEN_END.search(decoded)
        return found is not None and error.pos >= found.start()
    except RecursionError:
        return False
    return False
