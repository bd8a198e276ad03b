"""opencode: a database of all its sessions, and before version 1.2 a folder of small files for each session.

Where: `$OPENCODE_DATA_DIR`, else `opencode` in `$XDG_DATA_HOME`, `~/.local/share`, `~/Library/Application Support` or
`%LOCALAPPDATA%`. There `opencode.db` and one `opencode-<channel>.db` for each release channel, all of which count
(`$OPENCODE_DB` names another one), and `storage/message/<session>/<message>.json`. The three shapes are described in
`opencode.store`. A message of role `assistant` is one LLM call and the tools it ran:

    {"role":"assistant","modelID","providerID","cost","tokens":{"input","output","reasoning","cache":{"read","write"}},
     "time":{"created","completed"} in ms,"path":{"cwd","root"},"agent" or "mode","finish","error":{"name","data"}}

v2 has `model: {id, providerID}` instead, and its text and tools in `content`; v1 has them in the table `part`.

Traps: reasoning is not in `output`. A cost of 0 means that no price was known. A fork copies messages under new ids,
and the move to the database left the files where they were: the key is what such copies keep. A session with a parent
is a sub-agent's, and sub-agents have sub-agents: all of them belong to the first ancestor. A message that was cut off
has tokens but no time of completion. The latency includes the tools that ran in a message. Calls that the agent does
not store, such as those for titles, cannot be counted. Seen: 0.x files, 1.2 to 1.14 databases, v2 tables with and
without v1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.times import epoch_ns
from sessionlog.reader.database import open_database
from sessionlog.settings import user_home
from sessionlog.sources.gather import Findings, Gather, server_of
from sessionlog.sources.opencode.events import read_events
from sessionlog.sources.opencode.parts import Message, Part, Session, as_map, as_text, prompt_of, root_of
from sessionlog.sources.opencode.store import BROKEN, Store, files_beside, name_roots, open_store, tables_of
from sessionlog.sources.opencode.usage import Answer, read_answer
from sessionlog.sources.protocol import Env, LogScan, Resume, Source
from sessionlog.sources.record import MAIN, UNKNOWN, Record, ScannedSession, read_name

_SQLITE = b"SQLite format 3\x00"
_SESSIONS, _MESSAGES = {"session", "session_v2"}, {"message", "session_message"}
_PASSED_OVER = frozenset({"part", "snapshot", "log", "bin", "repos", "tool-output", "node_modules", ".git"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Brand:
    """An agent that stores what opencode stores, under names of its own.

    Attributes:
        id: The source's id.
        title: Its name for people.
        name: Of its folder and its databases.
        folder_variable: Names its folder.
        file_variable: Names its database.
    """

    id: str
    title: str
    name: str
    folder_variable: str
    file_variable: str


OPENCODE = Brand(
    id="opencode", title="opencode", name="opencode", folder_variable="OPENCODE_DATA_DIR", file_variable="OPENCODE_DB"
)
KILO = Brand(id="kilo", title="Kilo", name="kilo", folder_variable="KILO_DATA_DIR", file_variable="KILO_DB")
MIMO = Brand(
    id="mimo", title="MiMo Code", name="mimocode", folder_variable="MIMOCODE_HOME", file_variable="MIMOCODE_DB"
)
_NAMED = {brand.name: brand for brand in (KILO, MIMO)}


def source_of(brand: Brand) -> Source:
    """Return the source of an agent that stores what opencode stores."""
    return Source(
        id=brand.id, title=brand.title, parser=1,
        locate=partial(_locate, brand), list_logs=partial(_list_logs, brand), recognises=partial(_recognises, brand),
        scan=partial(_scan, brand), read=_read, name_sessions=_name_sessions, beside=files_beside,
    )  # fmt: skip


def _locate(brand: Brand, env: Env) -> Iterable[str]:
    home = user_home(env)
    named = [part for part in env.get(brand.folder_variable, "").split(",") if part]
    shared = env.get("XDG_DATA_HOME") or f"{home}/.local/share"
    folders = [shared, f"{home}/Library/Application Support", env.get("LOCALAPPDATA", "")]
    places = named or [os.path.join(folder, brand.name) for folder in folders if folder]
    database = env.get(brand.file_variable, "")
    if database and database != ":memory:":
        places.insert(0, os.path.join(places[0], database))
    return tuple(dict.fromkeys(places))


def _list_logs(brand: Brand, place: str) -> Iterator[str | Problem]:
    if not os.path.isdir(place) or _is_session_folder(place):
        yield place
    else:
        database = re.compile(rf"{brand.name}(-[A-Za-z0-9._-]+)?\.db\Z")
        yield from _walk(place, database, set())


def _is_session_folder(path: str) -> bool:
    parent = os.path.dirname(os.path.abspath(path))
    return os.path.basename(parent) == "message" and os.path.basename(os.path.dirname(parent)) == "storage"


def _walk(folder: str, database: re.Pattern[str], seen: set[tuple[int, int]]) -> Iterator[str | Problem]:
    """Yield databases and folders of sessions, sorted; links lead only to what their owner owns, loops are cut."""
    try:
        status = os.stat(folder)
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        yield Problem(path=folder, line=0, offset=0, kind="unreadable", detail=files.reason_of(error))
        return
    if (status.st_dev, status.st_ino) in seen:
        return
    seen.add((status.st_dev, status.st_ino))
    for entry in entries:
        try:
            foreign = entry.is_symlink() and entry.stat().st_uid != entry.stat(follow_symlinks=False).st_uid
            is_folder = entry.is_dir()
        except OSError:
            continue  # a link to nothing, or to itself
        if foreign or (is_folder and entry.name in _PASSED_OVER):
            continue
        if not is_folder:
            if database.match(entry.name):
                yield entry.path
        elif _is_session_folder(entry.path):
            yield entry.path
        else:
            yield from _walk(entry.path, database, seen)


def _recognises(brand: Brand, path: str, head: bytes) -> bool:
    """Ask the database for its tables; only the name tells whose they are."""
    if os.path.isdir(path):
        owner = os.path.basename(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(path)))))
        return _is_session_folder(path) and _NAMED.get(owner, OPENCODE).id == brand.id
    name = os.path.basename(path)
    owners = [other for word, other in _NAMED.items() if name.startswith(word)]
    if not head.startswith(_SQLITE) or (owners or [OPENCODE])[0].id != brand.id:
        return False
    try:
        with closing(open_database(path)) as connection:
            tables = tables_of(connection)
    except (LogNotReadable, *BROKEN):
        return False
    return not tables.keys().isdisjoint(_SESSIONS) and not tables.keys().isdisjoint(_MESSAGES)


def _scan(brand: Brand, path: str, resume: Resume | None = None) -> LogScan:  # noqa: ARG001 - what changes in place is read anew
    findings = Findings()
    with closing(open_store(path, findings.note)) as store:
        scanned = _Scan(brand.id, path, store, findings)
        scanned.run()
        return LogScan(sessions=tuple(scanned.sessions()), problems=findings.problems)


class _Scan:
    """One pass over a store: messages first, then the tools in their parts, then the first words of each session."""

    def __init__(self, source: str, path: str, store: Store, findings: Findings) -> None:
        self._source, self._path, self._store, self._findings = source, path, store, findings
        self._known = store.sessions()
        self._gathers: dict[str, Gather] = {}
        self._places: dict[str, tuple[str, str, str]] = {}  # message → its session, key and agent
        self._asked: dict[str, tuple[str, int | None, list[Part]]] = {}  # a user's message → session, time and parts

    def run(self) -> None:
        for message in self._store.messages():
            self._take(message)
        for message_id, part in self._store.tools():
            if message_id in self._places:
                self._use(*self._places[message_id], part)
        for message_id, part in self._store.texts(id_ for id_, (*_, parts) in self._asked.items() if not parts):
            self._asked[message_id][2].append(part)
        prompts = ((session_id, created_ns, prompt_of(parts)) for session_id, created_ns, parts in self._asked.values())
        for session_id, created_ns, words in dict.fromkeys(prompts):  # v1 and v2 of a database may tell the same
            self._gathers[session_id].turn(words, created_ns)

    def sessions(self) -> Iterator[ScannedSession]:
        for session_id, gather in self._gathers.items():
            root = root_of(session_id, self._known)
            if root == session_id:
                yield gather.session()
            else:
                yield gather.session(session_id=root, part=True)
        for root in name_roots(self._store, self._known):
            if root in self._known and root not in self._gathers and root in self._store.own(self._known):
                yield self._gather(root).session(counted=False)

    def _gather(self, session_id: str) -> Gather:
        session = self._known.get(session_id, Session(id=session_id))
        gather = Gather(self._source, session_id, self._path)
        gather.turns = 0
        gather.touch(epoch_ns(session.created))
        if os.path.isabs(session.directory):
            gather.project = session.directory
        return gather

    def _take(self, message: Message) -> None:
        session_id = message.session_id or UNKNOWN
        gather = self._gathers.get(session_id)
        if gather is None:
            gather = self._gathers[session_id] = self._gather(session_id)
        created_ns = epoch_ns(as_map(message.data.get("time")).get("created"))
        gather.touch(created_ns)
        if message.role == "user":
            gather.status = None
            self._asked[message.id] = session_id, created_ns, list(message.parts)
        elif message.role == "assistant":
            self._answer(gather, session_id, message)

    def _answer(self, gather: Gather, session_id: str, message: Message) -> None:
        answer = read_answer(message)
        self._findings.complain(self._path, 0, *answer.issues)
        agent = MAIN if root_of(session_id, self._known) == session_id else answer.agent
        place = self._places[message.id] = (session_id, answer.key, agent)
        for part in message.parts:
            if part.kind == "tool":
                self._use(*place, part)
        gather.touch(answer.end_ns)
        path = as_map(message.data.get("path"))
        for folder in (path.get("cwd"), path.get("root")):
            if gather.project == UNKNOWN and os.path.isabs(as_text(folder)):
                gather.project = as_text(folder)
        if not answer.happened:
            gather.status = None
            return
        gather.status, gather.error = answer.status, " ".join(answer.error.split())[:200]
        session = self._known.get(session_id)
        gather.add(_record(answer, agent, read_name(session.version) if session else None))

    def _use(self, session_id: str, key: str, agent: str, part: Part) -> None:
        gather = self._gathers[session_id]
        tool, server = server_of(read_name(part.name) or UNKNOWN)
        start, end = epoch_ns(part.start), epoch_ns(part.end)
        call = f"{key}:{part.call_id}"
        gather.call(call, start, tool, server=server, agent=agent)
        if part.status in {"completed", "error"}:
            size = len(part.text.encode("utf-8", "replace"))
            gather.result(call, end, failed=part.status == "error", output_bytes=size)


def _record(answer: Answer, agent: str, version: str | None) -> Record:
    return Record(
        time_ns=answer.time_ns, provider=answer.provider, model=answer.model, response_model=None, usage=answer.usage,
        cost_nano=answer.cost_nano, latency_ms=answer.latency_ms, failed=answer.failed, quality=answer.quality,
        key=answer.key, agent=agent, version=version or UNKNOWN,
    )  # fmt: skip


def _read(path: str, session_id: str | None = None) -> Iterator[Event | Problem]:
    return read_events(path, session_id)


def _name_sessions(path: str) -> Iterable[str]:
    with closing(open_store(path, lambda _: None)) as store:
        return name_roots(store, store.sessions())


SOURCE = source_of(OPENCODE)
