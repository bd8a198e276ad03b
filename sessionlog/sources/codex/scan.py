"""One Codex rollout, row by row: its responses, tool calls, outcome and rate limits.

`Rollout.take` is the reference: it takes a decoded row. The fast lane (lane.py) calls the same accounts with what it
finds in a row's bytes, so both give the same by construction. Rows that account for nothing move only the session's
last time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sessionlog.events.times import SECOND
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.codex.counters import NOTHING, Vector, advance, read_vector, usage_of
from sessionlog.sources.codex.limits import read_limits
from sessionlog.sources.codex.thread import Thread, read_folder, read_moment
from sessionlog.sources.codex.tools import OUTPUT_TYPES, Tools, read_call, read_output
from sessionlog.sources.gather import ACTIVE_GAP_NS, Findings, first_words, latest
from sessionlog.sources.record import UNKNOWN, CopyRank, Limit, Record, ScannedSession, read_name

ID = "codex"

TOOL_ENDS = frozenset({"mcp_tool_call_end", "exec_command_end", "patch_apply_end"})
"""Events that tell how a tool call ended."""

_MS = 1_000_000
_new = object.__new__  # and all fields set: a quarter of the time that the class takes to be called
_REAL, _SIDE = CopyRank.ORIGINAL, CopyRank.SIDECHAIN  # looking a member up takes longer than reading a name
_FACTS = (
    "start_ns", "last_ns", "moment_ns", "active_ns", "asked_ns", "status", "prompt", "error", "at_fault", "trouble",
    "ordinal", "begun", "turns", "last_turn_ns", "echoes", "prompted_ns",
)  # fmt: skip
_LOCAL_ERRORS = frozenset({"sandbox_error", "thread_rollback_failed", "active_turn_not_steerable"})
_NOT_THE_USER = ("<", "# AGENTS.md instructions")
_CONTEXT = ("<environment_context>", "<user_instructions>")
_ECHO_NS = 10 * SECOND

Row = Mapping[str, Any]


class Rollout:
    """The accounts of one rollout, as far as it has been read.

    Attributes:
        thread: Whose rows these are.
        tools: Its tool calls.
        records: Its records since the scan began.
        limits: The latest word on each rate limit, by name.
        findings: What is wrong with the log.
        line: Number of the line that is read; for findings.
        begun: A row has been taken.
        turns: The user's prompts so far.
        last_turn_ns: When the last of them came.
        last_ns: The latest time.
        status: How the last turn ended; None while it runs.
        error: Why it failed.
        counter: The thread's total.
    """

    def __init__(self, path: str, state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self.path = path
        self.line = 0
        self.begun = False
        self.turns = 0
        self.last_turn_ns: int | None = None
        self.echoes = 0  # prompts that were told as items and not yet as events; below 0 the other way round
        self.prompted_ns: int | None = None
        self.thread = Thread(path, state.get("thread"))
        self.tools = Tools(self.thread, state.get("open"))
        self.findings = Findings()
        self.records: list[Record] = []
        self.limits: dict[str, Limit] = {}
        counter = state.get("counter")
        self.counter: Vector | None = tuple(counter) if counter else None
        self.start_ns: int | None = None
        self.last_ns: int | None = None
        self.moment_ns: int | None = None  # the row before, for the active time
        self.active_ns = 0
        self.asked_ns: int | None = None  # what the next response answers
        self.status: str | None = None
        self.prompt = ""
        self.error = ""
        self.at_fault = False  # the turn had an error, and no response since
        self.trouble: list[Any] = []  # the time and message of a broken stream that may yet be mended
        self.ordinal = 0  # of rows without a time
        for name in _FACTS:
            if name in state:
                setattr(self, name, state[name])
        self._rows = {"session_meta": self._session_meta, "turn_context": self.turn_context}
        self._acts: dict[str, Callable[[Row, int | None], None]] = {
            "token_count": self._token_count,
            "user_message": self._user_message,
            "task_started": self._task_started,
            "turn_started": self._task_started,
            "task_complete": self._task_complete,
            "turn_complete": self._task_complete,
            "turn_aborted": self._turn_aborted,
            "error": self._failed,
            "stream_error": self._stream_error,
            **dict.fromkeys(TOOL_ENDS, self.tool_ended),
        }

    def state(self) -> dict[str, Any]:
        """What a later scan needs to go on, as JSON."""
        facts = {name: getattr(self, name) for name in _FACTS}
        counter = list(self.counter) if self.counter else None
        return {**facts, "counter": counter, "thread": self.thread.state(), "open": self.tools.state()}

    def take(self, row: Row, line: bytes = b"") -> None:
        """Take one decoded row; `line` is what it was decoded from, where it is alone on it."""
        self.begun = True
        payload = row.get("payload")
        if isinstance(payload, Mapping):
            kind, time_ns = row.get("type"), read_moment(row.get("timestamp"))
        elif "payload" in row:
            return
        elif "type" in row:  # before the wrapper of September 2025
            payload, kind, time_ns = row, "response_item", read_moment(row.get("timestamp"))
        elif "id" in row and "timestamp" in row:
            payload, kind, time_ns = row, "session_meta", read_moment(row["timestamp"])
        else:
            return
        if kind == "response_item":
            self._item(payload, time_ns, line)
            return
        if kind == "event_msg":
            type_ = payload.get("type")
            act = self._acts.get(type_) if isinstance(type_, str) else None
        else:
            act = self._rows.get(kind) if isinstance(kind, str) else None
        if act is None:
            self.pass_over(time_ns)
        else:
            act(payload, time_ns)

    def _item(self, item: Row, time_ns: int | None, line: bytes) -> None:
        type_ = item.get("type")
        if type_ == "message" and item.get("role") == "user":
            words = first_words(item.get("content"))
            if is_typed(words):
                self.prompted(words, time_ns, 1)
            else:
                self.asked(time_ns)
        elif isinstance(type_, str) and type_ in OUTPUT_TYPES:
            call_id = read_name(item.get("call_id"))
            if call_id:
                self.returned(call_id, time_ns, *read_output(item, line))
        else:
            call = read_call(item)
            if call is None:
                self.pass_over(time_ns)
            else:
                self.called(*call, time_ns)

    def pass_over(self, time_ns: int | None) -> None:
        """Account for a row that says nothing but that the session goes on."""
        if time_ns is not None and (self.last_ns is None or time_ns > self.last_ns):
            self.last_ns = time_ns

    def touch(self, time_ns: int | None, own: bool = False) -> bool:
        """Account for a row's time; False when the row is a copy of another thread's and not known to be `own`."""
        if time_ns is None:
            return own or self.thread.whose(None) is None
        if time_ns < self.thread.own_ns and not own and self.thread.whose(time_ns) is not None:
            return False
        moment_ns = self.moment_ns  # of the row before: the same for many
        if time_ns == moment_ns:
            return True
        if self.last_ns is None or time_ns > self.last_ns:
            self.last_ns = time_ns
        if self.start_ns is None or time_ns < self.start_ns:
            self.start_ns = time_ns
        elif moment_ns is not None and 0 < time_ns - moment_ns <= ACTIVE_GAP_NS:
            self.active_ns += time_ns - moment_ns
        self.moment_ns = time_ns
        return True

    def tally(
        self, own: bool, time_ns: int | None, total: Vector | None, last: Vector | None, model: str | None = None
    ) -> bool:
        """Account for a counter of a row that is the thread's own, or not; False when it tells nothing new."""
        counter = total or last or NOTHING
        self.counter, used = advance(self.counter, total, last, inherits=self.thread.inherits)
        return used is not None and self.respond(own, time_ns, counter, used, model)

    def respond(self, own: bool, time_ns: int | None, counter: Vector, used: Vector, model: str | None = None) -> bool:
        """Account for a response that moved the counter; False when the parent's file tells it."""
        thread = self.thread
        latency_ms, copy_rank, teller = None, _REAL, thread.id
        if own:
            asked_ns = self.asked_ns
            if asked_ns is not None and time_ns is not None and time_ns >= asked_ns:
                latency_ms = (time_ns - asked_ns) / _MS
            self.asked_ns = None
            self.at_fault = False
            if self.trouble:
                self.trouble = []
        else:
            teller = thread.whose(time_ns) or ""
            if not teller:
                return False  # history under a new date
            copy_rank = _SIDE
        moment: int | str | None = time_ns
        if moment is None:
            self.ordinal += 1
            moment = f"#{self.ordinal}"
        family = f"{moment}:{counter[0]}.{counter[1]}.{counter[2]}.{counter[3]}"
        record = _new(Record)
        record.time_ns = time_ns
        record.provider = thread.provider
        record.model = model if model and thread.model == UNKNOWN else thread.model
        record.response_model = None
        record.usage = usage_of(used)
        record.cost_nano = None
        record.latency_ms = latency_ms
        record.requests = 1
        record.failed = False
        record.active_ms, self.active_ns = divmod(self.active_ns, _MS)
        record.granularity = "request"
        record.quality = "exact"
        record.priced = True
        record.key = f"{teller}:{family}"
        record.family = "" if time_ns is None else family
        record.copy_rank = copy_rank
        record.superseded_by = ""
        record.project = thread.cwd
        record.branch = thread.branch
        record.version = thread.version
        record.agent = thread.agent
        record.speed = record.service_tier = ""
        self.records.append(record)
        return True

    def _fail(self, time_ns: int | None, message: str) -> None:
        """Account for a request that was given up: it used nothing that is known, and it has no price."""
        thread = self.thread
        self.ordinal += 1
        self.status, self.error, self.trouble, self.at_fault = "error", message, [], True
        active_ms, self.active_ns = self.active_ns // _MS, self.active_ns % _MS
        self.records.append(
            Record(
                time_ns=time_ns, provider=thread.provider, model=thread.model, response_model=None, usage=TokenUsage(),
                cost_nano=None, failed=True, priced=False, active_ms=active_ms,
                key=f"{thread.id}:{self.ordinal if time_ns is None else time_ns}:failed", project=thread.cwd,
                branch=thread.branch, version=thread.version, agent=thread.agent,
            )
        )  # fmt: skip

    def asked(self, time_ns: int | None) -> None:
        """Account for something that the next response answers."""
        if self.touch(time_ns):
            self.asked_ns = time_ns

    def prompted(self, words: str, time_ns: int | None, kind: int) -> None:
        """Account for a prompt: Codex tells it as an item (1) and as an event (-1), and the earlier one is the turn."""
        if not self.touch(time_ns):
            return
        self.asked_ns = time_ns
        self.prompt = self.prompt or words
        if time_ns is not None:
            if self.prompted_ns is not None and time_ns - self.prompted_ns > _ECHO_NS:
                self.echoes = 0
            self.prompted_ns = time_ns
        if self.echoes * kind >= 0:
            self.turns += 1
            self.last_turn_ns = latest(self.last_turn_ns, time_ns)
        self.echoes += kind

    def started(self, time_ns: int | None) -> None:
        """Account for the start of a turn."""
        if self.touch(time_ns):
            self.status, self.error, self.at_fault, self.trouble = None, "", False, []
            self.asked_ns = time_ns

    def completed(self, time_ns: int | None) -> None:
        """Account for the end of a turn that went well."""
        if self.touch(time_ns):
            self.status, self.error = "success", ""

    def called(self, call_id: str, name: str, server: str, time_ns: int | None) -> None:
        """Account for a tool call."""
        if self.touch(time_ns):
            self.tools.call(call_id, name, server, time_ns)

    def returned(self, call_id: str, time_ns: int | None, failed: bool | None, size: int) -> None:
        """Account for what a tool gave back; `failed` is None when it does not tell."""
        if self.touch(time_ns):
            self.asked_ns = time_ns
            self.tools.result(call_id, time_ns, failed, size)

    def _session_meta(self, meta: Row, time_ns: int | None) -> None:
        is_first = not self.thread.named
        self.thread.introduce(meta, time_ns)
        time_ns = self.thread.began_ns if time_ns is None else time_ns
        self.touch(time_ns, own=is_first)

    def turn_context(self, context: Row, time_ns: int | None) -> None:
        """Account for a turn's model and folder."""
        self.thread.turn(context, time_ns)
        self.thread.model = read_name(context.get("model")) or self.thread.model
        if self.touch(time_ns):
            self.thread.cwd = read_folder(context.get("cwd")) or self.thread.cwd
            if self.thread.project == UNKNOWN:
                self.thread.project = self.thread.cwd or UNKNOWN
            self.asked_ns = time_ns

    def _task_started(self, event: Row, time_ns: int | None) -> None:
        self.thread.turn(event, time_ns)
        self.started(time_ns)

    def _user_message(self, event: Row, time_ns: int | None) -> None:
        words = first_words(event.get("message"))
        if words and not words.startswith(_CONTEXT):
            self.prompted(words, time_ns, -1)
        else:
            self.asked(time_ns)

    def _token_count(self, event: Row, time_ns: int | None) -> None:
        if self.thread.whose(time_ns) is None:
            self.take_limits(event.get("rate_limits"), time_ns)
        info = event.get("info")
        if not isinstance(info, Mapping):
            self.touch(time_ns)
            return
        total, issues = read_vector(info.get("total_token_usage"), self.counter)
        last, more = read_vector(info.get("last_token_usage"))
        self.findings.complain(self.path, self.line, *issues, *more)
        model = read_name(event.get("model")) or read_name(info.get("model")) or read_name(info.get("model_name"))
        self.tally(self.touch(time_ns), time_ns, total, last, model)

    def take_limits(self, limits: Any, time_ns: int | None) -> None:
        """Keep the latest word on each rate limit, by a row of the thread's own."""
        if isinstance(limits, Mapping) and time_ns is not None:
            for limit in read_limits(limits, time_ns):
                self.limits[limit.name] = limit

    def _task_complete(self, event: Row, time_ns: int | None) -> None:
        if self.trouble:
            if self.touch(time_ns):
                self._fail(*self.trouble)
        elif self.at_fault and not event.get("last_agent_message"):
            self.touch(time_ns)
        else:
            self.completed(time_ns)

    def _turn_aborted(self, _: Row, time_ns: int | None) -> None:
        if self.touch(time_ns):
            if self.trouble:
                self._fail(*self.trouble)
            self.status, self.error = "cancelled", ""

    def _failed(self, event: Row, time_ns: int | None) -> None:
        if not self.touch(time_ns):
            return
        message = first_words(event.get("message"))
        info = event.get("codex_error_info")
        kind = next(iter(info), None) if isinstance(info, Mapping) else info
        if isinstance(kind, str) and kind in _LOCAL_ERRORS:
            self.status, self.error, self.at_fault = "error", message, True
        else:
            self._fail(time_ns, message)

    def _stream_error(self, event: Row, time_ns: int | None) -> None:
        if self.touch(time_ns):
            self.trouble = [time_ns, first_words(event.get("message"))]

    def tool_ended(self, event: Row, time_ns: int | None) -> None:
        """Account for what an event tells of a tool call."""
        if self.touch(time_ns):
            self.tools.ended(event)

    def session(self) -> ScannedSession:
        """Return what is known of the session, with the records since the scan began."""
        thread = self.thread
        return ScannedSession(
            source=ID, session_id=thread.session, path=self.path, part=thread.part, parent=thread.parent,
            start_ns=self.start_ns, last_ns=self.last_ns, status=self.status, project=thread.project,
            prompt=self.prompt, error=self.error if self.status == "error" else "", records=tuple(self.records),
            tools=self.tools.uses(), turns=None if thread.part else self.turns,
            last_turn_ns=None if thread.part else self.last_turn_ns,
        )  # fmt: skip


def is_typed(words: str) -> bool:
    """Whether an item with these first words is the user's: it has some, and they are not Codex's own."""
    return bool(words) and not words.startswith(_NOT_THE_USER)
