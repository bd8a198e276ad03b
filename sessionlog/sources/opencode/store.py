"""Where opencode keeps what it knows: three shapes behind one set of questions.

- legacy: `storage/message/<session>/<message>.json`, `storage/part/<message>/<part>.json`, and the session itself in
  `storage/session/<project>/<session>.json`; one log = the folder of a session;
- v1 (since 1.2): a database with the tables `session`, `message` and `part`, whose column `data` holds that same JSON;
- v2: the tables `session_message` (its column `type` says whose message it is, its parts are in `data.content`) and
  `session_v2` or `session`.

Invariant: nothing here raises for what is stored. What cannot be read is noted as a `Problem`, and the rest is given.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.reader.database import open_database
from sessionlog.sources.opencode.parts import (
    Json,
    Message,
    Note,
    Part,
    Session,
    as_map,
    as_text,
    decode,
    read_message,
    read_part,
    root_of,
)
from sessionlog.sources.record import UNKNOWN

EXPECTED = "message(id, session_id, data) or session_message(id, session_id, type, data)"
_MESSAGE = {"id", "session_id", "data"}
BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What a damaged or locked database raises; a message that quotes damaged names is no UTF-8."""
_MAX_JSON = 64 << 20
_CHUNK = 500  # names in one query; SQLite allows 999


class Folder:
    """A session in the legacy storage: `…/storage/message/<session>`."""

    def __init__(self, path: str, note: Note) -> None:
        """Look at the folder.

        Raises:
            LogNotReadable: It cannot be listed.
        """
        self._path, self._note = path, note
        self._storage = os.path.dirname(os.path.dirname(os.path.abspath(path)))
        try:
            self.names = sorted(name for name in os.listdir(path) if name.endswith(".json"))
        except OSError as error:
            raise LogNotReadable(f"{path}: {files.reason_of(error)}") from error

    def close(self) -> None:
        """Nothing is held open."""

    def sessions(self) -> dict[str, Session]:
        """The session, and those above it."""
        found: dict[str, Session] = {}
        wanted = os.path.basename(os.path.abspath(self._path))
        while wanted and wanted not in found:
            data = self._session(wanted)
            found[wanted] = Session(
                id=wanted, parent=as_text(data.get("parentID")), directory=as_text(data.get("directory")),
                version=as_text(data.get("version")), created=as_map(data.get("time")).get("created"),
            )  # fmt: skip
            wanted = found[wanted].parent
        return found

    def _session(self, session_id: str) -> Json:
        if os.path.basename(session_id) != session_id:
            return {}
        for place in self.places(session_id):
            data = self._json(place)
            if data:
                return data
        return {}

    def places(self, session_id: str) -> list[str]:
        """Where a session may be described: in the folder of one of the projects."""
        root = os.path.join(self._storage, "session")
        try:
            folders = sorted(os.listdir(root))
        except OSError:
            return []
        return [os.path.join(root, folder, f"{session_id}.json") for folder in folders]

    def own(self, known: Mapping[str, Session]) -> tuple[str, ...]:
        """The sessions that are stored here, of those that are known."""
        del known  # those above it have folders of their own
        return (os.path.basename(os.path.abspath(self._path)),)

    def messages(self, session_ids: Iterable[str] | None = None) -> Iterator[Message]:
        """The messages in the order of their names, which is that of their times."""
        own = os.path.basename(os.path.abspath(self._path))
        if session_ids is not None and own not in session_ids:
            return
        for name in self.names:
            data = self._json(os.path.join(self._path, name))
            if data:
                yield read_message(name.removesuffix(".json"), own, data)

    def parts(self, message: Message) -> list[Part]:
        """The parts of a message, in order."""
        return message.parts or [part for _, part in self._parts(message.id)]

    def tools(self) -> Iterator[tuple[str, Part]]:
        """(message id, tool part) of all messages."""
        for name in self.names:
            message_id = name.removesuffix(".json")
            yield from ((message_id, part) for _, part in self._parts(message_id) if part.kind == "tool")

    def texts(self, message_ids: Iterable[str]) -> Iterator[tuple[str, Part]]:
        """(message id, text part) of some messages."""
        for message_id in message_ids:
            yield from ((message_id, part) for _, part in self._parts(message_id) if part.kind == "text")

    def _parts(self, message_id: str) -> Iterator[tuple[str, Part]]:
        folder = os.path.join(self._storage, "part", message_id)
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return
        for name in names:
            part = read_part(self._json(os.path.join(folder, name))) if name.endswith(".json") else None
            if part is not None:
                yield name, part

    def _json(self, path: str) -> Json:
        try:
            raw = files.read_small(path, _MAX_JSON)
        except (LogNotReadable, OSError) as error:
            self._note(Problem(path=path, line=0, offset=0, kind="unreadable", detail=str(error)))
            return {}
        return {} if raw is None else decode(raw, path, "", self._note)


def files_beside(path: str) -> Iterator[str]:
    """What is read beside a session's folder: the session itself, those above it, and the folders of its parts."""
    if not os.path.isdir(path):
        return
    folder = Folder(path, lambda _: None)
    for session_id in folder.sessions():
        if os.path.basename(session_id) == session_id:
            yield from (place for place in folder.places(session_id) if files.stat_path(place) is not None)
    storage = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    yield from (os.path.join(storage, "part", name.removesuffix(".json")) for name in folder.names)


class Database:
    """A database of sessions, v1, v2 or both."""

    def __init__(self, path: str, note: Note) -> None:
        """Open it for reading.

        Raises:
            LogNotReadable: It cannot be opened.
        """
        self._path, self._note = path, note
        self._tables: dict[str, set[str]] = {}
        try:
            self._connection = open_database(path)
        except UnicodeDecodeError as error:
            raise LogNotReadable(f"{path}: the database is damaged") from error
        try:
            self._tables = tables_of(self._connection)
            readable = True
        except BROKEN as error:
            self._broken(error)
            readable = False
        self._v1 = "message" if self._tables.get("message", set()) >= _MESSAGE else ""
        self._v2 = "session_message" if self._tables.get("session_message", set()) >= {*_MESSAGE, "type"} else ""
        self._foreign: set[Any] = set()  # sessions of other agents, whose own logs tell them
        if "session_id" in self._tables.get("external_import", set()):
            self._foreign = {row[0] for row in self._rows("SELECT session_id FROM external_import")}
        if readable and not self._v1 and not self._v2:
            found = ", ".join(sorted(self._tables)) or "none that is known"
            self._say("unknown_version", f"expected the table {EXPECTED}; there are: {found}")

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _say(self, kind: str, detail: str) -> None:
        self._note(Problem(path=self._path, line=0, offset=0, kind=kind, detail=detail))

    def _broken(self, error: Exception) -> None:
        self._say("bad_database", str(error))

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows up to where the database is damaged or locked."""
        try:
            with closing(self._connection.execute(query, values)) as cursor:
                yield from cursor
        except BROKEN as error:
            self._broken(error)

    def sessions(self) -> dict[str, Session]:
        """All sessions by id."""
        found: dict[str, Session] = {}
        for table in ("session", "session_v2"):
            have = self._tables.get(table, set())
            if "id" not in have:
                continue
            wanted = ("id", "parent_id", "directory", "version", "time_created", "data")
            names = ", ".join(name if name in have else "NULL" for name in wanted)
            for id_, parent, directory, version, created, raw in self._rows(f"SELECT {names} FROM {table}"):  # noqa: S608 - names are ours
                data = decode(raw, self._path, f"session {id_}", self._note) if raw is not None else {}
                if id_ in self._foreign:
                    continue
                found[str(id_)] = Session(
                    id=str(id_), parent=as_text(parent or data.get("parentID")),
                    directory=as_text(directory or data.get("directory")),
                    version=as_text(version or data.get("version")),
                    created=created,
                )  # fmt: skip
        return found

    def own(self, known: Mapping[str, Session]) -> tuple[str, ...]:
        """The sessions that are stored here: those that are known, and those of which only messages are left."""
        found = dict.fromkeys(known)
        for table in (self._v1, self._v2):
            if table:
                rows = self._rows(f"SELECT DISTINCT session_id FROM {table}")  # noqa: S608 - names are ours
                found.update(dict.fromkeys(str(row[0] or UNKNOWN) for row in rows if row[0] not in self._foreign))
        return tuple(found)

    def messages(self, session_ids: Iterable[str] | None = None) -> Iterator[Message]:
        """The messages of all sessions, or of some, by their times."""
        some = None if session_ids is None else tuple(session_ids)
        if some is not None and UNKNOWN in some:  # those that name no session
            yield from (message for message in self.messages() if message.session_id in some)
            return
        for table, type_ in ((self._v1, "NULL"), (self._v2, "type")):
            if not table:
                continue
            order = "time_created, id" if "time_created" in self._tables[table] else "rowid"
            where = "" if some is None else f" WHERE session_id IN ({', '.join('?' * len(some))})"
            query = f"SELECT id, session_id, data, {type_} FROM {table}{where} ORDER BY {order}"  # noqa: S608 - names are ours
            for id_, session_id, raw, said_type in self._rows(query, some or ()):
                if session_id in self._foreign:
                    continue
                data = decode(raw, self._path, f"message {id_}", self._note)
                if data:
                    yield read_message(id_, session_id, data, said_type)

    def parts(self, message: Message) -> list[Part]:
        """The parts of a message, in order."""
        return message.parts or [part for _, part in self._parts("WHERE message_id = ? ORDER BY id", (message.id,))]

    def tools(self) -> Iterator[tuple[str, Part]]:
        """(message id, tool part) of all messages of v1; those of v2 have their parts with them."""
        for message_id, part in self._parts("WHERE instr(data, '\"tool\"') > 0 OR instr(data, '\\u00') > 0"):
            if part.kind == "tool":
                yield message_id, part

    def texts(self, message_ids: Iterable[str]) -> Iterator[tuple[str, Part]]:
        """(message id, text part) of some messages."""
        ids = tuple(message_ids)
        for at in range(0, len(ids), _CHUNK):
            some = ids[at : at + _CHUNK]
            where = f"WHERE message_id IN ({', '.join('?' * len(some))}) ORDER BY id"
            yield from ((id_, part) for id_, part in self._parts(where, some) if part.kind == "text")

    def _parts(self, where: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[str, Part]]:
        if not self._tables.get("part", set()) >= {"id", "message_id", "data"}:
            return
        for id_, message_id, raw in self._rows(f"SELECT id, message_id, data FROM part {where}", values):  # noqa: S608 - ours
            part = read_part(decode(raw, self._path, f"part {id_}", self._note))
            if part is not None:
                yield str(message_id), part


Store = Folder | Database


def open_store(path: str, note: Note) -> Store:
    """Open a log: a database, or the folder of a session.

    Raises:
        LogNotReadable: It cannot be opened.
    """
    return Folder(path, note) if os.path.isdir(path) else Database(path, note)


def name_roots(store: Store, known: Mapping[str, Session]) -> tuple[str, ...]:
    """Return the sessions of a store that are nobody's sub-agents, and those that its sub-agents belong to."""
    return tuple(dict.fromkeys(root_of(session_id, known) for session_id in store.own(known)))


def tables_of(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the columns of each table that may be of interest."""
    names = ("session", "session_v2", "message", "session_message", "part", "external_import")
    found = {name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} for name in names}
    return {name: columns for name, columns in found.items() if columns}
