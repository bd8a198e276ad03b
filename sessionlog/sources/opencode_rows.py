"""The messages of opencode, from each of the three shapes in which it stores them.

- legacy: `storage/message/<session>/<message>.json`, `storage/part/<message>/<part>.json`, and the session itself in
  `storage/session/<project>/<session>.json`; one log = the folder of a session;
- v1 (since 1.2): a database with the tables `session`, `message` and `part`, whose column `data` holds that same JSON;
- v2: the tables `session_message` (its column `type` is the role, its parts are in `data.content`) and `session_v2` or
  `session`.

A database may keep its messages in v1 and in v2; each is given once. Messages that a fork has copied are older than
their session; where the original is in the same database, a copy is marked.
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
_EXPECTED = "message(id, session_id, data) or session_message(id, session_id, type, data)"


class SessionFacts(Struct):
    """A stored session; a `parent` is the one whose sub-agent it is."""

    id: str
    parent: str = ""
    directory: str = ""
    version: str = ""
    created: Any = None


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
    text: Any = None
    content: Any = None


class Row(Struct):
    """A message.

    Attributes:
        id: Its id, which copies do not keep.
        role: user, assistant, compaction, or whatever else is stored.
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
        for table in stores:
            has_parts = table == "message"
            copies = _copies(database, table, known)
            names = ("id", "session_id", "time_created", "data", "NULL" if has_parts else "type")
            for id_, owner, created, data, type_ in database.select(
                table, names, f"{where} ORDER BY 3, id", *(family if where else ())
            ):
                message = database.decode(_MESSAGE, data, f"message {id_}")
                role = text(type_ or (message and message.role))
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
        if not stores and not problems:
            found = ", ".join(sorted(database.tables())) or "none"
            database.note("unknown_version", f"expected the table {_EXPECTED}; there are: {found}")
        yield from database.problems()


def _stores(database: Database) -> list[str]:
    """The tables of messages; the parts of those in `message` are in a table of their own."""
    return [table for table, columns in _STORES.items() if database.columns(table).issuperset(columns)]


def _sessions(database: Database) -> dict[str, SessionFacts]:
    names = ("id", "parent_id", "directory", "version", "time_created")
    rows = (cells for table in ("session", "session_v2") for cells in database.select(table, names))
    return {
        str(id_): SessionFacts(str(id_), text(parent), text(directory), text(version), created)
        for id_, parent, directory, version, created in rows
    }


def _foreign(database: Database) -> set[Any]:
    """The sessions that were taken over from other agents, whose own logs hold them."""
    return {id_ for (id_,) in database.select("external_import", ("session_id",))}


def _copies(database: Database, table: str, known: Mapping[str, SessionFacts]) -> dict[tuple[Any, Any], str]:
    """(session, time) of the messages that are older than their session → the session that this was forked from."""
    copies, made_in = set(), {}
    for owner, time in database.select(table, ("session_id", "time_created")):
        began = known[owner].created if owner in known else None
        if isinstance(time, int) and isinstance(began, int) and time < began:
            copies.add((owner, time))
        elif isinstance(time, int):
            made_in[time] = owner
    forked_from = {owner: made_in[time] for owner, time in sorted(copies) if time in made_in}  # by its last copy
    return {(owner, time): forked_from[owner] for owner, time in copies if time in made_in}


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
