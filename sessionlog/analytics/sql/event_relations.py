"""The SQL relations of events: `events`, with a row per event of every agent's logs, and two views of it."""

from __future__ import annotations

from sessionlog.analytics.sql.views import View, ViewColumn
from sessionlog.transcript.event_rows import COLUMNS

EXAMPLES = (
    "SELECT tool, count(*) AS calls, count(*) FILTER (failed) AS errors FROM tool_calls GROUP BY tool ORDER BY calls",
    "SELECT time, session, role, text FROM messages WHERE text ILIKE '%rate limit%' ORDER BY time",
    "SELECT time, project, input->>'command' AS command, error FROM tool_calls WHERE tool = 'Bash' AND failed",
)
"""Queries that show what the relations are for."""

DESCRIPTIONS = {
    "time": "when it happened; NULL if the log has no time",
    "time_ns": "the same in nanoseconds since 1970 UTC",
    "source": "the agent whose log it is, e.g. claude-code",
    "session": "the session's id",
    "position": "its place in the session, from 0",
    "seq": "its number in the log; may repeat",
    "type": "session.start, llm.request, llm.response, llm.delta, tool.call, compaction.end, session.end and others",
    "role": "whose text it is: user, assistant or tool",
    "agent": "`main`, or a sub-agent's name",
    "project": "the session's folder",
    "provider": "who served a response",
    "model": "the model asked for",
    "input_tokens": "tokens that touched no cache; of a session's end, what it used beyond its responses",
    "output_tokens": "generated tokens, reasoning included",
    "cache_read_tokens": "tokens served from a cache",
    "cache_write_tokens": "tokens written to a cache",
    "reasoning_tokens": "the part of the output that was reasoning",
    "known_cost_usd": "the cost that the log records",
    "latency_ms": "the time of a response",
    "tool": "the tool of a call",
    "tool_call_id": "the id of a call",
    "duration_ms": "how long a call took",
    "failed": "whether a response or a call failed",
    "error": "why",
    "status": "how a session ended",
    "response_key": "the same for copies of a response, in forks and resumed sessions; NULL if none are made",
    "inherited": "true for a copy of what a fork's parent has",
    "log": "the log's path",
    "text": "new words of a prompt, an answer, a tool's output",
    "data": "the event's payload, JSON: data->>'$.finish_reason'",
}
"""Column → its meaning, for users."""


def _columns(*names: str, **others: tuple[str, str]) -> tuple[ViewColumn, ...]:
    """Return columns of `events`, then others as (expression, meaning)."""
    own = (ViewColumn(name=name, sql=name, description=DESCRIPTIONS[name]) for name in names)
    return (*own, *(ViewColumn(name=name, sql=sql, description=text) for name, (sql, text) in others.items()))


EVENTS = View(
    name="events",
    description="one row per event of every log, copies included",
    columns=_columns(*COLUMNS),
    tables="",
)
MESSAGES = View(
    name="messages",
    description="one row per prompt, answer and tool's output that has a text",
    columns=_columns(
        "time", "source", "session", "position", "role", "agent", "project", "model", "tool", "text", "log"
    ),
    tables="events WHERE text IS NOT NULL AND type IN ('llm.request', 'llm.response', 'tool.call')",
)
TOOL_CALLS = View(
    name="tool_calls",
    description="one row per finished tool call",
    columns=_columns(
        "time", "source", "session", "position", "agent", "project", "tool", "tool_call_id", "failed", "error",
        "duration_ms", "log", input=("data->'$.input'", "what the tool got, JSON: input->>'$.command'"),
        output=("text", "what it returned, as text"),
    ),
    tables="events WHERE type = 'tool.call'",
)  # fmt: skip

RELATIONS = (EVENTS, MESSAGES, TOOL_CALLS)
"""The table, and the views of it."""
