"""The account of one Claude Code log: its responses, tool calls and facts, as its rows go by.

A response is told by several rows, of which only the last one knows its output. So the last few responses are kept open
and later rows of theirs are put to them; a row that repeats an older response makes a record of its own with the same
key, and the book sees to it that one counts. What is open is also what a later scan needs to go on: records of open
responses are given again when rows are added to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from sessionlog.events.damaged import Flaw, find_objects
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.claude_code.answer import Answer, Head
from sessionlog.sources.gather import ACTIVE_GAP_NS, latest
from sessionlog.sources.record import UNKNOWN, CopyRank, Quality, Record, ScannedSession, ToolUse, read_name

SOURCE_ID = "claude-code"
PROVIDER = "anthropic"

OPEN_ANSWERS = 4
"""Responses that may still get rows: one, and those of sub-agents that are echoed meanwhile."""

ENDS = frozenset({"end_turn", "stop_sequence"})
"""Why a response that ends a turn has stopped."""

_KEPT_CALLS = 64
_KEPT_SESSIONS = 16
FEW_TOKENS = 10
_LONGEST_TOKEN = 16
"""Bytes; on average no text has tokens longer than that."""

_FACTS = (
    "status", "prompt", "error", "parent", "project", "model", "moment_ns", "active_ns", "asked", "turns",
    "last_turn_ns",
)  # fmt: skip
_KEPT = (
    "key", "family", "copy_rank", "time_ns", "last_ns", "asked_ns", "model", "stop", "cost_nano", "latency_ms",
    "failed", "active_ns", "visible", "speed", "service_tier",
)  # fmt: skip
_MS = 1_000_000
_ECHO = int(CopyRank.EMBEDDED)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class Session:
    """What the log tells of one session: its span, records and tool calls."""

    __slots__ = ("last_ns", "records", "start_ns", "tools")

    def __init__(self, start_ns: int | None = None, last_ns: int | None = None) -> None:
        self.start_ns, self.last_ns = start_ns, last_ns
        self.records: list[Record] = []
        self.tools: dict[str, ToolUse] = {}


class Account:
    """The state of a scan.

    Attributes:
        sessions: By id; nearly always one.
        status: How the log's own session ended, as far as it goes.
        prompt: The user's first words.
        error: Why the last request failed.
        parent: The session it was forked from.
        project: The first working folder.
        model: The last model that answered.
        asked: Time of the last user's row, of the main and of side conversations.
        turns: The user's prompts so far.
        last_turn_ns: When the last of them came.
    """

    def __init__(
        self, path: str, stem: str, *, part: bool, measure: Callable[[Any], int], state: Mapping[str, Any] | None
    ) -> None:
        """Begin, or go on from the state of an earlier scan.

        Args:
            path: The log.
            stem: The session that its name tells.
            part: It is a sub-agent's.
            measure: Content → bytes of what it says visibly.
            state: What `state` gave.
        """
        self._path, self._stem, self._part, self._measure = path, stem, part, measure
        self.sessions: dict[str, Session] = {}
        self.status: str | None = None
        self.prompt = self.error = self.parent = ""
        self.project = UNKNOWN
        self.model: str | None = None
        self.moment_ns: int | None = None
        self.active_ns = 0
        self.asked: list[int | None] = [None, None]
        self.turns = 0
        self.last_turn_ns: int | None = None
        self._open: dict[tuple[str, int], Answer] = {}
        self._calls: dict[str, tuple[ToolUse, str]] = {}
        if state:
            self._restore(state)

    def session(self, session_id: str) -> Session:
        """Return the session of that id."""
        known = self.sessions.get(session_id)
        if known is None:
            known = self.sessions[session_id] = Session()
        return known

    def enter(self, head: Head) -> Session:
        """Return the session of a row."""
        if self.project == UNKNOWN:
            self.project = head.project
        return self.session(head.session_id)

    def begin(self, session: Session, time_ns: int | None) -> None:
        """Take a row's time: the session's span, and how long it was active."""
        if time_ns is None:
            return
        moment_ns = self.moment_ns
        self.moment_ns = time_ns
        if moment_ns is not None and 0 < time_ns - moment_ns <= ACTIVE_GAP_NS:
            self.active_ns += time_ns - moment_ns
            if session.last_ns == moment_ns:
                session.last_ns = time_ns
                return
        if session.start_ns is None or time_ns < session.start_ns:
            session.start_ns = time_ns
        if session.last_ns is None or time_ns > session.last_ns:
            session.last_ns = time_ns

    def turn(self, time_ns: int | None) -> None:
        """Take a prompt of the user's."""
        self.turns += 1
        self.last_turn_ns = latest(self.last_turn_ns, time_ns)

    def answer(self, key: str, family: str, copy_rank: int, head: Head, time_ns: int | None) -> Answer:
        """Return the open response of that key, or open a new one."""
        name = (key, int(copy_rank))  # an enum's own hash is a call into Python
        known = self._open.get(name)
        if known is not None:
            known.given = True
            known.at(time_ns)
            return known
        new = self._open[name] = Answer(key, family, copy_rank, head, time_ns)
        if copy_rank != _ECHO:
            new.asked_ns = self.asked[head.side]
            new.active_ns, self.active_ns = self.active_ns, 0
        if len(self._open) > OPEN_ANSWERS:
            self._close(self._open.pop(next(iter(self._open))))
        return new

    def call(self, head: Head, session: Session, key: str, tool: str, server: str, time_ns: int | None) -> None:
        """Take a tool call; one that is known is a copy."""
        tools = session.tools
        if key in tools or key in self._calls:
            return
        project = "" if head.project == UNKNOWN else head.project
        use = ToolUse(key=key, time_ns=time_ns, tool=tool, server=server, agent=head.agent, project=project)
        tools[key] = use
        self._calls[key] = use, head.session_id

    def result(self, key: str, time_ns: int | None, *, failed: bool, output_bytes: int) -> None:
        """Take a tool's result; one whose call is not in the log is left out."""
        known = self._calls.pop(key, None)
        if known is None:
            return
        use, session_id = known
        use.finished, use.failed, use.output_bytes = True, failed, output_bytes
        if use.time_ns is not None and time_ns is not None and time_ns >= use.time_ns:
            use.duration_ms = (time_ns - use.time_ns) / _MS
        self.session(session_id).tools[key] = use

    def _close(self, answer: Answer) -> None:
        answer.open = False
        if answer.given:
            self.session(answer.head.session_id).records.append(self._record(answer))

    def _record(self, answer: Answer) -> Record:
        if answer.told is not None:
            answer.settle()
        output, total, input_, cache_read, cache_write, cache_write_1h = answer.counts
        model, failed = answer.model, answer.failed
        _, _, project, branch, version, agent = answer.head
        exact = answer.stop is not None or output > FEW_TOKENS or failed
        return Record(
            time_ns=answer.time_ns,
            provider=PROVIDER,
            model=model or UNKNOWN,
            response_model=None if failed else model,
            usage=TokenUsage(
                input=input_, output=output, cache_read=cache_read, cache_write=cache_write,
                cache_write_1h=cache_write_1h,
            ),
            cost_nano=answer.cost_nano,
            latency_ms=answer.latency(),
            failed=failed,
            active_ms=0 if self._part else answer.active_ns // _MS,
            quality="exact" if exact else self._quality(answer),
            priced=not failed or total > 0,
            key=answer.key,
            family=answer.family,
            copy_rank=answer.copy_rank,
            project="" if project == UNKNOWN else project,
            branch=branch,
            version=version,
            agent=agent,
            speed=answer.speed,
            service_tier=answer.service_tier,
        )  # fmt: skip

    def _quality(self, answer: Answer) -> Quality:
        """Whether the final count reached the log: some versions of the CLI never wrote it."""
        self._read_unread(answer)
        return "partial" if answer.visible > _LONGEST_TOKEN * answer.counts[0] else "exact"

    def _read_unread(self, answer: Answer) -> None:
        if answer.counts[0] <= FEW_TOKENS:
            answer.visible += sum(self._measure(_content_of(unread)) for unread in answer.unread)
        answer.unread = []

    def state(self) -> dict[str, Any]:
        """What a later scan needs to go on, as JSON."""
        for answer in self._open.values():
            answer.settle()
            self._read_unread(answer)
        return {
            **{name: getattr(self, name) for name in _FACTS},
            "asked": list(self.asked),
            "open": [
                [list(a.head), list(a.counts), *(getattr(a, name) for name in _KEPT)] for a in self._open.values()
            ],
            "calls": [
                [session_id, use.key, use.time_ns, use.tool, use.server, use.agent, use.project]
                for use, session_id in list(self._calls.values())[-_KEPT_CALLS:]
            ],
            "sessions": [[i, s.start_ns, s.last_ns] for i, s in list(self.sessions.items())[-_KEPT_SESSIONS:]],
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        for name in _FACTS:
            setattr(self, name, state[name])
        self.asked = list(state["asked"])
        for session_id, start_ns, last_ns in state["sessions"]:
            self.sessions[session_id] = Session(start_ns, last_ns)
        for head, counts, *kept in state["open"]:
            answer = Answer("", "", CopyRank.ORIGINAL, Head(*head), None)
            for name, value in zip(_KEPT, kept, strict=True):
                setattr(answer, name, value)
            answer.counts, answer.output, answer.given = tuple(counts), counts[0], False
            self._open[answer.key, int(answer.copy_rank)] = answer
        for session_id, key, time_ns, tool, server, agent, project in state["calls"]:
            use = ToolUse(key=key, time_ns=time_ns, tool=tool, server=server, agent=agent, project=project)
            self._calls[key] = use, session_id

    def finish(self) -> tuple[ScannedSession, ...]:
        """Return the sessions, the log's own first; to be called once, at the end."""
        for answer in self._open.values():
            self._close(answer)
        own = next(reversed(self.sessions), self._stem)
        if not self._part and (self._stem in self.sessions or _UUID.match(self._stem)):
            own = self._stem  # though rows of an older session may be all that has been read so far
        ids = sorted(self.sessions, key=lambda session_id: session_id != own)
        return tuple(self._scanned(session_id, own=session_id == own) for session_id in ids)

    def _scanned(self, session_id: str, *, own: bool) -> ScannedSession:
        session = self.sessions[session_id]
        told: dict[str, Any] = {"part": True}
        if own and not self._part:
            told = {"status": self.status, "project": self.project, "prompt": self.prompt, "parent": self.parent}
            told |= {"turns": self.turns, "last_turn_ns": self.last_turn_ns}
            told["error"] = self.error if self.status == "error" else ""
        return ScannedSession(
            source=SOURCE_ID, session_id=session_id, path=self._path, start_ns=session.start_ns,
            last_ns=session.last_ns, harness=SOURCE_ID, records=tuple(session.records),
            tools=tuple(session.tools.values()), **told,
        )  # fmt: skip


def names_of(row: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    """The names that a row has under these keys, `unknown` for the missing ones."""
    return (read_name(row.get(name)) or UNKNOWN for name in names)


def _content_of(unread: Any) -> Any:
    """What a row says, when it was kept whole."""
    if not isinstance(unread, bytes):
        return unread
    try:
        return orjson.loads(unread)["message"]["content"]
    except ValueError:  # letters that JSON does not allow, inside a text
        pass
    rows = (item[0] for item in find_objects(unread) if not isinstance(item, Flaw))
    return next((row["message"]["content"] for row in rows if isinstance(row.get("message"), dict)), None)
