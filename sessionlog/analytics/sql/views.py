"""SQL views of the ledger for user queries, with the names and units of the reports.

They are temporary, so that every version of sessionlog has its own. Their names are `usage`, `sessions` and `tools`;
the tables that they hide are `main.sessions` and so on. They leave out what reports leave out: copies, and sessions
that do not count.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from sessionlog.ledger.columns import Label, Response, columns_of
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


_MEANINGS = {
    "time": "RFC 3339, UTC; date(time, 'localtime') is the local day",
    "source": "the agent whose log it is, e.g. claude-code",
    "session": "the session's id",
    "provider": "who served it",
    "model": "the model asked for",
    "response_model": "the model that answered",
    "project": "the folder it was about",
    "branch": "the git branch",
    "agent": "`main`, or a sub-agent's name",
    "version": "the agent program's version",
    "harness": "the agent program",
    "route": "the route chosen",
    "status": "how the session ended: success, error, running, unfinished and others",
    "requests": "LLM calls: 1, or 0 for what a session used beyond its requests",
    "failed_requests": "LLM calls that failed",
    "failed": "1 if it failed",
    "input_tokens": "tokens that touched no cache",
    "output_tokens": "generated tokens, reasoning included",
    "cache_read_tokens": "tokens served from a cache",
    "cache_write_tokens": "tokens written to a cache",
    "reasoning_tokens": "the part of the output that was reasoning",
    "total_tokens": "all classes together",
    "known_cost_usd": "the cost that the log records",
    "estimated_cost_usd": "the cost by the price list where the log records none",
    "cost_usd": "both together; NULL if neither is known",
    "cost_is_partial": "1 if a part of it has no price",
    "cache_savings_usd": "what it would cost more without a cache, at list prices",
    "searches": "web searches of the provider's own tool",
    "extra_cost_usd": "the part of the cost that is charged beside tokens, as for searches",
    "region": "where it was computed, if that has a price of its own",
    "kind": "what it was for, if it was made for another response, e.g. advisor",
    "latency_ms": "the call's time",
    "granularity": "`request`, or `session` for a whole session in one row",
    "quality": "exact, partial or estimated",
    "speed": "the speed paid for, e.g. fast",
    "service_tier": "the tier paid for",
    "archived": "1 if the log has been deleted since",
    "path": "the log",
    "skill": "the skill that the log charges the response to; empty for none",
    "plugin": "the plugin that it charges it to; empty for none",
    "mcp": "the MCP server that it charges it to, or that the response calls; empty for none",
    "parent": "the session that it was forked from",
    "start": "when it began, RFC 3339, UTC",
    "last": "its last event",
    "models": "its models, with commas",
    "duration_ms": "how long it took",
    "prompt": "the user's first words",
    "error": "why it failed",
    "metadata": "JSON: json_extract(metadata, '$.KEY')",
    "counted": "0 if usage leaves it out",
    "tool": "its name",
    "server": "its MCP server, or `built-in`",
    "finished": "0 if the log has no result of it",
    "output_bytes": "the size of what it gave",
}
"""Column → its meaning, for users; a column of the ledger that is not here is called by its name."""


def _columns(columns: Mapping[str, str]) -> tuple[ViewColumn, ...]:
    """Return columns, given as name → expression."""
    return tuple(
        ViewColumn(name=name, sql=sql, description=_MEANINGS.get(name, name.replace("_", " ")))
        for name, sql in columns.items()
    )


def _of(table: str, *names: str) -> dict[str, str]:
    """Return columns of a table as they are."""
    return {name: f"{table}.{name}" for name in names}


def _time(column: str) -> str:
    """An instant as reports write it: RFC 3339, UTC, microseconds. Divisions of SQLite round towards 0."""
    part = f"((({column} % {_SECOND_NS}) + {_SECOND_NS}) % {_SECOND_NS})"
    seconds = f"(({column} - {part}) / {_SECOND_NS})"
    return f"strftime('%Y-%m-%dT%H:%M:%S', {seconds}, 'unixepoch') || printf('.%06dZ', {part} / 1000)"


_USD = {
    "cost_nano": "known_cost_usd", "estimate_nano": "estimated_cost_usd", "saved_nano": "cache_savings_usd",
    "extra_nano": "extra_cost_usd",
}  # fmt: skip
_NUMBERS = {
    column.name: f"{column.name}_tokens" if "tokens" in column.words
    else _USD.get(column.name, column.name.replace("_nano", "_usd"))
    for column in columns_of(Response) if "sum" in column.words and column.name != "active_ms"
}  # fmt: skip
"""Column of responses that adds up → its name in views."""


def _numbers(count: str, money: str, *columns: str) -> dict[str, str]:
    """Return columns that add up, of these names or all, given the expressions of a count and of nano-dollars."""
    return {_NUMBERS[name]: (money if name.endswith("_nano") else count).format(name) for name in columns or _NUMBERS}


_CLASSES = ("input", "output", "cache_read", "cache_write", "reasoning")
_TOTAL = "CAST(TOTAL(c.input) + TOTAL(c.cache_read) + TOTAL(c.cache_write) + TOTAL(c.output) AS INTEGER)"
_COST = """CASE WHEN COUNT(c.cost_nano) + COUNT(c.estimate_nano)
    THEN (TOTAL(c.cost_nano) + TOTAL(c.estimate_nano)) / 1e9 END"""
_STATUS = f"COALESCE(NULLIF({status('{now}')}, ''), 'unknown')"
_OF_RECORD = ("r.{0}", "r.{0} / 1e9")
_OF_SESSION = ("CAST(TOTAL(c.{0}) AS INTEGER)", "CASE WHEN COUNT(c.{0}) THEN TOTAL(c.{0}) / 1e9 END")
"""The latter cannot overflow, whatever is in a log, and are exact up to 2**53."""

USAGE = View(
    name="usage",
    description="one row per response that counts (some logs have only whole sessions: `granularity`)",
    columns=_columns(
        {
            "time": _time("r.time_ns"),
            **_of("s", "source", "session"),
            **_of("l", "provider", "model", "response_model", "project", "branch", "agent", "version"),
            **_of("s", "harness", "route"),
            "status": _STATUS,
            **_numbers(*_OF_RECORD, "requests", "failed", *_CLASSES),
            "total_tokens": "r.input + r.cache_read + r.cache_write + r.output",
            **_numbers(*_OF_RECORD, "cost_nano", "estimate_nano"),
            "cost_usd": "COALESCE(r.cost_nano, r.estimate_nano) / 1e9",
            "latency_ms": "r.latency_ms",
            **_of("l", "granularity", "quality", "speed", "service_tier"),
            **_of("s", "archived", "path"),
            **_numbers(*_OF_RECORD, "saved_nano"),
            **_of("l", *Label._fields),
            **_numbers(*_OF_RECORD),
        }
    ),
    tables=f"{FROM.replace('records r', 'main.records r').replace('sessions s', 'main.sessions s')} WHERE s.counted",
)

SESSIONS = View(
    name="sessions",
    description="one row per session that has a response or a sum of them",
    columns=_columns(
        {
            **_of("s", "source", "session", "path", "parent"),
            "start": _time("s.start_ns"),
            "last": _time("s.last_ns"),
            "status": _STATUS,
            **_of("s", "project", "harness", "route"),
            "models": "group_concat(DISTINCT l.model)",
            "duration_ms": "COALESCE(s.duration_ms, CAST(TOTAL(c.active_ms) AS INTEGER))",
            **_of("s", "prompt", "error"),
            **_numbers(*_OF_SESSION, "requests"),
            "failed_requests": _OF_SESSION[0].format("failed"),
            **_numbers(*_OF_SESSION, *_CLASSES),
            "total_tokens": _TOTAL,
            **_numbers(*_OF_SESSION, "cost_nano", "estimate_nano"),
            "cost_usd": _COST,
            "cost_is_partial": "MAX(c.unknown)",
            **_of("s", "metadata", "counted", "archived"),
            **{name: sql for name, sql in _numbers(*_OF_SESSION).items() if name != "failed"},
        }
    ),
    tables="main.sessions s JOIN main.quarter_hours c ON c.session_id = s.id "
    "JOIN main.labels l ON l.id = c.label_id GROUP BY s.id",
)

TOOLS = View(
    name="tools",
    description="one row per tool call that counts",
    columns=_columns(
        {
            "time": _time("r.time_ns"),
            **_of("s", "source", "session"),
            **_of("r", "tool", "server", "agent", "project"),
            "status": _STATUS,
            **_of("r", "finished", "failed", "duration_ms", "output_bytes"),
            **_of("s", "archived", "path"),
        }
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
