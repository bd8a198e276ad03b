"""Shell completion of values: group keys, columns, agents, ids of sessions, and an option's fixed words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

import typer

from sessionlog.cli.options import Option

_IDS = """SELECT session FROM (SELECT session, MAX(last_ns) AS last_ns FROM sessions GROUP BY session)
    WHERE substr(session, 1, length(:typed)) = :typed ORDER BY last_ns DESC LIMIT 50"""


def completer(option: Option) -> Callable[..., list[str]] | None:
    """Return typer's hook for the values of an option or argument; None where the shell's own completion is better."""
    match option.name or option.setting:
        case "--by":
            return lambda ctx, incomplete: _listed(_keys(ctx), incomplete)
        case "--sort":
            return lambda ctx, incomplete: _matching((*_keys(ctx), *_columns(ctx)), incomplete)
        case "--source":
            return lambda incomplete: _listed(_sources(), incomplete)
        case "target" | "session" | "pair" | "--resume":
            return lambda incomplete: list(_session_ids(incomplete))
    words = (option.metavar or "").split("|")
    if option.kind == "text" and len(words) > 1 and words[0].islower():
        return lambda incomplete: _matching(words, incomplete)
    return None


def _matching(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _listed(words: Iterable[str], incomplete: str) -> list[str]:
    """Complete the last word of a comma-separated list; each result is the whole list."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{word}" for word in _matching(words, last) if word not in taken]


def _keys(ctx: typer.Context) -> Iterable[str]:
    from sessionlog.analytics import conditions, tools

    return tools.KEYS if ctx.info_name == "tools" else conditions.KEYS


def _columns(ctx: typer.Context) -> Iterable[str]:
    module, name = {
        "tools": ("tool_row", "ToolReport"), "models": ("models", "ModelReport"),
    }.get(str(ctx.info_name), ("usage_row", "UsageReport"))  # fmt: skip
    report: Any = getattr(import_module(f"sessionlog.analytics.{module}"), name)
    return [column.name for column in report.columns]


def _sources() -> list[str]:
    from sessionlog.sources.registry import all_sources

    return [source.id for source in all_sources()]


def _session_ids(incomplete: str) -> Iterator[str]:
    """Yield ids in the ledger, the newest first; no log is read, and an unreadable ledger yields none."""
    from sessionlog.ledger.opening import open_ledger
    from sessionlog.settings import load_settings

    try:
        with open_ledger(load_settings().ledger_path, write=False) as book:
            yield from (session for (session,) in book.connection.execute(_IDS, {"typed": incomplete}))
    except Exception:  # noqa: BLE001 - a completion cannot show an error
        return
