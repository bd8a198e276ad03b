"""What the reporting commands share: which logs, whose time, which prices, how far the scan is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from sessionlog import files
from sessionlog.cli.output import UNREADABLE, fail
from sessionlog.errors import InvalidPrices
from sessionlog.events.times import parse_time
from sessionlog.ledger.load import Progress
from sessionlog.pricing.book import PriceBook
from sessionlog.settings import Settings, load_settings, parse_prices

Paths = Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help="Logs, or folders of logs.")]
Since = Annotated[str | None, typer.Option(help="7d, 24h, 2w, 1mo, today, last-week, 2026-11-21, A..B")]
Until = Annotated[str | None, typer.Option(help="The end of the time; a date includes that day.")]
Provider = Annotated[list[str] | None, typer.Option(help="Only this provider (glob); may be repeated.")]
Model = Annotated[list[str] | None, typer.Option(help="Only this model (glob); may be repeated.")]
Project = Annotated[list[str] | None, typer.Option(help="Only this project folder (glob); may be repeated.")]
Status = Annotated[list[str] | None, typer.Option(help="Only this status (glob): success, error, unfinished, …")]
Zone = Annotated[str | None, typer.Option(help="Time zone of days and hours: an IANA name or local.")]
Now = Annotated[str | None, typer.Option(help="Take this RFC 3339 time as the present.")]
Prices = Annotated[str | None, typer.Option(metavar="FILE", help="Prices of your own, TOML or JSON.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="CSV with exact numbers.")]
AsMarkdown = Annotated[bool, typer.Option("--markdown", help="A Markdown table.")]
Limit = Annotated[int | None, typer.Option(min=0, help="At most so many rows.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 3 if any log is damaged.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """The surroundings of one report.

    Attributes:
        settings: Environment and config file.
        paths: Logs and folders to read.
        given: Whether they were named by the user.
        zone: Whose days.
        now: The present.
        home: The home folder, shortened to `~` in tables.
    """

    settings: Settings
    paths: tuple[str, ...]
    given: bool
    zone: str
    now: datetime
    home: str


def reporting(paths: Sequence[str] | None, *, tz: str | None, now: str | None) -> Reporting:
    """Settle what a report reads; a named path that does not exist ends the command with exit code 3."""
    settings = load_settings()
    missing = [path for path in paths or () if files.stat_path(path) is None]
    if missing:
        fail(f"{missing[0]}: no such file or folder", UNREADABLE)
    return Reporting(
        settings=settings,
        paths=tuple(paths or (settings.session_dir,)),
        given=bool(paths),
        zone=tz or settings.timezone or "local",
        now=_present(now),
        home=os.path.expanduser("~"),
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
        InvalidPrices: One of them cannot be used.
        LogNotReadable: The file cannot be read.
    """
    own = dict(settings.prices)
    if path is not None:
        content = files.read_small(path)
        if content is None:
            raise InvalidPrices(f"{path}: no such file")
        own |= parse_prices(path, content)
    return PriceBook.load(own)


def choose_one(**formats: bool) -> None:
    """Refuse two output formats at once."""
    chosen = [f"--{name}" for name, value in formats.items() if value]
    if len(chosen) > 1:
        fail(f"choose only one of {' and '.join(chosen)}")


def nothing_found(where: Reporting) -> str:
    """Say where was looked and what to try."""
    if where.given:
        return f"no sessions in {', '.join(where.paths)}; `sessionlog check PATH` says what is there"
    return (
        f"no sessions in {where.paths[0]} yet. Try `sessionlog demo`, name a folder (`sessionlog usage PATH`), or set "
        "SESSIONLOG_DIR"
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
