"""A place with the exports of many machines, as compaction leaves them: one file per machine, month and table.

Days have sessions of 25 requests, 40 seconds apart. Some responses are also in a fork, some in the export of another
machine, and some were written again as a second revision.
"""

import hashlib
import json
import os
from pathlib import Path

import duckdb

from sessionlog.ledger.parquet_schema import TABLES

_START_NS = 1_735_689_600 * 10**9  # 2025-01-01
_DAY_NS = 86_400 * 10**9

_ROWS = """
CREATE OR REPLACE TEMP TABLE r AS
SELECT m, d, i // 25 AS s, i, hash(m, d, i // 25, 's')::UBIGINT // 2 AS session_key, hash(m, d, i)::UBIGINT // 2 AS h,
    {start} + d * {day} + 32400 * 1000000000::BIGINT + (i // 25) * 7200 * 1000000000::BIGINT + (i % 25) * 40 * 1000000000::BIGINT
        + (hash(m, d, i) % 39000)::BIGINT * 1000000 AS time_ns
FROM (SELECT {machine} AS m), range({first}, {last}) AS days(d), range({per_day}) AS requests(i)
"""
_USAGE = """
SELECT '{id}' AS machine_id, h AS record, 1 AS revision, false AS deleted, h AS state, true AS counts, false AS replaced,
    'claude-code' AS source, printf('%016x', session_key) AS session, session_key, h AS family, h AS key, 2 AS copy_rank,
    NULL AS superseded_by, time_ns, 1 AS requests, h % 97 = 0 AS failed, h % 5000 AS input_tokens, h % 1500 AS output_tokens,
    h % 90000 AS cache_read_tokens, h % 3000 AS cache_write_tokens, 0 AS cache_write_1h_tokens, h % 300 AS reasoning_tokens,
    NULL AS recorded_nano_usd, CASE WHEN h % 500 > 0 THEN h % 90000000 END AS estimated_nano_usd, h % 80000000 AS saved_nano_usd,
    'litellm 2025-01-01' AS price_list, true AS priced, 300 + h % 40000 AS latency_ms, 40000 AS active_ms,
    CASE WHEN session_key % 3 = 0 THEN 'openai' ELSE 'anthropic' END AS provider,
    'model-' || session_key % 6 AS model, 'model-' || session_key % 6 || '-20250101' AS response_model,
    '/home/user{machine}/src/project-' || session_key % 12 AS project, 'branch-' || session_key % 40 AS branch,
    '2.0.' || d // 7 AS version, CASE WHEN i % 9 = 0 THEN 'Explore' ELSE 'main' END AS agent,
    'request' AS granularity, 'exact' AS quality, '' AS speed, '' AS service_tier, NULL AS skill, NULL AS plugin, NULL AS mcp
FROM r
"""
_AGAIN = (
    "SELECT * REPLACE (record + 1 AS record, 1 AS copy_rank, time_ns + 1000 AS time_ns, false AS counts) FROM u WHERE h % 50 = 0",
    "SELECT * REPLACE (2 AS revision, state + 1 AS state, output_tokens + 7 AS output_tokens) FROM u WHERE h % 100 = 1",
)  # fmt: skip
_SESSIONS = """
SELECT '{id}' AS machine_id, session_key AS record, 1 AS revision, false AS deleted, session_key AS state,
    'claude-code' AS source, printf('%016x', session_key) AS session, session_key, '' AS parent, min(time_ns) AS start_ns,
    max(time_ns) AS last_ns, CASE WHEN session_key % 7 THEN 'success' ELSE 'error' END AS status,
    '/home/user{machine}/src/project-' || session_key % 12 AS project, 'claude-code' AS harness, NULL AS duration_ms,
    3 AS turns, true AS counted, false AS absorbed, false AS part, min(time_ns) AS main_start_ns,
    max(time_ns) AS main_last_ns
FROM r GROUP BY session_key
"""


def make_place(folder, *, machines=100, days=365, per_day=100):
    """Write a place; return its number of rows."""
    connection, rows = duckdb.connect(config={"threads": "2"}), 0
    for machine in range(machines):
        identity, files = f"{machine:016x}", []
        for number, first in enumerate(range(0, days, 31)):
            connection.execute(
                _ROWS.format(
                    start=_START_NS,
                    day=_DAY_NS,
                    machine=machine,
                    first=first,
                    last=min(days, first + 31),
                    per_day=per_day,
                )
            )
            names = {"id": identity, "machine": machine}
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE u AS SELECT *, record AS h FROM ({_USAGE.format(**names)})"
            )
            tables = {
                "usage": " UNION ALL BY NAME ".join(("SELECT * FROM u", *_AGAIN)),
                "sessions": _SESSIONS.format(**names),
            }
            for table, query in tables.items():
                files.append(_write(connection, folder, table, query, identity, number))
                rows += files[-1]["rows"]
        document = {
            "schema": "sessionlog.export.manifest/1", "machine_id": identity, "machine_name": f"laptop-{machine}",
            "written": "2026-01-01T00:00:00Z", "sessionlog": "0", "files": files,
        }  # fmt: skip
        path = Path(folder, "manifest", "v=1", f"machine={identity}", "2026-01-01T00-00-00Z-0.json")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(document))
    connection.close()
    return rows


def _write(connection, folder, table, query, identity, number):
    """Write a file of a table, and return its entry in the manifest."""
    name = f"{table}/v=1/date=2025-{number + 1:02}-01/machine={identity}/{number}.parquet"
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    columns = ", ".join(f"{column}::{kind} AS {column}" for column, kind in TABLES[table].items())
    order = "time_ns, record, revision" if table == "usage" else "start_ns"
    [(rows,)] = connection.execute(
        f"COPY (SELECT {columns} FROM ({query}) ORDER BY {order}) TO '{path}'"
        "(FORMAT parquet, COMPRESSION zstd, KV_METADATA {sessionlog_schema: '1'})"
    ).fetchall()
    data = Path(path).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return {"path": name, "table": table, "rows": rows, "bytes": len(data), "sha256": digest, "schema": 1}
