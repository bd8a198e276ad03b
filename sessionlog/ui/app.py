"""The application: its views, the search field, and lines for status and keys. Threads make what the views show."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Static

from sessionlog.errors import SessionLogError
from sessionlog.render.escape import one_line
from sessionlog.ui.line_view import LineView
from sessionlog.ui.views import AppView, BudgetsView, LiveView, ReplayView, SessionsView, UsageView

if TYPE_CHECKING:
    from textual.widgets import Input

    from sessionlog.ledger.sync import Progress
    from sessionlog.ui.queries import Queries

_T = TypeVar("_T")
_TABS = ("sessions", "usage", "live", "budgets")
_STATUS = 400
_REPAINT_SECONDS = 0.3


class SessionlogApp(App[None]):
    """The whole screen.

    Attributes:
        queries: Makes what is shown.
    """

    ERRORS: ClassVar[tuple[type[Exception], ...]] = (SessionLogError, OSError, sqlite3.Error)
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layers: base; }
    #title, #status, #keys { height: auto; max-height: 3; padding: 0; }
    #title { background: $panel; }
    #keys { background: $panel; color: $text-muted; }
    #status { color: $text-muted; height: 1; }
    #status.failed { color: $error; }
    #search { height: 1; border: none; padding: 0; }
    ContentSwitcher { height: 1fr; }
    .line-view--cursor { text-style: reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"tab('{name}')", show=False) for number, name in enumerate(_TABS, 1)),
        Binding("tab", "next_tab", show=False, priority=True),
        Binding("escape", "leave", show=False, priority=True),
        Binding("question_mark", "help", show=False),
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    class Result(Message):
        """What a thread has made: a function to call in the application's own thread."""

        def __init__(self, apply: Callable[[], None]) -> None:
            super().__init__()
            self.apply = apply

    def __init__(self, queries: Queries) -> None:
        super().__init__()
        self.queries = queries
        self.sessions, self.replay = SessionsView(), ReplayView()
        self._views: dict[str, AppView] = {
            str(view.id): view for view in (self.sessions, UsageView(), LiveView(), BudgetsView(), self.replay)
        }
        self._title, self._status, self._keys = (Static(id=name) for name in ("title", "status", "keys"))
        self._switcher = ContentSwitcher(self.sessions, initial="sessions")
        self._field: Input | None = None
        self._asked: dict[str, int] = {}
        self._loaded: set[str] = set()
        self._resizing: Timer | None = None

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom."""
        yield from (self._title, self._switcher, self._status, self._keys)

    def on_mount(self) -> None:
        """Show the sessions."""
        self._open("sessions")

    @property
    def shown(self) -> AppView:
        """The view on the screen."""
        return self._views[self._switcher.current or "sessions"]

    def ask(
        self,
        name: str,
        make: Callable[[Progress], _T],
        show: Callable[[_T], None],
        *,
        task: str = "",
        at_once: Callable[[Callable[[_T], None]], bool] | None = None,
    ) -> None:
        """Call `make` in a thread and `show` with its result, unless the same was asked again in the meantime.

        Args:
            name: The view that shows it.
            make: Makes the value.
            show: Shows it.
            task: What is asked besides the value of the view itself.
            at_once: Called first in that thread with a function that shows a value; it returns whether this is final.
        """
        asked = f"{name} {task}"
        number = self._asked[asked] = self._asked.get(asked, 0) + 1
        view = self._views[name]

        def post(act: Callable[[], None]) -> None:
            self.post(lambda: act() if self._asked[asked] == number else None)

        def progress(done: int, total: int) -> None:
            if done % 16 == 0 or done == total:
                post(lambda: self.status(f"reading logs: {done:,} of {total:,}", view))

        def use(value: _T) -> None:
            post(lambda: show(value))

        def run() -> None:
            try:
                if at_once is None or not at_once(use):
                    use(make(progress))
            except self.ERRORS as error:
                text = str(error)
                post(lambda: self.status(text, view, failed=True))

        self.status(f"making the {task} …" if task else "reading …", view)
        threading.Thread(target=run, daemon=True).start()

    def post(self, apply: Callable[[], None]) -> None:
        """Call a function in the application's thread; for other threads."""
        self.post_message(self.Result(apply))

    def on_sessionlog_app_result(self, message: Result) -> None:
        """Take what a thread has made."""
        message.apply()

    def status(self, text: str, view: AppView, *, failed: bool = False) -> None:
        """Show a sentence about a view, if that is on the screen."""
        if view is self.shown:
            self._status.set_class(failed, "failed")
            self._status.update(Content(one_line(text, _STATUS)))

    def copy(self, text: str, words: str) -> None:
        """Copy a text to the terminal's clipboard, and show it."""
        self.copy_to_clipboard(text)
        self.status(f"{text}   ({words})", self.shown)

    def scope(self, filters: Mapping[str, Sequence[str]], window: str | None) -> str:
        """Return a period and filters in words; empty for everything."""
        return " · ".join([*([window] if window else []), *(f"{key} {values[0]}" for key, values in filters.items())])

    def show_sessions(self, filters: Mapping[str, Sequence[str]], window: str | None) -> None:
        """List the sessions of a period and of filters."""
        self.sessions.filters, self.sessions.window = filters, window
        self._loaded.discard("sessions")
        self._open("sessions")

    def open_search(self) -> None:
        """Show the search field."""
        if self._field is None:
            from textual.widgets import Input  # the application opens faster without it

            words = "words of the prompt, project, model or id; enter or esc ends"
            self._field = Input(placeholder=words, id="search")
            self.mount(self._field, after=self._title)
        self._field.display = True
        self._field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search as it is typed."""
        self.sessions.search(event.value)

    def on_input_submitted(self) -> None:
        """Return to the list."""
        self.sessions.focus()

    def on_line_view_chosen(self, message: LineView.Chosen) -> None:  # noqa: ARG002 - textual's signature
        """Replay the selected session, or narrow usage to the selected row."""
        shown = self.shown
        if isinstance(shown, UsageView):
            shown.narrow()
        elif isinstance(shown, SessionsView) and shown.session is not None:
            session = shown.session
            self._open("replay")
            self.call_after_refresh(self.replay.open, session)

    def action_tab(self, name: str) -> None:
        """Show a view."""
        self._open(name)

    def action_next_tab(self) -> None:
        """Show the next view."""
        current = str(self.shown.id)
        place = _TABS.index(current) if current in _TABS else -1
        self._open(_TABS[(place + 1) % len(_TABS)])

    def action_leave(self) -> None:
        """Leave the replay, end the search, or list all sessions again."""
        field = self._field
        if self.shown is self.replay:
            self._open("sessions")
        elif field is not None and field.display:
            field.value = ""
            field.display = False
            self.sessions.focus()
        elif self.sessions.filters or self.sessions.window:
            self.show_sessions({}, None)

    def action_help(self) -> None:
        """Show the keys of every view."""
        rows = [(view.title, view.keys) for view in self._views.values()]
        rows.append(("Everywhere", (*_EVERYWHERE, ("j k g G", "down, up, first, last"))))
        text = "\n".join(f"{title}: {', '.join(f'{key} {does}'.strip() for key, does in keys)}" for title, keys in rows)
        self.notify(text, title="Keys", timeout=15, markup=False)

    def _open(self, name: str) -> None:
        self.shown.leave()
        view = self._views[name]
        if not view.is_attached:
            self._switcher.mount(view)
        self._switcher.current = name
        if self._field is not None:
            self._field.display = name == "sessions" and bool(self._field.value)
        tabs: list[Any] = [("sessionlog  ", "bold")]
        for number, tab in enumerate(_TABS, 1):
            tabs += [(f" {number} {self._views[tab].title} ", "reverse" if tab == name else ""), " "]
        tabs += [(f" {view.title} ", "reverse")] if name not in _TABS else []
        self._title.update(Content.assemble(*tabs))
        self._show_keys()
        self.set_focus(view)  # not `view.focus()`: keys that came with this one would go to the view before
        if name != "replay":
            if name in self._loaded and name != "live":
                view.lay_out()
            else:
                self._loaded.add(name)
                view.load()

    def on_resize(self) -> None:
        """Lay out the keys, and paint all again when the size has stopped changing: terminals move old lines."""
        self._show_keys()
        if self._resizing is not None:
            self._resizing.stop()
        self._resizing = self.set_timer(_REPAINT_SECONDS, self._repaint)

    def _repaint(self) -> None:
        self._show_keys()
        self.refresh(layout=True)
        for screen in self.screen_stack[-1:]:  # none once the application ends
            screen.refresh(layout=True)

    def _show_keys(self) -> None:
        self._keys.update(_keys(self.shown.keys, self.size.width))


_EVERYWHERE = (("1-4 tab", "view"), ("esc", "back"), ("?", "keys"), ("q", "quit"))


def _keys(own: Sequence[tuple[str, str]], width: int) -> Content:
    """Return the keys with what they do, on as many lines as they need; a key and its words stay together."""
    pieces: list[Any] = []
    used = 0
    for key, does in (*own, *((key, does) for key, does in _EVERYWHERE if key not in dict(own))):
        size = len(key) + 1 + len(does)
        if used and used + 2 + size > width:
            pieces.append("\n")
            used = 0
        gap = "  " if used else ""
        pieces += [gap, (key, "bold"), f" {does}"]
        used += len(gap) + size
    return Content.assemble(*pieces)
