"""Shared by the reporting commands: their arguments and context, the price book, printing, and the progress bar."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sessionlog import files
from sessionlog.analytics.columns import counted
from sessionlog.cli import options
from sessionlog.cli.output import UNREADABLE, Exit, fail, note, print_json, print_text
from sessionlog.errors import InvalidPrices, Problem
from sessionlog.settings import Settings, load_settings, parse_prices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.question import Options
    from sessionlog.analytics.report import Report
    from sessionlog.analytics.sql.event_logs import EventSelection
    from sessionlog.archive.entry import Entry
    from sessionlog.engine.spark import Spark
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.render.line import Line
    from sessionlog.render.progress import ScanBar
    from sessionlog.render.report import View


split_list = options.split_list

_FILTERS = ("provider", "model", "tool", "server", "project", "status")


class ReportArguments:
    """The arguments of a report: the settings that its command declares in `options`, and defaults for all others.

    Attributes:
        form: The output format: `table`, `json`, `csv` or `markdown`.
        filters: The patterns that were given, by name.
    """

    paths: list[str] | None = None
    since: str | None = None
    until: str | None = None
    by: list[str] | None = None
    source: list[str] | None = None
    sort: str | None = None
    limit: int | None = None
    merge_worktrees: bool = False
    tree: bool = False
    recent: bool = False
    heatmap: bool = False
    unpriced: bool = False
    active: bool = False
    hours: int = 0
    into: str | None = None
    sessions: int = 0
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
    engine: str | None = None
    master: str | None = None
    strict: bool = False
    html: str | None = None
    pages: str | None = None
    force: bool = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.__dict__.update(settings)
        self.form = choose_one(json=self.as_json, csv=self.as_csv, markdown=self.as_markdown)
        given = {name: settings.get(name) for name in _FILTERS} | {"source": split_list(self.source)}
        self.filters: dict[str, list[str]] = {name: patterns for name, patterns in given.items() if patterns}

    def options(self, context: ReportContext, progress: Progress | None, *, table_rows: int | None = None) -> Options:
        """Return the keyword arguments of every report's function; a table has `table_rows` unless a limit is given."""
        return {
            "window": self.since, "until": self.until, "filters": self.filters, "tz": context.zone, "now": context.now,
            "by": None if self.by is None else split_list(self.by), "sort": self.sort,
            "limit": table_rows if self.limit is None and self.form == "table" else self.limit,
            "merge_worktrees": self.merge_worktrees, "prices": own_prices(context.settings, self.prices),
            "env": context.env, "ledger": context.ledger, "live": context.live, "jobs": context.jobs,
            "engine": context.engine, "progress": progress,
        }  # fmt: skip

    def context(self) -> ReportContext:
        """Return the report's context."""
        return report_context(
            self.paths, tz=self.tz, now=self.now, ledger=self.ledger, no_ledger=self.no_ledger, live=self.live,
            jobs=self.jobs, engine=self._engine(),
        )  # fmt: skip

    def _engine(self) -> Spark | None:
        """Return the chosen engine; what does not go with it ends the command."""
        if self.engine is None:
            if self.master is not None:
                fail("--master is where Spark runs: it needs --engine spark")
            return None
        if self.engine != "spark":
            fail(f"there is no engine {self.engine!r}; there is spark")
        if self.ledger is not None or self.jobs is not None:
            fail(f"choose only one of --engine and {'--jobs' if self.ledger is None else '--ledger'}")
        from sessionlog.engine.spark import Spark
        from sessionlog.engine.spark_session import import_session

        import_session()  # a missing package is named before logs are looked for
        return Spark(master=self.master)


class ReportContext(NamedTuple):
    """What a report reads, and the time and zone that it uses.

    Attributes:
        settings: Environment and config file.
        paths: Logs and folders to read; None for all folders where agents write.
        zone: The time zone of days and hours.
        now: The present.
        home: The home folder, shortened to `~` in tables.
        env: The environment for sources: $SESSIONLOG_DIR is the folder of our own logs that the settings name.
        ledger: The ledger's file; None to scan all logs again, in memory.
        live: Leave out logs that have been deleted.
        jobs: How many processes scan; None to choose by the amount of work.
        engine: The cluster that scans; None for this machine.
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
    engine: Spark | None = None

    def view(self, width: int = 0, *, wide: bool = False) -> View:
        """Return the settings of a layout."""
        from sessionlog.render.report import View

        return View(width=width, tz=self.zone, now=self.now, wide=wide, home=self.home)


def read_settings() -> Settings:
    """Load the settings, and show money in their currency until the command ends.

    Raises:
        InvalidSettings: They cannot be used.
    """
    settings = load_settings()
    if settings.currency:
        from sessionlog.render.currency import parse_currency, show_money_in

        show_money_in(parse_currency(settings.currency, place=settings.config_path))
    return settings


def report_context(
    paths: Sequence[str] | None,
    *,
    tz: str | None = None,
    now: str | None = None,
    ledger: str | None = None,
    no_ledger: bool = False,
    live: bool = False,
    jobs: int | None = None,
    engine: Spark | None = None,
    any_file: bool = False,
    settings: Settings | None = None,
) -> ReportContext:
    """Return a report's context from its options; settings are loaded unless given.

    A path that does not exist or is no log ends the command with exit code 3; `any_file` allows files that are no log
    of a known agent.
    """
    if ledger is not None and (no_ledger or paths):
        fail(f"choose only one of --ledger and {'--no-ledger' if no_ledger else 'PATH, which is scanned by itself'}")
    settings = settings or read_settings()
    for path in paths or ():
        if files.stat_path(path) is None:
            fail(f"{path}: no such file or folder", UNREADABLE)
        if not files.is_directory(path):
            _check_log(path, any_file=any_file)
    is_scanned = bool(paths) and not any(map(files.is_url, paths or ()))
    return ReportContext(
        settings=settings,
        paths=tuple(paths) if paths else None,
        zone=tz or settings.timezone or "local",
        now=present(now),
        home=os.path.expanduser("~"),
        env={**os.environ, "SESSIONLOG_DIR": settings.session_dir},
        ledger=None if no_ledger or engine or is_scanned else ledger or settings.ledger_path,
        live=live,
        jobs=jobs,
        engine=engine,
    )


def _check_log(path: str, *, any_file: bool) -> None:
    from sessionlog.sources.discover import recognise
    from sessionlog.sources.native import holds_events

    log = recognise(path)
    if isinstance(log, Problem) and log.kind == "unreadable":
        fail(f"{path}: {log.detail}", UNREADABLE)
    if isinstance(log, Problem) and not any_file and not holds_events(path):
        fail(f"{path}: {log.detail}; `sessionlog sources` lists the known agents", UNREADABLE)


def present(text: str | None) -> datetime:
    """Return the time of `--now`, or the present if it is not given; an invalid time ends the command."""
    time_ns = parse_moment("--now", text)
    if time_ns is None:
        return datetime.now(UTC)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns // 1000)


def parse_moment(option: str, text: str | None) -> int | None:
    """Return the time of an option in nanoseconds, None if it is not given; an invalid time ends the command."""
    if text is None:
        return None
    from sessionlog.events.times import parse_time

    time_ns = parse_time(text)
    if time_ns is None:
        fail(f"{option} {text!r} is not an RFC 3339 time such as 2026-11-21T10:00:00Z")
    return time_ns


def event_selection(
    context: ReportContext, arguments: ReportArguments, sessions: Sequence[str] = (), *, progress: Progress | None
) -> EventSelection:
    """Return the selection of events of a report's logs."""
    from sessionlog.analytics.sql.event_logs import EventSelection
    from sessionlog.analytics.window_grammar import parse_usage_window

    since, until = arguments.since, arguments.until
    is_timed = since is not None or until is not None
    return EventSelection(
        paths=context.paths, env=context.env, ledger=context.ledger,
        sources=arguments.filters.get("source", ()), projects=arguments.filters.get("project", ()),
        window=parse_usage_window(since, until=until, now=context.now, tz=context.zone) if is_timed else None,
        sessions=sessions, prices=price_book(context.settings), jobs=context.jobs, progress=progress,
    )  # fmt: skip


def own_prices(settings: Settings, path: str | None) -> PriceBook | None:
    """Return the `price_book`, or None if the user has no prices of their own: a report loads list prices on demand."""
    return price_book(settings, path) if path is not None or settings.prices else None


def price_book(settings: Settings, path: str | None = None) -> PriceBook:
    """Return the list prices, overridden by config.toml, and that by `--prices FILE`.

    Raises:
        InvalidPrices: One of them cannot be used; the message names the file.
        LogNotReadable: The file cannot be read.
    """
    from sessionlog.pricing.book import PriceBook

    own = _checked(settings.config_path, settings.prices)
    configured = PriceBook.load(own)
    if path is None:
        return configured
    content = files.read_small(path)
    if content is None:
        raise InvalidPrices(f"{path}: no such file")
    given = _checked(path, parse_prices(path, content))
    overridden = {_normalised(key) for key in given}
    own = {key: price for key, price in own.items() if _normalised(key) not in overridden} | given
    return PriceBook.load(own, instead_of=configured)


def _checked(path: str, table: Mapping[str, Any]) -> dict[str, Any]:
    from sessionlog.pricing.own_prices import parse_own_prices

    try:
        parse_own_prices(table)
    except InvalidPrices as error:
        raise InvalidPrices(f"{path}: {error}") from error
    return dict(table)


def _normalised(key: str) -> str:
    """Return a model's name without regard to case."""
    return key.strip().lower()


def choose_one(**formats: bool) -> str:
    """Return the name of the chosen output format, `table` for none; two at once end the command."""
    chosen = [f"--{name}" for name, value in formats.items() if value]
    if len(chosen) > 1:
        fail(f"choose only one of {', '.join(chosen[:-1])} and {chosen[-1]}")
    return chosen[0].removeprefix("--") if chosen else "table"


def print_lines(render: Callable[..., Iterable[Line]]) -> None:
    """Print the lines that `render(width=…)` yields, wrapped and without trailing blanks."""
    from sessionlog.render.line import wrap_lines
    from sessionlog.render.stream import plain_width

    width = plain_width(sys.stdout)
    if width is not None:
        print_text("".join(f"{line.plain}\n" for line in wrap_lines(render(width=width), width)))
        return
    from sessionlog.render.console import make_console, print_line

    console = make_console()
    for line in wrap_lines(render(width=console.width), console.width):
        print_line(console, line)


def show_report(
    report: Report,
    arguments: ReportArguments,
    context: ReportContext,
    *,
    table: Callable[[Any, View], Iterable[Line]] | None = None,
    what: str = "sessions",
) -> None:
    """Print a report in the chosen format, and its notes on stderr.

    Notes are about damage and hidden rows (a table has these itself), the ledger, archived sessions, and, if the report
    is empty, where logs were looked for.

    Args:
        report: The report.
        arguments: The command's arguments.
        context: What the report read.
        table: Lays out a report that is more than one table.
        what: What an empty report has none of, for its note.

    Raises:
        Exit: With exit code 3 if a log is damaged and `--strict` is given.
    """
    print_report(report, arguments.form, context, table=table, wide=arguments.wide)
    if report.problem_count or report.hidden_rows or report.notes or report.archived_sessions:
        _note_gaps(report, in_table=arguments.form == "table")
    if report.is_empty:
        narrowed = report.window is not None or bool(arguments.filters)
        note(report.why_empty or nothing_found(context, narrowed=narrowed, unrecognised=report.unrecognised, what=what))
        for sentence in _nearest_values(arguments, context) if context.engine is None else ():
            note(sentence)
    if arguments.strict and report.problem_count:
        raise Exit(UNREADABLE)


def _note_gaps(report: Report, *, in_table: bool) -> None:
    """Print what a report could not read or leaves out; a table has damage and hidden rows itself."""
    from sessionlog.render.notes import archived_note, damage_note, limit_note

    if report.problem_count and not in_table:
        note(damage_note(report.problem_count, report.problems))
    if report.hidden_rows and not in_table:
        note(limit_note(report.hidden_rows, report.thing))
    for sentence in report.notes:
        note(sentence)
    if report.archived_sessions:
        note(archived_note(report.archived_sessions))


def print_report(
    report: Report,
    form: str,
    context: ReportContext,
    *,
    table: Callable[[Any, View], Iterable[Line]] | None = None,
    wide: bool = False,
) -> None:
    """Print a report in one format; `table` lays out one that is more than one table."""
    if form == "json":
        print_json(report.lazy_dict())  # rows are made one by one, as there may be many
        return
    from sessionlog.render.report import render_csv, render_markdown, render_table

    match form:
        case "csv":
            print_text(render_csv(report))
        case "markdown":
            print_text(render_markdown(report, context.view()))
        case _:
            print_lines(lambda width: (table or render_table)(report, context.view(width, wide=wide)))


def note_archived(entry: Entry) -> None:
    """Note that a session was read from the archive."""
    note(f"{entry.path} is gone: this is from the archive, of {entry.archived[:10]}")


def _nearest_values(arguments: ReportArguments, context: ReportContext) -> Iterator[str]:
    """Yield suggestions for filters without a wildcard that match no value in the logs."""
    for key in ("provider", "model", "project", "status"):
        plain = [pattern for pattern in arguments.filters.get(key, ()) if not any(sign in pattern for sign in "*?[")]
        if not plain:
            continue
        from difflib import get_close_matches

        from sessionlog.analytics.usage import aggregate_usage

        usage = aggregate_usage(context.paths, by=[key], env=context.env, ledger=context.ledger, now=context.now)
        values = {row.keys[key].lower(): row.keys[key] for row in usage.rows}
        for pattern in (one for one in plain if one.lower() not in values):
            if containing := [values[value] for value in values if pattern.lower() in value]:
                names = ", ".join(containing[:3])
                yield f"no {key} is {pattern!r}; there is {names}: --{key} '*{pattern}*' matches all of them"
            elif near := [values[value] for value in get_close_matches(pattern.lower(), values)]:
                yield f"no {key} is {pattern!r}; there is {', '.join(near)}"


def _has_place(paths: Iterable[str]) -> bool:
    """Whether one of the paths has what machines have exported."""
    from sessionlog.engine import is_place

    return any(map(is_place, paths))


def nothing_found(context: ReportContext, *, narrowed: bool, unrecognised: int = 0, what: str = "sessions") -> str:
    """Return the note of an empty report: where logs were looked for, and what to try.

    Args:
        context: What the report read.
        narrowed: A time or a filter may have left everything out.
        unrecognised: How many files are no known log.
        what: What the report has none of.
    """
    places = "the logs found" if context.paths is None else ", ".join(context.paths)
    if context.paths is not None and _has_place(context.paths):
        fits = " that fits the time and the filters" if narrowed else ""
        return f"no {what} in {places}{fits}; `sessionlog export DEST --parquet` on each machine adds its own"
    there = _knows_logs(context) or _finds_logs(context)
    if narrowed and there:
        return f"no session in {places} fits the time and the filters; try `--since 1mo`, or without them"
    if there and what != "sessions":
        path = "" if context.paths is None else " PATH"
        return f"no {what} in {places}; `sessionlog sessions{path}` lists what is there"
    if context.paths is not None:
        odd = f" ({counted(unrecognised, 'file')} of no known agent)" if unrecognised else ""
        return f"no sessions in {places}{odd}; `sessionlog check PATH` shows what is there"
    return (
        f"no sessions in {context.settings.session_dir} yet, and no other agent's logs (`sessionlog sources` shows "
        "where they would be). Try `sessionlog demo`, name a folder of logs (PATH), or set SESSIONLOG_DIR"
    )


def _knows_logs(context: ReportContext) -> bool:
    """Whether the ledger, as the report has left it, has any log that exists: then no search is needed."""
    if context.ledger is None or context.paths is not None:
        return False
    from sessionlog.ledger.opening import open_ledger

    try:
        with open_ledger(context.ledger, write=False) as book:
            return bool(book.query("SELECT 1 FROM files WHERE NOT missing LIMIT 1", {}))
    except Exception:  # noqa: BLE001 - a damaged ledger may raise anything
        return False


def _finds_logs(context: ReportContext) -> bool:
    """Whether there is any log where the report looked for logs."""
    from sessionlog.sources.discover import discover, find_logs
    from sessionlog.sources.protocol import Log
    from sessionlog.sources.registry import all_sources

    listed = (
        find_logs(context.paths, context.env) if context.paths is not None else discover(context.env, all_sources())
    )
    return any(isinstance(item, Log) for item in listed)


def scan_progress(what: str = "reading logs") -> ScanProgress:
    """Show a bar on stderr, if that is a terminal, when a scan takes longer than half a second, until all is done.

    The function to call takes how much is done and the total, None where that is unknown.
    """
    return ScanProgress(what)


class ScanProgress:
    """A context manager that yields the function to call with (done, total); None where stderr is no terminal."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._due = time.monotonic() + 0.5
        self._bar: ScanBar | None = None

    def __enter__(self) -> Callable[[int, int | None], None] | None:
        return self._advance if sys.stderr.isatty() else None

    def _advance(self, done: int, total: int | None) -> None:
        if total is not None and done >= total:
            self.__exit__()
            return
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + 0.05  # of very many small logs each update would take as long as the log
        if self._bar is None:
            from sessionlog.render.progress import ScanBar

            self._bar = ScanBar(total, self._what)
        self._bar.advance(done)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
