"""Render Markdown of people and models as lines, for terminals with colours.

The invariant: rendering hides nothing and has no effects. HTML, links, images, references, entities and backslashes are
shown as typed, line ends stay, and every piece is escaped after the layout. If letters are missing in the result
(nesting too deep, a table without room), the text is shown as it is.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from copy import copy
from functools import cache
from typing import Any

from sessionlog.render.escape import strip_line_ends, terminal
from sessionlog.render.replay.lines import PROSE_WIDTH, Line, Span, View, body, cut_line, shorten, wrap

_SIGNS = re.compile(r"[*`|]|^ {0,3}(?:#{1,6}|[-+>]|\d{1,9}[.)])(?:\s|$)", re.MULTILINE)
_LONGEST = 50_000  # characters; longer texts are shown as they are
_TYPED = (
    "autolink", "code", "entity", "escape", "html_block", "html_inline", "image", "lheading", "link", "reference",
)  # fmt: skip
"""Rules of Markdown that would hide something, or that often match text which is not Markdown."""
_STARS, _INSIDE, _BEHIND = re.compile(r"\*+"), re.compile(r"[\w`\"'(]"), re.compile(r"[\s.,;:!?)\]}\"'*]|$")
_STYLES = {
    **{f"markdown.h{level}": "bold" for level in range(1, 7)},
    "markdown.code": "cyan", "markdown.code_block": "cyan", "markdown.block_quote": "dim", "markdown.hr": "dim",
    "markdown.item.bullet": "dim", "markdown.item.number": "dim", "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}  # fmt: skip


def prose(view: View, text: str, *, indent: int) -> list[Line]:
    """Return prose: as Markdown if the view has it, else as it is."""
    shown, left_out = shorten(strip_line_ends(text.lstrip("\r\n")), view.limits.prose) if view.markdown else ("", "")
    found = markdown_lines(shown, min(view.width or 80, PROSE_WIDTH) - indent) if shown else None
    if found is None:
        return body(view, text, view.limits.prose, indent=indent)
    margin = Span(" " * indent)
    lines: list[Line] = [(margin, *line) for line in found]
    if left_out:
        lines.append(cut_line(margin, left_out))
    return lines


def markdown_lines(text: str, width: int) -> list[Line] | None:
    """Return the lines of a Markdown text, none wider than `width`; None if it is no Markdown or too long."""
    if len(text) > _LONGEST or not _SIGNS.search(text):
        return None
    try:
        lines = list(_rendered(text, max(8, width)))
    except Exception:  # noqa: BLE001 - whatever fails in the library, the plain text can be shown
        return None
    shown = "".join(part.text for line in lines for part in line)
    return lines if lines and _letters(shown) == _letters(terminal(text, newline=True, tab=True)) else None


def _letters(text: str) -> Counter[str]:
    """Count each letter of a text; tables change their order, and lists are renumbered."""
    return Counter(filter(str.isalpha, text))


def _rendered(text: str, width: int) -> Iterator[Line]:
    from rich.console import Console
    from rich.theme import Theme

    theme = Theme(_STYLES)
    console = Console(
        file=io.StringIO(), theme=theme, width=width, color_system=None, markup=False, emoji=False, highlight=False
    )
    gap: list[Line] | None = None  # a blank line stands only between others, and never twice
    for segments in console.render_lines(_document(terminal(text, newline=True, tab=True).expandtabs(4)), pad=False):
        line = [Span(terminal(segment.text), segment.style or "") for segment in segments if not segment.control]
        while line and not line[-1].text.rstrip():
            line.pop()
        if line:
            line[-1] = Span(line[-1].text.rstrip(), line[-1].style)
        if line:
            yield from gap or ()
            yield tuple(line)
            gap = []
        elif gap is not None:
            gap = [()]


def _document(text: str) -> Any:
    empty, parser = _tools()
    document = copy(empty)  # making one sets up rich's own parser
    document.parsed = parser.parse(text)
    for token in document.parsed:
        for child in token.children or ():
            child.type = "hardbreak" if child.type == "softbreak" else child.type
    return document


@cache
def _tools() -> tuple[Any, Any]:
    """Return an empty document of rich with plain headings and code, and a parser; both take 50 ms to import."""
    from markdown_it import MarkdownIt
    from rich.markdown import CodeBlock, Heading, Markdown
    from rich.padding import Padding
    from rich.text import Text

    class LeftHeading(Heading):
        def __rich_console__(self, console: Any, options: Any) -> Any:
            yield Text(f"{'#' * int(self.tag[1:])} {self.text.plain}", style=self.style_name)

    class PlainCode(CodeBlock):
        @classmethod
        def create(cls, markdown: Any, token: Any) -> Any:  # noqa: ARG003 - rich calls it
            return cls(token.info or "", "")  # the whole info string of the fence

        def __rich_console__(self, console: Any, options: Any) -> Any:
            lines = str(self.text).rstrip("\n").split("\n")
            pieces = [piece for line in lines for piece in wrap(line, options.max_width - 2)]
            words = Text("\n".join(wrap(self.lexer_name, options.max_width - 2)), style="markdown.hr")
            code = Text("\n".join(pieces), style="markdown.code_block")
            yield Padding(Text("\n").join([words, code] if self.lexer_name else [code]), (0, 0, 0, 2))

    class Document(Markdown):
        elements = Markdown.elements | {"heading_open": LeftHeading, "fence": PlainCode, "code_block": PlainCode}

    parser = MarkdownIt("commonmark").enable("table").disable(list(_TYPED))
    parser.inline.ruler.at("emphasis", _emphasis)
    return Document("", hyperlinks=False), parser


def _emphasis(state: Any, silent: bool) -> bool:
    """Parse stars around words as emphasis, but not those of `2*3*4`, `**/*.py` or `*args`; `_` is a letter."""
    from markdown_it.rules_inline.state_inline import Delimiter

    start = state.pos
    stars = _STARS.match(state.src, start)
    if silent or stars is None:
        return False
    end = stars.end()
    before, after = state.src[start - 1 : start], state.src[end : end + 1]
    opens = (not before or before.isspace() or before in "([{\"'") and _INSIDE.match(after) is not None
    closes = bool(before) and not before.isspace() and before not in "/(" and _BEHIND.match(after) is not None
    for _ in range(end - start):
        state.push("text", "", 0).content = "*"
        state.delimiters.append(
            Delimiter(marker=42, length=end - start, token=len(state.tokens) - 1, end=-1, open=opens, close=closes)
        )
    state.pos = end
    return True
