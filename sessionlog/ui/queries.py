"""What the screens ask for; the command line provides it, and tests do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sessionlog.analytics.budgets.report import BudgetReport
    from sessionlog.analytics.sessions import SessionList, SessionSummary
    from sessionlog.analytics.usage_row import UsageReport
    from sessionlog.analytics.watch.watching import Watcher
    from sessionlog.ledger.sync import Progress
    from sessionlog.render.replay.lines import Line
    from sessionlog.render.report import View


class Queries(Protocol):
    """Makes the values of the screens. Each method is called in a thread of its own and may take seconds.

    All raise SessionLogError or OSError for what cannot be read; the message is shown.
    """

    def view(self, width: int) -> View:
        """Return the settings of tables, with the present time."""

    def sessions(self, filters: Mapping[str, Sequence[str]], window: str | None, progress: Progress) -> SessionList:
        """Return the sessions, newest first."""

    def known_sessions(
        self, filters: Mapping[str, Sequence[str]], window: str | None, use: Callable[[SessionList], None]
    ) -> bool:
        """Pass the sessions that are known before a look at the logs to `use`; return whether they are all there is."""

    def usage(
        self, by: str, filters: Mapping[str, Sequence[str]], window: str | None, progress: Progress
    ) -> UsageReport:
        """Return the usage by one group key."""

    def budgets(self) -> BudgetReport:
        """Return the state of the budgets."""

    def watcher(self) -> Watcher:
        """Return a watcher, which the calling thread uses and closes."""

    def conversation(self, session: SessionSummary, width: int) -> AbstractContextManager[Iterator[Sequence[Line]]]:
        """Open a session's log and yield the lines of each block of its replay."""

    def page(self, session: SessionSummary) -> str:
        """Write a session as one HTML page and return the file."""

    def version(self, session: SessionSummary) -> tuple[int, ...] | None:
        """Return a value that changes when a session's log is written to; None if the log is gone."""
