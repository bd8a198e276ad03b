"""The messages of opencode, from each of the three shapes in which it stores them.

- legacy: `storage/message/<session>/<message>.json`, `storage/part/<message>/<part>.json`, and the session itself in
  `storage/session/<project>/<session>.json`; one log = the folder of a session;
- v1 (since 1.2): a database with the tables `session`, `message` and `part`, whose column `data` holds that same JSON;
- v2: the tables `session_message` (its column `type` is the role, its parts are in `data.content`) and `session_v2` or
  `session`. `session_v2` has the sums of what a session has used, and since 2.0 the session that it was forked from.

A database may keep its messages in v1 and in v2; each is given once. Messages that a fork has copied keep their times,
so they are older than their session; where the original is in the same database, a copy is marked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from glob import escape
from typing import Any

from msgspec import Struct

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.sources.databases import Database, root_of
from sessionlog.sources.kit import UNKNOWN, Typed, mapping, read_document, text

_STORES = {
    "message": ("id", "session_id", "data"),
    "session_message": ("id", "session_id", "type", "data"),
}
SUMMED = ("tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write", "cost")
_FACTS = ("id", "parent_id", "directory", "version", "time_created")
_EXPECTED = "message(id, session_id, data) or session_message(id, session_id, type, data)"


SUMS = "sums"
"""The role of a row that stands for the sums of its session, after all messages."""


class SessionFacts(Struct):
    """A stored session.

    Attributes:
        id: Its id.
        parent: The session whose sub-agent it is.
        directory: Its folder.
        version: The version of the agent.
        created: When it began, in milliseconds.
        origin: The session that it was forked from, where the table names that.
        agent: The agent that works in it.
        model: `{id, providerID}` as JSON.
        sums: What it has used in all, in the order of `SUMMED`; None where the table does not have that.
    """

    id: str
    parent: str = ""
    directory: str = ""
    version: str = ""
    created: Any = None
    origin: str = ""
    agent: str = ""
    model: Any = None
    sums: tuple[Any, ...] | None = None


class Part(Struct):
    """A piece of a message: text, reasoning, tool, step-finish …; `tool`, `callID` are v1's, `name`, `id` v2's."""

    type: Any = None
    text: Any = None
    synthetic: Any = None
    ignored: Any = None
    tool: Any = None
    name: Any = None
    callID: Any = None  # noqa: N815 - as stored
    id: Any = None
    state: Any = None
    time: Any = None
    filename: Any = None
    mime: Any = None
    prompt: Any = None
    cost: Any = None


class Message(Struct):
    """What is stored of a message."""

    role: Any = None
    time: Any = None
    tokens: Any = None
    modelID: Any = None  # noqa: N815 - as stored
    providerID: Any = None  # noqa: N815 - as stored
    model: Any = None
    cost: Any = None
    agent: Any = None
    mode: Any = None
    path: Any = None
    error: Any = None
    finish: Any = None
    summary: Any = None
    status: Any = None
    text: Any = None
    content: Any = None


class Row(Struct):
    """A message.

    Attributes:
        id: Its id, which copies do not keep.
        role: user, assistant, compaction, or whatever else is stored; or `SUMS`.
        data: What is stored of it.
        parts: Its pieces.
        session: Its own session.
        root: The session that is no sub-agent's: its own, or the first ancestor.
        is_subagent_log: The log holds nothing but a sub-agent's session.
        copied_from: It was copied from another session of the same database: the one that its own was forked from.
    """

    id: str
    role: str
    data: Message
    parts: list[Part]
    session: SessionFacts
    root: str
    is_subagent_log: bool = False
    copied_from: str = ""


_MESSAGE, _PART, _PARTS = Typed(Message), Typed(Part), Typed(list[Part])


def read_rows(path: str, only: str | None = None) -> Iterator[Row | Problem]:
    """Yield the messages of a log, of one session and its sub-agents or of all, in the order of their times."""
    return _read_folder(path) if files.is_directory(path) else _read_database(path, only)


def name_roots(path: str) -> Iterable[str]:
    """Return the sessions of a log that are no sub-agents'; the folder of a sub-agent's has a name of its own."""
    if files.is_directory(path):
        own = session_of(path)
        return ("/".join(dict.fromkeys((root_of(own, _parents(_family_of(path, []))), own))),)
    with Database(path) as database:
        known, foreign = _sessions(database), _foreign(database)
        ids, parents = dict.fromkeys(known), _parents(known)
        for table in _stores(database):
            rows = database.rows(f"SELECT DISTINCT session_id FROM {table}")  # noqa: S608 - a name of ours
            ids.update(dict.fromkeys(str(id_ or UNKNOWN) for (id_,) in rows))
        return tuple(dict.fromkeys(root_of(id_, parents) for id_ in ids if id_ not in foreign))


def session_of(path: str) -> str:
    """Return the session whose folder this is."""
    return os.path.basename(files.absolute_path(path))


def _parents(known: Mapping[str, SessionFacts]) -> dict[str, str]:
    return {id_: session.parent for id_, session in known.items()}


def _message_parts(data: Message) -> list[Part]:
    """The parts that v2 stores with a message."""
    parts = data.content if isinstance(data.content, list) else [{"type": "text", "text": data.text}]
    return _PARTS.fit(parts) or []


# --- databases ---


def _read_database(path: str, only: str | None) -> Iterator[Row | Problem]:
    with Database(path) as database:
        known, foreign, stores = _sessions(database), _foreign(database), _stores(database)
        parents = _parents(known)
        family = [only, *(id_ for id_ in known if root_of(id_, parents) == only)]
        where = f"WHERE session_id IN ({', '.join('?' * len(family))})" if only and only != UNKNOWN else ""
        seen: set[tuple[Any, ...]] = set()
        in_v1: set[Any] = set()
        for table in stores:
            has_parts = table == "message"
            copies = _copies(database, table, known)
            names = ("id", "session_id", "time_created", "data", "NULL" if has_parts else "type")
            for id_, owner, created, data, type_ in database.select(
                table, names, f"{where} ORDER BY 3, id", *(family if where else ())
            ):
                message = database.decode(_MESSAGE, data, f"message {id_}")
                role = text(type_ or (message and message.role))
                if has_parts:
                    in_v1.add(owner)  # the sums of v2 may not be those of such messages
                if message is not None and owner not in foreign and (owner, created, role) not in seen:
                    if len(stores) > 1 and has_parts:
                        seen.add((owner, created, role))
                    session = known.get(owner) or SessionFacts(str(owner or UNKNOWN))
                    parts = _parts(database, id_) if has_parts else _message_parts(message)
                    origin = root_of(copies.get((owner, created), ""), parents)
                    yield Row(str(id_), role, message, parts, session, root_of(session.id, parents), copied_from=origin)
                yield from database.problems()
        problems = [*database.problems()]
        yield from problems
        for own in known.values():
            if own.sums and any(own.sums) and own.id not in foreign and own.id not in in_v1:
                root = root_of(own.id, parents)
                if not where or own.id in family:
                    yield Row(own.id, SUMS, Message(agent=own.agent), [], own, root)
        if not stores and not problems:
            found = ", ".join(sorted(database.tables())) or "none"
            database.note("unknown_version", f"expected the table {_EXPECTED}; there are: {found}")
        yield from database.problems()


def _stores(database: Database) -> list[str]:
    """The tables of messages; the parts of those in `message` are in a table of their own."""
    return [table for table, columns in _STORES.items() if database.columns(table).issuperset(columns)]


def _sessions(database: Database) -> dict[str, SessionFacts]:
    found: dict[str, SessionFacts] = {}
    for table, more in (("session", ()), ("session_v2", ("fork_session_id", "agent", "model", *SUMMED))):
        for id_, parent, directory, version, created, *others in database.select(table, (*_FACTS, *more)):
            own = SessionFacts(str(id_), text(parent), text(directory), text(version), created)
            if others:
                origin, agent, model, *sums = others
                own.origin, own.agent, own.model, own.sums = text(origin), text(agent), model, tuple(sums)
            found[own.id] = own
    return found


def _foreign(database: Database) -> set[Any]:
    """The sessions that were taken over from other agents, whose own logs hold them."""
    return {id_ for (id_,) in database.select("external_import", ("session_id",))}


def _copies(database: Database, table: str, known: Mapping[str, SessionFacts]) -> dict[tuple[Any, Any], str]:
    """(session, time) of the messages that another session has, too → the session that this one was forked from."""
    older, made_in = set(), {}
    messages = dict.fromkeys(database.select(table, ("session_id", "time_created")))
    for owner, time in messages:
        own = known.get(owner)
        if not isinstance(time, int):
            continue
        if own is not None and (
            (isinstance(own.created, int) and time < own.created) or (own.origin, time) in messages
        ):
            older.add((owner, time))
        else:
            made_in[time] = owner
    found = {}
    last = {owner: made_in[time] for owner, time in sorted(older) if time in made_in}  # by its last copy
    for owner, time in older:
        origin = known[owner].origin
        if (origin, time) in messages if origin else time in made_in:
            found[owner, time] = origin or last[owner]
    return found


def _parts(database: Database, message_id: Any) -> list[Part]:
    rows = database.select("part", ("id", "data"), "WHERE message_id = ? ORDER BY id", message_id)
    parts = (database.decode(_PART, data, f"part {id_}") for id_, data in rows)
    return [part for part in parts if part is not None]


# --- legacy folders ---


def _read_folder(path: str) -> Iterator[Row | Problem]:
    problems: list[Problem] = []
    known = _family_of(path, problems)
    own = known[session_of(path)]
    root = root_of(own.id, _parents(known))
    for file_name in _names(path):
        message = _MESSAGE.fit(_load(os.path.join(path, file_name), problems))
        if message is not None:
            id_, folder = file_name.removesuffix(".json"), _part_folder(path, file_name)
            parts = (_PART.fit(_load(os.path.join(folder, part), problems)) for part in _names(folder))
            pieces = [part for part in parts if part is not None]
            yield Row(id_, text(message.role), message, pieces, own, root, is_subagent_log=root != own.id)
        yield from problems
        problems.clear()


def sidecars(path: str) -> Iterator[str]:
    """Yield what is read beside a session's folder: the session itself, those above it, the folders of its parts."""
    if files.is_directory(path):
        yield from (place for id_ in _family_of(path, []) for place in _places(path, id_))
        yield from (_part_folder(path, file_name) for file_name in _names(path))


def _family_of(path: str, problems: list[Problem]) -> dict[str, SessionFacts]:
    """The session of a folder, and those above it; a parent whose name leads elsewhere is not looked for."""
    known: dict[str, SessionFacts] = {}
    wanted = session_of(path)
    while wanted and wanted not in known and os.path.basename(wanted) == wanted:
        found = (_load(place, problems) for place in _places(path, wanted))
        data = next(filter(None, found), {})
        parent, directory, version = (text(data, name) for name in ("parentID", "directory", "version"))
        known[wanted] = SessionFacts(wanted, parent, directory, version, mapping(data, "time").get("created"))
        wanted = known[wanted].parent
    return known


def _storage(path: str) -> str:
    return os.path.dirname(os.path.dirname(files.absolute_path(path)))


def _part_folder(path: str, file_name: str) -> str:
    return os.path.join(_storage(path), "part", file_name.removesuffix(".json"))


def _places(path: str, session_id: str) -> list[str]:
    """The files that describe a session, in the folder of one of the projects."""
    return files.find_paths(os.path.join(_storage(path), "session"), "*", f"{escape(session_id)}.json")


def _names(folder: str) -> list[str]:
    try:
        return sorted(entry.name for entry in files.scan_folder(folder) if entry.name.endswith(".json"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LogNotReadable(f"{folder}: {files.reason_of(error)}") from error


def _load(path: str, problems: list[Problem]) -> dict[str, Any] | None:
    """A small file's object; None for one that is damaged, which is noted."""
    try:
        found = read_document(path)
    except (LogNotReadable, OSError) as error:
        found = Problem(path=path, kind="unreadable", detail=str(error))
    if not isinstance(found, Problem):
        return found
    problems.append(found)
    return None
