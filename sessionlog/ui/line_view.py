"""A widget that shows lines by number, paints only those on the screen, and can mark one of them as the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sessionlog.render.segments import segments
from sessionlog.ui.line_store import Parts


class LineView(ScrollView):
    """Lines that scroll by keys; with selectable lines the keys move a cursor from one to the next.

    Attributes:
        cursor: The index of the selected line among the selectable ones.
    """

    can_focus = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown,space,ctrl+f", "page(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("home,g", "edge(0)", show=False),
        Binding("end,G", "edge(1)", show=False),
    ]
    DEFAULT_CSS = "LineView { height: 1fr; scrollbar-size-horizontal: 0; scrollbar-size-vertical: 1; }"

    class Chosen(Message):
        """Enter was pressed on a selectable line."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - textual's name for it
        super().__init__(id=id)
        self._line: Callable[[int], Parts] = lambda _: []
        self._count = 0
        self._places: Sequence[int] = ()
        self._plain: Any = None  # the style of text without one
        self.cursor = 0

    def show(
        self, line: Callable[[int], Parts], count: int, *, selectable: Sequence[int] = (), cursor: int = 0
    ) -> None:
        """Replace the lines: `line` returns one by its number, `selectable` are the numbers of those with a cursor."""
        self._line, self._count, self._places = line, count, selectable
        self.cursor = max(0, min(cursor, len(selectable) - 1))
        self.virtual_size = Size(0, count)
        self._follow()
        self.refresh()

    def grow(self, count: int) -> None:
        """Show more lines of the same source, without moving."""
        self._count = count
        self.virtual_size = Size(0, count)
        self.refresh()

    def show_lines(self, lines: Sequence[Parts], *, selectable: Sequence[int] = (), cursor: int = 0) -> None:
        """Replace the lines by a list."""
        self.show(lines.__getitem__, len(lines), selectable=selectable, cursor=cursor)

    def render_line(self, y: int) -> Strip:
        """Return the strip of a row of the screen."""
        number = self.scroll_offset.y + y
        width = self.size.width
        plain = self._plain = self._plain or self.rich_style  # textual computes it anew for each line
        if number >= self._count:
            return Strip.blank(width, plain)
        strip = Strip(segments(self._line(number))).adjust_cell_length(width).apply_style(plain)
        if self._places and self._places[self.cursor] == number:
            strip = strip.apply_style(self.get_component_rich_style("line-view--cursor"))
        return strip

    def notify_style_update(self) -> None:
        """Take the new style of the text."""
        self._plain = None
        super().notify_style_update()

    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-view--cursor"}

    def action_move(self, by: int) -> None:
        """Move the cursor, or scroll where there is none."""
        if not self._places:
            self.scroll_relative(y=by, animate=False)
            return
        self.cursor = max(0, min(self.cursor + by, len(self._places) - 1))
        self._follow()
        self.refresh()

    def action_page(self, by: int) -> None:
        """Move by a screenful."""
        step = max(1, self.size.height - 2) * by
        self.action_move(step)

    def action_edge(self, last: int) -> None:
        """Move to the first line or the last."""
        self.action_move((self._count + 1) * (1 if last else -1))

    def on_key(self, event: object) -> None:
        """Report Enter on a line."""
        if getattr(event, "key", "") == "enter" and self._places:
            self.post_message(self.Chosen())

    def _follow(self) -> None:
        """Scroll so that the cursor is on the screen; the headings above the first line are shown with it."""
        if not self._places:
            return
        line, height, top = self._places[self.cursor], max(1, self.size.height), self.scroll_offset.y
        if self.cursor == 0:
            self.scroll_to(y=0, animate=False, force=True)
        elif line < top:
            self.scroll_to(y=line, animate=False, force=True)
        elif line >= top + height:
            self.scroll_to(y=line - height + 1, animate=False, force=True)
