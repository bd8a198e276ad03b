"""The progress bar of a long scan: on stderr, removed when the scan is done."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sessionlog.render.console import make_console


class ScanBar:
    """A progress bar that counts scanned files, or what else is done; without a total it counts and pulses."""

    def __init__(self, total: int | None, what: str) -> None:
        counts = (TextColumn("{task.completed:,}"), TimeElapsedColumn())
        columns = (MofNCompleteColumn(), TimeRemainingColumn()) if total is not None else counts
        columns = (TextColumn(what), BarColumn(), *columns)
        self._progress = Progress(*columns, console=make_console(stderr=True), transient=True)
        self._task = self._progress.add_task("", total=total)
        self._progress.start()

    def advance(self, done: int) -> None:
        """Show the number that is done."""
        self._progress.update(self._task, completed=done)

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()
