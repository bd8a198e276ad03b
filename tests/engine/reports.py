"""The reports that an engine has to answer as one process does, as JSON documents."""

import json
from datetime import UTC, datetime

from sessionlog.analytics.blocks import list_blocks
from sessionlog.analytics.models import list_models
from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.tools import aggregate_tools
from sessionlog.analytics.usage import aggregate_usage

NOW = datetime(2026, 11, 23, 10, 7, 11, tzinfo=UTC)
KEYS = ("source", "session", "provider", "model", "project", "agent", "hour")
REPORTS = {
    "usage": lambda paths, **options: aggregate_usage(paths, by=KEYS, **options),
    "window": lambda paths, **options: aggregate_usage(
        paths, since="2025-03-05T10:07:13Z..2026-11-20T12:03:01Z", **options
    ),
    "sessions": list_sessions,
    "models": list_models,
    "tools": lambda paths, **options: aggregate_tools(paths, by=("source", "session", "tool", "hour"), **options),
    "blocks": lambda paths, **options: list_blocks(paths, filters={"source": "*"}, **options),
}


def documents(paths, names=tuple(REPORTS), **options):
    """The JSON documents of reports; NaN and infinity, which logs may have, are compared, too."""
    options = {"now": NOW, "env": {"HOME": "/nonexistent"}} | options
    return {name: json.dumps(REPORTS[name](paths, **options).to_dict()) for name in names}
