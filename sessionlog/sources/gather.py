"""Gather: what the scans of most sources share — facts of one session put together row by row, in a few plain values.

A source with speed to win does its own accounts; the others call this once a row. Its `state` is JSON, so that a scan
can go on where it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.times import SECOND
from sessionlog.sources.record import UNKNOWN, Problems, Record, ScannedSession, ToolUse

ACTIVE_GAP_NS = 300 * SECOND
"""Gaps of up to five minutes are activity, longer ones are pauses."""

_MAX_NAMED = 100
_PROMPT_LENGTH = 200
_FACTS = ("start_ns", "last_ns", "status", "project", "prompt", "error", "parent", "turns", "last_turn_ns")


class Findings:
    """The damage met in one log: all of it as a number, the first by name. News cost nothing and are left out."""

    def __init__(self) -> None:
        self._count = 0
        self._named: list[Problem] = []

    def note(self, problem: Problem) -> None:
        """Count a piece of damage, and keep it if it is among the first."""
        if problem.severity == "info":
            return
        self._count += 1
        if len(self._named) < _MAX_NAMED:
            self._named.append(problem)

    def complain(self, path: str, line: int, *issues: str) -> None:
        """Note numbers that are none, as `read_count` says it."""
        for issue in issues:
            self.note(Problem(path=path, line=line, offset=0, kind="bad_number", detail=issue))

    @property
    def problems(self) -> Problems:
        """What was noted."""
        return Problems(count=self._count, first=tuple(self._named))


class Gather:
    """One session's facts, records and tool calls, as far as its log has been read.

    Attributes:
        start_ns: The earliest time.
        last_ns: The latest.
        status: How it ended, as far as the log tells: success, error, cancelled; None = it has no end yet.
        project: Its working folder.
        prompt: The user's first words.
        error: Why it failed.
        parent: The session it was forked from.
        turns: The prompts so far; None where the log tells none.
        last_turn_ns: When the last of them came.
        records: Its records since the scan began.
        tools: Its tool calls, by key.
    """

    def __init__(self, source: str, session_id: str, path: str, *, state: Mapping[str, Any] | None = None) -> None:
        self._source, self._session_id, self._path = source, session_id, path
        self.start_ns: int | None = None
        self.last_ns: int | None = None
        self.status: str | None = None
        self.project = UNKNOWN
        self.prompt = ""
        self.error = ""
        self.parent = ""
        self.turns: int | None = None
        self.last_turn_ns: int | None = None
        for name in _FACTS:
            if state and name in state:
                setattr(self, name, state[name])
        self._moment_ns: int | None = (state or {}).get("moment_ns")
        self._active_ns: int = (state or {}).get("active_ns", 0)
        self._open: dict[str, list[Any]] = dict((state or {}).get("open", {}))
        self.records: list[Record] = []
        self.tools: dict[str, ToolUse] = {}

    def state(self) -> dict[str, Any]:
        """What a later scan needs to go on, as JSON."""
        facts = {name: getattr(self, name) for name in _FACTS}
        return {**facts, "moment_ns": self._moment_ns, "active_ns": self._active_ns, "open": dict(self._open)}

    def touch(self, time_ns: int | None) -> None:
        """Account for a row's time: the session's span, and how long it was active."""
        if time_ns is None:
            return
        if self.start_ns is None or time_ns < self.start_ns:
            self.start_ns = time_ns
        if self.last_ns is None or time_ns > self.last_ns:
            self.last_ns = time_ns
        if self._moment_ns is not None and 0 < time_ns - self._moment_ns <= ACTIVE_GAP_NS:
            self._active_ns += time_ns - self._moment_ns
        self._moment_ns = time_ns

    def ask(self, text: Any) -> None:
        """Take a user's words; the first ones name the session."""
        if not self.prompt:
            self.prompt = first_words(text)

    def turn(self, text: Any, time_ns: int | None) -> None:
        """Take a prompt, which begins a turn; without words it is none."""
        words = first_words(text)
        if words:
            self.prompt = self.prompt or words
            self.turns = (self.turns or 0) + 1
            self.last_turn_ns = latest(self.last_turn_ns, time_ns)

    def add(self, record: Record) -> None:
        """Take a record; the active time since the one before goes to it, and what comes after waits for the next."""
        record.active_ms, self._active_ns = self._active_ns // 1_000_000, self._active_ns % 1_000_000
        self.records.append(record)

    def call(
        self,
        key: str,
        time_ns: int | None,
        name: str,
        *,
        server: str = "",
        agent: str = "main",
        superseded_by: str = "",
    ) -> None:
        """Take a tool call; its result may come much later."""
        self._open[key] = [time_ns, name, server, agent, superseded_by]
        self.tools[key] = ToolUse(
            key=key, time_ns=time_ns, tool=name, server=server, agent=agent, superseded_by=superseded_by
        )

    def result(
        self, key: str, time_ns: int | None, *, failed: bool, output_bytes: int, duration_ms: float | None = None
    ) -> None:
        """Take a tool's result; one whose call was never seen is left out."""
        known = self._open.pop(key, None)
        if known is None:
            return
        called_ns, name, server, agent, superseded_by = known
        if duration_ms is None and called_ns is not None and time_ns is not None and time_ns >= called_ns:
            duration_ms = (time_ns - called_ns) / 1_000_000
        self.tools[key] = ToolUse(
            key=key, time_ns=called_ns, tool=name, server=server, agent=agent, finished=True, failed=failed,
            duration_ms=duration_ms, output_bytes=output_bytes, superseded_by=superseded_by,
        )  # fmt: skip

    def session(self, **more: Any) -> ScannedSession:
        """Return what is known of the session; `more` are fields of `ScannedSession` beyond those kept here."""
        if not more.get("part"):
            more = {"turns": self.turns, "last_turn_ns": self.last_turn_ns, **more}
        return ScannedSession(
            **{
                "source": self._source, "session_id": self._session_id, "path": self._path, "start_ns": self.start_ns,
                "last_ns": self.last_ns, "status": self.status, "project": self.project, "prompt": self.prompt,
                "error": self.error if self.status != "success" else "", "parent": self.parent,
                "records": tuple(self.records), "tools": tuple(self.tools.values()), **more,
            }
        )  # fmt: skip


def latest(one: int | None, other: int | None) -> int | None:
    """The later of two times that may be unknown."""
    return other if one is None else one if other is None else max(one, other)


def first_words(value: Any) -> str:
    """The beginning of a text, on one line; a list of parts gives the texts of its parts."""
    if isinstance(value, list):
        value = " ".join(p["text"] for p in value if isinstance(p, Mapping) and isinstance(p.get("text"), str))
    return " ".join(value[: 4 * _PROMPT_LENGTH].split())[:_PROMPT_LENGTH].rstrip() if isinstance(value, str) else ""


def text_size(value: Any) -> int:
    """Bytes of what a tool gave back: of a text, or of the texts of parts."""
    size, parts = 0, [value]  # not recursive: a hostile log nests them deeper than Python's stack
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            size += len(part.encode("utf-8", "replace"))
        elif isinstance(part, list):
            parts += [one.get("text", one.get("content")) for one in part if isinstance(one, Mapping)]
    return size


def server_of(name: str) -> tuple[str, str]:
    """Split the name that most agents give to an MCP server's tool: `mcp__SERVER__TOOL` → (tool, server)."""
    if name.startswith("mcp__"):
        server, found, tool = name[5:].partition("__")
        if found and server and tool:
            return tool, server
    return name, ""
