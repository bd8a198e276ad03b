"""`sessionlog watch`: running sessions, their pace and what is left, on a live screen or once."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, NoReturn

from sessionlog import files
from sessionlog.analytics.budgets.rules import parse_each_budget
from sessionlog.analytics.question import check_source_names
from sessionlog.analytics.watch.snapshot import WatchSnapshot
from sessionlog.analytics.watch.watching import Watcher
from sessionlog.analytics.zones import resolve_zone
from sessionlog.cli import reporting as r
from sessionlog.cli.output import fail, print_json
from sessionlog.engine.scanner import scanner
from sessionlog.errors import SessionLogError
from sessionlog.render.line import Line
from sessionlog.render.stream import plain_width
from sessionlog.render.watch import render_watch
from sessionlog.settings import Settings, load_settings

LEAST_SECONDS, MOST_SECONDS = 0.2, 86_400
_REST_FACTOR = 20
"""The pause after an update, in multiples of the update's CPU time: a watch takes at most 5 % of a core."""

_MAX_REST_SECONDS = 30.0
"""Longest pause for that reason."""

_MAX_SLEEP_SECONDS = 0.5
"""Longest single sleep: a signal that arrives just before a sleep takes effect after it."""

_PIPED_COLUMNS = 100
"""Width of a snapshot that goes to a pipe or a file."""


def watch(*, interval: float, once: bool, **settings: Any) -> None:
    """Watch running sessions live: tokens and cost per minute, context fill, budgets, and the last events.

    The pace of a session is its use in the last five minutes divided by that time (four and a half to five minutes:
    whole half minutes and the present one); the first line is the sum of all running sessions. Ctrl-C ends it.

    Example: sessionlog watch --source claude-code
    """
    if not LEAST_SECONDS <= interval <= MOST_SECONDS:
        fail(f"--interval {interval:g} is not a time of {LEAST_SECONDS:g} to {MOST_SECONDS:,} seconds")
    arguments = r.ReportArguments(settings)
    if not once:
        _check_live(as_json=arguments.as_json, now=arguments.now)
    context = arguments.context()
    config = _Config(context.settings)
    check_source_names(arguments.filters)
    with Watcher(
        ledger=context.ledger, prices=r.price_book(context.settings), env=context.env, zone=resolve_zone(context.zone),
        filters=arguments.filters,
    ) as watcher:  # fmt: skip
        rules, config_errors = parse_each_budget(context.settings.budgets, path=context.settings.config_path)
        watcher.set_budgets(rules, list(config_errors.values()))
        with r.scan_progress() as progress:
            present = None if arguments.now is None else int(context.now.timestamp() * 1_000_000_000)
            seen = watcher.snapshot(present, scanner=scanner(), progress=progress)
        if not once:
            _watch(watcher, seen, context, interval, config)
        elif arguments.as_json:
            print_json(seen.to_dict())
        else:
            r.print_lines(partial(_snapshot_lines, seen, context))


def _snapshot_lines(seen: WatchSnapshot, context: r.ReportContext, *, width: int) -> Iterator[Line]:
    """Yield the lines of one snapshot; `width` is replaced if the output has no width of its own."""
    has_width = plain_width(sys.stdout) is None or "COLUMNS" in os.environ
    yield from render_watch(seen, width=width if has_width else _PIPED_COLUMNS, tz=context.zone, home=context.home)


def _check_live(*, as_json: bool, now: str | None) -> None:
    if as_json or now is not None:
        fail(f"{'--json' if as_json else '--now'} needs --once: a live screen shows the present only")
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        fail("a live screen needs a terminal; `sessionlog watch --once` prints one snapshot")


def _watch(watcher: Watcher, seen: WatchSnapshot, context: r.ReportContext, interval: float, config: _Config) -> None:
    from sessionlog.render.watch_screen import open_screen

    with ExitStack() as stack:
        stack.enter_context(_exit_on_sigterm())
        screen = stack.enter_context(open_screen(tz=context.zone, home=context.home))
        rest = stack.enter_context(_rest(screen.repaint))
        screen.show(seen)
        took = 0.0
        while True:
            rest(max(interval, min(_MAX_REST_SECONDS, took * _REST_FACTOR)))
            begun = time.process_time()
            config.reload(watcher)
            screen.show(watcher.snapshot())
            took = time.process_time() - begun


class _Config:
    """The budgets of config.toml, reloaded when the file changes; while it is invalid, the last valid ones."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.config_path
        self._rules, _ = parse_each_budget(settings.budgets)
        self._known = self._file_state()

    def reload(self, watcher: Watcher) -> None:
        """Pass changed budgets to the watcher; errors in the file become its notes."""
        found = self._file_state()
        if found == self._known:
            return
        self._known = found
        try:
            self._rules, config_errors = parse_each_budget(load_settings().budgets, path=self._path)
        except SessionLogError as error:
            watcher.set_budgets(self._rules, [f"the last valid budgets are shown: {error}"])
        else:
            watcher.set_budgets(self._rules, list(config_errors.values()))

    def _file_state(self) -> tuple[int, int, int] | None:
        status = files.stat_path(self._path)
        return None if status is None else (status.st_ino, status.st_size, status.st_mtime_ns)


class _Resized(Exception):
    """Ends a sleep when the terminal was resized."""


@contextmanager
def _rest(repaint: Callable[[], None]) -> Iterator[Callable[[float], None]]:
    """Yield a sleep function; a resize of the terminal interrupts it to call `repaint`."""
    resting = resized = False

    def wake(*_: Any) -> None:
        nonlocal resized
        resized = True
        if resting:
            raise _Resized

    def rest(seconds: float) -> None:
        nonlocal resting, resized
        until = time.monotonic() + seconds
        while resized or time.monotonic() < until:
            if resized:
                resized = False
                repaint()
            with suppress(_Resized):
                resting = True
                time.sleep(min(_MAX_SLEEP_SECONDS, max(0.0, until - time.monotonic())))
                resting = False
            resting = False

    number = getattr(signal, "SIGWINCH", None)
    before = None if number is None else signal.signal(number, wake)
    try:
        yield rest
    finally:
        if number is not None:
            signal.signal(number, before)


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Raise SystemExit on SIGTERM, so that the screen restores the terminal."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
