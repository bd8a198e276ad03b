"""What the reporting commands share: which logs, whose time, which prices, how far the scan is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sessionlog import files
from sessionlog.cli.output import UNREADABLE, fail, note, print_json, print_text
from sessionlog.errors import InvalidPrices, Problem
from sessionlog.events.times import parse_time
from sessionlog.ledger.load import Progress
from sessionlog.pricing.book import PriceBook
from sessionlog.pricing.own_prices import parse_own_prices
from sessionlog.render.notes import counted, damage_note, limit_note
from sessionlog.settings import Settings, load_settings, parse_prices
from sessionlog.sources.discover import discover, find_logs, recognise
from sessionlog.sources.native import holds_events
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources

if TYPE_CHECKING:  # commands without a report save what these import
    from sessionlog.analytics.block import BlockReport
    from sessionlog.analytics.sessions import SessionList
    from sessionlog.analytics.tool_row import ToolReport
    from sessionlog.analytics.usage_row import UsageReport

    Report = UsageReport | SessionList | ToolReport | BlockReport

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Logs, or folders of logs.", show_default="every agent's logs found"),
]
Since = Annotated[
    str | None, typer.Option(metavar="WHEN", help="7d, 24h, 2w, 1mo, today, last-week, 2026-11-21, A..B.")
]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="The end of the time; a date includes that day.")]
Provider = Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Only this provider; may be repeated.")]
Model = Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Only this model; may be repeated.")]
Project = Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Only this project folder; may be repeated.")]
Status = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Only this status (success, error, unfinished and others); may be repeated."),
]
Source = Annotated[
    list[str] | None,
    typer.Option(metavar="IDS", help="Only these agents' logs, e.g. claude-code,codex; may be repeated."),
]
Zone = Annotated[
    str | None, typer.Option(metavar="ZONE", help="Whose days and hours: an IANA name, UTC, or local (the default).")
]
Now = Annotated[str | None, typer.Option(metavar="TIME", help="Take this RFC 3339 time as the present.")]
Prices = Annotated[str | None, typer.Option(metavar="FILE", help="Prices of your own, TOML or JSON.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="CSV with exact numbers.")]
AsMarkdown = Annotated[bool, typer.Option("--markdown", help="A Markdown table.")]
Limit = Annotated[int | None, typer.Option(metavar="N", min=0, help="At most so many rows.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 3 if any log is damaged.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """The surroundings of one report.

    Attributes:
        settings: Environment and config file.
        paths: Logs and folders to read; None for every place where logs may be.
        zone: Whose days.
        now: The present.
        home: The home folder, shortened to `~` in tables.
        env: The environment as sources see it: with the folder of our own logs that the settings name.
    """

    settings: Settings
    paths: tuple[str, ...] | None
    zone: str
    now: datetime
    home: str
    env: Mapping[str, str]


def reporting(paths: Sequence[str] | None, *, tz: str | None, now: str | None, anything: bool = False) -> Reporting:
    """Settle what a report reads; a named path that is not there, or is no log, ends the command with exit code 3.

    With `anything` files that are no log of a known agent are let through: `check` says what is in them.
    """
    settings = load_settings()
    for path in paths or ():
        if files.stat_path(path) is None:
            fail(f"{path}: no such file or folder", UNREADABLE)
        if not anything and not os.path.isdir(path) and isinstance(recognise(path), Problem) and not holds_events(path):
            fail(f"{path}: no log of a known agent; `sessionlog sources` lists those that are known", UNREADABLE)
    return Reporting(
        settings=settings,
        paths=tuple(paths) if paths else None,
        zone=tz or settings.timezone or "local",
        now=_present(now),
        home=os.path.expanduser("~"),
        env={**os.environ, "SESSIONLOG_DIR": settings.session_dir},
    )


def _present(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    time_ns = parse_time(text)
    if time_ns is None:
        fail(f"--now {text!r} is not an RFC 3339 time such as 2026-11-21T10:00:00Z")
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns // 1000)


def price_book(settings: Settings, path: str | None) -> PriceBook:
    """Return the list prices with the user's own above them, `--prices FILE` above config.toml.

    Raises:
        InvalidPrices: One of them cannot be used; the message names the file.
        LogNotReadable: The file cannot be read.
    """
    own = _checked(settings.config_path, settings.prices)
    if path is not None:
        content = files.read_small(path)
        if content is None:
            raise InvalidPrices(f"{path}: no such file")
        above = _checked(path, parse_prices(path, content))
        spelled = {_spelling(key) for key in above}
        own = {key: price for key, price in own.items() if _spelling(key) not in spelled} | above
    return PriceBook.load(own)


def _checked(place: str, table: Mapping[str, Any]) -> dict[str, Any]:
    try:
        parse_own_prices(table)
    except InvalidPrices as error:
        raise InvalidPrices(f"{place}: {error}") from error
    return dict(table)


def _spelling(key: str) -> str:
    """Names of models are the same in upper and lower case."""
    return key.strip().lower()


def split_list(values: Sequence[str] | None) -> list[str]:
    """Return what was given in several options, or in one with commas."""
    return [word.strip() for value in values or () for word in value.split(",") if word.strip()]


def choose_one(**formats: bool) -> str:
    """Return the output format that was asked for, `table` for none; two at once are refused."""
    chosen = [f"--{name}" for name, value in formats.items() if value]
    if len(chosen) > 1:
        fail(f"choose only one of {', '.join(chosen[:-1])} and {chosen[-1]}")
    return chosen[0].removeprefix("--") if chosen else "table"


def print_lines(render: Callable[..., Iterable[Any]]) -> None:
    """Print the lines that `render(width=…)` yields: tables as laid out, notes wrapped, and no blanks at any end."""
    from sessionlog.render.console import make_console  # noqa: PLC0415 - rich costs 45 ms, which other commands save

    console = make_console()
    blank: list[Any] = []
    for line in render(width=console.width):
        for part in [line] if line.no_wrap else line.wrap(console, console.width):
            part.rstrip()
            if not part:
                blank.append(part)
                continue
            for text in (*blank, part):
                console.print(text, soft_wrap=True)
            blank.clear()


def print_report(
    report: Report,
    form: str,
    *,
    csv: Callable[[], str],
    markdown: Callable[[], str],
    table: Callable[..., Iterable[Any]],
    left_out: int,
    thing: str,
) -> None:
    """Print a report in one form; beside data, stderr says what the table says in lines of its own.

    `left_out` is how many rows a limit left out, and `thing` what a row is called.
    """
    match form:
        case "json":
            print_json(report.to_dict())
        case "csv":
            print_text(csv())
        case "markdown":
            print_text(markdown())
        case _:
            print_lines(table)
            return
    if report.problem_count:
        note(damage_note(report.problem_count, report.problems))
    if left_out:
        note(limit_note(left_out, thing))


def end_report(
    report: Report,
    where: Reporting,
    *,
    empty: bool,
    filters: Mapping[str, Any],
    strict: bool,
    what: str = "sessions",
) -> None:
    """Say where was looked when nothing was found, and exit with 3 for damage where that is asked for."""
    if empty:
        narrowed = report.window is not None or any(filters.values())
        note(nothing_found(where, narrowed=narrowed, unrecognised=report.unrecognised, what=what))
    if strict and report.problem_count:
        raise typer.Exit(UNREADABLE)


def nothing_found(where: Reporting, *, narrowed: bool, unrecognised: int = 0, what: str = "sessions") -> str:
    """Say where was looked and what to try.

    `narrowed` if a time or a filter may have left everything out; `unrecognised` how many files are no known log;
    `what` the report is about.
    """
    places = "the logs found" if where.paths is None else ", ".join(where.paths)
    listed = find_logs(where.paths, where.env) if where.paths is not None else discover(where.env, all_sources())
    there = any(isinstance(item, Log) for item in listed)
    if narrowed and there:
        return f"no session in {places} fits the time and the filters; try `--since 1mo`, or without them"
    if there and what != "sessions":
        path = "" if where.paths is None else " PATH"
        return f"no {what} in {places}; `sessionlog sessions{path}` lists what is there"
    if where.paths is not None:
        odd = f" ({counted(unrecognised, 'file')} of no known agent)" if unrecognised else ""
        return f"no sessions in {places}{odd}; `sessionlog check PATH` says what is there"
    return (
        f"no sessions in {where.settings.session_dir} yet, and no other agent's logs (`sessionlog sources` says where "
        "they would be). Try `sessionlog demo`, name a folder of logs (PATH), or set SESSIONLOG_DIR"
    )


@contextmanager
def scan_progress() -> Iterator[Progress | None]:
    """Show a bar on stderr when a scan takes longer than half a second and a person is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from sessionlog.render.progress import ScanBar  # noqa: PLC0415 - rich's progress costs 40 ms

    started = time.monotonic()
    bar: ScanBar | None = None

    def advance(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - started > 0.5:
            bar = ScanBar(total)
        if bar is not None:
            bar.advance(done)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()
