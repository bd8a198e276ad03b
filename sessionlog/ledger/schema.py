"""The ledger's schema: sessions, and the records of their LLM responses.

Money is nano-dollars, time nanoseconds since 1970 UTC. `cost_nano` is what the log recorded, `estimate_nano` what the
price table gives for the rest; a record with neither is unpriced, unless it has nothing to price (`priced = 0`).
"""

from __future__ import annotations

SCHEMA = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    session TEXT NOT NULL,
    path TEXT NOT NULL,
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

CREATE TABLE records (
    session_id INTEGER NOT NULL REFERENCES sessions(id),
    time_ns INTEGER,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    response_model TEXT NOT NULL,
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
    active_ms INTEGER NOT NULL,
    granularity TEXT NOT NULL,
    quality TEXT NOT NULL
) STRICT;

CREATE INDEX records_by_session ON records(session_id);
CREATE INDEX records_by_time ON records(time_ns);
"""

INSERT_SESSION = """
INSERT INTO sessions (source, session, path, start_ns, last_ns, end_status, project, harness, route, duration_ms,
                      prompt, error, metadata, counted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

INSERT_RECORD = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
