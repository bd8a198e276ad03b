"""The ledger's schema: sessions, the records of their LLM responses, their tool calls, and the names these share.

Money is nano-dollars, time nanoseconds since 1970 UTC. `cost_nano` is what the log recorded, `estimate_nano` what the
price table gives for the rest; a record with neither is unpriced, unless it has nothing to price (`priced = 0`).
A label is a combination of names that many records have in common.
"""

from __future__ import annotations

SCHEMA = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    session TEXT NOT NULL,
    path TEXT NOT NULL,
    parent TEXT NOT NULL,
    part INTEGER NOT NULL,
    start_ns INTEGER,
    last_ns INTEGER,
    end_status TEXT,
    project TEXT NOT NULL,
    harness TEXT NOT NULL,
    route TEXT NOT NULL,
    duration_ms INTEGER,
    prompt TEXT NOT NULL,
    error TEXT NOT NULL,
    metadata TEXT NOT NULL,
    counted INTEGER NOT NULL
) STRICT;

CREATE TABLE labels (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    response_model TEXT NOT NULL,
    project TEXT NOT NULL,
    branch TEXT NOT NULL,
    version TEXT NOT NULL,
    agent TEXT NOT NULL,
    granularity TEXT NOT NULL,
    quality TEXT NOT NULL
) STRICT;

CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions(id),
    label_id INTEGER NOT NULL REFERENCES labels(id),
    log_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    standing INTEGER NOT NULL,
    time_ns INTEGER,
    requests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost_nano INTEGER,
    estimate_nano INTEGER,
    priced INTEGER NOT NULL,
    latency_ms REAL,
    latency_bucket INTEGER,
    active_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE tools (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions(id),
    log_id INTEGER NOT NULL,
    time_ns INTEGER,
    tool TEXT NOT NULL,
    server TEXT NOT NULL,
    agent TEXT NOT NULL,
    project TEXT NOT NULL,
    finished INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    duration_ms REAL,
    duration_bucket INTEGER,
    output_bytes INTEGER NOT NULL
) STRICT;
"""

INDEXES = """
CREATE INDEX records_by_session ON records(session_id);
CREATE INDEX records_by_time ON records(time_ns);
"""
"""Made when everything is in: twice as fast as keeping them up."""

SESSION = (
    "source", "session", "path", "parent", "part", "start_ns", "last_ns", "end_status", "project", "harness", "route",
    "duration_ms", "prompt", "error", "metadata", "counted",
)  # fmt: skip
LABEL = ("provider", "model", "response_model", "project", "branch", "version", "agent", "granularity", "quality")
RECORD = (
    "id", "session_id", "label_id", "log_id", "key", "standing", "time_ns", "requests", "failed", "input", "output",
    "cache_read", "cache_write", "cache_write_1h", "reasoning", "cost_nano", "estimate_nano", "priced", "latency_ms",
    "latency_bucket", "active_ms",
)  # fmt: skip
TOOL = (
    "id", "session_id", "log_id", "time_ns", "tool", "server", "agent", "project", "finished", "failed", "duration_ms",
    "duration_bucket", "output_bytes",
)  # fmt: skip
"""Columns in the order in which rows are written."""

FROM = "records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id"
"""What every report on records asks."""


def insert(table: str, columns: tuple[str, ...]) -> str:
    """Return the statement that enters, or enters again, one row."""
    return f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - names of the schema
