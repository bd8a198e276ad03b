"""native: sessionlog's own logs, and by dialect those of the Go original.

Where: `$SESSIONLOG_DIR`, else `$XDG_STATE_HOME/sessionlog/sessions`; any file or folder given by path. Shape: one JSONL
file per session, `{"session_id","seq","type","ts","data"}` a line; the session's id is the file name. Traps: ids
inside may differ, `seq` may repeat, a file may have two starts (the first counts) or two ends (the last counts), no end
(killed, or running), totals but no responses, responses after the end.

The scan decodes only lines that matter. A line whose canonical head proves another type is passed over, which needs one
search in it and a look at its end: a second event glued to it by a torn write would otherwise vanish, and so would the
news that it was torn.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.decode import decode_line
from sessionlog.events.envelope import Event
from sessionlog.events.times import parse_time
from sessionlog.reader.stream import EventStream, is_young, read_events
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_logs
from sessionlog.settings import session_directory
from sessionlog.sources.native_session import SessionScan
from sessionlog.sources.protocol import HEAD, Env, LogScan, Resume, Source

ID = "native"
MAX_SCAN_LINE = 64 << 20

_HEAD = re.compile(
    rb'\{"session_id":"[^"\\]*","seq":\d+,"type":"(llm\.request|(?!session\.|llm\.response|tool\.call|rejected_override)[a-z_.]+)",'
    rb'"ts":"([0-9T:.\-+Z]+)",'
)
_MODEL_FIRST = re.compile(
    rb'\{"session_id":"[^"\\]*","seq":\d+,"type":"llm\.request","ts":"[^"\\]*","data":\{"model":"([^"\\]+)",'
)
_ANOTHER = b'"session_id"'  # inside a text its quotes are escaped
_WHOLE = (b"}\n", b"}\r\n")
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
            return _ENVELOPE.search(file.read(HEAD)) is not None
    except (LogNotReadable, MissingExtra):
        return False


def scan(path: str, resume: Resume | None) -> LogScan:  # noqa: ARG001 - what an end says of its run needs all of it
    """Read one log for reports, always whole: what an end reports beyond its responses needs them all."""
    reader = _Lines(path)
    file, unpacked = open_unpacked(path)
    with file:
        stream = EventStream(path, max_line=MAX_SCAN_LINE, passes_over=reader.passes_over)
        for item in stream.feed(file):
            reader.take(item)
        for item in stream.finish(young=is_young(path)):
            reader.take(item)
        if unpacked is not None and unpacked.failure is not None:
            offset, detail = stream.offset, unpacked.failure
            reader.take(Problem(path=path, line=stream.line, offset=offset, kind="bad_compression", detail=detail))
    session = reader.session.finish()
    problems = reader.session.findings.problems
    return LogScan(sessions=(session,) if session is not None else (), problems=problems)


def read(path: str, session_id: str | None) -> Iterator[Event | Problem]:  # noqa: ARG001 - a file is a session
    """The events as they are."""
    return read_events(path)


def name_sessions(path: str) -> Iterator[str]:
    """The file's name."""
    yield session_id_of(path)


class _Lines:
    """Feeds a `SessionScan` from the lines of one file."""

    def __init__(self, path: str) -> None:
        self.session = SessionScan(path, session_id_of(path), self._request_model)
        self._request: bytes | None = None

    def passes_over(self, line: bytes) -> bool:
        """Account for a line that is surely of no interest, without decoding it."""
        match = _HEAD.match(line)
        if match is None or not line.endswith(_WHOLE) or line.find(_ANOTHER, match.end()) >= 0:
            return False
        self.session.touch(parse_time(match.group(2).decode("ascii")), match.group(1).decode("ascii"))
        if match.group(1) == b"llm.request":
            self._request = line
            if self.session.wants_prompt:
                self.session.take_request(decode_line(line)[0])
        return True

    def take(self, item: Event | Problem) -> None:
        if isinstance(item, Problem):
            self.session.findings.note(item)
            return
        if item.type == "llm.request":
            self._request = item.raw
            self.session.touch(item.time_ns, item.type)
            self.session.take_request([item])
            return
        self.session.take(item)

    def _request_model(self) -> str | None:
        """The model of the last llm.request, decoded only when a response does not name what was asked for."""
        line = self._request
        if line is None:
            return None
        first = _MODEL_FIRST.match(line)
        if first is not None:
            return first.group(1).decode("utf-8", "replace")
        if b'"model"' not in line:
            return None
        for event in decode_line(line)[0]:
            model = event.data.get("model") if isinstance(event.data, Mapping) else None
            if isinstance(model, str) and model:
                return model
        return None


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
