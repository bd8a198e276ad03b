"""The commands that show a report: the function that makes it, and its layout. A new report is one entry here.

Its options are in `options`, its columns in its module of `analytics`.
"""

from __future__ import annotations

from importlib import import_module

from sessionlog.cli import reporting as r
from sessionlog.cli.options import BLOCKS_SHOWN, FINDINGS_SHOWN, SESSIONS_SHOWN
from sessionlog.cli.output import fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from sessionlog.analytics.report import Report
    from sessionlog.render.line import Line
    from sessionlog.render.report import View

_RECENT = "3d"
_YEAR = "12mo"


class ReportCommand:
    """One command that shows a report.

    Attributes:
        function: `module:function` of `analytics` that makes the report.
        help: Its help text.
        what: What an empty report has none of, for its note.
        table_rows: Rows of its table if no limit is given; None for all. JSON, CSV and Markdown have all.
        parameters: Settings that only this function takes: its parameter → the name of the setting.
        layout: `module:function` of `render`, if it is more than one table.
        layout_settings: Settings that the layout takes.
        variants: A flag → the function in place of this one.
    """

    __slots__ = ("function", "help", "layout", "layout_settings", "parameters", "table_rows", "variants", "what")

    def __init__(
        self,
        function: str,
        help: str,  # noqa: A002 - typer's and argparse's name for it
        what: str,
        *,
        table_rows: int | None = None,
        parameters: Mapping[str, str] | None = None,
        layout: str = "",
        layout_settings: tuple[str, ...] = (),
        variants: Mapping[str, str] | None = None,
    ) -> None:
        self.function = function
        self.help = help
        self.what = what
        self.table_rows = table_rows
        self.parameters = parameters or {}
        self.layout = layout
        self.layout_settings = layout_settings
        self.variants = variants or {}


REPORTS: Mapping[str, ReportCommand] = {
    "usage": ReportCommand(
        "usage:aggregate_usage",
        "Report tokens, cache hits, success, throughput and cost per provider and model.\n\n"
        "A PATH may also be a folder or URL to which machines export (`sessionlog export DEST --parquet`).\n\n"
        "Example: sessionlog usage --since 7d --by day,model",
        "usage", table_rows=5000,  # each row takes some kilobytes until all are laid out
        layout="usage:render_usage", layout_settings=("heatmap",),
    ),
    "models": ReportCommand(
        "models:list_models",
        "List models: what each was used for, its list price, its cost, and its share of all cost.\n\n"
        "Example: sessionlog models --since 1mo",
        "usage", variants={"unpriced": "unpriced:list_unpriced"},
    ),
    "sessions": ReportCommand(
        "sessions:list_sessions",
        "List sessions: start, duration, status, models, calls, tokens, cost, and the first words of the prompt.\n\n"
        "Example: sessionlog sessions --since today --status error",
        "sessions", table_rows=SESSIONS_SHOWN, layout="sessions:render_sessions", layout_settings=("tree",),
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
        "List five-hour blocks of usage, the pace of the present one, and the rate limits in the logs.\n\n"
        "Example: sessionlog blocks --active",
        "usage", table_rows=BLOCKS_SHOWN, parameters={"hours": "hours", "only_active": "active"},
        layout="blocks:render_blocks", layout_settings=("gaps",),
    ),
    "yield": ReportCommand(
        "yields:report_yield",
        "Report what sessions committed to the git repositories of this machine, what became of it, and its cost.\n\n"
        "Example: sessionlog yield --since 30d --by repository",
        "usage in git repositories", parameters={"into": "into"},
    ),
    "advise": ReportCommand(
        "advice:report_advice",
        "Report what sessions paid for without need, with its price and one thing to do.\n\n"
        "It reads the logs of the costliest sessions: results that were read again unchanged, large results, cache "
        "misses and their cause, loops, failed requests, compactions, tools that are sent and never called. With "
        "--since, the time of the same length before it stands beside, so that you see what a change has brought.\n\n"
        "Example: sessionlog advise --since 7d",
        "findings", table_rows=FINDINGS_SHOWN, parameters={"sessions": "sessions"},
    ),
}  # fmt: skip


def report_function(name: str) -> Callable[..., None]:
    """Return the function that runs a report's command; it takes the settings that `options` declares for it."""

    def run(**settings: Any) -> None:
        run_report(REPORTS[name], r.ReportArguments(settings))

    run.__name__, run.__doc__ = name, REPORTS[name].help
    return run


def run_report(command: ReportCommand, arguments: r.ReportArguments) -> None:
    """Make a report and print it in the chosen format."""
    settings = arguments.__dict__
    if settings.get("recent"):
        if arguments.since:
            fail("choose only one of --recent and --since")
        arguments.since = _RECENT
    if settings.get("heatmap"):
        _check_heatmap(arguments)
        arguments.by, arguments.since = ["day"], arguments.since or (None if arguments.until else _YEAR)
    function = next((name for flag, name in command.variants.items() if settings[flag]), command.function)
    context = arguments.context()
    own = {name: settings[setting] for name, setting in command.parameters.items()}
    with r.scan_progress("reading logs" if context.engine is None else "starting Spark, reading logs") as progress:
        shared = arguments.options(context, progress, table_rows=command.table_rows)
        report = _load("analytics", function)(context.paths, **own, **shared)
    layout_settings = {name: settings[name] for name in command.layout_settings}

    def table(report: Report, view: View) -> Iterable[Line]:
        layout = _load("render", command.layout or "report:render_table")
        lines: Iterable[Line] = layout(report, view, **layout_settings)
        return lines

    r.show_report(report, arguments, context, table=table, what=command.what)


def _check_heatmap(arguments: r.ReportArguments) -> None:
    """End the command for options that a calendar of days cannot follow."""
    if arguments.by is not None and r.split_list(arguments.by) not in (["day"], ["days"], ["date"]):
        fail("--heatmap shows days: leave out --by, or --heatmap")
    if arguments.limit is not None:
        fail("--heatmap shows every day: leave out --limit, or choose a time")
    if arguments.form == "table" and (arguments.sort is not None or arguments.wide):
        given, why = (
            ("--wide", "has no columns") if arguments.sort is None else ("--sort", "shows the days in their order")
        )
        fail(f"--heatmap {why}: leave out {given}, or take --by day instead")


def _load(package: str, name: str) -> Any:
    module, function = name.split(":")
    return getattr(import_module(f"sessionlog.{package}.{module}"), function)
