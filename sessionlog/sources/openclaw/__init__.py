"""OpenClaw, earlier Clawdbot and Moltbot.

Where: `$OPENCLAW_DIR` (a comma list), `$OPENCLAW_STATE_DIR`, else `~/.openclaw` (also `~/.openclaw-<profile>`),
`~/.clawdbot`, `~/.moltbot`, `~/.moldbot`. Since 2026.7: `agents/<id>/agent/openclaw-agent.sqlite`, table
`transcript_events(session_id, seq, event_json, created_at)`; since 2026.9 large rows are packed in `event_zstd`
instead, and deleted or cold sessions lie whole in `session_transcript_archives`, `session_transcript_cold_archives`.
Before, and as archives: `agents/<id>/sessions/<session>.jsonl`, `….jsonl.deleted.<time>`, `….jsonl.reset.<time>` (also
`.<hash>.zst`), `agents/<id>/session-sqlite-import-archive/….imported-<time>`; `sessions.json` is their index.

Shape: the rows of pi (see `pi.messages`), with `custom`/`model-snapshot` rows and header version 4. A row without model
was answered by the one in force, at first by that of the session's window.

Traps: the same row lies in the database, in archives, imports and forks: the key is (entry id, message time, input,
output). `*.checkpoint.<uuid>.jsonl` replay a session and `*.trajectory.jsonl` are traces: not read, nor is the
incognito database. `delivery-mirror`, `gateway-injected` and `openclaw-transcript` are no answers of a model. Cost 0
means unknown. Turns of Codex and Claude Code on OpenClaw's behalf are told better by their own logs (`superseded_by`):
rows with `idempotencyKey` `codex-app-server:<thread>:…`, and those that name no `api`, or `cli`, in sessions whose
index has `cliSessionIds`. Codex logs below `codex-home` are the codex source's. Versions seen: 2025 to 2026.9.8.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.files import open_log
from sessionlog.reader.rows import Rows
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.settings import user_home
from sessionlog.sources.gather import Findings, Gather
from sessionlog.sources.openclaw.head import ARCHIVED, is_openclaw, session_rows
from sessionlog.sources.openclaw.messages import Dialect, Model, Row, read_stamp
from sessionlog.sources.openclaw.replay import MessageReplay
from sessionlog.sources.openclaw.scan import MessageScan
from sessionlog.sources.openclaw.store import MAGIC, Known, Store, indexes_of, is_database, known_beside
from sessionlog.sources.protocol import Env, LogScan, Resume, Source
from sessionlog.sources.record import MAIN, ScannedSession, read_name

ID = "openclaw"
DATABASE = "openclaw-agent.sqlite"
SUBAGENT = "sub-agent"
_ROOTS = (".openclaw", ".clawdbot", ".moltbot", ".moldbot")
PROFILE = ".openclaw-"
"""How the folder of a profile begins."""
_INCOGNITO = "incognito-openclaw-agent.sqlite"
_NOT_LOGS = re.compile(r"\.checkpoint\.[0-9a-f-]{36}\.jsonl|\.trajectory\.jsonl", re.IGNORECASE)
_FOREIGN = re.compile(r"[/\\](?:codex-home|cli-auth)[/\\]")
_AFTER_ID = re.compile(r"\.jsonl(?:\.|\Z).*|\.imported-\d.*", re.DOTALL)
_MIRRORED = re.compile(r"codex-app-server:([^:]+):")
_MIRRORS = frozenset({"delivery-mirror", "gateway-injected"})


def locate(env: Env) -> list[str]:
    """Return the folders of OpenClaw's state."""
    home = user_home(env)
    named = [*env.get("OPENCLAW_DIR", "").split(","), env.get("OPENCLAW_STATE_DIR", "")]
    own = [home + path[1:] if path.startswith("~") else path for path in map(str.strip, named) if path]
    if own:
        return list(dict.fromkeys(own))
    found: list[str] = []
    with suppress(OSError):
        found = sorted(name for name in os.listdir(home) if name.startswith(PROFILE))
    return [os.path.join(home, name) for name in (_ROOTS[0], *found, *_ROOTS[1:])]


def profiles(env: Env) -> list[tuple[str, str]]:
    """Where the profiles are looked for."""
    return [(user_home(env), PROFILE)]


def beside(path: str) -> tuple[str, ...]:
    """The index of sessions that a file's scan reads; a database has its own."""
    return () if path.endswith(".sqlite") else indexes_of(path)


def list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the logs in a state folder, in any other folder, or the one file that is named."""
    if not os.path.lexists(place):
        return
    for item in walk_files(_folders(place), _is_log):
        if isinstance(item, Problem) or item == place or not _FOREIGN.search(item[len(place) :]):
            yield item


def _folders(place: str) -> list[str]:
    """A state folder holds workspaces and caches, too: only where logs are is looked at."""
    agents = os.path.join(place, "agents")
    if not os.path.isdir(agents):
        return [place]
    found = [os.path.join(place, "sessions")]
    with suppress(OSError):
        for name in sorted(os.listdir(agents), key=os.fsencode):
            agent = os.path.join(agents, name)
            found.append(os.path.join(agent, "agent", DATABASE))
            found += [os.path.join(agent, part) for part in ("sessions", "session-sqlite-import-archive")]
    return [path for path in found if os.path.lexists(path)]


def _is_log(name: str) -> bool:
    if name == DATABASE:
        return True
    return not _NOT_LOGS.search(name) and (name.endswith(LOG_SUFFIXES) or ARCHIVED.search(name) is not None)


def recognises(path: str, head: bytes) -> bool:
    """Tell whether a file is an agent's database, or a session that only OpenClaw can have written."""
    name = os.path.basename(path)
    if name == _INCOGNITO or _NOT_LOGS.search(name):
        return False
    if head.startswith(MAGIC):
        return is_database(path, head)
    rows = session_rows(head)
    return bool(rows) and is_openclaw(path, rows)


def _is_sqlite(path: str) -> bool:
    if path.endswith(".sqlite"):
        return True
    with open_log(path) as file:
        return file.read(len(MAGIC)) == MAGIC


def name_sessions(path: str) -> list[str]:
    """Return the ids of the sessions in a database, sorted, or of the one in a file.

    Raises:
        LogNotReadable: It cannot be opened.
    """
    if _is_sqlite(path):
        try:
            with closing(Store(path)) as store:
                return store.names()
        except sqlite3.DatabaseError as error:
            raise LogNotReadable(f"{path}: {error}") from error
    with Rows(path) as rows:
        first = next((item for item in rows.all() if not isinstance(item, Problem)), None)
    return [_session_id(path, first)]


def _session_id(path: str, first: Row | None) -> str:
    """The header names the session; the file's name may hold a topic, or where it was imported from."""
    named = read_name(first.get("id")) if first is not None and first.get("type") == "session" else None
    return named or _AFTER_ID.sub("", os.path.basename(path)) or os.path.basename(path)


def _key(row: Row, message: Row, usage: TokenUsage) -> str:
    entry = read_name(row.get("id"))
    time_ns = read_stamp(message.get("timestamp"))
    if time_ns is None:
        time_ns = read_stamp(row.get("timestamp"))
    if entry is None and time_ns is None:
        return ""
    return f"{entry or ''}@{time_ns or ''}:{usage.input}:{usage.output}"


def _skips(message: Row) -> bool:
    if message.get("api") == "openclaw-transcript":
        return True
    model = message.get("model")
    return message.get("provider") == "openclaw" and isinstance(model, str) and model in _MIRRORS


def _dialect(known: Known) -> Dialect:
    def superseded_by(message: Row, provider: str) -> str:
        key = message.get("idempotencyKey")
        mirrored = _MIRRORED.match(key) if isinstance(key, str) else None
        if mirrored:
            return f"codex:{mirrored.group(1)}"
        if provider in known.superseded_by:
            return known.superseded_by[provider]
        return known.superseded_by.get("claude-cli", "") if message.get("api") in (None, "cli") else ""

    return Dialect(key=_key, skips=_skips, superseded_by=superseded_by)


def _scan_for(path: str, session_id: str, known: Known, findings: Findings, state: Row | None = None) -> MessageScan:
    gather = Gather(ID, session_id, path, state=state["gather"] if state else None)
    agent = SUBAGENT if ":subagent:" in known.key else MAIN
    messages = MessageScan(gather, findings, path, _dialect(known), agent, Model(known.provider, known.model))
    if state:
        messages.restore(state)
    return messages


def scan(path: str, resume: Resume | None = None) -> LogScan:
    """Read the records of a file from where the last scan ended, or of all sessions in a database.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A packed log without a decoder.
    """
    return _scan_database(path) if _is_sqlite(path) else _scan_file(path, resume)


def _scan_database(path: str) -> LogScan:
    findings = Findings()
    sessions: dict[str, MessageScan] = {}
    with closing(Store(path)) as store:
        known = store.known()
        for item in store.rows():
            if isinstance(item, Problem):
                findings.note(item)
                continue
            if item.session_id not in sessions:
                its = known.get(item.session_id, Known())
                sessions[item.session_id] = _scan_for(path, item.session_id, its, findings)
            messages = sessions[item.session_id]
            _note_parent(messages.gather, item.row)
            messages.take(item.row, line=item.seq, place=item.place, stored_ns=item.stored_ns)
    found = (sessions[name] for name in sorted(sessions))
    return LogScan(sessions=tuple(_finished(messages) for messages in found), problems=findings.problems)


def _finished(messages: MessageScan) -> ScannedSession:
    return messages.gather.session(harness=ID)


def _note_parent(gather: Gather, row: Row) -> None:
    parent = row.get("parentSession") if row.get("type") == "session" else None
    if isinstance(parent, str) and parent:
        gather.parent = _AFTER_ID.sub("", re.split(r"[/\\]", parent)[-1])


def _scan_file(path: str, resume: Resume | None) -> LogScan:
    findings = Findings()
    state = resume.state if resume else {}
    messages: MessageScan | None = None
    if state:
        messages = _scan_for(path, state["id"], known_beside(path, state["id"]), findings, state)
    session_id = state.get("id", "")
    with Rows(path, offset=resume.offset if resume else 0, line=resume.line if resume else 0) as rows:

        def take(item: Row | Problem) -> None:
            nonlocal messages, session_id
            if isinstance(item, Problem):
                findings.note(item)
                return
            if messages is None:
                session_id = _session_id(path, item)
                messages = _scan_for(path, session_id, known_beside(path, session_id), findings)
            _note_parent(messages.gather, item)
            messages.take(item, line=rows.line, place=rows.place)

        for item in rows.read():
            take(item)
        reached = {} if messages is None else messages.state() | {"id": session_id}
        ended = Resume(offset=rows.offset, line=rows.line, state=reached)
        for item in rows.last():
            take(item)
    sessions = (_finished(messages),) if messages is not None and messages.seen else ()
    return LogScan(sessions=sessions, problems=findings.problems, resume=ended)


def read(path: str, session_id: str | None = None) -> Iterator[Event | Problem]:
    """Yield a session as native events, and problems in place: the first of a database, if none is named.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A packed log without a decoder.
    """
    if _is_sqlite(path):
        yield from _read_database(path, session_id)
        return
    replay: MessageReplay | None = None
    with Rows(path) as rows:
        for item in rows.all():
            if isinstance(item, Problem):
                yield item
                continue
            if replay is None:
                named = _session_id(path, item)
                known = known_beside(path, named)
                replay = MessageReplay(session_id or named, path, _dialect(known), Model(known.provider, known.model))
            yield from replay.take(item, line=rows.line, place=rows.place)
    if replay is not None:
        yield from replay.close()


def _read_database(path: str, session_id: str | None) -> Iterator[Event | Problem]:
    with closing(Store(path)) as store:
        try:
            names = [session_id] if session_id else store.names()[:1]
        except sqlite3.DatabaseError as error:
            yield store.problem(str(error))
            return
        known = store.known()
        for name in names or [""]:
            its = known.get(name, Known())
            replay = MessageReplay(name, path, _dialect(its), Model(its.provider, its.model))
            for item in store.rows(name):
                if isinstance(item, Problem):
                    yield item
                else:
                    yield from replay.take(item.row, line=item.seq, place=item.place, stored_ns=item.stored_ns)
            yield from replay.close()


SOURCE = Source(
    id=ID, title="OpenClaw", parser=1, locate=locate, list_logs=list_logs, recognises=recognises, scan=scan, read=read,
    name_sessions=name_sessions, beside=beside, profiles=profiles,
)  # fmt: skip
