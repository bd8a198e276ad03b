"""native: sessionlog's own logs, and by dialect those of the Go original.

Where: `$SESSIONLOG_DIR`, else `$XDG_STATE_HOME/sessionlog/sessions`; any file or folder given by path. Shape: one JSONL
file per session, `{"session_id","seq","type","ts","data"}` a line; the session's id is the file name. Traps: ids
inside may differ, `seq` may repeat, a file may have two starts (the first counts) or several ends, no end (killed, or
running), totals but no responses, responses after the end. The Go original's dialect shows by a start without `v`.

A run ends with session.end; a session that was continued has several. (One with the status `closed` ends nothing: a
logger was closed.) What an end reports beyond the responses of its run is one more record, at the end's time, and its
cost covers the responses that name none, each by its share of the tokens. So an end changes records that came before
it: a scan that goes on and meets one reads the whole log. Nothing goes on from an end (another one may replace it), nor
in the Go original's logs, whose last end speaks of all of it, nor in packed logs, which do not grow. The activity after
the last response is counted with it until another one comes. A session that sent no request costs nothing; the cost of
one that ended without an answer to its only request is unknown.

Copies: a log in another folder (a backup, a synced home), which may end earlier, or go on another way, is known by
its name and the time of its first event. They are in all keys; a response's key also has its number and its time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Self

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.billing import Billed, Inner, read_billed, read_inner, read_region, read_speed, read_tier
from sessionlog.events.decoded_size import LARGE, too_large
from sessionlog.events.envelope import CLOSED, Event
from sessionlog.events.limits import MAX_LINE
from sessionlog.events.money import read_usd
from sessionlog.events.times import parse_time
from sessionlog.events.tokens import TOKEN_CLASSES, TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.reader.stream import EventStream, is_young, read_events
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_logs
from sessionlog.sources import fizeau_dialect
from sessionlog.sources.fizeau_dialect import is_native
from sessionlog.sources.fold_usage import ACTIVE_GAP_NS
from sessionlog.sources.kit import (
    UNKNOWN,
    At,
    BadNumber,
    LogFormat,
    Response,
    Step,
    Tokens,
    ToolCall,
    ToolResult,
    Typed,
    buffer_of,
    first_words,
    folder,
    mapping,
    name,
    source,
)
from sessionlog.sources.native_texts import SeenTexts, text_steps
from sessionlog.sources.native_turns import Message, Turns
from sessionlog.sources.places import PLACES
from sessionlog.sources.protocol import HEAD, Resume
from sessionlog.sources.record import CopyRank, Problems, Record, ScannedSession
from sessionlog.sources.spool import Lazily
from sessionlog.sources.typed import MISFITS

ID = "native"
UNFINISHED = "unfinished"  # the status in reports of a session without an end that is no longer running

_ENVELOPE = re.compile(rb'"(?:session_id|seq)"\s*:', re.IGNORECASE)
_TORN_FIRST = re.compile(rb'\s*\{\s*"session_id"\s*:[^\n]*\Z', re.IGNORECASE)
_SUFFIX = re.compile(r"\.jsonl(\.gz|\.zst)?\Z")
_PACKED = (".gz", ".zst")
_NOTHING = TokenUsage()
_NO_USAGE: Mapping[str, Any] = {}
_COUNTS = frozenset({*TOKEN_CLASSES, "total"})
_NEWLINE = 10
_ENDLESS_MS = 1e15
_DOUBTFUL = -1
"""A cost of 0, which in the Go original may mean unknown: the log's dialect may only be known later."""

_ORIGINAL = int(CopyRank.ORIGINAL)
_EARLIER = int(CopyRank.COPIED)
"""The rank of a record that changes when its log goes on, so that the one of a copy that went on wins."""


class Data(Struct, gc=False, omit_defaults=True):
    """The payload of an event: the fields of all types that a scan needs."""

    messages: list[Message] | None = None
    earlier_messages: Any = None
    model: Any = None
    usage: Any = None
    cost_usd: Any = None
    latency_ms: Any = None
    error: Any = None
    attempt: Any = None
    tool: Any = None
    output: Any = None
    duration_ms: Any = None
    v: Any = None
    provider: Any = None
    resolved_harness: Any = None
    requested_harness: Any = None
    resolved_model: Any = None
    selected_route: Any = None
    work_dir: Any = None
    metadata: Any = None
    prompt: Any = None
    parent: Any = None
    status: Any = None
    tokens: Any = None
    rejection_error: Any = None
    requested_model: Any = None
    superseded_by: Any = None
    response_id: Any = None
    service_tier: Any = None
    speed: Any = None
    region: Any = None
    searches: Any = None
    partial: Any = None
    wire: Any = None


_NO_DATA = Data()


class Row(Struct, gc=False):
    """An event. Lines without all of these fields, in this spelling, are decoded by the reader of events."""

    session_id: str
    seq: int
    type: str
    ts: str
    data: Data | None


class FullData(Data, gc=False, omit_defaults=True):
    """A payload with its texts, which reports do not need."""

    messages: list[Raw] | None = None  # type: ignore[assignment]
    content: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    tool_calls: Any = None
    summary: Any = None
    input: Any = None
    id: Any = None


class FullRow(Row, gc=False):
    """An event with its texts."""

    data: FullData | None


_NO_FULL_DATA = FullData()
_UNFINISHED = Row("", 0, "", "", None)
"""Follows the event of a last line without a newline, which may still become another event."""


class _Reading:
    """An open log. Lines that differ from what `SessionLogger` writes are decoded by the reader of events.

    Attributes:
        line: How many lines have been read.
        offset: Where the last of them ends.
    """

    def __init__(self, path: str, resume: Resume | None, *, is_full: bool = False) -> None:
        begun = resume or Resume(offset=0)
        self._typed_row: Typed[Any] = _FULL_ROW if is_full else _ROW
        self._typed_data: Typed[Any] = _FULL_DATA if is_full else _DATA
        self._path, self._start, self._nth = path, 0, 0
        self.line, self.offset = begun.line, begun.offset
        self._file, self._unpacked = open_unpacked(path, buffer=buffer_of(resume))
        self._stream = EventStream(path, max_line=MAX_LINE, line=begun.line, offset=begun.offset)
        if begun.offset:
            self._file.seek(begun.offset)

    @property
    def lines(self) -> Self:
        """How far it has been read."""
        return self

    def rows(self) -> Iterator[Row | Problem]:
        """Yield the events of the whole lines."""
        stream, readline, decode = self._stream, self._file.readline, self._typed_row.decode
        is_line_start = True
        while piece := readline(MAX_LINE + 1):
            if is_line_start and piece[-1] == _NEWLINE and not (len(piece) > LARGE and too_large(piece)):
                try:
                    row = decode(piece)
                except MISFITS:
                    pass
                else:
                    if row.type:
                        self._start = self.offset
                        self.line += 1
                        self.offset += len(piece)
                        yield row
                        continue
            stream.skip_decoded(self.line - stream.line, self.offset - stream.offset)
            self._start = self.offset
            for item in self._rows_of(stream.feed_bytes(piece)):
                self.line, self.offset = stream.line, stream.offset
                yield item
            self.line, self.offset, self._nth = stream.line, stream.offset, 0
            is_line_start = stream.at_line_start
            piece = b""  # free a long piece before the next one is read

    def last(self) -> Iterator[Row | Problem]:
        """Yield the event of an unfinished last line, and problems of the file's end."""
        stream, rows = self._stream, 0
        stream.skip_decoded(self.line - stream.line, self.offset - stream.offset)
        self._start = self.offset
        for row in self._rows_of(stream.finish(young=not stream.at_line_start and is_young(self._path))):
            rows += isinstance(row, Row)
            yield row
        if rows:
            yield _UNFINISHED
        if self._unpacked is not None and self._unpacked.failure is not None:
            detail = self._unpacked.failure
            yield Problem(
                path=self._path, line=stream.line, offset=stream.offset, kind="bad_compression", detail=detail
            )

    def _rows_of(self, items: Iterable[Event | Problem]) -> Iterator[Row | Problem]:
        for item in items:
            self._nth += 1
            if isinstance(item, Event):
                row = FullRow if self._typed_row is _FULL_ROW else Row
                yield row(item.session_id, item.seq, item.type, item.ts, self._typed_data.fit(item.data))
            else:
                yield item

    def place(self) -> tuple[str, int, int]:
        """Where the event stands."""
        return f"{self._start}:{self._nth}", self.line, self._start

    def close(self) -> None:
        self._file.close()


_ROW, _DATA = Typed(Row), Typed(Data)
_FULL_ROW, _FULL_DATA = Typed(FullRow), Typed(FullData)


class End(Struct):
    """A session.end; its totals cover the responses from `first` (inclusive) to `until` (exclusive).

    Attributes:
        is_empty: It has no payload.
    """

    data: Data
    is_empty: bool
    time_ns: int | None
    total: TokenUsage
    cost_nano: int | None
    first: int
    until: int


class State(Struct, omit_defaults=True):
    """The state of a scan between events.

    Attributes:
        path: The log.
        origin: Names it and all its copies: its name, and its first event; "" before one has been read.
        has_start: session.start has been read; the first one counts.
        start: Its payload, if it has one.
        start_ns: Its time.
        first_ns: The first time in the log.
        last_ns: The last one.
        step_ns: The last one for which a step was yielded.
        ends: Its ends.
        is_ended: No activity came after the last of them.
        is_closed: No activity came after a logger was closed without an end.
        responses: The number of responses.
        has_price: One of them has a cost, or may be priced.
        calls: The number of tool calls.
        asked: The model of the last request.
        prompt: The user's first words.
        error: The error of the last failed call.
        is_rejected: A pin was rejected.
        is_unfinished: The log ends with an event without its newline.
        turns: The user's prompts.
        seen: The texts so far, where the log is read with its texts.
    """

    path: str
    origin: str = ""
    has_start: bool = False
    start: Data | None = None
    start_ns: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    step_ns: int | None = None
    ends: list[End] = []
    is_ended: bool = False
    is_closed: bool = False
    responses: int = 0
    has_price: bool = False
    calls: int = 0
    asked: str = ""
    prompt: str = ""
    error: str = ""
    is_rejected: bool = False
    is_unfinished: bool = False
    turns: Turns = field(default_factory=Turns)
    seen: SeenTexts | None = None

    @property
    def begin_ns(self) -> int | None:
        """When the session began."""
        return self.first_ns if self.start_ns is None else self.start_ns


def steps(row: Row, state: State) -> Iterable[Step]:
    """What an event means; of events that only show activity, one in five minutes yields a step."""
    if type(row) is FullRow:
        state.seen = state.seen or SeenTexts()
        return text_steps(row.type, row.data or _NO_FULL_DATA, parse_time(row.ts), state.seen)
    if not state.origin:
        state.origin = f"{session_id_of(state.path)} {row.session_id} {row.type} {row.ts}"
    time_ns, before_ns, step_ns = parse_time(row.ts), state.last_ns, state.step_ns
    is_near = False
    if time_ns is not None:
        if step_ns is None or before_ns is None:
            state.first_ns = time_ns
        else:
            is_near = before_ns <= time_ns <= step_ns + ACTIVE_GAP_NS
        state.last_ns = time_ns
    read = _EVENTS.get(row.type)
    found = read(row, row.data or _NO_DATA, state) if read is not None else ()
    if is_near and not found:
        return ()
    state.step_ns = state.last_ns
    found = found or (At(time_ns),)
    return found if is_near or before_ns == step_ns else (At(before_ns), *found)


def _finish(state: State) -> Iterable[Step]:
    """The last moment of activity."""
    return () if state.last_ns == state.step_ns else (At(state.last_ns),)


def _start(row: Row, data: Data, state: State) -> tuple[Step, ...]:
    if not state.has_start:
        state.has_start, state.start_ns = True, parse_time(row.ts)
        state.prompt = state.prompt or first_words(data.prompt)
        state.start = _kept(data) if row.data is not None else None
    return ()


def _reject(row: Row, data: Data, state: State) -> tuple[Step, ...]:  # noqa: ARG001 - as for the other events
    state.is_rejected = True
    state.error = first_words(data.rejection_error) or "pin rejected"
    return ()


def _stop(row: Row, data: Data, state: State) -> tuple[Step, ...]:  # noqa: ARG001 - as for the other events
    state.is_unfinished = True
    return ()


def _kept(data: Data) -> Data:
    """A payload without its long fields, to be kept in the state."""
    data.messages = data.prompt = data.output = data.usage = data.attempt = None
    return data


def _request(row: Row, data: Data, state: State) -> tuple[Step, ...]:
    messages = data.messages or []
    state.is_ended = state.is_closed = False
    state.asked = name(data.model)
    if not state.prompt:
        words = (first_words(message.content) for message in messages if message.role == "user")
        state.prompt = next(filter(None, words), "")
    state.turns.add(messages, parse_time(row.ts), is_only_new=bool(data.earlier_messages))
    return ()


def _response(row: Row, data: Data, state: State) -> tuple[Step, ...]:
    """A response, and before it those inside it: the last record of a log changes when the log goes on."""
    usage, issues = read_usage(data.usage)
    cost_nano, issue = read_usd(data.cost_usd)
    attempt, is_failed = data.attempt, bool(data.error)
    if is_failed:
        state.error = first_words(data.error)
    if cost_nano is not None and not fizeau_dialect.cost_is_recorded(cost_nano, mapping(attempt)):
        cost_nano = _DOUBTFUL
    state.is_ended = state.is_closed = False
    state.responses += 1
    state.has_price |= cost_nano is not None or not is_failed or bool(usage)
    provider, model, response_model = name(data.provider), name(data.requested_model), name(data.model)
    if attempt is not None:
        provider = name(attempt, "provider_system") or provider
        model = name(attempt, "requested_model") or model
        response_model = name(attempt, "response_model") or response_model
    tokens = Tokens(usage, _issues_at(row, *issues, issue) if issues or issue else ())
    response = Response(
        state.last_ns, str(state.responses), "", _ORIGINAL, tokens, provider or UNKNOWN,
        model or state.asked or UNKNOWN, response_model, "", is_failed, final=True, cost_nano=cost_nano,
        latency_ms=read_milliseconds(data.latency_ms),
    )  # fmt: skip
    if data.partial:  # usage comes last: of a cut stream there is only the first
        response.quality = "partial"
    if data.superseded_by is not None or data.response_id is not None:
        response.superseded_by, response.response_id = name(data.superseded_by), name(data.response_id)
    given = data.usage if isinstance(data.usage, dict) else _NO_USAGE
    if given.keys() <= _COUNTS and data.service_tier is data.speed is data.region is data.searches is None:
        return (response,)
    return _with_billing(row, data, given, response, state)


def _with_billing(
    row: Row, data: Data, given: Mapping[str, Any], response: Response, state: State
) -> tuple[Step, ...]:  # fmt: skip
    """Return a response with what is billed beside its tokens, after the responses inside it."""
    usage = _NOTHING if response.tokens is None else response.tokens.usage
    own = {name: getattr(data, name) for name in Billed._fields}
    billed, issue = read_billed(own | {"usage": given})
    response.service_tier, response.speed, response.region, response.searches = billed
    inner, issues = read_inner(given, usage)
    first = state.responses
    state.responses += len(inner)
    response.key = str(state.responses)
    bad = map(BadNumber, _issues_at(row, *issues, issue))
    return (*bad, *(_inner(one, response, first + number) for number, one in enumerate(inner)), response)


def _inner(one: Inner, response: Response, number: int) -> Response:
    """A response inside another one, whose recorded cost is that of both."""
    fields, id_ = one.fields, response.response_id
    return replace(
        response, key=str(number), tokens=Tokens(one.usage), model=one.model or response.model,
        response_model=one.model or response.response_model, cost_nano=0 if response.cost_nano else None,
        latency_ms=None, quality="exact", response_id=id_ and f"{id_}#{one.name}", searches=one.searches,
        speed=read_speed(fields.get("speed")) if one.model else response.speed,
        service_tier=read_tier(fields.get("service_tier")) or response.service_tier,
        region=read_region(fields.get("inference_geo") or response.region), kind=one.kind, parent=response.key,
    )  # fmt: skip


def _call(row: Row, data: Data, state: State) -> tuple[Step, ...]:  # noqa: ARG001 - as for the other events
    key = f"{state.origin}#{state.calls}:{state.last_ns}"
    state.calls += 1
    state.is_ended = state.is_closed = False
    return (
        ToolCall(state.last_ns, key, name(data.tool) or UNKNOWN, None, "", "", name(data.superseded_by)),
        ToolResult(None, key, data.output, bool(data.error), read_milliseconds(data.duration_ms)),
    )


def _end(row: Row, data: Data, state: State) -> tuple[Step, ...]:
    """Close a run: it covers the responses since the end before; a second end of the same run replaces the first."""
    if data.status == CLOSED:
        state.is_closed = True
        return (At(state.last_ns),)
    first = 0
    if state.ends:
        last = state.ends[-1]
        first = last.until
        if last.until == state.responses:
            first = state.ends.pop().first
    total, issues = read_usage(data.tokens)
    cost_nano, issue = read_usd(data.cost_usd)
    is_empty = row.data is None
    kept = data if is_empty else _kept(data)
    end = End(kept, is_empty, state.last_ns, total, cost_nano, first, state.responses)
    state.ends.append(end)
    state.is_ended = True
    return (At(state.last_ns), *map(BadNumber, _issues_at(row, *issues, issue)))


_EVENTS: dict[str, Callable[[Row, Data, State], tuple[Step, ...]]] = {
    "session.start": _start,
    "session.end": _end,
    "llm.request": _request,
    "llm.response": _response,
    "tool.call": _call,
    "rejected_override": _reject,
    "": _stop,
}


def _issues_at(row: Row, *issues: str | None) -> tuple[str, ...]:
    return tuple(f"{row.type} seq {row.seq}: {issue}" for issue in issues if issue)


def read_milliseconds(value: Any) -> float | None:
    """Return a logged duration in milliseconds; None for an invalid one."""
    is_number = type(value) in (int, float)
    return float(value) if is_number and 0 <= value < _ENDLESS_MS else None


def _basis(state: State) -> int | None:
    """What the records depend on: the number of ends; None where later events may change earlier records."""
    is_open = state.responses and not (state.ends and state.ends[-1].until == state.responses)
    is_ours = is_native(state.start) and state.begin_ns is not None and not state.path.endswith(_PACKED)
    is_certain = (state.has_price or not state.ends) and not (state.is_unfinished or state.is_closed)
    return len(state.ends) if is_open and is_ours and is_certain else None


def _complete(session: ScannedSession, state: State, idle_ms: int, is_whole: bool) -> ScannedSession:
    """Return a session with its facts, and its records with what is known only at the end of the log."""
    start, end = state.start or _NO_DATA, state.ends[-1].data if state.ends else _NO_DATA
    is_ours, is_ended = is_native(state.start), bool(state.ends) and state.is_ended
    status = name(end.status)
    records = _Records(session.records, state, idle_ms, is_whole=is_whole).complete()
    return replace(
        session,
        source=ID if is_ours else fizeau_dialect.ID,
        place=state.origin or os.path.dirname(state.path),
        parent=name(start.parent, "session"),
        start_ns=state.begin_ns,
        status=status if is_ended else UNFINISHED if state.is_closed else None,
        project=folder(start.work_dir) or UNKNOWN,
        harness=name(start.resolved_harness) or name(start.requested_harness) or UNKNOWN,
        route=name(start.selected_route) or name(end.selected_route) or UNKNOWN,
        duration_ms=_duration_ms(state.ends if is_ours else state.ends[-1:]) if is_ended else None,
        prompt=state.prompt,
        error=first_words(end.error) or (state.error if status != "success" else ""),
        metadata={**mapping(start.metadata), **mapping(end.metadata)},
        turns=state.turns.count or int(bool(state.prompt)),
        last_turn_ns=state.turns.last_ns if state.turns.count else state.begin_ns if state.prompt else None,
        counted=_is_counted(state),
        on_wire_of=start.wire if isinstance(start.wire, str) else None,
        records=records,
    )


def _duration_ms(ends: list[End]) -> int | None:
    """The sum of the durations that the runs logged; None if one of them logged no valid one."""
    durations = [int(read_milliseconds(end.data.duration_ms) or 0) for end in ends]
    return sum(durations) if all(durations) else None


def _is_counted(state: State) -> bool:
    """Whether the session counts in usage; one without a response is only listed, as those of other agents are.

    The Go original counts each session that has begun, but for a rejected pin.
    """
    if state.responses:
        return True
    if is_native(state.start):
        return any(end.total or end.cost_nano for end in state.ends)
    if state.is_rejected and not state.ends:
        return False
    return state.start is not None or (not state.has_start and not all(end.is_empty for end in state.ends))


class _Run:
    """A run's end, and sums of its records, on which the end's remainder depends."""

    def __init__(self, end: End) -> None:
        self.end = end
        self.used, self.rest = _NOTHING, _NOTHING
        self.count = self.cost_nano = 0
        self.unnamed = self.weight = 0  # of the records whose cost is not recorded: how many, how many tokens
        self._weighed = self._given = 0
        self.superseded_by = {name(end.data.superseded_by)} - {""}  # of its end, else of its records

    def add(self, record: Record, usage: TokenUsage) -> None:
        """Add a record, and its tokens in disjoint classes."""
        self.count += 1
        if record.cost_nano is None:
            self.unnamed += 1
            self.weight += usage.total
        else:
            self.cost_nano += record.cost_nano

    @property
    def one_superseding(self) -> str:
        """The session whose own log has all of this run; "" if there is none, or not for all of it."""
        return next(iter(self.superseded_by)) if len(self.superseded_by) == 1 else ""

    @property
    def left(self) -> int:
        """The end's cost minus the recorded ones; up to a nano-dollar per response is rounding."""
        left = (self.end.cost_nano or 0) - self.cost_nano
        return left if left > self.count else 0

    @property
    def has_cost_of_its_own(self) -> bool:
        """Whether all its records have costs, and their sum is less than the end's cost."""
        return bool(self.end.cost_nano and self.left and not self.unnamed)

    def price(self, record: Record) -> Record:
        """Set a record's share of the end's cost, by its tokens; call it for each record, in order."""
        if self.end.cost_nano is None:
            return record
        if self.end.cost_nano == 0:
            record.cost_nano = record.cost_nano or 0
            return record
        if record.cost_nano is None:
            self._weighed += record.usage.total if self.weight else 1
            share = self.left * self._weighed // (self.weight or self.unnamed)
            record.cost_nano, self._given = share - self._given, share
        record.priced = False  # the end has the whole cost, so no estimate may be added
        return record

    def begin(self) -> None:
        """Start pricing its records, from the first one."""
        self._weighed = self._given = 0


class _Records:
    """Completes a session's records: providers, dialect, and the remainders of its ends.

    A large log's records are decoded on each access, so this works in passes over them.
    """

    def __init__(self, records: Sequence[Record], state: State, idle_ms: int, *, is_whole: bool) -> None:
        start, ends = state.start or _NO_DATA, state.ends
        self._state, self._idle_ms, self._is_ours = state, idle_ms, is_native(state.start)
        self._origin = state.origin
        self._harness = name(start.resolved_harness)
        # The original's harnesses (claude, codex) are known as providers; our `run` records any command's name there.
        self._provider = name(start.provider) or ("" if self._is_ours else self._harness) or UNKNOWN
        self._model = name(start.resolved_model) or name(start.model) or (name(ends[-1].data.model) if ends else "")
        if ends and not self._is_ours:  # the original does not continue sessions: its last end covers all of it
            last = ends[-1]
            ends = [replace(last, first=0, until=state.responses)]
        self._exclusive: set[str] = set()
        self._records = records
        self._before = 0 if is_whole else state.responses - len(records)  # what earlier scans gave
        # The records of a resumed scan came after the ends before it, which add nothing to them.
        self._ends = ends if is_whole or not records else []
        self._runs = list(map(_Run, self._ends))

    def complete(self) -> Sequence[Record]:
        """Return the session's records in order; a single empty one if nothing was used yet."""
        records = self._records
        if not records:
            return (self._of_session(),)
        has_price = self._sum_up()
        count = len(records) + sum((run.rest != _NOTHING) + run.has_cost_of_its_own for run in self._runs)
        if isinstance(records, tuple):
            return tuple(self._completed(is_unpriced=not has_price))
        return Lazily(count, lambda: self._completed(is_unpriced=not has_price))

    def _completed(self, *, is_unpriced: bool) -> Iterator[Record]:
        given = self._named()
        last = len(self._records) - 1
        place = 0
        for run in self._runs:
            run.begin()
            for record in islice(given, run.end.until - place):
                yield run.price(self._finished(record, place, last, is_unpriced=is_unpriced))
                place += 1
            if run.rest != _NOTHING:
                yield run.price(self._rest(run))
            if run.has_cost_of_its_own:
                whole = self._whole(_NOTHING, run.left, run.end.time_ns)
                whole.key = self._end_key("cost", run)
                whole.superseded_by = run.one_superseding
                whole.priced = False
                yield whole
        for record in given:
            yield self._finished(record, place, last, is_unpriced=is_unpriced)
            place += 1

    def _finished(self, record: Record, place: int, last: int, *, is_unpriced: bool) -> Record:
        if not self._is_ours:
            record.usage = self._normal(record.usage, record.provider)
        number = self._before + place
        record.key = f"{self._origin}:{number}:{record.time_ns}"  # as `_key`, for very many records
        if record.parent:
            record.parent = f"{self._origin}:{int(record.parent) - 1}:{record.time_ns}"
        if number and place and place != last:
            return record
        if not number:
            record.family = self._key("first")
        if place == last:
            record.active_ms += self._idle_ms
        is_unpriced &= not place
        if is_unpriced:
            record.priced = True  # the run ended without any cost: it is unknown, even if all calls failed
        if place == last or is_unpriced or not (number or record.priced or self._state.ends):
            record.copy_rank = _EARLIER
        return record

    def _sum_up(self) -> bool:
        """Sum up each run; return whether any record has a price, or there is no end that could have had one."""
        if not self._runs and self._is_ours:
            return True
        self._exclusive = {self._provider for end in self._ends if end.total.cache_read > end.total.input}
        has_price = not self._runs
        given = self._named()
        place = 0
        for run in self._runs:
            for record in islice(given, run.end.until - place):
                place += 1
                run.used += record.usage
                if not run.end.data.superseded_by:
                    run.superseded_by.add(record.superseded_by)
                has_price |= record.priced or record.cost_nano is not None
                self._learn(record)
                if self._is_ours:
                    run.add(record, record.usage)
        for record in given:
            has_price |= record.priced or record.cost_nano is not None
            self._learn(record)
        if not self._is_ours:  # only now it is known which classes the input includes
            given, place = self._named(), 0
            for run in self._runs:
                for record in islice(given, run.end.until - place):
                    place += 1
                    run.add(record, self._normal(record.usage, record.provider))
        for run in self._runs:
            run.rest = run.end.total.beyond(run.used)
            if run.rest != _NOTHING:
                rest = self._rest(run)
                run.add(rest, rest.usage)
            has_price |= run.rest != _NOTHING or bool(run.end.cost_nano)
            has_price |= run.end.cost_nano is not None and run.count > 0
        return has_price

    def _named(self) -> Iterator[Record]:
        return map(self._name, self._records)

    def _name(self, record: Record) -> Record:
        """Set a response's provider and model, and its cost by the dialect's rules."""
        if record.time_ns is None:
            record.time_ns = self._state.begin_ns
        if record.provider == UNKNOWN:
            record.provider = self._provider
        if record.model == UNKNOWN:
            answered = record.response_model
            names = (answered, self._model) if self._is_ours else (self._model, answered)
            record.model = names[0] or names[1] or UNKNOWN
        if record.cost_nano == _DOUBTFUL:
            record.cost_nano = 0 if self._is_ours else None
        record.priced = not record.failed or record.cost_nano is not None or bool(record.usage)
        record.priced &= not record.parent or record.cost_nano is None  # else the response around it has its cost
        return record

    def _learn(self, record: Record) -> None:
        """Note providers whose input excludes cached tokens: that holds for the whole session."""
        if record.usage.cache_read > record.usage.input:
            self._exclusive.add(record.provider)

    def _normal(self, usage: TokenUsage, provider: str) -> TokenUsage:
        """Return tokens in disjoint classes."""
        if self._is_ours or provider in self._exclusive:
            return usage
        return fizeau_dialect.normalise_usage(usage, harness=self._harness, provider=provider)

    def _rest(self, run: _Run) -> Record:
        """A record of what a run's end reports beyond its responses."""
        rest = self._whole(run.rest, None, run.end.time_ns)
        rest.superseded_by = run.one_superseding
        rest.summed = True
        rest.key = self._end_key("rest", run)
        return rest

    def _key(self, name: str) -> str:
        """A key that all copies of the log share, and no other log has."""
        return f"{self._origin}:{name}"

    def _end_key(self, kind: str, run: _Run) -> str:
        """The key of a record of a run's end; the original's last end replaces all before it."""
        return self._key(f"{kind} {run.end.until}" if self._is_ours else kind)

    def _whole(self, usage: TokenUsage, cost_nano: int | None, time_ns: int | None) -> Record:
        """A record of the session as a whole, which counts as no request."""
        return Record(
            time_ns=self._state.begin_ns if time_ns is None else time_ns,
            provider=self._provider,
            model=self._model or UNKNOWN,
            response_model=None,
            usage=self._normal(usage, self._provider),
            cost_nano=cost_nano,
            requests=0,
        )

    def _of_session(self) -> Record:
        """The one record of a session without responses."""
        self._sum_up()
        end = self._ends[-1] if self._ends else None
        total, cost_nano = (end.total, end.cost_nano) if end else (_NOTHING, None)
        record = self._whole(total, cost_nano, None)
        record.superseded_by = name(end.data.superseded_by) if end else ""
        record.requests, record.granularity = int(bool(total)), "session"
        record.priced = end is not None and (not self._is_ours or bool(total))
        record.key, record.family, record.copy_rank = self._key("session"), self._key("first"), int(CopyRank.SIDECHAIN)
        record.active_ms = self._idle_ms
        return record


def session_id_of(path: str) -> str:
    """Return the session's id: the file name without its log suffix."""
    return _SUFFIX.sub("", os.path.basename(path))


def list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the logs in a folder, one per session: where `x.jsonl` exists, `x.jsonl.gz` is a packed copy of it."""
    begun: list[str] = []  # not all names, which may be very many: in order, those that begin with `x.jsonl` follow it
    for path in walk_logs([place]):
        if not isinstance(path, Problem):
            while begun and not path.startswith(begun[-1]):
                begun.pop()
            unpacked = path.removesuffix(".gz").removesuffix(".zst")
            if begun and begun[-1] == unpacked:
                continue
            begun.append(unpacked)
        yield path


def recognises(path: str, head: bytes) -> bool:
    """Whether a file with a log suffix has a line with the envelope's keys, or a torn first line."""
    ours = b'"type"' in head.lower() and _ENVELOPE.search(head) is not None
    return path.endswith(LOG_SUFFIXES) and (ours or _TORN_FIRST.match(head) is not None)


def holds_events(path: str) -> bool:
    """Whether a file that a user names is a native log, under any name."""
    try:
        file, _ = open_unpacked(path)
        with file:
            return _ENVELOPE.search(file.read(HEAD) or b"") is not None
    except (LogNotReadable, MissingExtra):
        return False


def read(path: str, session_id: str | None) -> Iterator[Event | Problem]:  # noqa: ARG001 - a file is a session
    """The events as they are."""
    return read_events(path)


def check(path: str) -> Iterator[Event | Problem | Problems]:
    """The events, and the problems of a scan, which is one of its own: it makes no events."""
    yield scan(path, None).problems
    yield from read_events(path)


SOURCE = replace(
    source(
        id=ID,
        title="sessionlog",
        places=PLACES["native"],
        logs="*.jsonl",
        rows=LogFormat(_Reading, can_resume=True),
        full_rows=LogFormat(lambda path, resume: _Reading(path, resume, is_full=True), can_resume=True),
        steps=steps,
        state=State,
        state_type=State,
        finish=_finish,
        complete=_complete,
        basis=_basis,
        gives_last_again=True,
        recognises=recognises,
        list_logs=list_logs,
        session_of=session_id_of,
        parser_version=11,
    ),
    read=read,
    check=check,
)
scan = SOURCE.scan
