"""Turn finished text into segments of rich, in the colours of the theme: for screens that are painted by lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style

from sessionlog.render.console import THEME


def segments(parts: Iterable[tuple[str, str]]) -> Iterator[Segment]:
    """Yield the segment of each pair of text and style: a name of the theme, a definition of rich, or "" for none."""
    for text, style in parts:
        yield Segment(text, _style(style))


@lru_cache(maxsize=512)
def _style(name: str) -> Style:
    return THEME.styles.get(name) or (Style.parse(name) if name else Style.null())
