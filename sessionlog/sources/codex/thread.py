"""Whose rows are these? A thread's identity, and how much of its file is somebody else's history.

A fork's or a sub-agent's file may begin with its parent's rows, stamped with the second of the fork or with the times
they had. Its own rows begin with its own turn: turns and threads have ids that sort by time (UUIDv7), so a turn whose
id is not before the thread's is its own. Where ids tell nothing, the file's first second is history, and so is every
row that is older than the thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from sessionlog.events.times import SECOND, epoch_ns, parse_time
from sessionlog.sources.record import MAIN, UNKNOWN, read_name

SUB_AGENT = "sub-agent"
PROVIDER = "openai"

_NEVER = 2**63
_LONGEST_REPLAY_NS = 60 * SECOND
_FILE_NAME = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?\.jsonl(?:\.gz|\.zst)?\Z")
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


def thread_of(path: str) -> str:
    """Name a thread by its file: the UUID at the end of the name, else the name."""
    name = os.path.basename(path)
    match = _FILE_NAME.search(name)
    return (match.group(1) or name[: match.start()]) if match else name


def read_moment(value: Any) -> int | None:
    """Read a time: RFC 3339, or seconds, ms, us or ns since 1970 by magnitude."""
    return parse_time(value) if isinstance(value, str) else epoch_ns(value)


def read_folder(value: Any) -> str:
    """Read a working folder; a relative one is unknown, as is none."""
    return value if isinstance(value, str) and _ABSOLUTE.match(value) else ""


class Thread:
    """What is known of the thread whose file is read, and of where its own rows begin.

    Attributes:
        id: The thread's id.
        named: Its own session_meta has been seen.
        session: The session that it belongs to: itself, or its parent's where it is a sub-agent.
        parent: The thread that it was forked from.
        agent: `main`, or the kind of sub-agent.
        provider: Who serves it.
        project: The session's working folder.
        cwd: The working folder now.
        branch: The git branch.
        version: The version of the CLI.
        model: The model now.
        began_ns: When the thread began.
        first_ns: The second in which it began: rows before it are copies.
        stamped_ns: The time of the file's first row.
        inherits: It began with somebody else's counter.
        history: The rows read now are its parent's.
        owner: The thread whose rows they are.
        own_ns: Rows from this time on are the thread's own without a closer look.
        dated: The turns of the history have ids that sort by time.
    """

    __slots__ = (
        "agent", "began_ns", "branch", "cwd", "dated", "first_ns", "history", "id", "inherits", "model", "named",
        "own_ns", "owner", "parent", "project", "provider", "session", "stamped_ns", "version",
    )  # fmt: skip

    def __init__(self, path: str, state: Mapping[str, Any] | None = None) -> None:
        self.id = self.session = thread_of(path)
        self.named = self.inherits = self.history = self.dated = False
        self.parent = self.owner = self.cwd = ""
        self.agent = MAIN
        self.provider = PROVIDER
        self.project = self.branch = self.version = self.model = UNKNOWN
        self.began_ns: int | None = None
        self.first_ns: int | None = None
        self.stamped_ns: int | None = None
        for name, value in (state or {}).items():
            setattr(self, name, value)
        self._settle_time()

    def _settle_time(self) -> None:
        self.own_ns = _NEVER if self.history else -_NEVER if self.first_ns is None else self.first_ns

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "own_ns"}

    @property
    def part(self) -> bool:
        """It is a sub-agent of another session."""
        return self.session != self.id

    def introduce(self, meta: Mapping[str, Any], time_ns: int | None) -> None:
        """Take a session_meta: the first is the thread's own, another thread's begins a history."""
        id_ = read_name(meta.get("id"))
        if not self.named:
            self._begin(meta, id_, time_ns)
        elif id_ is not None and id_ != self.id:
            if self.history or self.model == UNKNOWN:  # else it stands in the middle of the thread's own turns
                self.history, self.inherits, self.owner = True, True, id_
                self._settle_time()
        elif not self.history:
            self._settle(meta)

    def _begin(self, meta: Mapping[str, Any], id_: str | None, time_ns: int | None) -> None:
        self.named = True
        self.id = self.session = id_ or self.id
        began_ns = read_moment(meta.get("timestamp"))
        self.began_ns = time_ns if began_ns is None else began_ns
        self.first_ns = None if self.began_ns is None else self.began_ns // SECOND * SECOND
        self.stamped_ns = began_ns if time_ns is None else time_ns
        self._settle(meta)
        self.project = self.cwd or UNKNOWN
        spawn = _spawn(meta)
        started_by = read_name(spawn.get("parent_thread_id")) or read_name(meta.get("parent_thread_id"))
        forked_from = read_name(meta.get("forked_from_id"))
        self.agent = _agent(meta, spawn)
        if self.agent != MAIN and started_by:
            self.session = read_name(meta.get("session_id")) or started_by
            if self.session == self.id:
                self.session = started_by
        elif forked_from and forked_from != self.id:
            self.parent = forked_from
        self.owner = forked_from or started_by or ""
        self.inherits = self.history = bool(self.owner) and self.owner != self.id
        self._settle_time()

    def _settle(self, meta: Mapping[str, Any]) -> None:
        git = meta.get("git")
        self.cwd = read_folder(meta.get("cwd")) or self.cwd
        self.branch = (read_name(git.get("branch")) if isinstance(git, Mapping) else None) or self.branch
        self.version = read_name(meta.get("cli_version")) or self.version
        self.provider = read_name(meta.get("model_provider")) or self.provider

    def turn(self, payload: Mapping[str, Any], time_ns: int | None) -> None:
        """Take the beginning of a turn: it may be the thread's first own one."""
        if self.history:
            turn_id = payload.get("turn_id")
            if isinstance(turn_id, str) and _UUID7.match(turn_id.lower()) and _UUID7.match(self.id.lower()):
                self.dated = True
                if turn_id.lower() >= self.id.lower():
                    self._end_history()
            elif self._is_later(time_ns, 0):
                self._end_history()

    def _end_history(self) -> None:
        self.history = False
        self._settle_time()

    def whose(self, time_ns: int | None) -> str | None:
        """Tell whose a row is: None = the thread's own, empty = a replay, else the thread that it was copied from."""
        if not self.history and (time_ns is None or self.first_ns is None or time_ns >= self.first_ns):
            return None
        if self.history:
            if self._is_later(time_ns, _LONGEST_REPLAY_NS if self.dated else 0):
                self._end_history()
                return None
            return (self.owner or "?") if self._is_older(time_ns) else ""
        return (self.owner or "?") if self._is_older(time_ns) else None

    def _is_later(self, time_ns: int | None, than_ns: int) -> bool:
        """Whether a row was written after the file's first second, and so much more."""
        if time_ns is None or self.stamped_ns is None:
            return False
        return time_ns // SECOND > (self.stamped_ns + than_ns) // SECOND

    def _is_older(self, time_ns: int | None) -> bool:
        return time_ns is not None and self.first_ns is not None and time_ns < self.first_ns


def _spawn(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    source = meta.get("source")
    kind = source.get("subagent") if isinstance(source, Mapping) else None
    spawn = kind.get("thread_spawn") if isinstance(kind, Mapping) else None
    return spawn if isinstance(spawn, Mapping) else {}


def _agent(meta: Mapping[str, Any], spawn: Mapping[str, Any]) -> str:
    """The kind of sub-agent: `review`, `{"other": "guardian"}`, or the role of a spawned thread."""
    source = meta.get("source")
    kind = source.get("subagent") if isinstance(source, Mapping) else None
    if kind is None and meta.get("thread_source") != "subagent":
        return MAIN
    if isinstance(kind, Mapping) and "thread_spawn" not in kind:
        kind = next((read_name(value) or read_name(name) for name, value in kind.items()), None)
    role = read_name(kind)
    for names in (spawn, meta):
        for name in ("agent_role", "agent_type", "agent_nickname"):
            role = role or read_name(names.get(name))
    return role or SUB_AGENT
