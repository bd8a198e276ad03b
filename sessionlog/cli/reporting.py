"""What the reporting commands share: which logs, whose time, which prices, how far the scan is."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sessionlog import files
from sessionlog.analytics.columns import counted
from sessionlog.cli import options
from sessionlog.cli.output import UNREADABLE, Leave, fail, note, print_json, print_text
from sessionlog.errors import InvalidPrices, Problem
from sessionlog.ledger.cached import ask_current
from sessionlog.render.currency import parse_currency, show_money_in
from sessionlog.render.line import settle
from sessionlog.render.notes import archived_note, damage_note, limit_note
from sessionlog.render.stream import plain_width
from sessionlog.settings import Settings, load_settings, parse_prices

TYPE_CHECKING = False  # what knows the agents' logs and the prices costs 80 ms, which a report without news saves
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.question import Options
    from sessionlog.analytics.report import Report
    from sessionlog.archive.entry import Entry
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.render.line import Line
    from sessionlog.render.report import View


split_list = options.split_list

_FILTERS = ("provider", "model", "tool", "server", "project", "status")


class Asked:
    """What was asked of a report: the settings that its command declares in `options`; others have their defaults."""

    paths: list[str] | None = None
    since: str | None = None
    until: str | None = None
    by: str = ""
    source: list[str] | None = None
    sort: str | None = None
    limit: int | None = None
    merge_worktrees: bool = False
    tree: bool = False
    recent: bool = False
    heatmap: bool = False
    active: bool = False
    hours: int = 0
    gaps: bool = False
    as_json: bool = False
    as_csv: bool = False
    as_markdown: bool = False
    wide: bool = False
    tz: str | None = None
    now: str | None = None
    prices: str | None = None
    ledger: str | None = None
    no_ledger: bool = False
    live: bool = False
    jobs: int | None = None
    strict: bool = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.__dict__.update(settings)
        self.form = choose_one(json=self.as_json, csv=self.as_csv, markdown=self.as_markdown)
        given = {name: settings.get(name) for name in _FILTERS} | {"source": split_list(self.source)}
        self.filters: dict[str, list[str]] = {name: patterns for name, patterns in given.items() if patterns}

    def options(self, where: Reporting, progress: Progress | None, *, shown: int | None = None) -> Options:
        """Return what every report on logs is asked, by name; a table shows `shown` rows unless a limit is given."""
        return {
            "window": self.since, "until": self.until, "filters": self.filters, "tz": where.zone, "now": where.now,
            "by": split_list([self.by]) if "by" in self.__dict__ else None, "sort": self.sort,
            "limit": shown if self.limit is None and self.form == "table" else self.limit,
            "merge_worktrees": self.merge_worktrees, "prices": own_prices(where.settings, self.prices),
            "env": where.env, "ledger": where.ledger, "live": where.live, "jobs": where.jobs, "progress": progress,
        }  # fmt: skip

    def reporting(self) -> Reporting:
        """Return what the report reads."""
        return reporting(
            self.paths, tz=self.tz, now=self.now, ledger=self.ledger, no_ledger=self.no_ledger, live=self.live,
            jobs=self.jobs,
        )  # fmt: skip


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
        ledger: The file that remembers what was read; None to scan everything anew, in memory.
        live: Whether logs that have been deleted since are left out.
        jobs: How many processes scan; None for as many as pay.
    """

    settings: Settings
    paths: tuple[str, ...] | None
    zone: str
    now: datetime
    home: str
    env: Mapping[str, str]
    ledger: str | None = None
    live: bool = False
    jobs: int | None = None


def read_settings() -> Settings:
    """Return the settings; money is shown in the currency that they name until the command ends.

    Raises:
        InvalidSettings: They cannot be used.
    """
    settings = load_settings()
    show_money_in(parse_currency(settings.currency, place=settings.config_path))
    return settings


def reporting(
    paths: Sequence[str] | None,
    *,
    tz: str | None = None,
    now: str | None = None,
    ledger: str | None = None,
    no_ledger: bool = False,
    live: bool = False,
    jobs: int | None = None,
    anything: bool = False,
    settings: Settings | None = None,
) -> Reporting:
    """Settle what a report reads; a named path that is not there, or is no log, ends the command with exit code 3.

    With `anything` files that are no log of a known agent are let through: `check` says what is in them. The settings
    are read unless they are given.
    """
    if ledger is not None and (no_ledger or paths):
        fail(f"choose only one of --ledger and {'--no-ledger' if no_ledger else 'PATH, which is scanned by itself'}")
    settings = settings or read_settings()
    for path in paths or ():
        if files.stat_path(path) is None:
            fail(f"{path}: no such file or folder", UNREADABLE)
        if not os.path.isdir(path):
            _check_log(path, anything=anything)
    return Reporting(
        settings=settings,
        paths=tuple(paths) if paths else None,
        zone=tz or settings.timezone or "local",
        now=present(now),
        home=os.path.expanduser("~"),
        env={**os.environ, "SESSIONLOG_DIR": settings.session_dir},
        ledger=None if no_ledger or paths else ledger or settings.ledger_path,
        live=live,
        jobs=jobs,
    )


def _check_log(path: str, *, anything: bool) -> None:
    from sessionlog.sources.discover import recognise  # noqa: PLC0415 - see above
    from sessionlog.sources.native import holds_events  # noqa: PLC0415 - see above

    log = recognise(path)
    if isinstance(log, Problem) and log.kind == "unreadable":
        fail(f"{path}: {log.detail}", UNREADABLE)
    if isinstance(log, Problem) and not anything and not holds_events(path):
        fail(f"{path}: {log.detail}; `sessionlog sources` lists those that are known", UNREADABLE)


def present(text: str | None) -> datetime:
    """Return the present, or the time that `--now` takes for it; what is none ends the command."""
    if text is None:
        return datetime.now(UTC)
    from sessionlog.events.times import parse_time  # noqa: PLC0415 - see above

    time_ns = parse_time(text)
    if time_ns is None:
        fail(f"--now {text!r} is not an RFC 3339 time such as 2026-11-21T10:00:00Z")
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns // 1000)


def own_prices(settings: Settings, path: str | None) -> PriceBook | None:
    """Return the `price_book`; None if it is the list prices alone, which a report loads when it needs them."""
    return price_book(settings, path) if path is not None or settings.prices else None


def price_book(settings: Settings, path: str | None = None) -> PriceBook:
    """Return the list prices with the user's own above them, `--prices FILE` above config.toml.

    Raises:
        InvalidPrices: One of them cannot be used; the message names the file.
        LogNotReadable: The file cannot be read.
    """
    from sessionlog.pricing.book import PriceBook  # noqa: PLC0415 - see above

    own = _checked(settings.config_path, settings.prices)
    standing = PriceBook.load(own)
    if path is None:
        return standing
    content = files.read_small(path)
    if content is None:
        raise InvalidPrices(f"{path}: no such file")
    above = _checked(path, parse_prices(path, content))
    spelled = {_spelling(key) for key in above}
    own = {key: price for key, price in own.items() if _spelling(key) not in spelled} | above
    return PriceBook.load(own, instead_of=standing)


def _checked(place: str, table: Mapping[str, Any]) -> dict[str, Any]:
    from sessionlog.pricing.own_prices import parse_own_prices  # noqa: PLC0415 - see above

    try:
        parse_own_prices(table)
    except InvalidPrices as error:
        raise InvalidPrices(f"{place}: {error}") from error
    return dict(table)


def _spelling(key: str) -> str:
    """Names of models are the same in upper and lower case."""
    return key.strip().lower()


def choose_one(**formats: bool) -> str:
    """Return the output format that was asked for, `table` for none; two at once are refused."""
    chosen = [f"--{name}" for name, value in formats.items() if value]
    if len(chosen) > 1:
        fail(f"choose only one of {', '.join(chosen[:-1])} and {chosen[-1]}")
    return chosen[0].removeprefix("--") if chosen else "table"


def print_lines(render: Callable[..., Iterable[Line]]) -> None:
    """Print the lines that `render(width=…)` yields: tables as laid out, notes wrapped, and no blanks at any end."""
    width = plain_width(sys.stdout)
    if width is not None:
        print_text("".join(f"{line.plain}\n" for line in settle(render(width=width), width)))
        return
    from sessionlog.render.console import make_console, print_line  # noqa: PLC0415 - rich costs 45 ms, which pipes save

    console = make_console()
    for line in settle(render(width=console.width), console.width):
        print_line(console, line)


def show_report(
    report: Report,
    asked: Asked,
    where: Reporting,
    *,
    table: Callable[[Any, View], Iterable[Line]] | None = None,
    what: str = "sessions",
) -> None:
    """Print a report in the form that was asked for, and on stderr what a table has in lines of its own.

    Notes follow: what the ledger could not do, what it only remembers, and where logs were looked for if nothing was
    found, which `what` names. `table` lays out reports that are more than one table.

    Raises:
        Leave: With exit code 3 for damage where that is asked for.
    """
    print_report(report, asked.form, where, table=table, wide=asked.wide)
    if asked.form != "table":
        if report.problem_count:
            note(damage_note(report.problem_count, report.problems))
        if report.hidden_rows:
            note(limit_note(report.hidden_rows, report.thing))
    for sentence in report.notes:
        note(sentence)
    if report.archived_sessions:
        note(archived_note(report.archived_sessions))
    if report.is_empty:
        narrowed = report.window is not None or bool(asked.filters)
        note(nothing_found(where, narrowed=narrowed, unrecognised=report.unrecognised, what=what))
        for sentence in _nearest_values(asked, where):
            note(sentence)
    if asked.strict and report.problem_count:
        raise Leave(UNREADABLE)


def print_report(
    report: Report,
    form: str,
    where: Reporting,
    *,
    table: Callable[[Any, View], Iterable[Line]] | None = None,
    wide: bool = False,
) -> None:
    """Print a report in one form; `table` lays out one that is more than a table."""
    if form == "json":
        print_json(report.lazy_dict())  # many rows are made one by one
        return
    from sessionlog.render.report import View, render_csv, render_markdown, render_table  # noqa: PLC0415 - 10 ms, which JSON saves

    def view(width: int = 0) -> View:
        return View(width=width, tz=where.zone, now=where.now, wide=wide, home=where.home)

    match form:
        case "csv":
            print_text(render_csv(report))
        case "markdown":
            print_text(render_markdown(report, view()))
        case _:
            print_lines(lambda width: (table or render_table)(report, view(width)))


def note_archived(entry: Entry) -> None:
    """Say that a session was read from the archive."""
    note(f"{entry.path} is gone: this is from the archive, of {entry.archived[:10]}")


def _nearest_values(asked: Asked, where: Reporting) -> Iterator[str]:
    """Yield what filters without a wildcard may have meant, of the values that there are."""
    from difflib import get_close_matches  # noqa: PLC0415 - 5 ms, where nothing was found

    from sessionlog.analytics.usage import aggregate_usage  # noqa: PLC0415 - as above

    for key in ("provider", "model", "project", "status"):
        plain = [pattern for pattern in asked.filters.get(key, ()) if not any(sign in pattern for sign in "*?[")]
        if not plain:
            continue
        usage = aggregate_usage(where.paths, by=[key], env=where.env, ledger=where.ledger, now=where.now)
        values = {row.keys[key].lower(): row.keys[key] for row in usage.rows}
        for pattern in (one for one in plain if one.lower() not in values):
            if holding := [values[value] for value in values if pattern.lower() in value]:
                names = ", ".join(holding[:3])
                yield f"no {key} is {pattern!r}; there is {names}: --{key} '*{pattern}*' takes all of them"
            elif near := [values[value] for value in get_close_matches(pattern.lower(), values)]:
                yield f"no {key} is {pattern!r}; there is {', '.join(near)}"


def nothing_found(where: Reporting, *, narrowed: bool, unrecognised: int = 0, what: str = "sessions") -> str:
    """Say where was looked and what to try.

    `narrowed` if a time or a filter may have left everything out; `unrecognised` how many files are no known log;
    `what` the report is about.
    """
    places = "the logs found" if where.paths is None else ", ".join(where.paths)
    there = (narrowed and _knows_logs(where)) or _finds_logs(where)
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


def _knows_logs(where: Reporting) -> bool:
    """Whether a ledger that is up to date has any log that is there: then none has to be looked for."""
    has_logs = "SELECT 1 FROM files WHERE NOT missing LIMIT 1"
    return where.ledger is not None and bool(
        ask_current(where.ledger, where.env, lambda book: book.query(has_logs, {}))
    )


def _finds_logs(where: Reporting) -> bool:
    """Whether there is any log where the report looked for some."""
    from sessionlog.sources.discover import discover, find_logs  # noqa: PLC0415 - all sources cost 65 ms
    from sessionlog.sources.protocol import Log  # noqa: PLC0415 - as above
    from sessionlog.sources.registry import all_sources  # noqa: PLC0415 - as above

    listed = find_logs(where.paths, where.env) if where.paths is not None else discover(where.env, all_sources())
    return any(isinstance(item, Log) for item in listed)


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
