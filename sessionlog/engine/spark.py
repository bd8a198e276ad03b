"""Spark: logs are scanned, their copies matched and their records summed on a cluster; the report is made here.

The driver lists the logs once and gives batches of them to the cluster, whose workers scan and price them with the same
functions as one machine. Copies of a response meet by the hash of their family in a shuffle, where `ledger.copies`
decides which of them counts. What counts is summed there per session, label and quarter hour, and only these sums come
back, with the facts of sessions, into a ledger in memory on which reports are the same queries as ever.

Single records come back, too, where sums would not do: those in quarter hours that a time window cuts, those without a
cost, which reports name, those that may be requests on the wire (see `ledger.wire`), and those with numbers so large
that sums might overflow.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from sessionlog.engine.portable import (
    Scan,
    SessionSpan,
    encode_tasks,
    parse_label,
    parse_name,
    parse_session,
    read_header,
    scans_of,
)
from sessionlog.engine.shares import divide
from sessionlog.engine.spark_session import failures_explained, open_session, parallelism, progress_of_tasks
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import Call, Response, Row
from sessionlog.ledger.handover import HandOver
from sessionlog.ledger.interned_ids import InternedIds, SessionName
from sessionlog.ledger.quarter_hours import add_totals, names_of_totals
from sessionlog.ledger.scanning import Job, scan_job
from sessionlog.ledger.schema import LETTER, QUARTER_NS
from sessionlog.ledger.sync import Progress
from sessionlog.ledger.wire import NEAR_NS
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.names import OURS
from sessionlog.sources.protocol import Source
from sessionlog.sources.registry import load_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEAST, _MOST = 4 << 20, 64 << 20
"""Bytes of logs per task. A task costs Spark some 0.3 s; what its worker holds in memory grows with it."""

_TASKS = 4
"""Tasks per core that a small job is divided into, so that workers finish at about the same time."""

_SHUFFLED = 1 << 30
"""Bytes of logs per partition of a shuffle: their rows are some thirtieth of that."""

_DECIDED: Mapping[str, Any] = {"family": None, "key": None, "superseded_by": None}
"""What a response that counts has no more: nothing is left to decide. A call keeps its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """The engine that scans logs on a Spark cluster; for reports on paths that all workers can read.

    Attributes:
        master: Where Spark runs: `local[*]`, `spark://host:7077`, `yarn`, or `sc://host:15002` for Spark Connect. None
            for the session that is active, else for what Spark's own configuration names.
        session: A session to use, which stays open.
    """

    master: str | None = None
    session: SparkSession | None = None

    def open_job(
        self, *, cuts: Collection[int] | None = None, with_calls: bool = True, progress: Progress | None = None
    ) -> SparkJob:
        """Return a job for one report, as a context.

        Args:
            cuts: The instants at which the report's time windows begin or end; None if it reads single records.
            with_calls: Whether it reads tool calls.
            progress: Called with (logs scanned, logs in all), also while Spark starts.
        """
        quarters = None if cuts is None else frozenset(cut - cut % QUARTER_NS for cut in cuts if cut % QUARTER_NS)
        return SparkJob(self, quarters, with_calls=with_calls, progress=progress)


class SparkJob:
    """Scans logs on the cluster, then fills a ledger in memory with what counts. A context, which ends Spark's part."""

    def __init__(
        self, engine: Spark, quarters: Collection[int] | None, *, with_calls: bool, progress: Progress | None
    ) -> None:
        self._engine, self._quarters, self._with_calls = engine, quarters, with_calls
        self._progress = progress
        self._stack = ExitStack()
        self._jobs: dict[int, Job] = {}  # by their ranks
        self._scans: DataFrame | None = None
        self._spark: SparkSession | None = None
        self._partitions = 1
        self._spans: dict[SessionName, SessionSpan] = {}
        self._superseding: set[str] = set()

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def scan(self, jobs: Sequence[Job], sources: Mapping[str, Source], prices: PriceBook) -> Iterator[HandOver]:
        """Scan logs on the cluster; yield what a sync needs of them: all but responses and calls, for `fill`.

        Raises:
            MissingExtra: pyspark is not installed.
            EngineFailed: Spark cannot be started, or its job failed.
        """
        ordered = sorted(jobs, key=lambda job: os.fsencode(job.path))
        self._jobs = dict(enumerate(ordered))
        with failures_explained():
            with progress_of_tasks(None, self._progress, len(jobs)):
                spark = self._spark = self._stack.enter_context(open_session(self._engine.master, self._engine.session))
            from sessionlog.engine import spark_frames as frames

            there = {rank: job for rank, job in self._jobs.items() if _is_on_workers(job.source, sources)}
            here = self._scan_here(self._jobs.keys() - there.keys(), sources, prices)
            batches = self._batches(there, parallelism(spark))
            self._scans = frames.scanned_logs(spark, batches, here, prices, with_calls=self._with_calls).persist()
            self._stack.callback(self._scans.unpersist)
            with progress_of_tasks(spark, self._progress, len(jobs)):
                found = frames.headers(self._scans)
        for text in found:
            header = read_header(text, self._jobs)
            self._superseding |= header.superseding
            for span in header.spans:
                known = self._spans.get(span.name)
                self._spans[span.name] = span if known is None else _merge(known, span)
            yield HandOver(logs=[header.scanned])

    def _batches(self, jobs: Mapping[int, Job], cores: int) -> list[bytes]:
        """Divide logs into tasks."""
        total = sum(job.size for job in jobs.values())
        self._partitions = max(cores, total // _SHUFFLED)
        ranks = {job.number: rank for rank, job in jobs.items()}
        batches = divide(list(jobs.values()), max(_LEAST, min(_MOST, total // (cores * _TASKS))), lambda job: job.size)
        return [encode_tasks((ranks[job.number], job) for job in batch) for batch in reversed(batches)]

    def _scan_here(self, ranks: Iterable[int], sources: Mapping[str, Source], prices: PriceBook) -> list[Scan]:
        """Scan logs of sources that workers do not have in this process."""
        found: list[Scan] = []
        for rank in ranks:
            job = self._jobs[rank]
            scanned = replace(scan_job(job, sources[job.source]), number=rank)
            found += scans_of(scanned, prices, with_calls=self._with_calls)
        return found

    def fill(self, book: Book) -> None:
        """Insert the records and calls that count into a ledger that has the scans of `scan`.

        Raises:
            EngineFailed: The job failed.
        """
        if self._scans is None or self._spark is None:
            return
        from sessionlog.engine import spark_frames as frames

        known = frozenset(f"{source}:{session}" for source, session, _ in self._spans) & self._superseding
        totals: list[Row] = []
        with failures_explained():
            responses = frames.counting_responses(self._scans, known, self._partitions)
            near = list(map(json.dumps, sessions_near_wire(self._spans.values())))
            summed = frames.totals_and_singles(
                self._spark, responses, quarters=self._quarters, near_wire=near, partitions=self._partitions
            )
            for row in frames.stream(summed):
                self._insert(book, row.file_id, responses=row.singles)
                if row.records:
                    totals.append(_total(row))
            if self._with_calls:
                for row in frames.stream(frames.counting_calls(self._scans, known, self._partitions)):
                    self._insert(book, row.file_id, calls=row.calls)
        book.reconcile()
        _insert_totals(book, totals)

    def _insert(self, book: Book, rank: int, *, responses: Iterable[Row] = (), calls: Iterable[Row] = ()) -> None:
        book.append_rows(self._jobs[rank].path, *rows_that_count(responses, calls))


def rows_that_count(responses: Iterable[Row], calls: Iterable[Row]) -> tuple[list[Response], list[Call]]:
    """Return rows that count, with names for their texts, for `Writer.append`."""
    return [
        row._replace(session_id=parse_session(row.session_id), label_id=parse_label(row.label_id), **_DECIDED)  # type: ignore[arg-type] # texts
        for row in map(Response._make, responses)
    ], [
        row._replace(session_id=parse_session(row.session_id), name_id=parse_name(row.name_id), superseded_by=None)  # type: ignore[arg-type] # as above
        for row in map(Call._make, calls)
    ]


def _total(row: Any) -> Row:
    """Return a total with the columns of `names_of_totals`, with texts for the ids of session and label."""
    letters = "".join(chr(bucket + LETTER) for bucket in row.buckets)
    own = {"time_ns": row.quarter_ns, "unknown": 0, "unpriced": 0, "latencies": letters or None}
    return tuple(own[name] if name in own else row[name] for name in names_of_totals())


def _insert_totals(book: Book, totals: Iterable[Row]) -> None:
    book.connection.execute("BEGIN IMMEDIATE")
    ids = InternedIds(book.connection)
    rows = []
    for session_text, label, *sums in totals:
        rows.append((ids.session_id(parse_session(session_text)), ids.label_id(parse_label(label)), *sums))
    add_totals(book.connection, rows)
    book.commit()


def _is_on_workers(source: str, sources: Mapping[str, Source]) -> bool:
    """Whether workers have a source: those of other packages they have not."""
    return source in OURS and sources.get(source) is load_source(source)


def sessions_near_wire(spans: Collection[SessionSpan]) -> list[SessionName]:
    """Return the sessions that were recorded on the wire, and those with requests at that time."""
    wires: list[tuple[int, int]] = []  # disjoint, in order
    timed = [
        (span, span.start_ns, span.last_ns) for span in spans if span.start_ns is not None and span.last_ns is not None
    ]
    for start, last in sorted((start, last) for span, start, last in timed if span.on_wire):
        first, end = start - NEAR_NS, last + NEAR_NS
        if wires and first <= wires[-1][1]:
            wires[-1] = wires[-1][0], max(end, wires[-1][1])
        else:
            wires.append((first, end))
    found = []
    for span, start, last in timed if wires else ():
        index = bisect_right(wires, last, key=lambda wire: wire[0]) - 1
        if index >= 0 and wires[index][1] >= start:
            found.append(span.name)
    return found


def _merge(one: SessionSpan, other: SessionSpan) -> SessionSpan:
    starts = [start for start in (one.start_ns, other.start_ns) if start is not None]
    lasts = [last for last in (one.last_ns, other.last_ns) if last is not None]
    return SessionSpan(
        name=one.name,
        start_ns=min(starts, default=None),
        last_ns=max(lasts, default=None),
        on_wire=one.on_wire or other.on_wire,
    )
