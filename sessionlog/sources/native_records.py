"""From the responses and ends of one native log to its records.

A run ends with session.end; a session that was continued has several. What an end reports beyond the responses of its
run is one more record, at the end's time, and its cost covers the responses that name none, each by its share of the
tokens, at their own times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sessionlog.events.tokens import TokenUsage
from sessionlog.sources import fizeau_dialect
from sessionlog.sources.record import UNKNOWN, Record, read_name

NOTHING = TokenUsage()


@dataclass(slots=True, kw_only=True)
class Response:
    """What is kept of an llm.response until the whole file has been read: the dialect shows late."""

    time_ns: int | None
    usage: TokenUsage
    cost_nano: int | None
    attempt_priced: bool
    latency_ms: float | None
    failed: bool
    asked: str | None
    answered: str | None
    provider: str | None
    active_ns: int


@dataclass(slots=True, kw_only=True)
class RunEnd:
    """A session.end, and which responses its totals speak of: those from `first` up to `until`."""

    data: Mapping[str, Any] | None
    time_ns: int | None
    total: TokenUsage
    cost_nano: int | None
    first: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What stands of what scans of the same log gave before, when this one goes on where they ended.

    Attributes:
        records: Whether any records stand; then some of them have a cost, or may be priced.
        open: Records that were given and do not stand: they are given again.
        responses: Responses of the present run that stand.
        used: What these used.
        model: What the session says of its model.
        calls: Tool calls that were given.
        ran_ms: What the runs before that of the last end say that they took; None when one of them does not.
    """

    records: bool = False
    open: int = 0
    responses: int = 0
    used: TokenUsage = NOTHING
    model: str | None = None
    calls: int = 0
    ran_ms: int | None = 0


NOTHING_GIVEN = Given()


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A session's records, and how far they are certain.

    Attributes:
        records: The records that do not stand yet.
        open: How many of the last of them are open: what comes may change them.
        costed: Of the records that are not, one has a cost or may be priced.
        used: What the present run's responses used, those that stand included.
        model: What the session says of its model.
    """

    records: tuple[Record, ...]
    open: int
    costed: bool = False
    used: TokenUsage = NOTHING
    model: str | None = None


def is_native(start: Mapping[str, Any]) -> bool:
    """Whether a session.start says that the log is ours: token classes are disjoint."""
    version = start.get("v")
    return type(version) is int and version >= 1


def build_records(
    responses: Sequence[Response],
    ends: Sequence[RunEnd],
    start: Mapping[str, Any],
    start_ns: int | None,
    trailing_active_ns: int,
    given: Given = NOTHING_GIVEN,
) -> Built:
    """Return the session's records in order; one that is empty where nothing was used yet."""
    if ends and not is_native(start):  # the original does not continue sessions: its last end speaks of all of it
        ends = [replace(ends[-1], first=0, until=len(responses))]
    who = _Names(start, ends, responses)
    listed = [who.record(response, start_ns) for response in responses]
    if not listed:
        return Built(records=(_of_session(ends[-1] if ends else None, who, start_ns, trailing_active_ns),), open=1)
    listed[-1].active_ms = (responses[-1].active_ns + trailing_active_ns) // 1_000_000
    records: list[Record] = []
    until, used, added = 0, NOTHING, 0
    for end in ends:
        used = _used(responses, end.first, end.until, given)
        run = _run(listed[end.first : end.until], end, end.total.beyond(used), who, start_ns)
        until, added = end.until, len(run) - (end.until - end.first)
        records += run
    if until < len(listed):
        used, added = _used(responses, until, len(listed), given), 0
        records += listed[until:]
    stand = len(records) - added - 1
    costed = given.records or any(r.priced or r.cost_nano is not None for r in records[:stand])
    if ends and not costed:
        records = _with_a_cost(records)
    return Built(records=tuple(records), open=added + 1, costed=costed, used=used, model=who.model)


def _of_session(end: RunEnd | None, who: _Names, start_ns: int | None, active_ns: int) -> Record:
    """The one record of a session without responses."""
    total, cost = (end.total, end.cost_nano) if end else (NOTHING, None)
    record = who.whole(total, cost, start_ns)
    record.requests, record.granularity, record.priced = 1 if total else 0, "session", end is not None
    record.active_ms = active_ns // 1_000_000
    return record


def _used(responses: Sequence[Response], first: int, until: int, given: Given) -> TokenUsage:
    """What the responses of a run used; those of the first one that stand are not listed."""
    used = _sum(r.usage for r in responses[first:until])
    return used + given.used if first == 0 else used


class _Names:
    """Who served a session and how its numbers are to be read."""

    def __init__(self, start: Mapping[str, Any], ends: Sequence[RunEnd], responses: Sequence[Response]) -> None:
        self._native = is_native(start)
        self._harness = read_name(start.get("resolved_harness")) or ""
        self.provider = read_name(start.get("provider")) or self._harness or UNKNOWN
        last = (ends[-1].data if ends else None) or {}
        self.model = (
            read_name(start.get("resolved_model")) or read_name(start.get("model")) or read_name(last.get("model"))
        )
        read = [(r.provider or self.provider, r.usage) for r in responses] + [(self.provider, e.total) for e in ends]
        self._exclusive = {provider for provider, usage in read if usage.cache_read > usage.input}

    def normal(self, usage: TokenUsage, provider: str) -> TokenUsage:
        """Make the classes disjoint, in the same way for all of a provider's numbers in the session."""
        if self._native or provider in self._exclusive:
            return usage
        return fizeau_dialect.normalise_usage(usage, harness=self._harness, provider=provider)

    def record(self, response: Response, start_ns: int | None) -> Record:
        """The record of one response; a failed call that used nothing has nothing to price."""
        provider = response.provider or self.provider
        answered = response.answered if self._native else None
        cost = response.cost_nano if self._native or response.attempt_priced else None
        return Record(
            time_ns=response.time_ns if response.time_ns is not None else start_ns,
            provider=provider,
            model=response.asked or answered or self.model or response.answered or UNKNOWN,
            response_model=response.answered,
            usage=self.normal(response.usage, provider),
            cost_nano=cost,
            latency_ms=response.latency_ms,
            failed=response.failed,
            active_ms=response.active_ns // 1_000_000,
            priced=cost is not None or not response.failed or bool(response.usage),
        )

    def whole(self, usage: TokenUsage, cost_nano: int | None, time_ns: int | None) -> Record:
        """A record of the session as such, which is no request of its own."""
        return Record(
            time_ns=time_ns,
            provider=self.provider,
            model=self.model or UNKNOWN,
            response_model=None,
            usage=self.normal(usage, self.provider),
            cost_nano=cost_nano,
            requests=0,
        )


def _run(listed: list[Record], end: RunEnd, rest: TokenUsage, who: _Names, start_ns: int | None) -> list[Record]:
    """The records of one run, with what its end adds."""
    records = list(listed)
    if rest != NOTHING:
        records.append(who.whole(rest, None, end.time_ns if end.time_ns is not None else start_ns))
    if end.cost_nano is None:
        return records
    if end.cost_nano == 0:
        for record in records:
            record.cost_nano = record.cost_nano or 0
        return records
    left = end.cost_nano - sum(r.cost_nano or 0 for r in records)
    if left <= len(records):  # a nano-dollar per response is rounding
        left = 0
    if any(r.cost_nano is None for r in records):
        _share(records, left)
    elif left:
        records.append(who.whole(NOTHING, left, end.time_ns if end.time_ns is not None else start_ns))
    for record in records:
        record.priced = False  # the end says it all: no estimate comes on top
    return records


def _share(records: list[Record], cost_nano: int) -> None:
    """Spread a cost over the records that name none, by their tokens."""
    weights = [r.usage.total if r.cost_nano is None else 0 for r in records]
    if not any(weights):
        weights = [int(r.cost_nano is None) for r in records]
    whole, given, weighed = sum(weights), 0, 0
    for record, weight in zip(records, weights, strict=True):
        if record.cost_nano is None:
            weighed += weight
            record.cost_nano = cost_nano * weighed // whole - given
            given += record.cost_nano


def _with_a_cost(records: list[Record]) -> list[Record]:
    """A session that ended without any cost has an unknown one, even if all its calls failed."""
    if any(r.priced or r.cost_nano is not None for r in records):
        return records
    records[0].priced = True
    return records


def _sum(usages: Iterable[TokenUsage]) -> TokenUsage:
    """Add up; not one by one, which would make as many values again."""
    counts = [(u.input, u.output, u.cache_read, u.cache_write, u.reasoning, u.cache_write_1h) for u in usages]
    if not counts:
        return NOTHING
    read, output, cached, written, reasoning, long = map(sum, zip(*counts, strict=True))
    return TokenUsage(
        input=read, output=output, cache_read=cached, cache_write=written, reasoning=reasoning, cache_write_1h=long
    )
