"""Spark: logs are scanned, their copies matched and their records summed on a cluster; the report is made here.

The driver lists the logs once and gives batches of them to the cluster, whose workers scan and price them with the same
functions as one machine. Copies of a response meet by the hash of their family in a shuffle, where `ledger.copies`
decides which of them counts. What counts is summed there per session, label and quarter hour, and only these sums come
back, with the facts of sessions, into a ledger in memory on which reports are the same queries as ever.

Single records come back, too, where sums would not do: those in quarter hours that a time window cuts, those without a
cost, which reports name, those that may be requests on the wire (see `ledger.wire`), and those with numbers so large
that sums might overflow.

Only the DataFrame API is used, so that it runs on a local Spark, a cluster and through Spark Connect.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from sessionlog.engine.portable import (
    CALLS,
    RESPONSES,
    SCANS,
    Header,
    SessionSpan,
    encode_tasks,
    parse_names,
    read_header,
    scan_tasks,
    scans_of,
    winning_calls,
    winning_responses,
)
from sessionlog.engine.scanner import divide
from sessionlog.engine.spark_session import failures_explained, open_session, parallelism, progress_of_tasks
from sessionlog.fast_dataclasses import dataclass
from sessionlog.ledger.book import Book
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.pairing import NEAR_BY_ID_NS
from sessionlog.ledger.quarter_hours import add_totals
from sessionlog.ledger.rows import LogRows, SessionRows
from sessionlog.ledger.scanning import Job, Scanned, scan_job
from sessionlog.ledger.schema import CALL, LETTER, QUARTER_NS, RESPONSE
from sessionlog.ledger.sync import Progress
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Source
from sessionlog.sources.registry import OURS, load_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEAST, _MOST = 4 << 20, 64 << 20
"""Bytes of logs per task. A task costs Spark some 0.3 s; what its worker holds in memory grows with it."""

_TASKS = 4
"""Tasks per core that a small job is divided into, so that workers finish at about the same time."""

_LARGE = 1 << 40
"""Numbers above this are not summed on the cluster: eight million of those below it fit into 64 bits."""

_SESSION, _LABEL, _FAMILY, _KEY = (RESPONSE.index(name) for name in ("session_id", "label_id", "family", "key"))
_CALL_SESSION, _CALL_NAME = CALL.index("session_id"), CALL.index("name_id")
_SUMS = (
    "requests", "failed", "input", "output", "cache_read", "cache_write", "reasoning", "cost_nano", "estimate_nano",
    "active_ms", "saved_nano",
)  # fmt: skip
_SUMMED = "NOT is_single"
_GENERATED = f"CASE WHEN {_SUMMED} AND latency_bucket IS NOT NULL THEN"
_TOTALS = (
    f"COUNT(CASE WHEN {_SUMMED} THEN 1 END) AS records",
    f"MIN(CASE WHEN {_SUMMED} THEN time_ns END) AS first_ns",
    f"MAX(CASE WHEN {_SUMMED} THEN time_ns END) AS last_ns",
    *(f"SUM(CASE WHEN {_SUMMED} THEN {name} END) AS {name}" for name in _SUMS),
    f"SUM({_GENERATED} output ELSE 0 END) AS generated",
    f"SUM({_GENERATED} CAST(latency_ms * 1000 + 0.5 AS BIGINT) ELSE 0 END) AS generation_us",
    f"COLLECT_LIST({_GENERATED} latency_bucket END) AS buckets",
    f"COLLECT_LIST(CASE WHEN is_single THEN STRUCT({', '.join(RESPONSE)}) END) AS singles",
)
"""A total as in `ledger.quarter_hours`, and the records that are not in it."""


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

        Raises:
            MissingExtra: pyspark is not installed.
        """
        quarters = None if cuts is None else frozenset(cut - cut % QUARTER_NS for cut in cuts if cut % QUARTER_NS)
        return SparkJob(self, quarters, with_calls=with_calls, progress=progress)


class SparkJob:
    """Scans logs on the cluster, then fills a ledger in memory with what counts. A context that ends Spark's part."""

    def __init__(
        self, engine: Spark, quarters: Collection[int] | None, *, with_calls: bool, progress: Progress | None
    ) -> None:
        self._engine, self._quarters, self._with_calls = engine, quarters, with_calls
        self._progress = progress
        self._stack = ExitStack()
        self._jobs: dict[int, Job] = {}
        self._scans: DataFrame | None = None
        self._spark: SparkSession | None = None
        self._spans: dict[tuple[str, str, str], SessionSpan] = {}
        self._superseding: set[str] = set()

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type] # the three values of a context

    def scan(self, jobs: Sequence[Job], sources: Mapping[str, Source], prices: PriceBook) -> Iterator[Scanned]:
        """Scan logs on the cluster; yield what a sync needs of them: all but responses and calls, for `fill`.

        Raises:
            EngineFailed: Spark cannot be started, or its job failed.
        """
        ranks = sorted(range(len(jobs)), key=lambda index: os.fsencode(jobs[index].path))
        self._jobs = {rank: jobs[index] for rank, index in enumerate(ranks)}
        with failures_explained():
            with progress_of_tasks(None, self._progress, len(jobs)):
                spark = self._spark = self._stack.enter_context(open_session(self._engine.master, self._engine.session))
            self._scans = self._scanned(spark, sources, prices).persist()
            self._stack.callback(self._scans.unpersist)
            with progress_of_tasks(spark, self._progress, len(jobs)):
                headers = [row.header for row in self._scans.where("header IS NOT NULL").select("header").collect()]
        for text in headers:
            header = self._read(text)
            yield header.scanned

    def _scanned(self, spark: SparkSession, sources: Mapping[str, Source], prices: PriceBook) -> DataFrame:
        """The scans of all logs, a row each. Sources of other packages are not on workers: their logs are read here."""
        from pyspark.sql import functions as F  # noqa: N812 - as in Spark's own documentation

        with_calls = self._with_calls
        scan = F.udf(lambda tasks: scan_tasks(tasks, prices, with_calls=with_calls), SCANS, useArrow=False)
        there = {rank: job for rank, job in self._jobs.items() if _is_ours(job.source, sources)}
        ranks = {job.number: rank for rank, job in there.items()}
        total = sum(job.size for job in there.values())
        size = max(_LEAST, min(_MOST, total // (parallelism(spark) * _TASKS)))
        batches = [
            (number, encode_tasks((ranks[job.number], job) for job in share))
            for number, share in enumerate(reversed(divide(list(there.values()), size)))
        ]
        tasks = spark.createDataFrame(batches, "number BIGINT, tasks BINARY")
        # A range has just one row per partition, which the rows of a local list would not have.
        spread = spark.range(0, len(batches), 1, max(1, len(batches))).join(
            F.broadcast(tasks), F.col("id") == F.col("number")
        )
        scans = spread.select(F.inline(scan("tasks")))
        here = [
            row
            for rank, job in self._jobs.items()
            if rank not in there
            for row in scans_of(rank, scan_job(job, prices, sources[job.source]), with_calls=with_calls)
        ]
        return scans.unionByName(spark.createDataFrame(here, scans.schema)) if here else scans

    def _read(self, text: str) -> Header:
        header = read_header(text, 0)
        job = self._jobs[header.rank]
        header = read_header(text, job.number)
        self._superseding |= header.superseding
        for span in header.spans:
            known = self._spans.get(span.name)
            self._spans[span.name] = span if known is None else _merge(known, span)
        return header

    def fill(self, book: Book) -> None:
        """Insert the records and calls that count into a ledger that has the scans of `scan`.

        Raises:
            EngineFailed: The job failed.
        """
        if self._scans is None or self._spark is None:
            return
        known = frozenset(f"{source}:{session}" for source, session, _ in self._spans) & self._superseding
        with failures_explained():
            totals: list[tuple[Any, ...]] = []
            for row in self._stream(self._totals(self._responses(known))):
                self._insert(book, row.file_id, row.singles, ())
                if row.records:
                    totals.append(_total(row))
            if self._with_calls:
                for row in self._stream(self._calls(known)):
                    self._insert(book, row.file_id, (), row.calls)
        book.reconcile()
        _insert_totals(book, totals)

    def _stream(self, frame: DataFrame) -> Iterator[Any]:
        """Yield the rows of a result, which is computed in parallel first: then one partition is in memory at a time."""
        kept = frame.persist()
        try:
            kept.count()
            yield from kept.toLocalIterator(prefetchPartitions=True)
        finally:
            kept.unpersist()

    def _responses(self, known: Collection[str]) -> DataFrame:
        """The responses that count, with a column `is_single`."""
        from pyspark.sql import functions as F  # noqa: N812 - as in Spark's own documentation

        assert self._scans is not None, "scanned before"
        decide = F.udf(lambda copies: winning_responses(copies, known), RESPONSES, useArrow=False)
        rows = self._scans.select(F.inline("responses"))
        alone = rows.where("family IS NULL")
        copies = _copies(rows.where("family IS NOT NULL"), "family")
        counting = alone.unionByName(copies.select(F.inline(F.coalesce(decide("several"), "copies"))))
        near = self._near_wire()
        if near:
            assert self._spark is not None, "started before"
            marked = self._spark.createDataFrame([(name, True) for name in near], "session_id STRING, near BOOLEAN")
            counting = counting.join(F.broadcast(marked), "session_id", "left")
        return counting.withColumn("is_single", F.expr(self._singles(has_near=bool(near))))

    def _singles(self, *, has_near: bool) -> str:
        """The condition of responses that cannot be summed on the cluster."""
        if self._quarters is None:
            return "TRUE"
        quarters = ", ".join(map(str, sorted(self._quarters)))
        return " OR ".join([
            "(priced <> 0 AND cost_nano IS NULL AND estimate_nano IS NULL)",
            *(f"COALESCE(ABS(CAST({name} AS DOUBLE)) > {_LARGE}, FALSE)" for name in _SUMS),
            f"COALESCE(latency_ms > {_LARGE >> 10}, FALSE)",
            f"COALESCE(ABS(CAST(time_ns AS DOUBLE)) > {1 << 62}, FALSE)",
            *([f"COALESCE({_QUARTER} IN ({quarters}), FALSE)"] if quarters else []),
            *(["COALESCE(near, FALSE)"] if has_near else []),
        ])  # fmt: skip

    def _totals(self, responses: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812 - as in Spark's own documentation

        quarter = F.expr(f"CASE WHEN NOT is_single THEN {_QUARTER} END").alias("time_ns")
        grouped = responses.groupBy("file_id", "session_id", "label_id", quarter.alias("quarter_ns"))
        return grouped.agg(*map(F.expr, _TOTALS))

    def _calls(self, known: Collection[str]) -> DataFrame:
        """The tool calls that count, in lists by log."""
        from pyspark.sql import functions as F  # noqa: N812 - as in Spark's own documentation

        assert self._scans is not None, "scanned before"
        decide = F.udf(lambda copies: winning_calls(copies, known), CALLS, useArrow=False)
        copies = _copies(self._scans.select(F.inline("calls")), "key")
        counting = copies.select(F.inline(F.coalesce(decide("several"), "copies")))
        return counting.groupBy("file_id", "session_id").agg(F.collect_list(F.struct(*CALL)).alias("calls"))

    def _near_wire(self) -> list[str]:
        """The sessions whose requests may be those on the wire, or are, as texts."""
        import json

        ends: list[tuple[int, int]] = []
        for start, last in sorted(_time(span) for span in self._spans.values() if span.on_wire and _is_timed(span)):
            first, end = start - NEAR_BY_ID_NS, last + NEAR_BY_ID_NS
            if ends and first <= ends[-1][1]:
                ends[-1] = ends[-1][0], max(end, ends[-1][1])
            else:
                ends.append((first, end))
        found = []
        for name, span in self._spans.items() if ends else ():
            if _is_timed(span):
                start, last = _time(span)
                index = bisect_right(ends, (last, 1 << 64)) - 1
                if index >= 0 and ends[index][1] >= start:
                    found.append(json.dumps(name))
        return found

    def _insert(self, book: Book, rank: int, responses: Iterable[Any], calls: Iterable[Any]) -> None:
        """Insert rows of one log that count; copies of them are left behind."""
        sessions: dict[str, SessionRows] = {}
        labels: dict[str, int] = {}
        names: dict[str, int] = {}
        for row in responses:
            number = labels.setdefault(row[_LABEL], len(labels))
            values = list(row[_LABEL + 1 :])
            values[_FAMILY - _LABEL - 1] = values[_KEY - _LABEL - 1] = None
            values[RESPONSE.index("superseded_by") - _LABEL - 1] = None
            _rows_of(sessions, row[_SESSION]).responses.append((number, *values))
        for row in calls:
            number = names.setdefault(row[_CALL_NAME], len(names))
            values = list(row[_CALL_NAME + 1 :])
            values[CALL.index("superseded_by") - _CALL_NAME - 1] = None
            _rows_of(sessions, row[_CALL_SESSION]).calls.append((number, *values))
        if sessions:
            rows = LogRows(
                sessions=tuple(sessions.values()),
                labels=tuple(map(parse_names, labels)),
                names=tuple(map(parse_names, names)),
            )
            book.append_rows(self._jobs[rank].path, rows)


_QUARTER = f"(time_ns - PMOD(time_ns, {QUARTER_NS}L))"


def _copies(rows: DataFrame, column: str) -> DataFrame:
    """All copies of each response or call in one row: as `copies`, and if a rule has to decide also as `several`."""
    from pyspark.sql import functions as F  # noqa: N812 - as in Spark's own documentation

    grouped = rows.groupBy(F.col(column).alias("hash")).agg(F.collect_list(F.struct(*rows.columns)).alias("copies"))
    is_alone = (F.size("copies") == 1) & F.expr("copies[0].superseded_by IS NULL")
    return grouped.select(F.when(~is_alone, F.col("copies")).alias("several"), "copies")


def _is_ours(source: str, sources: Mapping[str, Source]) -> bool:
    return source in OURS and sources.get(source) is load_source(source)


def _merge(one: SessionSpan, other: SessionSpan) -> SessionSpan:
    starts = [start for start in (one.start_ns, other.start_ns) if start is not None]
    lasts = [last for last in (one.last_ns, other.last_ns) if last is not None]
    return SessionSpan(
        name=one.name,
        start_ns=min(starts, default=None),
        last_ns=max(lasts, default=None),
        on_wire=one.on_wire or other.on_wire,
    )


def _is_timed(span: SessionSpan) -> bool:
    return span.start_ns is not None and span.last_ns is not None


def _time(span: SessionSpan) -> tuple[int, int]:
    return span.start_ns or 0, span.last_ns or 0


def _rows_of(sessions: dict[str, SessionRows], name: str) -> SessionRows:
    if name not in sessions:
        source, session, place = parse_names(name)
        sessions[name] = SessionRows(name=(source, session, place), facts="", responses=[], calls=[])
    return sessions[name]


def _total(row: Any) -> tuple[Any, ...]:
    """Return a total with the columns of `quarter_hours.TOTAL`, with texts for the ids of session and label."""
    return (
        row.session_id, row.label_id, row.quarter_ns, row.first_ns, row.last_ns, row.requests, row.failed, row.input,
        row.output, row.cache_read, row.cache_write, row.reasoning, row.cost_nano, row.estimate_nano, 0, 0,
        row.generated, row.generation_us, row.active_ms,
        "".join(chr(bucket + LETTER) for bucket in row.buckets) or None, row.saved_nano,
    )  # fmt: skip


def _insert_totals(book: Book, totals: Iterable[tuple[Any, ...]]) -> None:
    book.connection.execute("BEGIN IMMEDIATE")
    ids = InternedIds(book.connection)
    add_totals(
        book.connection,
        [
            (ids.session_id(parse_names(session)), ids.label_id(parse_names(label)), *sums)  # type: ignore[arg-type] # three names
            for session, label, *sums in totals
        ],
    )
    book.commit()
