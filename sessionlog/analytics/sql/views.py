"""SQL views of the ledger for user queries, with the names and units of the reports.

They are temporary, so that every version of sessionlog has its own. Their names are `usage`, `sessions` and `tools`;
the tables that they hide are `main.sessions` and so on. They leave out what reports leave out: copies, and sessions
that do not count.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sessionlog.ledger.schema import FROM, status

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewColumn:
    """One column of a view.

    Attributes:
        name: Its name, as in reports.
        sql: Its expression.
        description: Its meaning, for users.
    """

    name: str
    sql: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view of the ledger, or of events.

    Attributes:
        name: Its name.
        description: The meaning of a row.
        columns: Its columns.
        tables: The FROM clause; empty for a table.
    """

    name: str
    description: str
    columns: tuple[ViewColumn, ...]
    tables: str

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)


def _columns(*columns: tuple[str, str, str]) -> tuple[ViewColumn, ...]:
    return tuple(ViewColumn(name=name, sql=sql, description=text) for name, sql, text in columns)


def _time(column: str) -> str:
    """An instant as reports write it: RFC 3339, UTC, microseconds. Divisions of SQLite round towards 0."""
    part = f"((({column} % {_SECOND_NS}) + {_SECOND_NS}) % {_SECOND_NS})"
    seconds = f"(({column} - {part}) / {_SECOND_NS})"
    return f"strftime('%Y-%m-%dT%H:%M:%S', {seconds}, 'unixepoch') || printf('.%06dZ', {part} / 1000)"


def _sum(column: str) -> str:
    """A sum that cannot overflow, whatever is in a log; exact up to 2**53."""
    return f"CAST(TOTAL(c.{column}) AS INTEGER)"


def _money(column: str) -> str:
    return f"CASE WHEN COUNT(c.{column}) THEN TOTAL(c.{column}) / 1e9 END"


_COST = """CASE WHEN COUNT(c.cost_nano) + COUNT(c.estimate_nano)
    THEN (TOTAL(c.cost_nano) + TOTAL(c.estimate_nano)) / 1e9 END"""
_STATUS = f"COALESCE(NULLIF({status('{now}')}, ''), 'unknown')"
_TIME_FORMAT = "RFC 3339, UTC; date(time, 'localtime') is the local day"

USAGE = View(
    name="usage",
    description="one row per response that counts (some logs have only whole sessions: `granularity`)",
    columns=_columns(
        ("time", _time("r.time_ns"), _TIME_FORMAT),
        ("source", "s.source", "the agent whose log it is, e.g. claude-code"),
        ("session", "s.session", "the session's id"),
        ("provider", "l.provider", "who served it"),
        ("model", "l.model", "the model asked for"),
        ("response_model", "l.response_model", "the model that answered"),
        ("project", "l.project", "the folder it was about"),
        ("branch", "l.branch", "the git branch"),
        ("agent", "l.agent", "`main`, or a sub-agent's name"),
        ("version", "l.version", "the agent program's version"),
        ("harness", "s.harness", "the agent program"),
        ("route", "s.route", "the route chosen"),
        ("status", _STATUS, "how the session ended: success, error, running, unfinished and others"),
        ("requests", "r.requests", "1; 0 for what a session used beyond its requests"),
        ("failed", "r.failed", "1 if the request failed"),
        ("input_tokens", "r.input", "tokens that touched no cache"),
        ("output_tokens", "r.output", "generated tokens, reasoning included"),
        ("cache_read_tokens", "r.cache_read", "tokens served from a cache"),
        ("cache_write_tokens", "r.cache_write", "tokens written to a cache"),
        ("reasoning_tokens", "r.reasoning", "the part of the output that was reasoning"),
        ("total_tokens", "r.input + r.cache_read + r.cache_write + r.output", "all classes together"),
        ("known_cost_usd", "r.cost_nano / 1e9", "the cost that the log records"),
        ("estimated_cost_usd", "r.estimate_nano / 1e9", "the cost by the price list where the log records none"),
        ("cost_usd", "COALESCE(r.cost_nano, r.estimate_nano) / 1e9", "one of the two; NULL if neither is known"),
        ("latency_ms", "r.latency_ms", "the call's time"),
        ("granularity", "l.granularity", "`request`, or `session` for a whole session in one row"),
        ("quality", "l.quality", "exact, partial or estimated"),
        ("speed", "l.speed", "the speed paid for, e.g. fast"),
        ("service_tier", "l.service_tier", "the tier paid for"),
        ("archived", "s.archived", "1 if the log has been deleted since"),
        ("path", "s.path", "the log"),
        ("cache_savings_usd", "r.saved_nano / 1e9", "what it would cost more without a cache, at list prices"),
        ("skill", "l.skill", "the skill that the log charges the response to; empty for none"),
        ("plugin", "l.plugin", "the plugin that it charges it to; empty for none"),
        ("mcp", "l.mcp", "the MCP server that it charges it to, or that the response calls; empty for none"),
    ),
    tables=f"{FROM.replace('records r', 'main.records r').replace('sessions s', 'main.sessions s')} WHERE s.counted",
)

SESSIONS = View(
    name="sessions",
    description="one row per session that has a response or a sum of them",
    columns=_columns(
        ("source", "s.source", "the agent whose log it is"),
        ("session", "s.session", "its id"),
        ("path", "s.path", "its log"),
        ("parent", "s.parent", "the session that it was forked from"),
        ("start", _time("s.start_ns"), "RFC 3339, UTC"),
        ("last", _time("s.last_ns"), "its last event"),
        ("status", _STATUS, "success, error, running, unfinished and others"),
        ("project", "s.project", "its folder"),
        ("harness", "s.harness", "the agent program"),
        ("route", "s.route", "the route chosen"),
        ("models", "group_concat(DISTINCT l.model)", "its models, with commas"),
        ("duration_ms", f"COALESCE(s.duration_ms, {_sum('active_ms')})", "its wall time"),
        ("prompt", "s.prompt", "the user's first words"),
        ("error", "s.error", "why it failed"),
        ("requests", _sum("requests"), "LLM calls"),
        ("failed_requests", _sum("failed"), "those that failed"),
        ("input_tokens", _sum("input"), "tokens that touched no cache"),
        ("output_tokens", _sum("output"), "generated tokens"),
        ("cache_read_tokens", _sum("cache_read"), "tokens served from a cache"),
        ("cache_write_tokens", _sum("cache_write"), "tokens written to a cache"),
        ("reasoning_tokens", _sum("reasoning"), "the part of the output that was reasoning"),
        (
            "total_tokens",
            "CAST(TOTAL(c.input) + TOTAL(c.cache_read) + TOTAL(c.cache_write) + TOTAL(c.output) AS INTEGER)",
            "all classes together",
        ),
        ("known_cost_usd", _money("cost_nano"), "the cost that its log records"),
        ("estimated_cost_usd", _money("estimate_nano"), "the cost of the rest by the price list"),
        (
            "cost_usd",
            _COST,
            "both together; NULL if neither is known",
        ),
        ("cost_is_partial", "MAX(c.unknown)", "1 if a part of it has no price"),
        ("metadata", "s.metadata", "JSON: json_extract(metadata, '$.KEY')"),
        ("counted", "s.counted", "0 if usage leaves it out"),
        ("archived", "s.archived", "1 if its logs have been deleted since"),
    ),
    tables="main.sessions s JOIN main.quarter_hours c ON c.session_id = s.id "
    "JOIN main.labels l ON l.id = c.label_id GROUP BY s.id",
)

TOOLS = View(
    name="tools",
    description="one row per tool call that counts",
    columns=_columns(
        ("time", _time("r.time_ns"), _TIME_FORMAT),
        ("source", "s.source", "the agent whose log it is"),
        ("session", "s.session", "the session's id"),
        ("tool", "r.tool", "its name"),
        ("server", "r.server", "its MCP server, or `built-in`"),
        ("agent", "r.agent", "`main`, or a sub-agent's name"),
        ("project", "r.project", "the folder it was about"),
        ("status", _STATUS, "how the session ended"),
        ("finished", "r.finished", "0 if the log has no result of it"),
        ("failed", "r.failed", "1 if it failed"),
        ("duration_ms", "r.duration_ms", "how long it took"),
        ("output_bytes", "r.output_bytes", "the size of what it gave"),
        ("archived", "s.archived", "1 if the log has been deleted since"),
        ("path", "s.path", "the log"),
    ),
    tables="main.tools r JOIN main.sessions s ON s.id = r.session_id",
)

VIEWS = (USAGE, SESSIONS, TOOLS)


def make_views(connection: sqlite3.Connection, now_ns: int) -> None:
    """Create the views on a connection; `now_ns` distinguishes running from unfinished sessions."""
    for view in VIEWS:
        selected = ", ".join(f"{column.sql} AS {column.name}" for column in view.columns)
        sql = f"CREATE TEMP VIEW {view.name} AS SELECT {selected} FROM {view.tables}"  # noqa: S608 - constants of this module
        connection.execute(sql.replace("{now}", str(int(now_ns))))
