"""`sessionlog watch`: running sessions, their pace and what is left, on a screen that keeps up, or once."""

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
_SHARE = 20
"""A look is followed by a rest of so many times what it took, so that a watch never takes more than 5 % of a core."""

_LONGEST_REST = 30.0
_GLANCE_S = 0.5
"""A signal that comes just before a sleep does not end it: so long is the longest that one waits to be heard."""

_PIPED = 100
"""Columns of a picture that goes to a pipe or a file."""


def watch(
    *,
    interval: float,
    once: bool,
    source: list[str] | None,
    project: list[str] | None,
    as_json: bool,
    tz: str | None,
    now: str | None,
    ledger: str | None,
    no_ledger: bool,
) -> None:
    """Watch running sessions live: tokens and cost per minute, context fill, budgets, and the last events.

    The pace is what was used in the last five minutes (four and a half to five: whole half minutes, and the one that
    goes on) by that time, of every session; the first line is of all that are running. Ctrl-C ends it.

    Example: sessionlog watch --source claude-code
    """
    if not LEAST_SECONDS <= interval <= MOST_SECONDS:
        fail(f"--interval {interval:g} is not a time of {LEAST_SECONDS:g} to {MOST_SECONDS:,} seconds")
    if not once:
        _check_live(as_json=as_json, now=now)
    where = r.reporting(None, tz=tz, now=now, ledger=ledger, no_ledger=no_ledger)
    config = _Config(where.settings)
    filters = {"source": r.split_list(source), "project": project or []}
    check_source_names(filters)
    with Watcher(
        ledger=where.ledger, prices=r.price_book(where.settings), env=where.env, zone=resolve_zone(where.zone),
        filters=filters,
    ) as watcher:  # fmt: skip
        rules, flaws = parse_each_budget(where.settings.budgets, path=where.settings.config_path)
        watcher.set_budgets(rules, list(flaws.values()))
        with r.scan_progress() as progress:
            present = None if now is None else int(where.now.timestamp() * 1_000_000_000)
            seen = watcher.look(present, scanner=scanner(), progress=progress)
        if not once:
            _watch(watcher, seen, where, interval, config)
        elif as_json:
            print_json(seen.to_dict())
        else:
            r.print_lines(partial(_picture, seen, where))


def _picture(seen: WatchSnapshot, where: r.Reporting, *, width: int) -> Iterator[Line]:
    """One picture; where there is no edge it is no wider than other reports usually are."""
    has_edge = plain_width(sys.stdout) is None or "COLUMNS" in os.environ
    yield from render_watch(seen, width=width if has_edge else _PIPED, tz=where.zone, home=where.home)


def _check_live(*, as_json: bool, now: str | None) -> None:
    if as_json or now is not None:
        fail(f"{'--json' if as_json else '--now'} needs --once: a live screen shows the present, and only that")
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        fail("a live screen needs a terminal; `sessionlog watch --once` prints one picture")


def _watch(watcher: Watcher, seen: WatchSnapshot, where: r.Reporting, interval: float, config: _Config) -> None:
    from sessionlog.render.watch_screen import open_screen  # noqa: PLC0415 - rich costs 60 ms, which --once saves

    with ExitStack() as stack:
        stack.enter_context(_ending_tidily())
        screen = stack.enter_context(open_screen(tz=where.zone, home=where.home))
        rest = stack.enter_context(_rest(screen.repaint))
        screen.show(seen)
        took = 0.0
        while True:
            rest(max(interval, min(_LONGEST_REST, took * _SHARE)))
            begun = time.process_time()
            config.follow(watcher)
            screen.show(watcher.look())
            took = time.process_time() - begun


class _Config:
    """config.toml while it is watched: budgets are those that it says now, or those of before while it is broken."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.config_path
        self._rules, _ = parse_each_budget(settings.budgets)
        self._known = self._look()

    def follow(self, watcher: Watcher) -> None:
        """Tell the watcher what has changed; what cannot be used is said, and nothing ends for it."""
        found = self._look()
        if found == self._known:
            return
        self._known = found
        try:
            self._rules, flaws = parse_each_budget(load_settings().budgets, path=self._path)
        except SessionLogError as error:
            watcher.set_budgets(self._rules, [f"the budgets are those of before: {error}"])
        else:
            watcher.set_budgets(self._rules, list(flaws.values()))

    def _look(self) -> tuple[int, int, int] | None:
        status = files.stat_path(self._path)
        return None if status is None else (status.st_ino, status.st_size, status.st_mtime_ns)


class _Resized(Exception):
    """The terminal has another size."""


@contextmanager
def _rest(repaint: Callable[[], None]) -> Iterator[Callable[[float], None]]:
    """A sleep that a resize of the terminal interrupts for a new painting."""
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
                time.sleep(min(_GLANCE_S, max(0.0, until - time.monotonic())))
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
def _ending_tidily() -> Iterator[None]:
    """Give the terminal back when the process is told to end."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
