"""`sessionlog routing-quality`: how often the router's choice was kept, and where people disagree with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from sessionlog import files
from sessionlog.analytics.routing import RoutingQualityScan, scan_routing_quality
from sessionlog.analytics.window import parse_usage_window
from sessionlog.cli.output import UNREADABLE, USAGE, fail, note, print_json, print_text
from sessionlog.errors import LogNotReadable, SessionLogError
from sessionlog.events.times import parse_time
from sessionlog.render.console import make_console
from sessionlog.render.routing import render_routing_csv, render_routing_quality
from sessionlog.settings import load_settings


def routing_quality(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="Logs and folders of logs.", show_default="own logs")
    ] = None,
    *,
    since: Annotated[str | None, typer.Option(help="Sessions that began in: 7d, today, 2026-11-01.. .")] = None,
    until: Annotated[str | None, typer.Option(help="End of the time; a date is inside.")] = None,
    axis: Annotated[str | None, typer.Option(help="List only these pins: harness, provider or model.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, schema sessionlog.routing/1.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="The breakdown as CSV.")] = False,
    tz: Annotated[str | None, typer.Option(help="Zone of days and times.", show_default="local")] = None,
    now: Annotated[str | None, typer.Option(help="The present, RFC 3339.", show_default="the clock")] = None,
    width: Annotated[int | None, typer.Option(min=40, help="Columns of the view.")] = None,
) -> None:
    """Judge the router: how often its choice was kept, where people overrode it, and how that ended.

    Example: sessionlog routing-quality --since 7d --axis model
    """
    if as_json and as_csv:
        fail("choose only one of --json and --csv")
    missing = [path for path in paths or () if files.stat_path(path) is None]
    if missing:
        fail(f"{missing[0]}: no such file or folder", UNREADABLE)
    try:
        settings, present = load_settings(), _present(now)
        zone = tz or settings.timezone or "local"
        window = parse_usage_window(since, until=until, now=present, tz=zone)
        scan = scan_routing_quality(paths or settings.session_dir, window=window, axis=axis)
    except SessionLogError as error:
        fail(str(error), UNREADABLE if isinstance(error, LogNotReadable) else USAGE)
    _print(scan, as_json=as_json, as_csv=as_csv, width=width, zone=zone, now=present)


def _print(
    scan: RoutingQualityScan, *, as_json: bool, as_csv: bool, width: int | None, zone: str, now: datetime
) -> None:
    if as_json:
        print_json(scan.to_dict())
    elif as_csv:
        print_text(render_routing_csv(scan))
    else:
        console = make_console(width=width)
        console.print(render_routing_quality(scan, width=console.width, tz=zone, now=now))
    found = scan.problems
    if found["count"]:
        note(f"{found['count']} damaged pieces skipped, first {found['first'][0]}; `sessionlog check` shows all")


def _present(text: str | None) -> datetime:
    time_ns = parse_time(text)
    if time_ns is not None:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns // 1000)
    return datetime.now(UTC) if text is None else fail(f"--now {text!r} is not an RFC 3339 time")
