"""Book: the ledger open for reading and writing. Here it lives in memory: scanned anew for every report.

Estimates are made when a record enters, at the prices of its own date: tiers depend on the single request.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

import orjson

from sessionlog.errors import Problem
from sessionlog.ledger.histogram import bucket_of
from sessionlog.ledger.schema import INSERT_RECORD, INSERT_SESSION, SCHEMA
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import Problems, Record, ScannedSession

_SATURATED = 2**63 - 1
_MAX_NAMED = 100


class Book:
    """Sessions and records in SQLite, priced as they enter.

    Attributes:
        problems: The first findings about the logs.
        problem_count: All of them.
    """

    def __init__(self, prices: PriceBook) -> None:
        self.prices = prices
        self.problems: list[Problem] = []
        self.problem_count = 0
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.executescript(SCHEMA)
        self._connection.execute("BEGIN")

    def add(self, session: ScannedSession) -> None:
        """Enter one session with its records."""
        cursor = self._connection.execute(
            INSERT_SESSION,
            (
                session.source,
                _storable(session.session_id),
                _storable(session.path),
                session.start_ns,
                session.last_ns,
                session.status,
                session.project,
                session.harness,
                session.route,
                session.duration_ms,
                session.prompt,
                session.error,
                _metadata_text(session.metadata),
                session.counted,
            ),
        )
        rows = (self._row(cursor.lastrowid, record) for record in session.records)
        self._connection.executemany(INSERT_RECORD, rows)
        self.note(session.problems)

    def _row(self, session: int | None, record: Record) -> tuple[Any, ...]:
        usage = record.usage
        recorded, estimate = record.cost_nano, None
        if record.priced and not recorded:
            estimate = self._estimate(record)
            if recorded == 0 and estimate:
                recorded = None  # a recorded 0 is free only where there is no list price
            elif recorded == 0:
                estimate = None
        return (
            session,
            record.time_ns,
            record.provider,
            record.model,
            record.response_model or "unknown",
            record.requests,
            record.failed,
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write,
            usage.cache_write_1h,
            usage.reasoning,
            recorded,
            estimate,
            record.priced,
            record.latency_ms,
            None if record.failed else bucket_of(record.latency_ms),
            record.active_ms,
            record.granularity,
            record.quality,
        )

    def _estimate(self, record: Record) -> int | None:
        """The list price of the model that answered, else of the one asked for; tiers are for single requests.

        An answer that names no tokens has used some: its price is unknown, not 0.
        """
        if record.requests and not record.failed and not record.usage:
            return None
        single = record.granularity == "request" and record.requests == 1
        for model in (record.response_model, record.model):
            if model is None:
                continue
            price = self.prices.price(record.provider, model, record.usage, record.time_ns, single=single)
            if price is not None:
                return price
        return None

    def note(self, problems: Problems) -> None:
        """Keep damage of the logs for the report: all of it as a number, the first by name."""
        self.problem_count += problems.count
        self.problems += problems.first[: _MAX_NAMED - len(self.problems)]

    def define(self, name: str, function: Any) -> None:
        """Make a Python function of one argument callable in queries."""
        self._connection.create_function(name, 1, function, deterministic=True)

    def query(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Run one query and return its rows; sums beyond 64 bits stop at the largest number instead of failing."""
        try:
            return list(self._connection.execute(sql, parameters))
        except sqlite3.OperationalError as error:
            if "overflow" not in str(error):
                raise
            self._connection.create_aggregate("saturating_sum", 1, _SaturatingSum)  # type: ignore[arg-type] # the stub wants a protocol of exact signatures
            return list(self._connection.execute(sql.replace("SUM(", "saturating_sum("), parameters))

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def __del__(self) -> None:
        self._connection.close()


def _storable(name: str) -> str:
    """A file's name may hold bytes that are no text, and SQLite takes only text: they stay visible and distinct."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _metadata_text(metadata: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(metadata, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # nested too deeply, or numbers beyond 64 bits: what can be grouped by is kept
        plain = {key: value for key, value in metadata.items() if isinstance(value, str | int | float)}
        return _storable(json.dumps(plain, ensure_ascii=False))


class _SaturatingSum:
    """SUM for numbers that only a hostile log can hold."""

    def __init__(self) -> None:
        self._sum: int | None = None

    def step(self, value: int | None) -> None:
        if value is not None:
            self._sum = min((self._sum or 0) + int(value), _SATURATED)

    def finalize(self) -> int | None:
        return self._sum
