"""native: sessionlog's own logs, and by dialect those of the Go original.

Where: `$SESSIONLOG_DIR`, else `$XDG_STATE_HOME/sessionlog/sessions`; any file or folder given by path. Shape: one JSONL
file per session, `{"session_id","seq","type","ts","data"}` a line; the session's id is the file name. Traps: ids
inside may differ, `seq` may repeat, a file may have two starts (the first counts) or two ends (the last counts), no end
(killed, or running), totals but no responses, responses after the end.

The scan decodes only lines that matter (see `native_lane`), and goes on where it ended in a log of ours that has grown
(see `native_state`); packed logs do not grow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.envelope import Event
from sessionlog.reader.stream import EventStream, is_young, read_events
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_logs
from sessionlog.settings import session_directory
from sessionlog.sources.native_lane import Blocks, Lines
from sessionlog.sources.native_session import SessionScan
from sessionlog.sources.protocol import HEAD, Env, LogScan, Resume, Source

ID = "native"
MAX_SCAN_LINE = 64 << 20

_ENVELOPE = re.compile(rb'"(?:session_id|seq)"\s*:', re.IGNORECASE)
_TORN_FIRST = re.compile(rb'\s*\{\s*"session_id"\s*:[^\n]*\Z', re.IGNORECASE)
_SUFFIX = re.compile(r"\.jsonl(\.gz|\.zst)?\Z")


def session_id_of(path: str) -> str:
    """Return the session's id: the file name without its log suffix."""
    return _SUFFIX.sub("", os.path.basename(path))


def locate(env: Env) -> Iterator[str]:
    """Where the logger writes."""
    yield session_directory(env)


def list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the logs in a folder, one per session: beside `x.jsonl`, a packed `x.jsonl.gz` is its copy."""
    seen: set[tuple[str, str]] = set()
    for path in walk_logs([place]):
        if not isinstance(path, Problem):
            key = (os.path.dirname(path), session_id_of(path))
            if key in seen:
                continue
            seen.add(key)
        yield path


def recognises(path: str, head: bytes) -> bool:
    """A line with the envelope's keys; whatever else stands in the file."""
    ours = b'"type"' in head.lower() and _ENVELOPE.search(head) is not None
    return path.endswith(LOG_SUFFIXES) and (ours or _TORN_FIRST.match(head) is not None)


def holds_events(path: str) -> bool:
    """Whether a file that a person names is one of ours, whatever it is called."""
    try:
        file, _ = open_unpacked(path)
        with file:
            return _ENVELOPE.search(file.read(HEAD) or b"") is not None
    except (LogNotReadable, MissingExtra):
        return False


def scan(path: str, resume: Resume | None) -> LogScan:
    """Read one log for reports, or what was appended to it; all of it if that changes what was given before.

    Raises:
        LogNotReadable: It cannot be opened.
        MissingExtra: A .zst file without a decoder.
    """
    found, overturned = _scan(path, resume)
    return replace(_scan(path, None)[0], full_rescan=True) if overturned else found


def _scan(path: str, resume: Resume | None) -> tuple[LogScan, bool]:
    """Scan from a place on; the second value tells that the log has to be read from its start instead."""
    file, unpacked = open_unpacked(path)
    begun = resume or Resume(offset=0)
    session = SessionScan(path, session_id_of(path), begun.state if resume is not None else None)
    lines = Lines(session)
    told = False  # by an unfinished last line, which is read again
    with file:
        if resume is not None:
            file.seek(resume.offset)
        stream = EventStream(
            path, max_line=MAX_SCAN_LINE, line=begun.line, offset=begun.offset, passes_over=lines.passes_over
        )
        Blocks(stream, session, lines).read(file)
        place = Resume(offset=stream.offset, line=stream.line)
        for item in stream.finish(young=not stream.between and is_young(path)):
            told |= isinstance(item, Event)
            lines.take(item)
        if unpacked is not None and unpacked.failure is not None:
            offset, detail = stream.offset, unpacked.failure
            lines.take(Problem(path=path, line=stream.line, offset=offset, kind="bad_compression", detail=detail))
    whole = session.finish()
    state = None if told or unpacked is not None else session.state()
    return LogScan(
        sessions=(whole,) if whole is not None else (),
        problems=session.findings.problems,
        resume=None if state is None else replace(place, state=state),
        replaced_count=session.replaced_count,
    ), session.overturned


def read(path: str, session_id: str | None) -> Iterator[Event | Problem]:  # noqa: ARG001 - a file is a session
    """The events as they are."""
    return read_events(path)


def name_sessions(path: str) -> Iterator[str]:
    """The file's name."""
    yield session_id_of(path)


SOURCE = Source(
    id=ID,
    title="sessionlog",
    parser=1,
    locate=locate,
    list_logs=list_logs,
    recognises=recognises,
    scan=scan,
    read=read,
    name_sessions=name_sessions,
)
