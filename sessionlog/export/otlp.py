"""Export to a collector of OpenTelemetry: spans, metrics and events of what the ledger knows, and of nothing twice.

Each signal is sent in batches, in the ledger's order, and a batch's position is stored when the collector has confirmed
it. So a run that is killed sends at most one batch of a signal again, with the same ids and the same times. What a
collector rejects of a batch that it has accepted is counted, and not sent again, as OTLP demands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Unpack

from sessionlog.analytics.question import Question, answer
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tools import CallSelection
from sessionlog.errors import InvalidQuery, LogNotReadable, MissingExtra, Problem
from sessionlog.export.items import PAGE, Item, Request, count_items, read_calls, read_requests, read_sessions
from sessionlog.export.position import NOTHING, New, Position, Rejected
from sessionlog.export.state_database import state_path
from sessionlog.ledger.book import Book
from sessionlog.places import state_home

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord

    from sessionlog.analytics.question import Options, Paths
    from sessionlog.export.collector import Collector

Progress = Callable[[int, int], None]

SIGNALS = ("traces", "metrics")
"""What is sent by default."""

_EVENT_BYTES = 2 << 20
"""Messages that are sent at once."""

_NAMED = 5
"""Problems that the JSON document names."""

_OF_REQUESTS = frozenset({"provider", "model"})
"""Filters that tool calls do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export has sent.

    Attributes:
        endpoint: Where to, without a password.
        dry_run: Nothing was sent: these are the numbers of what would be.
        requests: Spans of requests.
        tool_calls: Spans of tool calls.
        sessions: Spans around sessions that have any of these.
        points: Data points of metrics.
        events: Events with the messages of requests.
        without_log: Requests whose messages cannot be read, because their logs are gone.
        unchanged: Requests and tool calls of the first signal that the endpoint has already.
        without_time: Those whose log has no time for them, which cannot be sent.
        rejected: Spans, points and events that the collector refused.
        messages: Its words about these.
        problem_count: Problems of the logs.
        problems: The first of them.
        notes: Sentences about the ledger.
    """

    endpoint: str
    dry_run: bool
    requests: int
    tool_calls: int
    sessions: int
    points: int
    events: int
    without_log: int
    unchanged: int
    without_time: int
    rejected: int
    messages: tuple[str, ...]
    problem_count: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to send, sent before or not."""
        return not (self.requests or self.tool_calls or self.points or self.events or self.unchanged)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in ("problem_count", "problems")}
        problems = {"count": self.problem_count, "first": [str(problem) for problem in self.problems[:_NAMED]]}
        return {"schema": "sessionlog.export/1", **fields, "problems": problems}


def export_otlp(
    paths: Paths = None,
    *,
    endpoint: str,
    headers: Mapping[str, str] | None = None,
    signals: Collection[str] = SIGNALS,
    content: bool = False,
    again: bool = False,
    dry_run: bool = False,
    sent: Progress | None = None,
    **options: Unpack[Options],
) -> Exported:
    """Send requests, tool calls and sessions to a collector, except what it has confirmed before.

    The SDK's exporters log their failures to the logger `opentelemetry`, as they always do.

    Args:
        paths: Files or folders; native sessions and the logs of every agent when None.
        endpoint: The collector's base URL, `http://localhost:4318`.
        headers: Headers of all requests, beside those of `OTEL_EXPORTER_OTLP_HEADERS`.
        signals: `traces`, `metrics` or both.
        content: Send the messages of requests and answers as well, as events. Well-known secrets are replaced.
        again: Send everything, whatever was confirmed before.
        dry_run: Count what would be sent, and send nothing.
        sent: Called with (items done, items in all) after each page.
        options: See `Question`. Tool calls have no provider and no model: filters of these leave them out.

    Raises:
        MissingExtra: The extra `otel` is not installed.
        NotExported: The collector cannot be reached or refuses a batch; those before it are confirmed.
        InvalidQuery: A filter, source, signal or the endpoint cannot be used.
        InvalidWindow: The window is outside the grammar.
    """
    try:
        from sessionlog.export.collector import Collector, base_url, shown
    except ImportError as error:
        raise MissingExtra("export to a collector needs: pip install 'sessionlog[otel]'") from error
    wrong = [name for name in signals if name not in SIGNALS]
    if wrong or not signals:
        raise InvalidQuery(f"there is no signal {', '.join(wrong)!r}; there are {' and '.join(SIGNALS)}")
    question = Question(paths=paths, **options)
    requests = question.selection(Selection)
    has_calls = _OF_REQUESTS.isdisjoint(question.filters or {})
    calls = question.selection(CallSelection) if has_calls else None
    state = state_home(os.environ if question.env is None else question.env)
    with ExitStack() as stack:
        position = stack.enter_context(Position(state_path(state, shown(base_url(endpoint)))))
        collector = stack.enter_context(Collector(endpoint, headers or {}))

        def send(book: Book) -> Exported:
            run = _Run(book, requests, calls, position, collector, is_dry=dry_run, is_again=again)
            chosen = [signal for signal in SIGNALS if signal in signals]
            return run.send([*chosen, *(["events"] if content else [])], sent)

        return answer(
            question, send, needs_logs="what machines have exported as parquet has no spans: export on each machine"
        )


class _Run:
    """One export of one ledger: sends batches, and counts what they hold."""

    def __init__(
        self,
        book: Book,
        requests: Selection,
        calls: CallSelection | None,
        position: Position,
        collector: Collector,
        *,
        is_dry: bool,
        is_again: bool,
    ) -> None:
        self._book, self._requests, self._calls = book, requests, calls
        self._position, self._collector, self._is_dry, self._is_again = position, collector, is_dry, is_again
        self._sent = dict.fromkeys(("requests", "tool_calls", "points", "events", "without_log", "unchanged"), 0)
        self._sessions: set[int] = set()
        self._rejected: list[Rejected] = []

    def send(self, signals: Sequence[str], progress: Progress | None) -> Exported:
        """Send signals, one after the other, and return what was sent."""
        requests, calls, without_time = count_items(self._book, self._requests, self._calls)
        total = len(signals) * requests + calls * ("traces" in signals)
        done = 0

        def count(items: int) -> None:
            nonlocal done
            done = min(total, done + items)
            if progress is not None:
                progress(done, total)

        for signal in signals:
            if signal == "events":
                self._send_contents(count)
                continue
            for batch in _batches(self._new(signal, count, is_first=signal == signals[0])):
                self._send(signal, batch)
        return Exported(
            endpoint=self._collector.place,
            dry_run=self._is_dry,
            sessions=len(self._sessions),
            without_time=without_time,
            rejected=sum(one.count for one in self._rejected),
            messages=tuple(dict.fromkeys(one.message for one in self._rejected if one.message)),
            problem_count=self._book.problem_count,
            problems=tuple(self._book.problems),
            notes=tuple(self._book.notes),
            **self._sent,
        )

    def _new(self, signal: str, count: Callable[[int], None], *, is_first: bool) -> Iterator[list[New]]:
        """Yield what a signal has not sent, page by page."""
        pages: Iterable[Sequence[Item]] = read_requests(self._book, self._requests)
        if signal == "traces" and self._calls is not None:
            pages = chain(pages, read_calls(self._book, self._calls))
        for page in pages:
            new = self._select(signal, page)
            self._sent["unchanged"] += (len(page) - len(new)) * is_first
            yield new
            count(len(page))

    def _select(self, signal: str, items: Sequence[Item]) -> list[New]:
        return [(item, None) for item in items] if self._is_again else self._position.select(signal, items)

    def _send(self, signal: str, batch: Sequence[New]) -> None:
        rejected = self._send_spans(batch) if signal == "traces" else self._send_metrics(batch)
        if not self._is_dry:
            self._rejected.append(rejected)
            self._position.mark(signal, [item for item, _ in batch])

    def _send_spans(self, batch: Sequence[New]) -> Rejected:
        from sessionlog.export.spans import root_span, span_of

        items = [item for item, _ in batch]
        sessions = read_sessions(self._book, sorted({item.row for item in items} - self._sessions))
        self._sessions.update(session.row for session in sessions)
        requests = sum(isinstance(item, Request) for item in items)
        self._sent["requests"] += requests
        self._sent["tool_calls"] += len(items) - requests
        spans = [*(root_span(session, items) for session in sessions), *map(span_of, items)]
        return NOTHING if self._is_dry else self._collector.send_spans(spans)

    def _send_metrics(self, batch: Sequence[New]) -> Rejected:
        from sessionlog.export.points import count_points, metrics_of

        metrics = metrics_of([(item, before) for item, before in batch if isinstance(item, Request)])
        points = count_points(metrics)
        self._sent["points"] += points
        return NOTHING if self._is_dry or not points else self._collector.send_metrics(metrics)

    def _send_contents(self, count: Callable[[int], None]) -> None:
        """Send the messages of requests, one session of a log after the other: each is read once."""
        requests = chain.from_iterable(read_requests(self._book, self._requests))
        for _, group in groupby(requests, key=lambda item: (item.path, item.session)):
            items = [*group]
            new = [item for item, _ in self._select("events", items) if isinstance(item, Request)]
            if self._is_dry:
                self._sent["events"] += len(new)
            elif new:
                try:
                    self._send_log(items, new)
                except LogNotReadable:
                    self._sent["without_log"] += len(new)
            count(len(items))

    def _send_log(self, items: Sequence[Request], new: Sequence[Request]) -> None:
        """Send the messages of a session's new requests; its others take part in finding whose they are."""
        from sessionlog.export.contents import read_events

        ids = {item.id for item in new}
        waiting: list[tuple[Request, ReadableLogRecord]] = []
        total = 0
        for item, event, size in read_events(items):
            if item.id in ids:
                waiting.append((item, event))
                total += size
            if total >= _EVENT_BYTES:
                self._send_events(waiting)
                waiting, total = [], 0
        self._send_events(waiting)
        self._position.mark("events", new)  # also those that the log has no words of

    def _send_events(self, found: Sequence[tuple[Request, ReadableLogRecord]]) -> None:
        if found:
            self._rejected.append(self._collector.send_events([event for _, event in found]))
            self._position.mark("events", [item for item, _ in found])
            self._sent["events"] += len(found)


def _batches(pages: Iterable[list[New]]) -> Iterator[list[New]]:
    """Yield what pages hold in lists of the same length, but for the last one."""
    waiting: list[New] = []
    for page in pages:
        waiting += page
        while len(waiting) >= PAGE:
            yield waiting[:PAGE]
            waiting = waiting[PAGE:]
    if waiting:
        yield waiting
