"""Rows: the result of a scan of one log as plain tuples for the ledger's tables.

The process that scans a log, mostly a worker, also prices its responses and makes these rows. The process that owns the
ledger only adds its own ids, inserts the rows, and decides which copies count. Names are stored once and referred to by
number. A response has two hashes that are the same on every machine: of its family, which all its copies share, and of
its key within that.

The rows of a large log come in batches, each with its own names, and are kept in a temporary file until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter

from msgspec import Struct

from sessionlog.events.names import UNKNOWN
from sessionlog.hashes import blake2b, hash_with
from sessionlog.ledger.columns import Call, Label, Name, Response, names_of
from sessionlog.ledger.costs import PricedLabels
from sessionlog.ledger.histogram import LOWEST
from sessionlog.ledger.row_spool import RowSpool
from sessionlog.ledger.sessions import facts_text
from sessionlog.ledger.storable import storable
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import LogScan, Resume
from sessionlog.sources.record import NO_PROBLEMS, Limit, Problems, Record, ScannedSession, ToolUse

_label_of = attrgetter(*Label._fields)
_recorded_of = attrgetter(*names_of(Response, "record"))
_ANY_SOURCE = blake2b(digest_size=8)
_WIDTH = math.log(1.02)
_BATCH = 8192  # rows of a large log that are in memory at once


class SessionRows(Struct, frozen=True, kw_only=True):
    """One session of a log.

    Attributes:
        name: (source, session id, place).
        facts: The session without its records and calls, as text (see `sessions`); "" in all batches but its first.
        responses: Its responses; `label_id` is a label's number in the batch, log, session and number come later.
        calls: Its tool calls; `name_id` is likewise a number in the batch.
    """

    name: tuple[str, str, str]
    facts: str
    responses: list[Response]
    calls: list[Call]


class RowBatch(Struct, frozen=True, kw_only=True):
    """Rows of one log, with their names.

    Attributes:
        sessions: Sessions, or parts of one.
        labels: Names that responses have in common.
        names: The same of calls.
    """

    sessions: tuple[SessionRows, ...] = ()
    labels: tuple[Label, ...] = ()
    names: tuple[Name, ...] = ()


class LogRows(Struct, frozen=True, kw_only=True):
    """The result of a scan of one log.

    Attributes:
        source: The source's id; empty if the log has no session.
        sessions: Its sessions.
        labels: Names that responses have in common.
        names: The same of calls.
        problems: As in `LogScan`.
        limits: As in `LogScan`.
        resume: As in `LogScan`.
        replaced_count: As in `LogScan`.
        full_rescan: As in `LogScan`.
        failed: The log could not be read at all: its earlier rows stay.
        spool: The rows of a large log, in place of `sessions`, `labels` and `names`.
    """

    source: str = ""
    sessions: tuple[SessionRows, ...] = ()
    labels: tuple[Label, ...] = ()
    names: tuple[Name, ...] = ()
    problems: Problems = NO_PROBLEMS
    limits: tuple[Limit, ...] = ()
    resume: Resume | None = None
    replaced_count: int = 0
    full_rescan: bool = False
    failed: bool = False
    spool: RowSpool | None = None

    def batches(self) -> Iterator[RowBatch]:
        """Yield all of its rows."""
        if self.spool is None:
            yield RowBatch(sessions=self.sessions, labels=self.labels, names=self.names)
            return
        for sessions, labels, names in self.spool:
            parts = (
                SessionRows(
                    name=name, facts=facts, responses=[*map(Response._make, rows)], calls=[*map(Call._make, calls)]
                )
                for name, facts, rows, calls in sessions
            )
            yield RowBatch(
                sessions=tuple(parts), labels=tuple(map(Label._make, labels)), names=tuple(map(Name._make, names))
            )


def to_rows(scan: LogScan, prices: PriceBook, *, failed: bool = False, folder: str | None = None) -> LogRows:
    """Return the priced rows of a scan; those of a large log are in a temporary file, in `folder` if given.

    Raises:
        OSError: The temporary file cannot be made.
    """
    batch, spool = RowBatch(), None
    if _is_large(scan):
        spool = RowSpool(folder)
        for some in _in_batches(scan.sessions):
            rows = _batch(some, prices)
            sessions = [
                (one.name, one.facts, [*map(tuple, one.responses)], [*map(tuple, one.calls)]) for one in rows.sessions
            ]
            spool.add((sessions, [*map(tuple, rows.labels)], [*map(tuple, rows.names)]))
    else:
        batch = _batch([(session, session.records, session.tools, True) for session in scan.sessions], prices)
    return LogRows(
        source=scan.sessions[0].source if scan.sessions else "",
        sessions=batch.sessions,
        labels=batch.labels,
        names=batch.names,
        spool=spool,
        problems=scan.problems,
        limits=scan.limits,
        resume=scan.resume,
        replaced_count=scan.replaced_count,
        full_rescan=scan.full_rescan,
        failed=failed,
    )


_Part = tuple[ScannedSession, Sequence[Record], Sequence[ToolUse], bool]
"""(a session, some of its records, some of its tool calls, whether these are the first)."""


def _is_large(scan: LogScan) -> bool:
    """Whether a scan holds sequences that decode their items on each access, because there are many."""
    if not isinstance(scan.sessions, tuple):
        return True
    return not all(isinstance(one.records, tuple) and isinstance(one.tools, tuple) for one in scan.sessions)


def _in_batches(sessions: Sequence[ScannedSession]) -> Iterator[list[_Part]]:
    """Split the sessions into batches of at most some thousand rows."""
    parts: list[_Part] = []
    room = _BATCH
    for session in sessions:
        records, tools = iter(session.records), iter(session.tools)
        is_first = True
        while True:
            some = tuple(islice(records, room))
            calls = tuple(islice(tools, room - len(some)))
            if some or calls or is_first:
                parts.append((session, some, calls, is_first))
            room -= len(some) + len(calls) + is_first
            is_first = False
            if room > 0:
                break  # that was all of the session
            yield parts
            parts, room = [], _BATCH
    if parts:
        yield parts


def _batch(parts: Sequence[_Part], prices: PriceBook) -> RowBatch:
    labels = PricedLabels(prices)
    names: dict[Name, int] = {}
    sessions = tuple(
        SessionRows(
            name=(storable(session.source), storable(session.session_id), storable(session.place)),
            facts=facts_text(session) if is_first else "",
            responses=_responses(session, records, labels),
            calls=_calls(session, tools, names),
        )
        for session, records, tools, is_first in parts
    )
    return RowBatch(
        sessions=sessions,
        labels=tuple(Label._make(map(storable, label)) for label in labels.numbers),
        names=tuple(Name._make(map(storable, name)) for name in names),
    )


def _responses(session: ScannedSession, records: Sequence[Record], labels: PricedLabels) -> list[Response]:
    rows: list[Response] = []  # plain integers in place of truth values, which sqlite3 takes four times as long to bind
    seed, cost_of = blake2b(session.source.encode(), digest_size=8), labels.cost
    known: dict[tuple[str, ...], int] = {}
    for r in records:
        names = _label_of(r)
        label = known.get(names)
        if label is None:
            own_label = Label._make(names)._replace(
                response_model=r.response_model or UNKNOWN, project=r.project or session.project
            )
            label = known[names] = labels.number(own_label)
        family = key = None
        if r.key:
            key = family = hash_with(seed, r.family or r.key)
            if r.family and r.family != r.key:
                key = hash_with(seed, f"{r.family}\0{r.key}")
        usage, latency, failed = r.usage, r.latency_ms, r.failed
        cost, estimate, saved, extra = cost_of(
            label, usage, r.time_ns, r.cost_nano, r.extra_nano, r.requests, r.searches, failed=failed, priced=r.priced
        )
        rows.append(
            Response(  # by position: by name it takes three times as long
                0, 0, 0, label, family, key, int(r.copy_rank),
                (r.superseded_by and storable(r.superseded_by)) or None, 1, r.time_ns, r.requests, +failed,
                usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cache_write_1h, usage.reasoning,
                r.cost_nano, cost, estimate, saved, +r.priced,
                None if latency is None or failed else bucket_of(latency),
                hash_with(_ANY_SOURCE, r.response_id) if r.response_id else None, +r.summed, 1,
                r.extra_nano, extra, *_recorded_of(r),
            )
        )  # fmt: skip
    return rows


def _calls(session: ScannedSession, calls: Sequence[ToolUse], names: dict[Name, int]) -> list[Call]:
    rows = []
    seed, own = blake2b(session.source.encode(), digest_size=8), session.project
    for call in calls:
        name = Name(tool=call.tool, server=call.server, agent=call.agent, project=call.project or own)
        number = names.setdefault(name, len(names))
        took = call.duration_ms
        rows.append(
            Call(
                file_id=0,
                n=0,
                session_id=0,
                name_id=number,
                key=hash_with(seed, call.key),
                superseded_by=(call.superseded_by and storable(call.superseded_by)) or None,
                counts=1,
                time_ns=call.time_ns,
                finished=+call.finished,
                failed=+call.failed,
                duration_ms=took,
                duration_bucket=None if took is None else bucket_of(took),
                output_bytes=call.output_bytes,
            )
        )
    return rows


def bucket_of(ms: float) -> int | None:
    """Return the bucket of a latency in milliseconds (see `histogram`); None for a negative or infinite one."""
    if 0 < ms < math.inf:
        return max(LOWEST, math.floor(math.log(ms) / _WIDTH))
    return LOWEST if ms == 0 else None
