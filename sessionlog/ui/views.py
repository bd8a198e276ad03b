"""The views: each asks for its value in a thread, and shows it as the lines that the command of that name prints."""

from __future__ import annotations

import shlex
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar, cast

from textual.binding import Binding, BindingType
from textual.timer import Timer

from sessionlog.analytics.columns import counted
from sessionlog.analytics.sessions import SessionList, SessionSummary
from sessionlog.render.line import Line, wrap_lines
from sessionlog.render.report import FIRST_ROW, View, render_table
from sessionlog.render.sessions import session_lines
from sessionlog.ui.browser import open_in_browser
from sessionlog.ui.line_store import LineStore, Parts
from sessionlog.ui.line_view import LineView
from sessionlog.ui.resume import resume_command

if TYPE_CHECKING:
    from sessionlog.analytics.budgets.report import BudgetReport
    from sessionlog.analytics.usage_row import UsageReport
    from sessionlog.analytics.watch.snapshot import WatchSnapshot
    from sessionlog.ledger.sync import Progress
    from sessionlog.ui.queries import Queries

_T = TypeVar("_T")
_RESIZE_SECONDS = 0.15  # a terminal that is dragged changes its size many times
_SEARCH_SECONDS = 0.08
_GROW_SECONDS = 0.1
_WATCH_SECONDS = 2.0
_LOOK_SECONDS = 1.0
"""Pause until a log that is replayed is looked at again."""

_REST_FACTOR = 4
"""The least pause between two layouts, in multiples of the time that one takes."""

_ROWS = 300
"""Usage rows that are laid out."""

_SESSIONS = 3_000
"""Sessions that are laid out at most, as one scrolls to them; the search is over all."""

PERIODS = ("today", "this-week", "7d", "this-month", "30d", "12mo", None)
"""The periods of the arrow keys, from the shortest; None is all time."""

_BY = {"d": "day", "m": "model", "p": "project", "a": "source"}
_WITHIN = {"day": "model", "model": "project", "project": "model", "source": "model"}


def parts_of(lines: Sequence[Line]) -> list[Parts]:
    """Return the pieces of report lines."""
    return [line.parts for line in lines]


def literal(value: str) -> str:
    """Return the pattern of a filter that matches this value alone."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in value)


class Main(Protocol):
    """What a view needs of the application; `app` documents it."""

    ERRORS: ClassVar[tuple[type[Exception], ...]]
    queries: Queries

    def ask(  # noqa: D102
        self,
        name: str,
        make: Callable[[Progress], _T],
        show: Callable[[_T], None],
        *,
        task: str = "",
        at_once: Callable[[Callable[[_T], None]], bool] | None = None,
    ) -> None: ...
    def post(self, apply: Callable[[], None]) -> None: ...  # noqa: D102
    def status(self, text: str, view: AppView, *, failed: bool = False) -> None: ...  # noqa: D102
    def copy(self, text: str, words: str) -> None: ...  # noqa: D102
    def scope(self, filters: Mapping[str, Sequence[str]], window: str | None) -> str: ...  # noqa: D102
    def show_sessions(self, filters: Mapping[str, Sequence[str]], window: str | None) -> None: ...  # noqa: D102
    def open_search(self) -> None: ...  # noqa: D102


class AppView(LineView):
    """A view of the application.

    Attributes:
        title: Its name in the first line.
        keys: Its own keys for the last line, each with what it does.
    """

    title: ClassVar[str]
    keys: ClassVar[Sequence[tuple[str, str]]]

    _resizing: Timer | None = None
    _has_size = False

    @property
    def main(self) -> Main:
        """The application."""
        return cast("Main", self.app)

    @property
    def queries(self) -> Queries:
        """What makes the values."""
        return self.main.queries

    def table_view(self) -> View:
        """Return the settings of tables at the present size."""
        return self.queries.view(max(20, self.size.width - 1))

    def on_resize(self) -> None:
        """Lay out at the first size, and again when the size has stopped changing."""
        if not self._has_size:
            self._has_size = True
            self.lay_out()
            return
        if self._resizing is not None:
            self._resizing.stop()
        self._resizing = self.set_timer(_RESIZE_SECONDS, self.lay_out)

    def load(self) -> None:
        """Ask for the value again."""

    def lay_out(self) -> None:
        """Show the value at the present size."""

    def leave(self) -> None:
        """Stop what only a visible view needs."""


class SessionKeys(AppView):
    """A view of sessions, with the keys for the chosen one."""

    keys: ClassVar[Sequence[tuple[str, str]]] = (("y", "copy id"), ("r", "resume command"), ("o", "open as HTML"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy_id", show=False),
        Binding("r", "resume", show=False),
        Binding("o", "open_page", show=False),
    ]

    @property
    def session(self) -> SessionSummary | None:
        """The chosen session."""
        raise NotImplementedError

    def action_copy_id(self) -> None:
        """Copy the session's id."""
        if self.session is not None:
            self.main.copy(self.session.session, "copied")

    def action_resume(self) -> None:
        """Show and copy the command that resumes the session."""
        if self.session is None:
            return
        command = resume_command(self.session)
        if command is None:
            self.main.status(f"no command is known that resumes this session of {self.session.source}", self)
        else:
            self.main.copy(command, "copied: run it in a shell")

    def action_open_page(self) -> None:
        """Write the session as a page and open it in the browser; without one, show and copy the file's path."""
        session = self.session
        if session is None:
            return

        def make(_: Progress) -> tuple[str, bool]:
            path = self.queries.page(session)
            return path, open_in_browser(path)

        def show(made: tuple[str, bool]) -> None:
            path, is_open = made
            if is_open:
                self.main.status(f"opened in the browser: {path}", self)
            else:
                command = shlex.join(["sessionlog", "replay", session.session, "--html", "."])
                self.main.copy(path, f"copied: open it in a browser, or run `{command}` where you have one")

        self.main.ask(str(self.id), make, show, task="page")


class SessionsView(SessionKeys):
    """The sessions, newest first."""

    title = "Sessions"
    keys = (("enter", "replay"), ("/", "search"), *SessionKeys.keys, ("f5", "read again"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", show=False),
        Binding("f5", "load", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="sessions")
        self._found: SessionList | None = None
        self._shown: list[SessionSummary] = []
        self._limit = 0  # sessions that are laid out at most
        self._matches = 0  # sessions that have the words
        self._words = ""
        self._searching: Timer | None = None
        self.filters: Mapping[str, Sequence[str]] = {}
        self.window: str | None = None

    @property
    def session(self) -> SessionSummary | None:
        """The session under the cursor."""
        return self._shown[self.cursor] if self._shown else None

    def load(self) -> None:
        """Show the sessions that are known, look at the logs, and show them again if there is news."""
        filters, window = self.filters, self.window
        self.main.ask(
            "sessions", lambda progress: self.queries.sessions(filters, window, progress), self._show,
            at_once=lambda use: self.queries.known_sessions(filters, window, use),
        )  # fmt: skip

    action_load = load

    def _show(self, found: SessionList) -> None:
        self._found = found
        self.lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Lay out more sessions before the last ones come into view."""
        super().watch_scroll_y(old_value, new_value)
        if new_value + 2 * self.size.height > self._count and self._has_more():
            self._limit = min(2 * self._limit, _SESSIONS)
            self.call_later(self.lay_out)

    def action_edge(self, last: int) -> None:
        """Move to the first or the last of all that can be laid out."""
        if last and self._has_more():
            self._limit = _SESSIONS
            self.lay_out()
        super().action_edge(last)

    def _has_more(self) -> bool:
        return len(self._shown) < self._matches and self._limit < _SESSIONS

    def search(self, words: str) -> None:
        """Show the sessions that have all of these words in their prompt, project, models, agent or id."""
        self._words = words.lower()
        if self._searching is not None:
            self._searching.stop()
        self._searching = self.set_timer(_SEARCH_SECONDS, self.lay_out)

    def lay_out(self) -> None:
        """Show the sessions that match, and keep the cursor on its session."""
        found, before = self._found, self.session
        if found is None or not self._has_size:
            return
        words = self._words.split()
        rows = [one for one in found.rows if all(word in _haystack(one) for word in words)] if words else found.rows
        self._limit, self._matches = max(self._limit, 2 * self.size.height), len(rows)
        matching = replace(found, rows=tuple(rows), ids=tuple(one.session for one in rows))
        listed = replace(matching.limited(self._limit), hidden_rows=0)
        view = self.table_view()
        laid_out = [
            (line, session) for whole, session in session_lines(listed, view)
            for line in ((whole,) if session is not None else whole.wrapped(view.width) or (whole,))
        ]  # fmt: skip
        self._shown = [session for _, session in laid_out if session is not None]
        places = [number for number, (_, session) in enumerate(laid_out) if session is not None]
        same = [n for n, one in enumerate(self._shown) if before and _key(one) == _key(before)]
        self.show_lines(parts_of([line for line, _ in laid_out]), selectable=places, cursor=same[0] if same else 0)
        more = f" · the newest {_SESSIONS:,} are listed, / searches all" if len(rows) > _SESSIONS else ""
        of = f" of {len(found.rows):,}" if words or len(rows) != len(found.rows) else ""
        scope = self.main.scope(self.filters, self.window)
        self.main.status(f"{len(rows):,}{of} sessions{more}{f' · {scope} (esc: all)' if scope else ''}", self)

    def action_search(self) -> None:
        """Go to the search field."""
        self.main.open_search()


def _haystack(one: SessionSummary) -> str:
    return f"{one.prompt}\n{one.project}\n{' '.join(one.models)}\n{one.source}\n{one.session}\n{one.status}".lower()


def _key(one: SessionSummary) -> tuple[str, str, str]:
    return one.source, one.session, one.path


class ReplayView(SessionKeys):
    """A session as a conversation, laid out in a thread; only the lines on the screen are unpacked."""

    title = "Replay"
    keys = (("esc", "back"), ("↑↓ space", "scroll"), ("g/G", "first/last"), *SessionKeys.keys)

    def __init__(self) -> None:
        super().__init__(id="replay")
        self._session: SessionSummary | None = None
        self._store = LineStore()
        self._layout: _Layout | None = None
        self._noted: tuple[object, ...] = ()
        self._block = 0  # the one at the top of the screen, until it is laid out again
        self._is_at_end = False

    @property
    def session(self) -> SessionSummary | None:
        """The session on the screen."""
        return self._session

    def on_mount(self) -> None:
        """Show lines as they are laid out."""
        self.set_interval(_GROW_SECONDS, self._grow)

    def open(self, session: SessionSummary) -> None:
        """Show a session from its beginning."""
        self.leave()
        self._session, self._block, self._is_at_end = session, 0, False
        self._store = LineStore()
        self.show(self._store.line, 0)
        self.lay_out()

    def leave(self) -> None:
        """Stop the thread."""
        if self._layout is not None:
            self._layout.stop()
            self._layout = None

    def lay_out(self) -> None:
        """Lay out for the present width; the old lines stay until the new ones reach the same place."""
        width = max(20, self.size.width - 1)
        if self._session is None or not self.display or (self._layout is not None and self._layout.width == width):
            return
        if len(self._store):
            self._is_at_end = (
                self.scroll_offset.y > 0 and self._shows_end() and (self._layout is None or self._layout.is_done)
            )
            self._block = max(0, bisect_right(self._store.starts, self.scroll_offset.y) - 1)
        self.leave()
        self._layout = _Layout(self.main, self._session, width)

    def _grow(self) -> None:
        """Show the lines that the thread has added, or all of them if it has laid out the session again."""
        layout = self._layout
        if layout is None:
            return
        is_done, store, before = layout.is_done, layout.store, self._store
        if store is before:
            self.grow(len(store))
        elif layout.rounds > 1:
            to_end, top = self._shows_end(), self.scroll_offset.y
            self._replace(store, len(store) if to_end else top)
        elif is_done or (not self._is_at_end and len(store.starts) > self._block + 1 and len(store) > self.size.height):
            top = store.starts[min(self._block, len(store.starts) - 1)] if store.starts else 0
            self._replace(store, len(store) if self._is_at_end else top)
        self._note(layout, is_done=is_done)

    def _replace(self, store: LineStore, top: int) -> None:
        self._store = store
        self.show(store.line, len(store))
        self.scroll_to(y=top, animate=False, force=True)

    def _shows_end(self) -> bool:
        return self.scroll_offset.y + self.size.height >= len(self._store)

    def _note(self, layout: _Layout, *, is_done: bool) -> None:
        session, noted = self._session, (layout, len(layout.store), is_done, layout.error)
        if session is None or noted == self._noted:
            return
        self._noted = noted
        if layout.error:
            self.main.status(layout.error, self, failed=True)
        else:
            lines = counted(len(layout.store), "line")
            self.main.status(f"{session.source} {session.session} · {lines}{'' if is_done else ', reading …'}", self)


class _Layout:
    """A thread that lays out a session into a store of lines, and into a new one when its log has grown.

    Attributes:
        width: The width in cells.
        store: The lines; complete if `rounds` is above 1.
        rounds: How often the session was read.
        is_done: Whether it was read to its end.
        error: Why it cannot be read; empty if it can.
    """

    def __init__(self, app: Main, session: SessionSummary, width: int) -> None:
        self.width = width
        self.store = LineStore()
        self.rounds = 1
        self.is_done = False
        self.error = ""
        self._stopped = threading.Event()
        self._app, self._session = app, session
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """End it at the next block."""
        self._stopped.set()

    def _run(self) -> None:
        try:
            version = self._fill(self.store)
            while self._wait_for_change(version):
                store = LineStore()
                version = self._fill(store)
                if not self._stopped.is_set():
                    self.store, self.rounds = store, self.rounds + 1
        except self._app.ERRORS as error:
            self.error = str(error)
        finally:
            self.is_done = True

    def _fill(self, store: LineStore) -> tuple[int, ...] | None:
        """Add all lines of the session to a store, and return the log's version before it was read."""
        started = time.monotonic()
        version = self._app.queries.version(self._session)
        with self._app.queries.conversation(self._session, self.width) as blocks:
            for lines in blocks:
                if self._stopped.is_set():
                    break
                store.add_block([[(part.text, str(part.style)) for part in line] for line in lines])
        self.is_done = True
        self._pause = max(_LOOK_SECONDS, _REST_FACTOR * (time.monotonic() - started))
        return version

    def _wait_for_change(self, version: tuple[int, ...] | None) -> bool:
        """Wait until the log has another version than this; return False when stopped."""
        while not self._stopped.wait(self._pause):
            now = self._app.queries.version(self._session)
            if now is not None and now != version:
                return True
        return False


class UsageView(AppView):
    """Usage by one key in a period; Enter narrows it to the selected row."""

    title = "Usage"
    keys = (
        ("←/→", "period"), ("d m p a", "by day, model, project, agent"), ("enter", "narrow"), ("bksp", "widen"),
        ("s", "its sessions"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "period(-1)", show=False),
        Binding("right", "period(1)", show=False),
        *(Binding(key, f"by('{name}')", show=False) for key, name in _BY.items()),
        Binding("backspace", "widen", show=False),
        Binding("s", "sessions", show=False),
        Binding("f5", "load", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="usage")
        self._report: UsageReport | None = None
        self._by = "day"
        self._window: str | None = "7d"
        self._filters: dict[str, Sequence[str]] = {}
        self._above: list[tuple[str, str | None, dict[str, Sequence[str]]]] = []

    def load(self) -> None:
        """Ask for the usage."""
        by, filters, window = self._by, self._filters, self._window
        self.main.ask("usage", lambda progress: self.queries.usage(by, filters, window, progress), self._show)

    action_load = load

    def _show(self, report: UsageReport) -> None:
        self._report, self.cursor = report.limited_to_newest(_ROWS), 0
        self.lay_out()

    def lay_out(self) -> None:
        """Show the report."""
        if self._report is None:
            return
        report, view = self._report, self.table_view()
        lines = list(render_table(report, view))
        head = lines[: FIRST_ROW + len(report.rows)] if report.rows else []
        rest = wrap_lines(lines[len(head) :], view.width)
        places = range(FIRST_ROW, FIRST_ROW + len(report.rows))
        self.show_lines(parts_of([*head, *rest]), selectable=places if report.rows else (), cursor=self.cursor)
        scope = self.main.scope(self._filters, self._window)
        self.main.status(f"by {self._by} · {scope or 'all time'}", self)

    def action_period(self, by: int) -> None:
        """Choose the next longer or shorter period."""
        place = PERIODS.index(self._window) if self._window in PERIODS else PERIODS.index("7d") - by
        self._window = PERIODS[max(0, min(place + by, len(PERIODS) - 1))]
        self.load()

    def action_by(self, key: str) -> None:
        """Group by another key."""
        self._by = key
        self.load()

    def narrow(self) -> None:
        """Show only the selected row, by its next key."""
        if self._report is None or not self._report.rows:
            return
        value = self._report.rows[self.cursor].keys[self._by]
        self._above.append((self._by, self._window, dict(self._filters)))
        if self._by == "day":
            self._window = value
        else:
            self._filters = {**self._filters, self._by: [literal(value)]}
        self._by = _WITHIN[self._by]
        self.load()

    def action_widen(self) -> None:
        """Return to what was shown before the last narrowing."""
        if self._above:
            self._by, self._window, self._filters = self._above.pop()
            self.load()

    def action_sessions(self) -> None:
        """List the sessions of this period and these filters."""
        self.main.show_sessions(self._filters, self._window)


class LiveView(AppView):
    """Running sessions, as `sessionlog watch` shows them; a thread takes snapshots while the view is shown."""

    title = "Live"
    keys = (("↑↓", "scroll"),)

    def __init__(self) -> None:
        super().__init__(id="live")
        self._seen: WatchSnapshot | None = None
        self._stopped = threading.Event()

    def load(self) -> None:
        """Start taking snapshots."""
        self.leave()
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, args=(self._stopped,), daemon=True).start()

    def leave(self) -> None:
        """Stop taking them."""
        self._stopped.set()

    def _watch(self, stopped: threading.Event) -> None:
        try:
            with self.queries.watcher() as watcher:
                while not stopped.is_set():
                    seen = watcher.snapshot()
                    self.main.post(partial(self._show, seen))
                    stopped.wait(_WATCH_SECONDS)
        except self.main.ERRORS as error:
            text = str(error)
            self.main.post(lambda: self.main.status(text, self, failed=True))

    def _show(self, seen: WatchSnapshot) -> None:
        self._seen = seen
        self.main.status(f"{len(seen.sessions)} running", self)
        self.lay_out()

    def lay_out(self) -> None:
        """Show the last snapshot."""
        if self._seen is not None:
            from sessionlog.render.watch import render_watch

            view = self.table_view()
            height = max(8, self.size.height)
            lines = render_watch(self._seen, width=view.width, height=height, tz=view.tz, home=view.home)
            self.show_lines(parts_of(list(lines)))


class BudgetsView(AppView):
    """The budgets of config.toml."""

    title = "Budgets"
    keys = (("f5", "read again"),)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f5", "load", show=False)]

    def __init__(self) -> None:
        super().__init__(id="budgets")
        self._report: BudgetReport | None = None

    def load(self) -> None:
        """Ask for the budgets."""
        self.main.ask("budgets", lambda _: self.queries.budgets(), self._show)

    action_load = load

    def _show(self, report: BudgetReport) -> None:
        self._report = report
        self.lay_out()

    def lay_out(self) -> None:
        """Show the report."""
        if self._report is None:
            return
        from sessionlog.render.budget import render_budgets

        view = self.table_view()
        if self._report.rows:
            self.show_lines(parts_of(list(wrap_lines(render_budgets(self._report, view), view.width))))
        else:
            self.show_lines([[("No budgets are set.", "")], [], [("docs/budgets.md shows how to write one.", "note")]])
        self.main.status(counted(len(self._report.rows), "budget"), self)
