"""The margin of a replay on a terminal: when something was, where that changes, and the numbers of the requests.

14:56  you ▸ make the importer resume after a crash

#1  ◂ claude-opus-4-5                                     4.2 s · 812 in · 96 out · $0.031
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from sessionlog.analytics.zones import local_time
from sessionlog.render.replay.blocks import Answered, Block, Failed
from sessionlog.render.replay.lines import Line, Span
from sessionlog.render.replay.view import View

_WIDTH = 8
_LEAST = 60  # columns; a narrower terminal has no room for a margin


class Margin:
    """Writes labels beside the lines of a block, a number on its first; none where text goes to a pipe.

    Attributes:
        view: What is left of the view beside the margin.
    """

    def __init__(self, view: View) -> None:
        self._zone = view.zone
        self._is_there = not view.exact and view.width is not None and view.width >= _LEAST
        self._day = self._minute = ""
        self.view = replace(view, width=(view.width or 0) - _WIDTH) if self._is_there else view

    def beside(self, block: Block, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines of a block with what the margin says of it; a time without a line comes with the next."""
        if not self._is_there:
            yield from lines
            return
        number = block.request if isinstance(block, Answered | Failed) else 0
        for line in lines:
            label, number = f"#{number}" if number else self._time(block.time_ns), 0
            yield (Span(f"{label[: _WIDTH - 2]:>{_WIDTH - 2}}  ", "note"), *line) if line else line

    def _time(self, time_ns: int | None) -> str:
        """The day or the minute, if it is another one than the last that was shown."""
        if time_ns is None:
            return ""
        time = local_time(time_ns, self._zone)
        day, minute = f"{time:%d %b}".lstrip("0"), f"{time:%H:%M}"
        if day != self._day:
            is_first, self._day, self._minute = not self._day, day, ""
            if not is_first:
                return day
        if minute == self._minute:
            return ""
        self._minute = minute
        return minute
