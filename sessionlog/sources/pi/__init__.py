"""pi (pi-mono's coding agent) and the agents descended from it: omp, senpi, kimchi, prime.

Where: `sessions/--<cwd with - for />--/<time>_<uuid>.jsonl` in `$PI_CODING_AGENT_DIR`, `$PI_AGENT_DIR` (which may also
name the sessions themselves), `$PI_CODING_AGENT_SESSION_DIR`, else in `~/.pi/agent`; the descendants in
`~/.<name>/agent`. Sub-agents of omp have their logs in a folder named like their parent's file.

Shape: `{"type":"session","version":3,"id","timestamp","cwd","parentSession"?}` (omp: after a `title` row), then entries
`{"type","id","parentId","timestamp"}`: `message` (roles user, assistant, toolResult, bashExecution, custom …),
`model_change` (omp: one word `provider/model`), `compaction` and `branch_summary` (both with the `usage` of their
writing), `custom_message`, `label` …. Version 1 has no entry ids and says the model in its header.

Traps: a fork copies the entries of its parent, verbatim, so the key is the provider's `responseId` with the time of the
message (local servers number their answers anew every day), else entry id, time and tokens. Both sides of a branch were
billed. `cost.total` 0 means unknown. A `toolResult` may carry `usage` of its own: what the tool asked other models.
A session is named by its file; header ids are the same. Versions seen: 1 to 3 of the format, 2025 to October 2026.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.reader.rows import Rows
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.settings import user_home
from sessionlog.sources.gather import Findings, Gather
from sessionlog.sources.pi.head import is_openclaw, session_rows
from sessionlog.sources.pi.messages import Dialect, Row, read_stamp
from sessionlog.sources.pi.replay import MessageReplay
from sessionlog.sources.pi.scan import MessageScan
from sessionlog.sources.protocol import Env, LogScan, Resume, Source
from sessionlog.sources.record import MAIN, read_name

ID = "pi"
SUBAGENT = "sub-agent"
_DESCENDANTS = ("omp", "senpi", "kimchi", "prime")
_SUFFIX = re.compile(r"\.jsonl(\.gz|\.zst)?\Z")
_NAMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:[-.]\d+)?Z_([^/\\]+)\Z")
_NOT_SESSIONS = f"{os.sep}subagent-artifacts{os.sep}"  # streams of events, not sessions


def locate(env: Env) -> list[str]:
    """Return the folders of sessions, pi's own first."""
    home = user_home(env)
    own = [
        _sessions_in(_expand(env[name], home))
        for name in ("PI_CODING_AGENT_DIR", "PI_AGENT_DIR")
        if env.get(name, "").strip()
    ]
    if env.get("PI_CODING_AGENT_SESSION_DIR", "").strip():
        own.append(_expand(env["PI_CODING_AGENT_SESSION_DIR"], home))
    names = _DESCENDANTS if own else ("pi", *_DESCENDANTS)
    places = [*own, *(os.path.join(home, f".{name}", "agent", "sessions") for name in names)]
    return list(dict.fromkeys(places))


def _expand(path: str, home: str) -> str:
    path = path.strip()
    return home + path[1:] if path == "~" or path.startswith(("~/", "~\\")) else path


def _sessions_in(folder: str) -> str:
    inner = os.path.join(folder, "sessions")
    return inner if os.path.isdir(inner) or os.path.basename(folder.rstrip("/\\")) != "sessions" else folder


def list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the logs in a folder, or the one file that is named."""
    if not os.path.lexists(place):
        return
    for item in walk_files([place], lambda name: name.endswith(LOG_SUFFIXES)):
        if isinstance(item, Problem) or item == place or _NOT_SESSIONS not in item[len(place) :]:
            yield item


def recognises(path: str, head: bytes) -> bool:
    """Tell whether a file is a session of this family, and not one of OpenClaw's, which begin alike."""
    rows = session_rows(head)
    return bool(rows) and not is_openclaw(path, rows)


def session_of(path: str) -> tuple[str, bool]:
    """Return the session's id, and whether the file is a sub-agent's of it."""
    folder, name = os.path.split(path)
    while folder and os.path.basename(folder):
        parent = _NAMED.match(os.path.basename(folder))
        if parent:
            return parent.group(1), True
        folder = os.path.dirname(folder)
    stem = _SUFFIX.sub("", name)
    named = _NAMED.match(stem)
    return (named.group(1) if named else stem), False


def name_sessions(path: str) -> list[str]:
    """Return the id of the session that a file holds, with the place below its folder for a sub-agent's file."""
    session_id, part = session_of(path)
    if not part:
        return [session_id]
    below = path.rpartition(f"_{session_id}{os.sep}")[2]
    return [f"{session_id}/{_SUFFIX.sub('', below)}"]


def _key(row: Row, message: Row, usage: TokenUsage) -> str:
    begun_ns = read_stamp(message.get("timestamp"))
    response = read_name(message.get("responseId"))
    if response:
        return f"{response}@{begun_ns or ''}"
    entry, stored_ns = read_name(row.get("id")), read_stamp(row.get("timestamp")) or begun_ns
    if entry is None and stored_ns is None:
        return ""
    return f"{entry or ''}@{stored_ns or ''}:{usage.input}:{usage.output}:{usage.cache_read}:{usage.cache_write}"


DIALECT = Dialect(key=_key)


def scan(path: str, resume: Resume | None = None) -> LogScan:
    """Read a session's records, from where the last scan ended.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A .zst file without a decoder.
    """
    state = resume.state if resume else None
    session_id, part = session_of(path)
    gather = Gather(ID, session_id, path, state=state["gather"] if state else None)
    findings = Findings()
    messages = MessageScan(gather, findings, path, DIALECT, agent=SUBAGENT if part else MAIN)
    if state:
        messages.restore(state)

    def take(item: Row | Problem) -> None:
        if isinstance(item, Problem):
            findings.note(item)
            return
        parent = item.get("parentSession") if item.get("type") == "session" else None
        if isinstance(parent, str) and parent:
            gather.parent = session_of(parent)[0]
        messages.take(item, line=rows.line, place=rows.place)

    with Rows(path, offset=resume.offset if resume else 0, line=resume.line if resume else 0) as rows:
        for item in rows.read():
            take(item)
        ended = Resume(offset=rows.offset, line=rows.line, state=messages.state())
        for item in rows.last():
            take(item)
    sessions = (gather.session(part=part, harness=ID),) if messages.seen else ()
    return LogScan(sessions=sessions, problems=findings.problems, resume=ended)


def read(path: str, session_id: str | None = None) -> Iterator[Event | Problem]:
    """Yield the session as native events, and problems in place.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A .zst file without a decoder.
    """
    named = session_of(path)[0] if session_id in {None, *name_sessions(path)} else session_id
    replay = MessageReplay(named or "", path, DIALECT)
    with Rows(path) as rows:
        for item in rows.all():
            if isinstance(item, Problem):
                yield item
            else:
                yield from replay.take(item, line=rows.line, place=rows.place)
    yield from replay.close()


SOURCE = Source(
    id=ID, title="pi", parser=1, locate=locate, list_logs=list_logs, recognises=recognises, scan=scan, read=read,
    name_sessions=name_sessions,
)  # fmt: skip
