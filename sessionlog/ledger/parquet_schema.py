"""The schema of exported parquet files: their columns, in order, with DuckDB's types.

Columns are only added, never renamed or removed; a change of meaning raises `SCHEMA_VERSION` and the `v=` of paths.
Money is in nano-dollars, time in nanoseconds since 1970 UTC, hashes are signed numbers of 64 bits. docs/parquet.md
describes every column.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessionlog.ledger.columns import Label, Response, columns_of

SCHEMA_VERSION = 1
"""Stands in each file's metadata as `sessionlog_schema`, and in the manifest."""

_REVISION = {
    "machine_id": "VARCHAR", "record": "BIGINT", "revision": "INTEGER", "deleted": "BOOLEAN", "state": "BIGINT",
}  # fmt: skip
_SESSION = {"source": "VARCHAR", "session": "VARCHAR", "session_key": "BIGINT"}
_LATER_NAMES = tuple(column.name for column in columns_of(Label) if column.default)
_FIRST_LABEL = tuple(name for name in Label._fields if name not in _LATER_NAMES)
_LABEL = dict.fromkeys(Label._fields, "VARCHAR")
EXPORTED: Mapping[str, str] = {
    column.name: f"{column.name}_usd" if "money" in column.words else column.name
    for column in columns_of(Response)
    if "exported" in column.words
}
"""Column of a response that the first files of this version do not have → its name in files."""

USAGE: Mapping[str, str] = {
    **_REVISION, "counts": "BOOLEAN", "replaced": "BOOLEAN", **_SESSION,
    "family": "BIGINT", "key": "BIGINT", "copy_rank": "TINYINT", "superseded_by": "VARCHAR[]",
    "time_ns": "BIGINT", "requests": "BIGINT", "failed": "BOOLEAN",
    "input_tokens": "BIGINT", "output_tokens": "BIGINT", "cache_read_tokens": "BIGINT", "cache_write_tokens": "BIGINT",
    "cache_write_1h_tokens": "BIGINT", "reasoning_tokens": "BIGINT",
    "recorded_nano_usd": "BIGINT", "estimated_nano_usd": "BIGINT", "saved_nano_usd": "BIGINT", "price_list": "VARCHAR",
    "priced": "BOOLEAN", "latency_ms": "DOUBLE", "active_ms": "BIGINT",
    **dict.fromkeys(EXPORTED.values(), "BIGINT"), **_LABEL,
}  # fmt: skip
"""One row for each copy of a response in each log."""

SESSIONS: Mapping[str, str] = {
    **_REVISION, **_SESSION, "parent": "VARCHAR", "start_ns": "BIGINT", "last_ns": "BIGINT", "status": "VARCHAR",
    "project": "VARCHAR", "harness": "VARCHAR", "duration_ms": "BIGINT", "turns": "BIGINT", "counted": "BOOLEAN",
    "absorbed": "BOOLEAN", "part": "BOOLEAN", "main_start_ns": "BIGINT", "main_last_ns": "BIGINT",
}  # fmt: skip
"""One row for each session."""

TOOLS: Mapping[str, str] = {
    **_REVISION, "counts": "BOOLEAN", **_SESSION, "key": "BIGINT", "superseded_by": "VARCHAR[]", "time_ns": "BIGINT",
    "finished": "BOOLEAN", "failed": "BOOLEAN", "duration_ms": "DOUBLE", "output_bytes": "BIGINT",
    "tool": "VARCHAR", "server": "VARCHAR", "agent": "VARCHAR", "project": "VARCHAR",
}  # fmt: skip
"""One row for each copy of a tool call in each log."""

TABLES: Mapping[str, Mapping[str, str]] = {"usage": USAGE, "sessions": SESSIONS, "tools": TOOLS}
"""Table → column → type."""

ADDED: Mapping[str, frozenset[str]] = {
    "usage": frozenset({*_LATER_NAMES, *EXPORTED.values()}),
    "sessions": frozenset({"part", "main_start_ns", "main_last_ns"}),
}  # fmt: skip
"""Table → columns that the first files of this version do not have, for which they have null."""

NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "usage": {
        "session": ("source", "session", "session_key"), "label": _FIRST_LABEL, "superseding": ("superseded_by",),
        "attribution": _LATER_NAMES, "prices": ("price_list",),
    },
    "sessions": {"session": ("source", "session", "session_key"), "facts": ("parent", "status", "project", "harness")},
    "tools": {
        "session": ("source", "session", "session_key"), "call": ("tool", "server", "agent", "project"),
        "superseding": ("superseded_by",),
    },
}  # fmt: skip
"""Table → group of columns that many rows have in common → these columns. All others are numbers."""

ORDER: Mapping[str, str] = {"usage": "time_ns", "sessions": "start_ns", "tools": "time_ns"}
"""Table → the column by which the rows of a file are sorted."""
