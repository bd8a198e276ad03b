"""Frames: what is done with logs on a Spark cluster, as DataFrames: scan them, match copies, sum what counts.

Only the DataFrame API is used, so that all of it runs on a local Spark, on a cluster and through Spark Connect. Python
functions get plain rows, not Arrow's, because workers need not have Arrow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in Spark's own documentation

from sessionlog.engine.portable import CALLS, RESPONSES, SCANS, Scan, scan_tasks, winning_calls, winning_responses
from sessionlog.engine.spark_session import wait_for
from sessionlog.ledger.columns import Call, Response, names_of
from sessionlog.ledger.schema import QUARTER_NS
from sessionlog.pricing.book import PriceBook

_LARGE = 1 << 40
"""Numbers above this are not summed on the cluster: eight million of those below it fit into 64 bits."""

SUMS = names_of(Response, "sum")
_SUMMED = "NOT is_single"
_GENERATED = f"CASE WHEN {_SUMMED} AND latency_bucket IS NOT NULL THEN"
_QUARTER = f"(time_ns - PMOD(time_ns, {QUARTER_NS}L))"
_TOTALS = (
    f"COUNT(CASE WHEN {_SUMMED} THEN 1 END) AS records",
    f"MIN(CASE WHEN {_SUMMED} THEN time_ns END) AS first_ns",
    f"MAX(CASE WHEN {_SUMMED} THEN time_ns END) AS last_ns",
    *(f"SUM(CASE WHEN {_SUMMED} THEN {name} END) AS {name}" for name in SUMS),
    f"SUM({_GENERATED} output ELSE 0 END) AS generated",
    f"SUM({_GENERATED} CAST(latency_ms * 1000 + 0.5 AS BIGINT) ELSE 0 END) AS generation_us",
    f"COLLECT_LIST({_GENERATED} latency_bucket END) AS buckets",
    f"COLLECT_LIST(CASE WHEN is_single THEN STRUCT({', '.join(Response._fields)}) END) AS singles",
)
"""A total as in `ledger.quarter_hours`, and the records that are not in it."""


def scanned_logs(
    spark: SparkSession, batches: Sequence[bytes], here: Sequence[Scan], prices: PriceBook, *, with_calls: bool
) -> DataFrame:
    """Return the scans of logs: a column `header`, null in all rows of a log but its first, `responses` and `calls`.

    Args:
        spark: The session.
        batches: Logs, as `encode_tasks` returns them; each batch is a task.
        here: Scans that were made by this process.
        prices: The prices of estimates.
        with_calls: Whether tool calls are wanted.
    """
    scan = F.udf(lambda tasks: scan_tasks(tasks, prices, with_calls=with_calls), SCANS, useArrow=False)
    numbered = spark.createDataFrame(list(enumerate(batches)), "number BIGINT, tasks BINARY")
    # A range has one row in each partition; the rows of a local list, repartitioned, would share some.
    tasks = spark.range(0, len(batches), 1, max(1, len(batches)))
    scans = tasks.join(F.broadcast(numbered), F.col("id") == F.col("number")).select(F.inline(scan("tasks")))
    return scans.unionByName(spark.createDataFrame(list(here), scans.schema)) if here else scans


def headers(scans: DataFrame) -> list[str]:
    """Return the headers of all logs."""
    found = scans.where("header IS NOT NULL").select("header")
    return [row.header for row in wait_for(found.collect)]


def counting_responses(scans: DataFrame, known: Collection[str], partitions: int) -> DataFrame:
    """Return the responses that count, with the columns of `Response`.

    Args:
        scans: See `scanned_logs`.
        known: The sessions that supersede others' responses, as `source:session`.
        partitions: The number of partitions of the shuffle.
    """
    decide = F.udf(lambda copies: winning_responses(copies, known), RESPONSES, useArrow=False)
    rows = scans.select(F.inline("responses"))
    copies = _copies(rows.where("family IS NOT NULL"), "family", partitions)
    decided = copies.select(F.inline(F.coalesce(decide("several"), "copies")))
    return rows.where("family IS NULL").unionByName(decided)


def counting_calls(scans: DataFrame, known: Collection[str], partitions: int) -> DataFrame:
    """Return the tool calls that count: per log (`file_id`) and session a list `calls`; arguments as above."""
    decide = F.udf(lambda copies: winning_calls(copies, known), CALLS, useArrow=False)
    copies = _copies(scans.select(F.inline("calls")), "key", partitions)
    decided = copies.select(F.inline(F.coalesce(decide("several"), "copies")))
    grouped = decided.repartition(partitions, "file_id").groupBy("file_id", "session_id")
    return grouped.agg(F.collect_list(F.struct(*Call._fields)).alias("calls"))


def _copies(rows: DataFrame, column: str, partitions: int) -> DataFrame:
    """Return the copies of each response or call in one row: `copies`, and `several` if a rule has to decide."""
    hashed = rows.repartition(partitions, column).groupBy(column)
    grouped = hashed.agg(F.collect_list(F.struct(*rows.columns)).alias("copies"))
    is_alone = (F.size("copies") == 1) & F.expr("copies[0].superseded_by IS NULL")
    return grouped.select(F.when(~is_alone, F.col("copies")).alias("several"), "copies")


def totals_and_singles(
    spark: SparkSession,
    responses: DataFrame,
    *,
    quarters: Collection[int] | None,
    near_wire: Collection[str],
    partitions: int,
) -> DataFrame:
    """Return responses summed per log, session, label and quarter hour, and a list `singles` of those not summed.

    Args:
        spark: The session.
        responses: Those that count.
        quarters: The quarter hours whose responses are not to be summed; None for all.
        near_wire: The sessions whose responses are not to be summed.
        partitions: The number of partitions of the shuffle.
    """
    if near_wire:
        near = spark.createDataFrame([(name, True) for name in near_wire], "session_id STRING, near BOOLEAN")
        responses = responses.join(F.broadcast(near), "session_id", "left")
    marked = responses.withColumn("is_single", F.expr(_singles(quarters, has_near=bool(near_wire))))
    quarter = F.expr(f"CASE WHEN {_SUMMED} THEN {_QUARTER} END").alias("quarter_ns")
    shuffled = marked.repartition(partitions, "file_id")
    return shuffled.groupBy("file_id", "session_id", "label_id", quarter).agg(*map(F.expr, _TOTALS))


def _singles(quarters: Collection[int] | None, *, has_near: bool) -> str:
    """Return the condition of responses that are not summed on the cluster."""
    if quarters is None:
        return "TRUE"
    listed = ", ".join(map(str, sorted(quarters)))
    return " OR ".join([
        "(priced <> 0 AND cost_nano IS NULL AND estimate_nano IS NULL)",
        *(f"COALESCE(ABS(CAST({name} AS DOUBLE)) > {_LARGE}, FALSE)" for name in SUMS),
        f"COALESCE(latency_ms > {_LARGE >> 10}, FALSE)",
        f"COALESCE(ABS(CAST(time_ns AS DOUBLE)) > {1 << 62}, FALSE)",
        *([f"COALESCE({_QUARTER} IN ({listed}), FALSE)"] if quarters else []),
        *(["COALESCE(near, FALSE)"] if has_near else []),
    ])  # fmt: skip


def stream(frame: DataFrame) -> Iterator[Any]:
    """Yield the rows of a result; it is computed in parallel first, so that one partition is in memory at a time."""
    kept = frame.persist()
    try:
        wait_for(kept.count)
        yield from kept.toLocalIterator(prefetchPartitions=True)
    finally:
        kept.unpersist()
