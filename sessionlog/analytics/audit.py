"""Audit: one session's requests as they passed on the wire, as the agent logged them, and as it exported them by OTel.

Requests on the wire and rows of the agent's log are the same by the rule by which they count (see `ledger.wire`); the
OTel records of the session are paired with these in the same way. Only the time is compared in which something was
recorded on the wire: a session may have begun, or gone on, without that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from sessionlog.analytics.audit_requests import CLASSES, find_requests
from sessionlog.analytics.columns import Column, counted
from sessionlog.analytics.question import Question, answer
from sessionlog.analytics.report import Report, findings_of
from sessionlog.errors import LogNotReadable
from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.wire import Request, pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Unpack

    from sessionlog.analytics.audit_requests import Found
    from sessionlog.analytics.columns import Unit
    from sessionlog.analytics.question import Options, Paths
    from sessionlog.ledger.book import Book

ORIGINS = ("wire", "log", "otel")
"""Where a request is recorded, in the order of columns."""

_NAMED = 5  # models that the last sentence names


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One request, in all origins that have it.

    Attributes:
        wire: It on the wire; None if it did not pass there.
        log: Its row in the agent's log; None if there is none.
        otel: What the agent exported of it; None if that is nothing.
        matched_by: How wire and log were paired: `id`, `tokens`; `sum` for a sum of what is only on the wire; "" for
            none.
        differences: What differs, in words.
        number: Its place in the report, from 1.
    """

    wire: Request | None = None
    log: Request | None = None
    otel: Request | None = None
    matched_by: str = ""
    differences: tuple[str, ...] = ()
    number: int = 0

    @property
    def keys(self) -> Mapping[str, str]:
        """Its number, as the report's group key."""
        return {"request": str(self.number)}

    @property
    def first(self) -> Request:
        """It in the first of the origins that have it."""
        one = self.wire or self.log or self.otel
        assert one is not None
        return one

    @property
    def time_ns(self) -> int:
        """When it was answered."""
        return self.first.time_ns

    @property
    def model(self) -> str:
        """The model asked for, or that answered where that is all there is."""
        return self.first.asked if self.first.asked != UNKNOWN else self.first.served


class AuditTotals(SimpleNamespace):
    """Sums over all requests: an attribute for each column of tokens; None where an origin has no request."""


def _tokens(origin: str, *classes: str) -> Column:
    """Return the column of an origin's tokens in these classes, of which tables show prompt and output."""
    name = f"{origin}_{classes[0] if len(classes) == 1 else 'prompt'}_tokens"
    places = [CLASSES.index(one) for one in classes]
    title = {"prompt": "IN", "output": "OUT"}.get(name.split("_")[1])

    def get(row: AuditRow | AuditTotals) -> int | None:
        if isinstance(row, AuditTotals):
            total: int | None = getattr(row, name)
            return total
        request: Request | None = getattr(row, origin)
        return None if request is None else sum(request.tokens[place] for place in places)

    return Column(name, "count", title and f"{origin.upper()} {title}", 2, get=get)


def _text(name: str, attribute: str, unit: Unit, title: str, rank: int = 0, least: int | None = None) -> Column:
    """Return a column of rows alone, which do not add up."""
    nothing = () if unit == "sentences" else None
    return Column(name, unit, title, rank, get=lambda row: getattr(row, attribute, nothing), least=least)


_OF_TOKENS = tuple(
    _tokens(origin, *classes)
    for origin in ORIGINS
    for classes in (("input",), ("cache_read",), ("cache_write",), ("input", "cache_read", "cache_write"), ("output",))
)
COLUMNS = (
    _text("time", "time_ns", "second", "TIME"),
    _text("model", "model", "text", "MODEL", 1, 10),
    *_OF_TOKENS,
    _text("matched_by", "matched_by", "text", "BY", 3),
    _text("differences", "differences", "sentences", "DIFFERENCE", 0, 20),
)
"""The columns of a request, in the order of JSON, CSV and tables."""


def _totals(rows: Iterable[AuditRow]) -> AuditTotals:
    sums: dict[str, int | None] = {column.name: None for column in _OF_TOKENS}
    for row in rows:
        for column in _OF_TOKENS:
            value = column.value(row)
            if value is not None:
                sums[column.name] = (sums[column.name] or 0) + value
    return AuditTotals(**sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport(Report):
    """One session's requests, in the order of their times.

    Attributes:
        group_by: The number of a request.
        session: The session's id.
        source: The agent.
        rows: The requests.
        totals: Sums by origin.
        beside: Requests of the log at times when nothing was recorded on the wire, which are not compared.
        has_wire: Something of the session was recorded on the wire.
        has_log: A log of the agent's is known.
    """

    schema = "sessionlog.audit/1"
    title = "Audit"
    thing = "request"
    columns = COLUMNS
    is_timed = False

    group_by: tuple[str, ...] = ("request",)
    session: str = ""
    source: str = ""
    rows: tuple[AuditRow, ...] = ()
    totals: AuditTotals = field(default_factory=lambda: _totals(()))
    beside: int = 0
    has_wire: bool = True
    has_log: bool = True

    @property
    def differs(self) -> bool:
        """Whether any two origins differ."""
        return any(row.differences for row in self.rows)

    @property
    def summary(self) -> str:
        """The session, and how many of its requests differ."""
        different = sum(bool(row.differences) for row in self.rows)
        return f"{self.source} {self.session} · {counted(len(self.rows), self.thing)}, {different} with a difference"

    @property
    def extra(self) -> Mapping[str, Any]:
        """The session, the requests of each origin, and what the log leaves out."""
        return {
            "session": self.session, "source": self.source,
            "requests": {origin: sum(getattr(row, origin) is not None for row in self.rows) for origin in ORIGINS},
            "not_compared": self.beside, "conclusion": self.conclusion,
        }  # fmt: skip

    @property
    def conclusion(self) -> str:
        """One sentence: what the agent's log leaves out."""
        if not self.has_wire:
            return f"nothing of this session was recorded on the wire: {self.source} is compared with OTel alone"
        wire = [row for row in self.rows if row.wire is not None]
        if not wire:
            return "no request to a model passed on the wire"
        if not self.has_log:
            return f"no agent's log has any of the {counted(len(wire), 'request')} on the wire"
        missing = [row for row in wire if row.log is None]
        if not missing:
            return f"the log of {self.source} has every request that passed on the wire"
        models = Counter(row.model for row in missing).most_common()
        named = ", ".join(f"{count} of {model}" for model, count in models[:_NAMED])
        named += f" and {len(models) - _NAMED} models more" if len(models) > _NAMED else ""
        named += "; it has a sum of such" if any(row.matched_by == "sum" for row in self.rows) else ""
        return f"the log of {self.source} leaves out {len(missing)} of {counted(len(wire), 'request')}: {named}"

    def footnotes(self) -> Iterator[str]:
        """Yield what was not compared, and the conclusion."""
        if self.beside:
            yield f"{counted(self.beside, 'request')} of the log are of times when nothing was recorded on the wire"
        yield self.conclusion


_NEEDS_LOGS = "an audit compares logs, and this is what machines have exported of them"


def audit_session(session: str, paths: Paths = None, **options: Unpack[Options]) -> AuditReport:
    """Compare the requests of one session on the wire, in the agent's log, and in its OTel export.

    Args:
        session: The agent's session or the one on the wire: its id, the beginning or end of it, or the path of its log.
        paths: Files or folders; the logs of every agent when None.
        options: As for `aggregate_usage`; of these only what names logs and ledger matters.

    Raises:
        LogNotReadable: No session has this name, or only the agent's own log has it: there is nothing to compare.
        AmbiguousSession: Several sessions match.
    """
    question = Question(paths=paths, **options)
    report = answer(question, lambda book: fold_audit(book, session), needs_logs=_NEEDS_LOGS)
    return report.limited(question.limit)


def fold_audit(book: Book, session: str) -> AuditReport:
    """Query a book for the audit of a session; arguments and errors as for `audit_session`."""
    found = find_requests(book, session)
    if not (found.has_wire or found.exported):
        raise LogNotReadable(
            f"{found.session}: there is only the log of {found.source}, nothing to compare it with; record the agent's "
            "requests with `sessionlog run`, or export them by OTel"
        )
    rows = _rows(found)
    return AuditReport(
        session=found.session,
        source=found.source,
        rows=rows,
        totals=_totals(rows),
        beside=found.beside,
        has_wire=found.has_wire,
        has_log=found.has_log,
        **findings_of(book),
    )


def _rows(found: Found) -> tuple[AuditRow, ...]:
    """Return a row for each request, in time order."""
    logged = {one.place: one for one in found.logged}
    rows = []
    for wire in found.on_wire:
        place, matched_by = found.matches.get(wire.place, (None, ""))
        log = None if place is None else logged.pop(place, None)
        rows.append(AuditRow(wire=wire, log=log, matched_by="" if log is None else matched_by))
    rows += [AuditRow(log=log, matched_by="sum" * (log.place in found.summed_up)) for log in logged.values()]
    single = {row.first.place: row for row in rows if not row.first.summed}
    otel = pair((row.first for row in single.values()), found.exported, lambda _one, _other: True)
    pairs = {id(single[one.place]): other for one, other, _ in otel}
    paired = {other.place for other in pairs.values()}
    rows = [replace(row, otel=pairs.get(id(row))) for row in rows]
    rows += [AuditRow(otel=request) for request in found.exported if request.place not in paired]
    has = {"wire": found.has_wire, "log": found.has_log, "otel": bool(found.exported)}
    rows.sort(key=lambda row: row.time_ns)
    return tuple(
        replace(row, number=number, differences=tuple(_differences(row, has))) for number, row in enumerate(rows, 1)
    )


def _differences(row: AuditRow, has: Mapping[str, bool]) -> Iterator[str]:
    """Yield what differs between the origins that the session has."""
    wire, log, otel = row.wire, row.log, row.otel
    if wire is not None and log is not None:
        yield from _unequal(wire, log)
    elif wire is not None and has["log"]:
        yield "only on the wire, failed" if wire.failed else "only on the wire"
    elif log is not None and has["wire"] and not log.summed:
        yield "only in the log, failed" if log.failed else "only in the log"
    elif log is not None and has["wire"] and not row.matched_by:
        yield "only in the log, as a part of a sum"
    if otel is None:
        if has["otel"] and not row.first.summed:
            yield "not in OTel"
    elif row.first is otel:
        yield "only in OTel"
    else:
        yield from _unequal(row.first, otel, "OTel ")


def _unequal(one: Request, other: Request, of: str = "") -> Iterator[str]:
    """Yield the token classes that differ, with both counts."""
    for name, count, logged in zip(CLASSES, one.tokens, other.tokens, strict=True):
        if count != logged:
            yield f"{of}{name.replace('_', ' ')} {count:,} ≠ {logged:,}"
