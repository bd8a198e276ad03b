"""`sessionlog routing-quality`: how often the router's choice was kept, and where people disagree with it."""

from __future__ import annotations

from sessionlog.analytics.routing import RoutingQualityScan, RoutingReport, scan_routing_quality
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.cli import reporting as r
from sessionlog.cli.output import fail, note
from sessionlog.render.notes import damage_note
from sessionlog.sources.names import NATIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def routing_quality(*, axis: str | None, width: int | None, **settings: Any) -> None:
    """Judge the router: how often its choice was kept, where people overrode it, and how that ended.

    Example: sessionlog routing-quality --since 7d --axis model
    """
    arguments = r.ReportArguments(settings)
    context = arguments.context()
    if arguments.source is not None:
        from sessionlog.sources.registry import choose_sources

        if not any(one.id in NATIVE for one in choose_sources(r.split_list(arguments.source))):
            fail("only sessionlog's own logs have routing decisions: use --source native")
    window = parse_usage_window(arguments.since, until=arguments.until, now=context.now, tz=context.zone)
    folders = context.paths or context.settings.session_dir
    with r.scan_progress() as progress:
        scan = scan_routing_quality(folders, window=window, axis=axis, keep_events=False, progress=progress)
    if arguments.form == "table":
        _print(scan, context, width)
    else:
        r.print_report(RoutingReport.of(scan), arguments.form, context)
    _notes(scan, context)


def _print(scan: RoutingQualityScan, context: r.ReportContext, width: int | None) -> None:
    from sessionlog.render.console import make_console, print_trimmed
    from sessionlog.render.routing import render_routing_quality

    console = make_console(width=width)
    print_trimmed(console, render_routing_quality(scan, width=console.width, tz=context.zone, now=context.now))


def _notes(scan: RoutingQualityScan, context: r.ReportContext) -> None:
    if scan.routing.problem_count:
        note(damage_note(scan.routing.problem_count, scan.routing.first_problems))
    if not scan.total_requests and scan.window is None:
        places = ", ".join(context.paths or (context.settings.session_dir,))
        note(f"no sessions in {places}; only sessionlog's own logs are read, as others have no routing decisions")
