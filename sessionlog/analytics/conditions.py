"""Conditions: group keys and filters as SQL on the ledger's schema, without imports.

Values never become SQL text: they are bound. Group keys come from a closed list.
"""

from __future__ import annotations

from sessionlog.ledger.schema import status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Query = Callable[[str, dict[str, Any]], list[tuple[Any, ...]]]
    """Runs a statement with parameters, and returns its rows."""

STATUS = status(":now_ns")
"""The expression of a session's status."""

KEYS: Mapping[str, str] = {
    "source": "s.source",
    **{name: f"l.{name}" for name in ("provider", "model", "response_model")},
    "session": "s.session",
    "project": "project_key(l.project)",
    **{name: f"l.{name}" for name in ("branch", "version", "agent")},
    **{name: f"COALESCE(NULLIF(l.{name}, ''), '-')" for name in ("skill", "plugin", "mcp", "region", "kind")},
    "tier": "COALESCE(NULLIF(l.service_tier, ''), 'standard')",
    **{name: f"{name}_key(r.time_ns)" for name in ("hour", "day", "week", "month")},
    "status": f"COALESCE(NULLIF({STATUS}, ''), 'unknown')",
    "route": "s.route",
    "harness": "s.harness",
    "machine": "machine_key(r.label_id)",
}
"""Group key → expression. `meta.KEY` stands for any key of a session's metadata.

A response that its log charges to no skill, plugin or MCP server is in the group `-`; so is one that was computed
anywhere, or that was not made for another one.
"""

FILTERS = ("provider", "model", "project", "status", "source")

TIME_KEYS = frozenset({"hour", "day", "week", "month"})
"""The keys that need a zone."""

_INT64 = 2**63 - 1


def filter_condition(
    filters: Mapping[str, Sequence[str]],
    now_ns: int,
    *,
    listed_only: bool = False,
    expressions: Mapping[str, str] = KEYS,
) -> tuple[str, dict[str, Any]]:
    """Return the condition of filters on sessions `s` and labels `l`, with its parameters.

    Sessions that do not count in usage are left out unless `listed_only`.
    """
    filtered, patterns = matches(filters, expressions)
    return " AND ".join(["1" if listed_only else "s.counted", *filtered]), {"now_ns": within_64_bits(now_ns)} | patterns


def matches(filters: Mapping[str, Sequence[str]], expressions: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the conditions of filters, with their parameters: one of a key's patterns must match, in any case."""
    conditions, parameters = [], {}
    for key, patterns in filters.items():
        options = []
        for number, pattern in enumerate([patterns] if isinstance(patterns, str) else patterns):
            name = f"{key}_{number}"
            options.append(f"lower_case({expressions[key]}) GLOB :{name}")
            parameters[name] = pattern.lower().encode("utf-8", "replace").decode("utf-8")
        if options:
            conditions.append(f"({' OR '.join(options)})")
    return conditions, parameters


def within_64_bits(time_ns: int) -> int:
    """Clamp an instant to SQLite's 64-bit integers; the calendar is wider."""
    return max(-_INT64, min(_INT64, time_ns))
