"""The commands that show a report: what each asks, and how it is laid out. A new report is one entry here.

Its options stand in `options`, its columns and words in its module of `analytics`.
"""

from __future__ import annotations

from importlib import import_module

from sessionlog.cli import reporting as r
from sessionlog.cli.options import USAGE_BY
from sessionlog.cli.output import fail

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from sessionlog.analytics.report import Report
    from sessionlog.render.line import Line
    from sessionlog.render.report import View

_RECENT = "3d"
_YEAR = "12mo"


class ReportCommand:
    """One command.

    Attributes:
        ask: `module:function` of `analytics` that makes the report.
        help: Its help text.
        what: What it is about, for the note that there is none.
        shown: Rows of its table unless a limit is given; None for all. Programs always get all.
        asked: Settings of its own that the function takes, by the function's names.
        layout: `module:function` of `render` where it is more than one table.
        laid_out: Settings that its layout takes.
    """

    __slots__ = ("ask", "asked", "help", "laid_out", "layout", "shown", "what")

    def __init__(
        self,
        ask: str,
        help: str,  # noqa: A002 - what it is called everywhere
        what: str,
        *,
        shown: int | None = None,
        asked: Mapping[str, str] | None = None,
        layout: str = "",
        laid_out: tuple[str, ...] = (),
    ) -> None:
        self.ask = ask
        self.help = help
        self.what = what
        self.shown = shown
        self.asked = asked or {}
        self.layout = layout
        self.laid_out = laid_out


REPORTS: Mapping[str, ReportCommand] = {
    "usage": ReportCommand(
        "usage:aggregate_usage",
        "Report tokens, cache hits, success, throughput and cost per provider and model.\n\n"
        "Example: sessionlog usage --since 7d --by day,model",
        "usage", shown=5000,  # each row takes some kilobytes until all are laid out
        layout="usage:render_usage", laid_out=("heatmap",),
    ),
    "models": ReportCommand(
        "models:list_models",
        "List models: what each was used for, its list price, its cost, and its share of all cost.\n\n"
        "Example: sessionlog models --since 1mo",
        "usage",
    ),
    "sessions": ReportCommand(
        "sessions:list_sessions",
        "List sessions: start, duration, status, models, calls, tokens, cost, and the first words of the prompt.\n\n"
        "Example: sessionlog sessions --since today --status error",
        "sessions", shown=50, layout="sessions:render_sessions", laid_out=("tree",),
    ),
    "sources": ReportCommand(
        "survey:survey_sources",
        "List the agents whose logs can be read: files, size, oldest and newest request, how long they are kept.\n\n"
        "Example: sessionlog sources --source claude-code,codex",
        "agents", layout="sources:render_sources",
    ),
    "tools": ReportCommand(
        "tools:aggregate_tools",
        "Report tool calls: errors, durations, size of output, and each tool's share of all output.\n\n"
        "Example: sessionlog tools --since 7d --sort output_bytes",
        "tool calls",
    ),
    "blocks": ReportCommand(
        "blocks:list_blocks",
        "List five-hour blocks of usage, the pace of the present one, and the rate limits that logs speak of.\n\n"
        "Example: sessionlog blocks --active",
        "usage", shown=30, asked={"hours": "hours", "only_active": "active"}, layout="blocks:render_blocks",
        laid_out=("gaps",),
    ),
}  # fmt: skip


def command_of(name: str) -> Callable[..., None]:
    """Return the function of a report's command; it takes the settings that `options` declares for it."""

    def run(**settings: Any) -> None:
        show(REPORTS[name], r.Asked(settings))

    run.__name__, run.__doc__ = name, REPORTS[name].help
    return run


def show(command: ReportCommand, asked: r.Asked) -> None:
    """Make a report and print it in the form that was asked for."""
    settings = asked.__dict__
    if settings.get("recent"):
        if asked.since:
            fail("choose only one of --recent and --since")
        asked.since = _RECENT
    if settings.get("heatmap"):
        if asked.by not in (USAGE_BY, "day"):
            fail("--heatmap shows days: leave out --by, or --heatmap")
        asked.by, asked.since = "day", asked.since or (None if asked.until else _YEAR)
    where = asked.reporting()
    own = {name: settings[setting] for name, setting in command.asked.items()}
    with r.scan_progress() as progress:
        options = asked.options(where, progress, shown=command.shown)
        report = _load("analytics", command.ask)(where.paths, **own, **options)
    laid_out = {name: settings[name] for name in command.laid_out}

    def table(report: Report, view: View) -> Iterable[Line]:
        lines: Iterable[Line] = _load("render", command.layout or "report:render_table")(report, view, **laid_out)
        return lines

    r.show_report(report, asked, where, table=table, what=command.what)


def _load(package: str, name: str) -> Any:
    module, function = name.split(":")
    return getattr(import_module(f"sessionlog.{package}.{module}"), function)
