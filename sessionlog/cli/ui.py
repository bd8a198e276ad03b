"""`sessionlog ui`: the terminal application, and the reports that it asks for.

It opens with sessions; what other views need is imported when they are shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sessionlog import files
from sessionlog.analytics.sessions import list_known_sessions, list_sessions
from sessionlog.analytics.zones import resolve_zone
from sessionlog.cli import reporting as r
from sessionlog.cli.output import fail
from sessionlog.errors import MissingExtra
from sessionlog.render.report import View

if TYPE_CHECKING:
    from sessionlog.analytics.budgets.report import BudgetReport
    from sessionlog.analytics.sessions import SessionList, SessionSummary
    from sessionlog.analytics.usage_row import UsageReport
    from sessionlog.analytics.watch.watching import Watcher
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.render.html.session import SessionPage
    from sessionlog.render.replay.blocks import Block
    from sessionlog.render.replay.lines import Line


def ui(*, tz: str | None, ledger: str | None, no_ledger: bool) -> None:
    """Browse sessions, conversations, usage, running sessions and budgets on the whole terminal; ? shows the keys.

    Example: sessionlog ui
    """
    if find_spec("textual") is None:
        raise MissingExtra("the terminal application needs textual: pip install 'sessionlog[tui]'")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)) or os.environ.get("TERM") == "dumb":
        fail("ui needs a terminal; `sessionlog sessions` and `sessionlog usage` print the same")
    from sessionlog.ui.app import SessionlogApp

    SessionlogApp(LedgerQueries(r.report_context(None, tz=tz, ledger=ledger, no_ledger=no_ledger))).run()


class LedgerQueries:
    """Makes what the application shows, from the ledger and the logs; `Queries` documents the methods.

    Logs are scanned in this process: worker processes cannot be forked from one that has threads.
    """

    def __init__(self, context: r.ReportContext) -> None:
        self._context = context
        self._pages: dict[tuple[str, str], str] = {}

    def view(self, width: int) -> View:
        """Return the settings of tables, with the present time."""
        context = self._context
        return View(width=width, tz=context.zone, now=datetime.now(UTC), home=context.home, more="a wider terminal")

    def sessions(self, filters: Mapping[str, Sequence[str]], window: str | None, progress: Progress) -> SessionList:
        """List sessions."""
        context = self._context
        return list_sessions(
            window=window, filters=filters, tz=context.zone, prices=self._own, env=context.env, ledger=context.ledger,
            jobs=1, progress=progress,
        )  # fmt: skip

    def known_sessions(
        self, filters: Mapping[str, Sequence[str]], window: str | None, use: Callable[[SessionList], None]
    ) -> bool:
        """List the sessions of the ledger as it is, before any log is looked at."""
        context = self._context
        return context.ledger is not None and list_known_sessions(
            context.ledger, context.env, use, window=window, filters=filters, tz=context.zone
        )

    def usage(
        self, by: str, filters: Mapping[str, Sequence[str]], window: str | None, progress: Progress
    ) -> UsageReport:
        """Report usage by one key."""
        from sessionlog.analytics.usage import aggregate_usage

        context = self._context
        return aggregate_usage(
            by=[by], window=window, filters=filters, tz=context.zone, prices=self._own, env=context.env,
            ledger=context.ledger, jobs=1, progress=progress,
        )  # fmt: skip

    def budgets(self) -> BudgetReport:
        """Report the budgets."""
        from sessionlog.analytics.budgets.report import BudgetReport, report_budgets
        from sessionlog.analytics.budgets.rules import parse_each_budget

        context = self._context
        rules, _ = parse_each_budget(context.settings.budgets, path=context.settings.config_path)
        if not rules or context.ledger is None:
            return BudgetReport()
        return report_budgets(
            context.ledger, rules, self._prices, env=context.env, zone=context.zone, now=datetime.now(UTC)
        )

    def watcher(self) -> Watcher:
        """Return a watcher with the budgets."""
        from sessionlog.analytics.budgets.rules import parse_each_budget
        from sessionlog.analytics.watch.watching import Watcher

        context = self._context
        rules, errors = parse_each_budget(context.settings.budgets, path=context.settings.config_path)
        watcher = Watcher(
            ledger=context.ledger, prices=self._prices, env=context.env, zone=resolve_zone(context.zone), rules=rules
        )
        watcher.set_budgets(rules, list(errors.values()))
        return watcher

    @contextmanager
    def conversation(self, session: SessionSummary, width: int) -> Iterator[Iterator[Sequence[Line]]]:
        """Open a session, and yield the lines of its replay block by block."""
        from sessionlog.render.replay import lay_out
        from sessionlog.render.replay.lines import View as ReplayView

        context = self._context
        with self._blocks(session) as (blocks, _):
            yield lay_out(
                blocks,
                ReplayView(
                    width=width, exact=False, zone=resolve_zone(context.zone), home=context.home,
                    markdown=not os.environ.get("NO_COLOR"),
                ),
            )  # fmt: skip

    def page(self, session: SessionSummary) -> str:
        """Write a session as one HTML page into a private temporary folder; return the file."""
        from sessionlog.cli.pages import file_name, free_name, page_view
        from sessionlog.render.html.session import render_session

        view = page_view(resolve_zone(self._context.zone), datetime.now(UTC))
        with self._blocks(session) as (blocks, about):
            key = session.source, about.session
            if key not in self._pages:
                self._pages[key] = free_name(file_name(about.session), session.source, self._pages.values())
            path = os.path.join(self._page_folder, self._pages[key])
            files.replace_file(
                path, (piece.encode("utf-8", "backslashreplace") for piece in render_session(blocks, view, about))
            )
        return path

    def version(self, session: SessionSummary) -> tuple[int, ...] | None:
        """Return a value that changes when a session's log is written to."""
        states = [files.stat_path(path) for path in (session.path, f"{session.path}-wal")]
        if states[0] is None:
            return None
        return tuple(number for state in states if state is not None for number in (state.st_size, state.st_mtime_ns))

    @contextmanager
    def _blocks(self, session: SessionSummary) -> Iterator[tuple[Iterator[Block], SessionPage]]:
        """Open a session, and yield the blocks of its replay and its facts."""
        from sessionlog.analytics.session_totals import session_totals
        from sessionlog.archive.find import open_session
        from sessionlog.render.html.session import SessionPage
        from sessionlog.render.replay import fold_replay
        from sessionlog.sources.find import name_of_session
        from sessionlog.transcript.fold import OWN
        from sessionlog.transcript.inherited import read_session

        context = self._context
        target = session.session if session.archived else session.path
        with open_session(target, context.settings.session_dir, context.env) as (log, _, _):
            names = list(log.source.name_sessions(log.path))
            name = session.session if session.session in names else name_of_session(log)
            totals = partial(
                session_totals, log, name, env=context.env, ledger=context.ledger, prices=self._own, path=session.path
            )
            blocks = fold_replay(
                read_session(log, name if len(names) > 1 else None), own=log.source.id in OWN, session_id=name,
                price=self._prices.price, totals=totals,
            )  # fmt: skip
            yield blocks, SessionPage(session=name, agent=log.source.title)

    @cached_property
    def _page_folder(self) -> str:
        return files.temporary_directory("sessionlog-page-")

    @cached_property
    def _own(self) -> PriceBook | None:
        return r.own_prices(self._context.settings, None)

    @cached_property
    def _prices(self) -> PriceBook:
        return r.price_book(self._context.settings)
