"""fold_usage: steps → records, tool calls and session facts, in one pass and in small memory.

Complete records and calls are kept in memory up to a limit, and beyond it in a temporary file (see `spool`).

The fold keeps open what later rows may extend: the last few responses (a response may be logged in several rows), the
tool calls without a result, and each thread's unfinished answer. All of that is `FoldState`, a Struct, whose encoding
lets a later scan of the same log resume. A response that is extended after it was returned is returned again under its
key, and the ledger keeps the greater one.

When was a request answered? Agents log the parts of an answer (texts, tool calls) before or after its token counts, and
the counts often only after the tools have run. So an answer begins with its first part, ends with its last one, and its
latency counts from the last thing that it answers: a prompt, a tool's result, or a request that is logged as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from sessionlog.errors import Problem
from sessionlog.events.names import MAIN, UNKNOWN
from sessionlog.events.times import SECOND
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.contents import first_words, has_words, measure
from sessionlog.sources.record import (
    CopyRank,
    Limit,
    Problems,
    Record,
    ScannedSession,
    ToolUse,
    cut_name,
    server_of,
)
from sessionlog.sources.spool import Lazily, Spool
from sessionlog.sources.steps import (
    At,
    BadNumber,
    Compaction,
    MoreInput,
    Prompt,
    PromptPart,
    RateLimit,
    Request,
    Response,
    SentRequest,
    Session,
    Status,
    Text,
    ToolCall,
    ToolResult,
    Totals,
)

ACTIVE_GAP_NS = 300 * SECOND
"""Gaps of up to five minutes are activity, longer ones are pauses."""

_MS = 1_000_000
_OPEN_RESPONSES = 8  # one, those inside it, and those of sub-agents whose rows come in between
_KEPT_CALLS = 64
_KEPT_SESSIONS = 16
_HELD = 16_384  # records and tool calls in memory
_HELD_SESSIONS = 2_048
_HELD_LAST = 256  # how many of them stay in memory when the others are spooled
_MAX_NAMED = 100
_NOTHING = TokenUsage()

Complete = Callable[[ScannedSession, int], ScannedSession]
"""(a session, milliseconds of activity after its last record) → the session as the log's source knows it."""
_EMBEDDED = int(CopyRank.EMBEDDED)


class Counted(Struct, frozen=True):
    """What the records of a thread, or of one scope of it, add up to."""

    usage: TokenUsage = _NOTHING
    requests: int = 0
    cost_nano: int = 0

    def plus(self, record: Record) -> Counted:
        """Return the sum with one more record."""
        return Counted(
            self.usage + record.usage, self.requests + record.requests, self.cost_nano + (record.cost_nano or 0)
        )


class Thread(Struct):
    """One conversation of a session, as far as it has been read.

    Attributes:
        agent: `main`, or the kind of sub-agent.
        asked_ns: The time of what the next answer answers.
        begun_ns: The time of what the open answer answers.
        part_ns: The time of the last part of the open answer.
        is_answering: An answer is open.
        key: Its response; "" while there is none.
        responses: The number of responses.
        counted: What responses and the remainders of sums add up to, by model or other scope; under "" all of them.
    """

    agent: str = MAIN
    asked_ns: int | None = None
    begun_ns: int | None = None
    part_ns: int | None = None
    is_answering: bool = False
    key: str = ""
    responses: int = 0
    counted: dict[str, Counted] = {}

    def count(self, record: Record, scope: str) -> None:
        """Add a record to what its scope and the whole thread add up to."""
        for name in {"", scope}:
            self.counted[name] = self.counted.get(name, _NOTHING_COUNTED).plus(record)


_NOTHING_COUNTED = Counted()


class SessionState(Struct):
    """One session, as far as it has been read."""

    id: str
    place: str = ""
    is_subagent_log: bool = False
    inherited: bool = False
    parent: str = ""
    start_ns: int | None = None
    last_ns: int | None = None
    moment_ns: int | None = None
    active_ns: int = 0
    status: str | None = None
    error: str = ""
    project: str = UNKNOWN
    harness: str = ""
    prompt: str = ""
    title: str = ""
    turns: int = 0
    last_turn_ns: int | None = None
    folder: str = ""
    branch: str = UNKNOWN
    version: str = UNKNOWN
    provider: str = UNKNOWN
    model: str = UNKNOWN
    context_window: int = 0
    threads: dict[str, Thread] = {}
    calls: dict[str, ToolUse] = {}
    responses: int = 0
    totals: int = 0


class OpenResponse(Struct):
    """A response that later rows may still extend.

    Attributes:
        record: Its record so far.
        session: The id of its session.
        thread: The name of its thread.
        asked_ns: The time of what it answers.
        ended_ns: The time of its last part.
        finish: Why it stopped, if that is known.
        given: This scan returns it; otherwise an earlier one has.
    """

    record: Record
    session: str
    thread: str
    asked_ns: int | None
    ended_ns: int | None
    finish: str = ""
    given: bool = True


class FoldState(Struct):
    """All that a later scan needs to resume."""

    current: str = ""
    thread: str = ""
    sessions: list[SessionState] = []
    open: list[OpenResponse] = []


class Findings:
    """The problems of one log: all are counted, the first are kept. Notes (severity `info`) are left out."""

    def __init__(self) -> None:
        self._count = 0
        self._named: list[Problem] = []

    def note(self, problem: Problem) -> None:
        """Count a problem, and keep it if it is among the first."""
        if problem.severity == "info":
            return
        self._count += 1
        if len(self._named) < _MAX_NAMED:
            self._named.append(problem)

    def add(self, problems: Problems) -> None:
        """Add the problems of a scan."""
        self._count += problems.count
        self._named += problems.first[: _MAX_NAMED - len(self._named)]

    @property
    def problems(self) -> Problems:
        """The problems noted so far."""
        return Problems(count=self._count, first=tuple(self._named))


class UsageFold:
    """Folds the steps of one log.

    Attributes:
        take: Type of a step → the function that adds one.
        findings: The problems of the log.
        limits: The latest report on each rate limit, by name.
        is_provisional: A session without a response was returned, so the log has to be read whole once it has grown.
    """

    def __init__(
        self,
        source: str,
        path: str,
        session_id: str,
        *,
        place: Callable[[], tuple[str, int, int]],
        harness: str = "",
        has_totals: bool = False,
        state: FoldState | None = None,
        findings: Findings | None = None,
    ) -> None:
        """Start, or resume from the state of an earlier scan.

        Args:
            source: The source's id.
            path: The log.
            session_id: The session that steps belong to before a `Session` step names one.
            place: Returns the place of the present row: (a unique name of the row, line, byte offset).
            harness: The agent program's name, for sessions that do not name one.
            has_totals: The source yields `Totals`, so what responses use is summed up.
            state: The value that `state` returned.
            findings: Where the problems go; None = into new ones.
        """
        self._source, self._path, self._own_id, self._place = source, path, session_id, place
        self._harness, self._has_totals = harness or source, has_totals
        self.findings = findings or Findings()
        self.limits: dict[str, Limit] = {}
        self.is_provisional = False
        self._records: dict[str, list[Record]] = {}
        self._tools: dict[str, dict[str, ToolUse]] = {}
        self._held, self._most_held = 0, _HELD
        self._most_sessions = _HELD_SESSIONS
        self._spool: Spool | None = None
        state = state or FoldState()
        self._sessions = {session.id: session for session in state.sessions}
        self._session = self._sessions.get(state.current, state.sessions[-1]) if state.sessions else None
        self._thread_id = state.thread
        self._open = {(one.session, one.record.key, int(one.record.copy_rank)): one for one in state.open}
        for known in state.open:
            known.given = False
        self.take: dict[type, Callable[[Any], None]] = {
            At: self._at,
            Session: self._enter,
            Prompt: self._prompt,
            Request: self._request,
            Text: self._part,
            Response: self._response,
            ToolCall: self._call,
            MoreInput: self._at,
            ToolResult: self._result,
            Totals: self._totals,
            Compaction: self._request,
            Status: self._status,
            RateLimit: self._limit,
            BadNumber: self._bad_number,
            PromptPart: lambda _: None,
            SentRequest: lambda _: None,
        }

    def state(self) -> FoldState:
        """Return the state from which a later scan resumes."""
        for session in self._sessions.values():
            if len(session.calls) > _KEPT_CALLS:
                session.calls = dict(list(session.calls.items())[-_KEPT_CALLS:])
        kept = {*list(self._sessions)[-_KEPT_SESSIONS:], *self._busy_sessions()}
        return FoldState(
            current=self._session.id if self._session else "",
            thread=self._thread_id,
            sessions=[session for session in self._sessions.values() if session.id in kept],
            open=list(self._open.values()),
        )

    def _busy_sessions(self) -> set[str]:
        """Return the ids of the session of the next steps and of those with an open response."""
        return {self._session.id if self._session else "", *(session_id for session_id, _, _ in self._open)}

    @property
    def session_now(self) -> SessionState:
        """The session of the next steps."""
        if self._session is None:
            self._session = self._open_session(self._own_id)
        return self._session

    def _open_session(self, session_id: str) -> SessionState:
        known = self._sessions.get(session_id)
        if known is None:
            if len(self._sessions) >= self._most_sessions:
                self._put_sessions_aside()
            if self._spool is not None and self._spool.has_sessions:
                known = self._spool.take_session(session_id, SessionState)
            known = known or SessionState(session_id, threads={}, calls={})
            self._sessions[session_id] = known
        return known

    def _put_aside(self) -> None:
        """Move complete items into the spool; if that fails, they stay in memory."""
        waiting = {session.id: session.calls for session in self._sessions.values() if session.calls}
        for calls in waiting.values():
            for key in list(calls)[:-_KEPT_CALLS]:
                del calls[key]
        batches: list[tuple[str, str, Sequence[Any]]] = [
            (session_id, "records", records) for session_id, records in self._records.items()
        ]
        for session_id, tools in self._tools.items():
            calls = waiting.get(session_id, {})
            batches.append((session_id, "tools", [use for key, use in tools.items() if calls.get(key) is not use]))
        try:
            self._spool = self._spool or Spool()
            self._spool.put(batch for batch in batches if batch[2])
        except Exception:  # noqa: BLE001 - no room for a temporary file: memory is what there is
            self._most_held = self._held * 2
            return
        self._records = {}
        self._tools = {
            session_id: kept
            for session_id, tools in self._tools.items()
            if (kept := {key: use for key, use in tools.items() if waiting.get(session_id, {}).get(key) is use})
        }
        self._held = sum(map(len, self._tools.values()))
        self._most_held = self._held + _HELD

    def _put_sessions_aside(self) -> None:
        """Move sessions without anything open into the spool, except the last ones."""
        busy = self._busy_sessions()
        idle = [one for one in self._sessions.values() if one.id not in busy][:-_HELD_LAST]
        try:
            self._spool = self._spool or Spool()
            self._spool.put_sessions((one.id, _is_unanswered(one), one) for one in idle)
        except Exception:  # noqa: BLE001 - no room for a temporary file: memory is what there is
            self._most_sessions = len(self._sessions) * 2
            return
        for one in idle:
            del self._sessions[one.id]
        self._most_sessions = len(self._sessions) + _HELD_SESSIONS

    def _thread(self, session: SessionState) -> Thread:
        known = session.threads.get(self._thread_id)
        if known is None:
            known = session.threads[self._thread_id] = Thread()
        return known

    def _touch(self, time_ns: int | None) -> SessionState:
        """Extend the session's span and active time up to a time."""
        session = self._session or self.session_now
        moment_ns = session.moment_ns
        if time_ns is None or time_ns == moment_ns or session.inherited:
            return session
        session.moment_ns = time_ns
        if moment_ns is None:
            session.start_ns = session.last_ns = time_ns
        elif time_ns > moment_ns:
            if time_ns - moment_ns <= ACTIVE_GAP_NS:
                session.active_ns += time_ns - moment_ns
            if session.last_ns is None or time_ns > session.last_ns:
                session.last_ns = time_ns
        elif session.start_ns is None or time_ns < session.start_ns:
            session.start_ns = time_ns
        return session

    def _at(self, step: At | MoreInput) -> None:
        self._touch(step.time)

    def _enter(self, step: Session) -> None:
        if step.id:
            self._session = self._open_session(step.id)
            if step.thread is None:
                self._thread_id = ""
        session = self.session_now
        if step.thread is not None:
            self._thread_id = step.thread
        if step.agent:
            self._thread(session).agent = step.agent
        if step.is_subagent_log is not None:
            session.is_subagent_log = step.is_subagent_log
        if step.inherited is not None:
            session.inherited = step.inherited
        if step.project:
            session.folder = step.project
            if session.project == UNKNOWN:
                session.project = step.project
        session.place = session.place or step.place
        session.parent = session.parent or step.parent
        session.title = step.title or session.title
        session.harness = step.harness or session.harness
        session.branch = cut_name(step.branch) or session.branch
        session.version = cut_name(step.version) or session.version
        session.provider = cut_name(step.provider) or session.provider
        session.model = cut_name(step.model) or session.model
        session.context_window = step.context_window or session.context_window
        if step.time is not None:
            self._touch(step.time)

    def _prompt(self, step: Prompt) -> None:
        if step.inherited:
            return
        session = self._touch(step.time)
        thread = self._thread(session)
        if step.time is not None:
            thread.asked_ns = step.time
        thread.is_answering = False
        if self._thread_id or step.role != "user":
            return
        if not has_words(step.text):
            return
        if session.inherited:
            session.title = session.title or first_words(step.text)
            return
        session.status = None
        session.turns += 1
        session.prompt = session.prompt or first_words(step.text)
        session.last_turn_ns = later(session.last_turn_ns, step.time)

    def _request(self, step: Request | Compaction) -> None:
        session = self._touch(step.time)
        thread = self._thread(session)
        thread.is_answering = False
        if step.time is not None:
            thread.asked_ns = step.time
        if not self._thread_id and isinstance(step, Request):
            session.status = None

    def _part(self, step: Text) -> None:
        self._begin_answer(self._touch(step.time), step.time)

    def _open_answer(self, session: SessionState, key: str = "") -> Thread:
        """Return the thread with an open answer; counts of another response end the answer before."""
        thread = session.threads.get(self._thread_id) or self._thread(session)
        if not thread.is_answering or (key and thread.key and thread.key != key):
            thread.is_answering, thread.begun_ns, thread.part_ns, thread.key = True, thread.asked_ns, None, ""
        thread.key = key or thread.key
        return thread

    def _begin_answer(self, session: SessionState, time_ns: int | None) -> Thread:
        thread = session.threads.get(self._thread_id)
        if thread is None or not thread.is_answering:
            thread = self._open_answer(session)
        if time_ns is not None:
            thread.part_ns = time_ns
        return thread

    def _response(self, step: Response) -> None:
        time_ns, tokens, rank, is_copy = step.time, step.tokens, step.rank, step.is_copy
        session = self.session_now if is_copy else self._touch(time_ns)
        if tokens is not None:
            for issue in tokens.issues:
                self._bad_number(BadNumber(issue))
        elif not step.failed:
            if not step.parent:
                self._begin_answer(session, time_ns)
            return
        is_own = rank != _EMBEDDED and not is_copy and not step.parent
        if is_own and (step.failed or step.error or session.status is not None):
            self._set_status(session, "error" if step.failed else None, step.error)
        key = step.key or self._place()[0]
        known = self._open.get((session.id, key, rank))
        if known is None:
            self._open_response(session, step, key)
        else:
            self._add_row(known, step)
        if step.final:
            self._thread(session).is_answering = False

    def _open_response(self, session: SessionState, step: Response, key: str) -> None:
        time_ns, rank, is_copy, asked_ns, active_ms = step.time, step.rank, step.is_copy, step.asked, 0
        model = step.model and cut_name(step.model)
        if step.parent:  # made while its parent was: it takes none of the time of the parent's thread
            thread = self._thread(session)
        else:
            thread = self._open_answer(session, key)
            begun_ns, after_ns, part_ns = thread.begun_ns, thread.asked_ns, thread.part_ns
            asked_ns = begun_ns if asked_ns is None and not is_copy else asked_ns
            if after_ns is not None and after_ns == begun_ns:
                after_ns = thread.asked_ns = None  # answered now: when the next one was asked for is another matter
            if part_ns is not None and (time_ns is None or (after_ns is not None and part_ns <= after_ns <= time_ns)):
                time_ns = part_ns  # the counts were logged after the tools had run
            if model and rank != _EMBEDDED and not self._thread_id:
                session.model = model
            if session.active_ns and rank != _EMBEDDED and not is_copy:
                active_ms, session.active_ns = divmod(session.active_ns, _MS)
            if not session.inherited:
                session.responses += 1
            thread.responses += 1
        usage = _NOTHING if step.tokens is None else step.tokens.usage
        record = Record(  # in the order of its class: by their names, so many values take six times as long
            time_ns, (step.provider and cut_name(step.provider)) or session.provider, model or session.model,
            (step.response_model and cut_name(step.response_model)) or None, usage, step.cost_nano, step.latency_ms, 1,
            step.failed, 0 if session.is_subagent_log else active_ms, step.granularity, step.quality,
            not step.failed or usage.total > 0, key, step.family, rank, step.superseded_by, session.folder,
            session.branch, session.version, thread.agent, step.speed, step.service_tier,
            step.skill and cut_name(step.skill), step.plugin and cut_name(step.plugin),
            step.mcp and cut_name(step.mcp), step.response_id, step.summed, step.searches, step.extra_nano,
            step.region and cut_name(step.region), step.kind, step.parent,
        )  # fmt: skip
        self._open[session.id, key, rank] = OpenResponse(
            record, session.id, self._thread_id, asked_ns, time_ns, step.finish
        )
        if len(self._open) > _OPEN_RESPONSES:
            self._close(self._open.pop(next(iter(self._open))))

    def _add_row(self, known: OpenResponse, step: Response) -> None:
        """Add a later row of a response: the greatest counts are the response's, the last known reason its end."""
        record, time_ns = known.record, step.time
        known.given = True
        if time_ns is not None:
            if record.time_ns is None or time_ns < record.time_ns:
                record.time_ns = time_ns
            if known.ended_ns is None or time_ns > known.ended_ns:
                known.ended_ns = time_ns
        usage, before = _NOTHING if step.tokens is None else step.tokens.usage, record.usage
        is_greater = usage is not before and (usage.output, usage.total) > (before.output, before.total)
        if is_greater or step.finish or record.quality == "exact":
            record.quality = step.quality
        if is_greater:
            record.usage = usage
        known.finish = step.finish or known.finish
        if step.failed or record.failed:
            record.failed, record.priced = step.failed, not step.failed or record.usage.total > 0
        if step.speed or step.service_tier:
            record.speed, record.service_tier = step.speed or record.speed, step.service_tier or record.service_tier
        if step.skill or step.plugin or step.mcp:
            record.skill = record.skill or cut_name(step.skill)
            record.plugin = record.plugin or cut_name(step.plugin)
            record.mcp = record.mcp or cut_name(step.mcp)
        record.response_id = record.response_id or step.response_id
        if step.searches:
            record.searches = max(record.searches, step.searches)
        if step.region:
            record.region = cut_name(step.region)
        if step.extra_nano is not None:
            record.extra_nano = max(record.extra_nano or 0, step.extra_nano)
        if record.model == UNKNOWN:
            record.model = cut_name(step.model) or UNKNOWN
        if step.cost_nano is not None:
            record.cost_nano = max(record.cost_nano or 0, step.cost_nano)
        if step.latency_ms is not None:
            record.latency_ms = max(record.latency_ms or 0.0, step.latency_ms)

    def _close(self, done: OpenResponse) -> None:
        record = done.record
        if self._has_totals:  # also if an earlier scan has returned it: that one's state was taken before
            self._sessions[done.session].threads[done.thread].count(record, record.model)
        if not done.given:
            return
        if record.latency_ms is None and record.granularity != "session":
            asked_ns, ended_ns = done.asked_ns, done.ended_ns
            if asked_ns is not None and ended_ns is not None and ended_ns > asked_ns:
                record.latency_ms = (ended_ns - asked_ns) / _MS
        self._give(done.session, record)

    def _give(self, session_id: str, record: Record) -> None:
        records = self._records.get(session_id)
        if records is None:
            records = self._records[session_id] = []
        records.append(record)
        self._held += 1
        if self._held >= self._most_held:
            self._put_aside()

    def _call(self, step: ToolCall) -> None:
        if step.is_copy:
            return
        session = self._touch(step.time)
        thread = self._begin_answer(session, step.time)
        tools = self._tools.setdefault(session.id, {})
        if step.key in tools or step.key in session.calls:
            return
        tool, server = server_of(cut_name(step.tool) or UNKNOWN)
        use = ToolUse(
            step.key, step.time, tool, step.server or server, thread.agent, session.folder,
            superseded_by=step.superseded_by,
        )  # fmt: skip
        tools[step.key] = session.calls[step.key] = use
        self._held += 1
        if self._held >= self._most_held:
            self._put_aside()

    def _result(self, step: ToolResult) -> None:
        session = self._touch(step.time)
        known = session.calls.get(step.key)
        if step.pending:
            if known is not None:
                known.failed = bool(step.failed) if step.failed is not None else known.failed
                known.duration_ms = known.duration_ms if step.duration_ms is None else step.duration_ms
                known.tool, known.server = cut_name(step.tool) or known.tool, step.server or known.server
            return
        if step.time is not None:
            thread = session.threads.get(self._thread_id) or self._thread(session)
            thread.asked_ns = step.time
        if not self._thread_id:
            session.status = None
        if known is None:
            return
        del session.calls[step.key]
        known.finished = True
        if step.failed is not None:
            known.failed = step.failed
        known.output_bytes = measure(step.output) if step.size is None else step.size
        if step.duration_ms is not None:
            known.duration_ms = step.duration_ms
        elif known.duration_ms is None and known.time_ns is not None and step.time is not None:
            known.duration_ms = (step.time - known.time_ns) / _MS if step.time >= known.time_ns else None
        self._tools.setdefault(session.id, {})[step.key] = known

    def _totals(self, step: Totals) -> None:
        """Make a record of what the session's own sum holds beyond its responses and earlier sums.

        A first sum of nothing but requests is a record; a remainder without tokens and cost is none.
        """
        session = self._touch(step.time)
        if step.tokens is not None:
            for issue in step.tokens.issues:
                self._bad_number(BadNumber(issue))
        self.close_open()
        thread = self._thread(session)
        is_session, is_first = not thread.responses, step.scope not in thread.counted
        known = thread.counted.get(step.scope, _NOTHING_COUNTED)
        usage = _NOTHING if step.tokens is None else step.tokens.usage.beyond(known.usage)
        requests = max(0, step.requests - known.requests) if is_session else 0
        cost_nano = max(0, (step.cost_nano or 0) - known.cost_nano) or None
        for number in range(step.failed_requests):
            failed = self._record_of(session, step, f"failed:{number}", requests=int(is_session), failed=True)
            self._give(session.id, failed)
        if usage == _NOTHING and cost_nano is None and not (is_first and requests and step.tokens):
            return
        session.totals += 1
        rest = self._record_of(session, step, str(session.totals), usage, cost_nano, requests=requests)
        thread.count(rest, step.scope)
        self._give(session.id, rest)

    def _record_of(
        self, session: SessionState, step: Totals, name: str, usage: TokenUsage = _NOTHING,
        cost_nano: int | None = None, *, requests: int, failed: bool = False,
    ) -> Record:  # fmt: skip
        """Return the record of a part of a sum; `name` is its own among those of the sum's scope."""
        active_ms, session.active_ns = divmod(session.active_ns, _MS)
        thread = self._thread(session)
        return Record(
            time_ns=step.time,
            provider=cut_name(step.provider) or session.provider,
            model=cut_name(step.model) or session.model,
            response_model=None,
            usage=usage,
            cost_nano=cost_nano,
            requests=requests,
            failed=failed,
            priced=not failed,
            active_ms=0 if session.is_subagent_log else active_ms,
            granularity="request" if thread.responses else "session",
            quality=step.quality,
            key=f"{session.place}{session.id}:{self._thread_id}:total:{step.scope}:{name}",
            superseded_by=step.superseded_by,
            summed=not failed,
            project=session.folder,
            branch=session.branch,
            version=session.version,
            agent=thread.agent,
        )

    def _status(self, step: Status) -> None:
        self._set_status(self._touch(step.time), step.status, step.error)

    def _set_status(self, session: SessionState, status: str | None, error: str) -> None:
        if not self._thread_id and not session.inherited:
            session.status = status
            if error:
                session.error = first_words(error) or session.error

    def _limit(self, step: RateLimit) -> None:
        self.limits[step.limit.name] = step.limit

    def _bad_number(self, step: BadNumber) -> None:
        _, line, offset = self._place()
        self.findings.note(Problem(path=self._path, line=line, offset=offset, kind="bad_number", detail=step.detail))

    def drain(self) -> list[Record]:
        """Return the records made since the last call, and drop them and all tool calls."""
        if not self._records:
            return []
        records = [record for given in self._records.values() for record in given]
        self._records, self._tools, self._held = {}, {}, 0
        calls = self.session_now.calls
        for key in list(calls)[:-_KEPT_CALLS] if len(calls) > _HELD else ():
            del calls[key]
        return records

    @property
    def open_keys(self) -> set[str]:
        """The keys of responses that may still get more rows; none of them is returned before."""
        return {key for _, key, _ in self._open}

    def close_open(self) -> None:
        """Close all open responses."""
        while self._open:
            self._close(self._open.pop(next(iter(self._open))))

    def facts(self) -> ScannedSession | None:
        """Return the facts, up to now, of the log's own session, else of the first one; without records."""
        session = self._sessions.get(self._own_id) or next(iter(self._sessions.values()), None)
        return None if session is None else self._scanned(session, lambda scanned, _: scanned)

    def give_last_again(self) -> int:
        """Add the last response of an earlier scan to the records again; return how many records that are."""
        last = list(self._open.values())[-1:]
        for known in last:
            known.given = True
        return len(last)

    def finish(self, complete: Complete) -> Sequence[ScannedSession]:
        """Return the sessions, the log's own first; call it once, at the end.

        `complete` gets each session, and the milliseconds that it was active after its last record.
        """
        self.close_open()
        put: Sequence[SessionState] = ()
        if self._spool is not None and self._spool.has_sessions:
            own = self._spool.take_session(self._own_id, SessionState)
            if own is not None:
                self._sessions[own.id] = own
            put = self._spool.sessions(SessionState)
            self.is_provisional = self._spool.has_marked()
        self.is_provisional |= any(map(_is_unanswered, self._sessions.values()))
        held = sorted(self._sessions.values(), key=lambda session: session.id != self._own_id)
        if put:
            count = len(held) + len(put)
            return Lazily(count, lambda: (self._scanned(one, complete) for one in chain(held, put)))
        return tuple(self._scanned(one, complete) for one in held)

    def _items(self, session_id: str, kind: str, held: Sequence[Any], type_: type[Any]) -> Sequence[Any]:
        """Return all items of a session, from the spool and from memory."""
        if self._spool is None:
            return tuple(held)
        put = self._spool.items(session_id, kind, type_)
        if isinstance(put, tuple):
            return (*put, *held)
        return Lazily(len(put) + len(held), lambda: chain(put, held))

    def _scanned(self, session: SessionState, complete: Complete) -> ScannedSession:
        is_part = session.is_subagent_log
        has_no_turns = is_part or (not session.turns and session.totals > 0 and not session.responses)
        held = self._records.get(session.id, [])
        records = self._items(session.id, "records", held, Record)
        if _is_unanswered(session):
            records = (*records, _of_unanswered(session))
        found = ScannedSession(
            source=self._source,
            session_id=session.id,
            path=self._path,
            place=session.place,
            part=is_part,
            parent=session.parent,
            start_ns=session.start_ns,
            last_ns=session.last_ns,
            status=None if is_part else session.status,
            project=session.project,
            harness=session.harness or self._harness,
            metadata={"context_window": session.context_window} if session.context_window and not is_part else {},
            prompt="" if is_part else session.prompt or first_words(session.title),
            error=session.error if session.status == "error" and not is_part else "",
            turns=None if has_no_turns else session.turns,
            last_turn_ns=None if has_no_turns else session.last_turn_ns,
            counted=is_part or bool(session.responses or session.totals or not session.turns),
            records=records,
            tools=self._items(session.id, "tools", tuple(self._tools.get(session.id, {}).values()), ToolUse),
        )
        return complete(found, session.active_ns // _MS)


def _is_unanswered(session: SessionState) -> bool:
    """Whether a session has no response yet."""
    return bool(session.turns) and not (session.responses or session.totals or session.is_subagent_log)


def _of_unanswered(session: SessionState) -> Record:
    """Return an empty record, which lists a session without responses and adds nothing to any sum."""
    return Record(
        time_ns=session.start_ns, provider=session.provider, model=session.model, response_model=None,
        usage=_NOTHING, cost_nano=None, requests=0, granularity="session", priced=False,
        active_ms=session.active_ns // _MS, project=session.folder, branch=session.branch, version=session.version,
    )  # fmt: skip


def later(one: int | None, other: int | None) -> int | None:
    """Return the later of two times that may be unknown."""
    return other if one is None else one if other is None else max(one, other)
