"""OpenClaw, earlier Clawdbot and Moltbot.

Where: `$OPENCLAW_DIR` (a comma list) and `$OPENCLAW_STATE_DIR`, else `~/.openclaw` (also `~/.openclaw-<profile>`),
`~/.clawdbot`, `~/.moltbot`, `~/.moldbot`. Since 2026.7: `agents/<id>/agent/openclaw-agent.sqlite`, table
`transcript_events(session_id, seq, event_json, created_at)`; since 2026.9 large rows are packed in `event_zstd`
instead, and deleted or cold sessions are whole in `session_transcript_archives`, `session_transcript_cold_archives`.
Before, and as archives: `agents/<id>/sessions/<session>.jsonl`, `….jsonl.deleted.<time>`, `….jsonl.reset.<time>` (also
`.<hash>.zst`), `agents/<id>/session-sqlite-import-archive/….imported-<time>`; `sessions.json` is their index.

Shape: the rows of pi (`pi.message_steps`), with `custom`/`model-snapshot` rows, header version 4, reasoning as
`usage.reasoningTokens` and the time that a tool measured as `details.durationMs`. A row without model was answered by
the last one named, at first by that of the session's index. Traps:

- The same row is in the database, in archives, imports and forks: the key is (entry id, message time, input, output).
- `*.checkpoint.<uuid>.jsonl` replay a session and `*.trajectory.jsonl` are traces: not read, nor is the incognito
  database. `delivery-mirror`, `gateway-injected` and `openclaw-transcript` are no answers of a model.
- Turns of Codex and Claude Code on OpenClaw's behalf are logged better by these agents themselves (`superseded_by`):
  rows with `idempotencyKey` `codex-app-server:<thread>:…`, and those that name no `api`, or `cli`, in sessions whose
  index has `cliSessionIds`. Codex logs below `codex-home` are the codex source's.

Seen: 2025 to 2026.9.8.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from msgspec import Struct

from sessionlog import files
from sessionlog.events.limits import MAX_LINE
from sessionlog.reader.unpack import unpack_zstd
from sessionlog.sources.databases import MAGIC, Database, tables_of
from sessionlog.sources.kit import (
    LOG_SUFFIXES,
    MAIN,
    SUB_AGENT,
    Problem,
    Session,
    Steps,
    TokenUsage,
    Typed,
    decode_object,
    either,
    folder_of,
    head_rows,
    json_lines,
    name,
    read_head,
    read_sidecar,
    read_time,
    source,
    text,
    whole_log,
)
from sessionlog.sources.pi import (
    ARCHIVED,
    MIRRORS,
    Conversation,
    Message,
    Row,
    message_steps,
    recognises_session,
    session_of,
)
from sessionlog.sources.places import PLACES

_DATABASE = "openclaw-agent.sqlite"
_NO_LOGS = re.compile(
    r"\.checkpoint\.[0-9a-f-]{36}\.jsonl|\.trajectory\.jsonl|\Aincognito-openclaw-agent\.sqlite", re.IGNORECASE
)
_MAX_ARCHIVE = 1 << 30
_EVENTS = "transcript_events"
_ARCHIVES = ("session_transcript_cold_archives", "session_transcript_archives")
_MIRRORED = re.compile(r"codex-app-server:([^:]+):")
_CLI = {"claude-cli": "claude-code", "codex-cli": "codex"}
_SUB_AGENT_KEY = ":subagent:"
_WHAT = "reading OpenClaw's packed rows"
_Stored = tuple[str, int, int | None, Any]  # session, place within it, time, JSON


class Entry(Struct, rename="camel"):
    """The entry of a session in an index."""

    session_id: Any = None
    model_provider: Any = None
    model: Any = None
    cli_session_ids: Any = None
    cli_session_bindings: Any = None
    claude_cli_session_id: Any = None


class Chat(Conversation):
    """What is known of a session.

    Attributes:
        cli_sessions: Provider → `source:session` of the command-line agent that answered for it.
    """

    cli_sessions: dict[str, str] = {}  # noqa: RUF012 - a Struct copies it


class StoredRow(Struct):
    """A row of a database, with the state in which its session begins."""

    chat: Chat
    line: int
    time: int | None
    row: Row


class State(Struct):
    """What is known of a log from row to row: the sessions by id, and which one the last row was of."""

    path: str
    session: str = ""
    chats: dict[str, Chat] = {}


_row, _entry, _entries = Typed(Row), Typed(Entry), Typed(dict[str, Entry])


def steps(row: Row | StoredRow, state: State) -> Steps:
    """What a row means, of a database or of a file."""
    place, stored = "", None
    if isinstance(row, StoredRow):
        session, line, stored = row.chat.id, row.line, row.time
        place = f"{_DATABASE}@{session}:{line}"
        chat, row = state.chats.setdefault(session, row.chat), row.row
    elif not isinstance(row.type, str):
        return
    else:
        session = state.session or _session_id(state.path, row.type, row.id)
        chat = state.chats.get(session) or state.chats.setdefault(session, _indexed(state.path, session))
    if session != state.session:
        state.session = session
        yield Session(id=session, agent=chat.agent, provider=chat.provider, model=chat.model)
    superseded_by = ""
    if row.message is not None and row.message.role == "assistant":
        if _is_mirror(row.message):
            row.type = "mirror"  # of which only the time counts
        superseded_by = _superseded_by(row.message, chat)
    yield from message_steps(row, chat, partial(_key, place), stored=stored, superseded_by=superseded_by)


def _session_id(path: str, row_type: Any, row_id: Any) -> str:
    """The header names the session; the file's name may hold a topic, or where it was imported from."""
    return (name(row_id) if row_type == "session" else "") or session_of(path)[0]


def _is_mirror(message: Message) -> bool:
    is_own = message.provider == "openclaw" and text(message.model) in MIRRORS
    return is_own or message.api == "openclaw-transcript"


def _superseded_by(message: Message, chat: Chat) -> str:
    mirrored = _MIRRORED.match(text(message.idempotency_key))
    if mirrored:
        return f"codex:{mirrored[1]}"
    found = chat.cli_sessions.get(name(message.provider) or chat.provider, "")
    return found or (chat.cli_sessions.get("claude-cli", "") if message.api in (None, "cli") else "")


def _key(place: str, row: Row, message: Message, usage: TokenUsage) -> str:
    """What copies of a response have in common; one without an id and a time is known by its place alone."""
    entry, time = name(row.id), read_time(message.timestamp) or read_time(row.timestamp)
    return f"{entry}@{time or ''}:{usage.input}:{usage.output}" if entry or time else place


def _chat(session: str, session_key: Any, entry: Entry) -> Chat:
    found = {}
    for provider, source_id in _CLI.items():
        bound = text(entry.cli_session_bindings, provider, "sessionId")
        old = text(entry.claude_cli_session_id) if provider == "claude-cli" else ""
        its_session = bound or text(entry.cli_session_ids, provider) or old
        if its_session:
            found[provider] = f"{source_id}:{its_session}"
    agent = SUB_AGENT if _SUB_AGENT_KEY in text(session_key) else MAIN
    return Chat(session, agent=agent, provider=name(entry.model_provider), model=name(entry.model), cli_sessions=found)


def _indexes(path: str) -> list[str]:
    """Where the index of a file's session may be; the first that is there is it."""
    own = folder_of(path)
    above = os.path.dirname(own)
    return [os.path.join(one, "sessions.json") for one in dict.fromkeys((own, above, os.path.join(above, "sessions")))]


def _indexed(path: str, session: str) -> Chat:
    """Return the state of a session at its beginning, from the index beside its file."""
    for index in _indexes(path):
        status = files.stat_path(index)
        if status is not None:
            key, entry = _index(index, status.st_size, status.st_mtime_ns).get(session, ("", Entry()))
            return _chat(session, key, entry)
    return Chat(session)


@lru_cache(maxsize=8)  # a folder has one index for all its logs
def _index(path: str, _size: int, _mtime_ns: int) -> Mapping[str, tuple[str, Entry]]:
    return {text(entry.session_id): (key, entry) for key, entry in (_entries(read_sidecar(path)) or {}).items()}


def _read_database(path: str, session: str = "") -> Iterator[StoredRow | Problem]:
    """The rows of one session, or of all: first those put aside, then the present ones, in their order."""
    where = ("WHERE session_id = ?", session) if session else ("",)
    with Database(path) as database:
        if "event_json" not in database.columns(_EVENTS):
            database.note("bad_database", f"no {_EVENTS}: not a database of OpenClaw")
        chats = _stored_chats(database)
        for owner, line, time, data in chain(_archived(database, *where), _present(database, *where)):
            row = database.decode(_row, data, f"session {owner}, row {line}")
            yield from database.problems()
            if row is not None:
                yield StoredRow(chats.setdefault(owner, Chat(owner)), line, time, row)
        yield from database.problems()


def _stored_chats(database: Database) -> dict[str, Chat]:
    """What a database knows of its sessions, by id."""
    chats = {}
    for table in ("session_nodes", "session_entries"):
        for key, data in database.select(table, ("session_key", "entry_json")):
            entry = decode_object(_entry, data)[0]
            if entry is not None:
                session = text(entry.session_id)
                chats[session] = _chat(session, key, entry)
    for table in ("session_windows", "sessions"):
        for session, key, provider, model in database.select(
            table, ("session_id", "session_key", "model_provider", "model")
        ):
            known = chats.setdefault(session, Chat(text(session)))
            known.provider, known.model = name(provider) or known.provider, name(model) or known.model
            known.agent = SUB_AGENT if _SUB_AGENT_KEY in text(key) else known.agent
    return chats


def _archived(database: Database, *where: str) -> Iterator[_Stored]:
    """The rows of deleted and cold sessions; an archive without a blob is in a file, which is a log of its own."""
    for table in _ARCHIVES:
        names = ("session_id", "encoding", "archive_blob")
        for owner, encoding, blob in database.select(table, names, *where, has_blobs=True):
            if not isinstance(owner, str) or not isinstance(blob, bytes | str):
                continue
            data, failure = blob.encode("utf-8", "replace") if isinstance(blob, str) else blob, ""
            if encoding == "zstd":
                data, failure = unpack_zstd(data, _MAX_ARCHIVE, _WHAT)
            if failure:
                database.note("bad_compression", f"{table}, session {owner}: {failure}")
            for number, line in enumerate(data.split(b"\n")):
                if line.strip(b"\x00\r\t "):
                    yield owner, number, None, line


def _present(database: Database, where: str, *session: str) -> Iterator[_Stored]:
    names = ("session_id", "seq", "event_json", "event_zstd", "created_at")
    rows = database.select(_EVENTS, names, f"{where} ORDER BY session_id, seq", *session, has_blobs=True)
    for owner, seq, given, packed, created in rows:
        is_packed = given is None and isinstance(packed, bytes)
        data, failure = unpack_zstd(packed, MAX_LINE, _WHAT) if is_packed else (given, "")
        if failure or not data or not isinstance(owner, str):
            database.note("bad_envelope", f"session {owner}, row {seq}: {failure or 'empty, or of no session'}")
        else:
            yield owner, seq if type(seq) is int else 0, read_time(created), data


def _is_database(path: str) -> bool:
    return path.endswith(".sqlite") or read_head(path).startswith(MAGIC)


def _log_names(path: str) -> list[str]:
    if _is_database(path):
        with Database(path) as database:
            tables = (database.select(table, ("session_id",), "GROUP BY 1") for table in (_EVENTS, *_ARCHIVES))
            return sorted({session for rows in tables for (session,) in rows if isinstance(session, str)})
    first = next(head_rows(read_head(path)), {})
    return [_session_id(path, first.get("type"), first.get("id"))]


def _is_log(file_name: str) -> bool:
    is_named = file_name == _DATABASE or file_name.endswith(LOG_SUFFIXES) or re.search(ARCHIVED, file_name) is not None
    return is_named and not _NO_LOGS.search(file_name)


def _recognises(path: str, head: bytes) -> bool:
    if _NO_LOGS.search(os.path.basename(path)):
        return False
    return _EVENTS in tables_of(path, head) or recognises_session(path, head, is_openclaw=True)


SOURCE = source(
    id="openclaw",
    title="OpenClaw",
    places=PLACES["openclaw"],
    logs=_is_log,
    not_logs=r"[/\\](?:codex-home|cli-auth)[/\\]",
    rows=either(_is_database, whole_log(_read_database, _read_database), json_lines(Row)),
    steps=steps,
    state=State,
    state_type=State,
    recognises=_recognises,
    session_of=lambda path: session_of(path)[0],
    name_sessions=_log_names,
    is_apart=True,
    sidecars=lambda path: () if path.endswith(".sqlite") else _indexes(path),
    parser_version=6,
)
