"""Show a watch on the whole terminal, laid out again whenever the terminal changes its size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment

from sessionlog.analytics.watch.snapshot import WatchSnapshot
from sessionlog.render.console import make_console
from sessionlog.render.segments import segments
from sessionlog.render.watch import render_watch


class Picture:
    """Renders a watch for rich at the current size of the terminal."""

    def __init__(self, snapshot: WatchSnapshot, *, tz: str, home: str) -> None:
        self.snapshot = snapshot
        self._tz, self._home = tz, home

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the segments of the lines."""
        height = options.height or console.size.height
        for number, line in enumerate(
            render_watch(self.snapshot, width=options.max_width, height=height, tz=self._tz, home=self._home)
        ):
            if number:
                yield Segment.line()
            yield from segments(line.parts)


class WatchScreen:
    """The terminal's alternate screen, which shows one picture after the other."""

    def __init__(self, live: Live, *, tz: str, home: str) -> None:
        self._live, self._tz, self._home = live, tz, home

    def show(self, snapshot: WatchSnapshot) -> None:
        """Paint a new picture."""
        self._live.update(Picture(snapshot, tz=self._tz, home=self._home), refresh=True)

    def repaint(self) -> None:
        """Paint the last picture again, for a terminal that changed its size."""
        self._live.refresh()


@contextmanager
def open_screen(*, tz: str, home: str, console: Console | None = None) -> Iterator[WatchScreen]:
    """Enter the terminal's alternate screen, and leave it at the end."""
    console = console or make_console()
    with Live(
        "", console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    ) as live:
        yield WatchScreen(live, tz=tz, home=home)
