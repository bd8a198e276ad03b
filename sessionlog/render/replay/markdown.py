"""Markdown → lines, for what people and models say on a terminal with colours.

The invariant: a text can neither hide nor do anything. HTML, links, images, references, entities and backslashes stand
as they were typed, line ends stay, and every piece is escaped after it is laid out. A text of which letters would be
missing then (too deep a nest, a table without room) is shown as it is.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from sessionlog.render.escape import strip_line_ends, terminal
from sessionlog.render.replay.lines import PROSE_WIDTH, Line, Span, View, body, rest, shorten, wrap

_SIGNS = re.compile(r"[*`|]|^ {0,3}(?:#{1,6}|[-+>]|\d{1,9}[.)])(?:\s|$)", re.MULTILINE)
_LONGEST = 50_000  # characters; longer texts are shown as they are
_TYPED = (
    "autolink", "code", "entity", "escape", "html_block", "html_inline", "image", "lheading", "link", "reference",
)  # fmt: skip
"""Rules of Markdown that would hide something, or that texts which are none trip over."""
_STARS, _INSIDE, _BEHIND = re.compile(r"\*+"), re.compile(r"[\w`\"'(]"), re.compile(r"[\s.,;:!?)\]}\"'*]|$")
_STYLES = {
    **{f"markdown.h{level}": "bold" for level in range(1, 7)},
    "markdown.code": "cyan", "markdown.code_block": "cyan", "markdown.block_quote": "dim", "markdown.hr": "dim",
    "markdown.item.bullet": "dim", "markdown.item.number": "dim", "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}  # fmt: skip


def prose(view: View, text: str, *, indent: int) -> Iterator[Line]:
    """What people and models say: as Markdown where the view has it, else as it is."""
    shown, left_out = shorten(strip_line_ends(text.lstrip("\r\n")), view.limits.prose)
    lines = markdown_lines(shown, min(view.width or 80, PROSE_WIDTH) - indent) if view.markdown else None
    if lines is None:
        yield from body(view, text, view.limits.prose, indent=indent)
        return
    for line in lines:
        yield (Span(" " * indent), *line)
    if left_out:
        yield rest(Span(" " * indent), left_out)


def markdown_lines(text: str, width: int) -> Iterator[Line] | None:
    """Return a text's lines in their styles, none wider than `width`; None where it is no Markdown, or too long."""
    if len(text) > _LONGEST or not _SIGNS.search(text):
        return None
    try:
        lines = list(_rendered(text, max(8, width)))
    except Exception:  # noqa: BLE001 - whatever the library thinks of it, the text is there
        return None
    shown = "".join(part.text for line in lines for part in line)
    return iter(lines) if lines and _letters(shown) == _letters(terminal(text, newline=True, tab=True)) else None


def _letters(text: str) -> Counter[str]:
    """How often each letter is in a text; tables change their order, and lists are numbered anew."""
    return Counter(filter(str.isalpha, text))


def _rendered(text: str, width: int) -> Iterator[Line]:
    from rich.console import Console  # noqa: PLC0415 - 45 ms, which pipes save
    from rich.theme import Theme  # noqa: PLC0415 - as above

    theme = Theme(_STYLES)
    console = Console(
        file=io.StringIO(), theme=theme, width=width, color_system=None, markup=False, emoji=False, highlight=False
    )
    gap: list[Line] | None = None  # a blank line comes between others only, and never twice
    for segments in console.render_lines(_document(terminal(text, newline=True, tab=True).expandtabs(4)), pad=False):
        line = [Span(terminal(segment.text), segment.style or "") for segment in segments if not segment.control]
        while line and not line[-1].text.rstrip():
            line.pop()
        if line:
            line[-1] = line[-1]._replace(text=line[-1].text.rstrip())
        if line:
            yield from gap or ()
            yield tuple(line)
            gap = []
        elif gap is not None:
            gap = [()]


def _document(text: str) -> Any:
    kind, parser = _kinds()
    document = kind("", hyperlinks=False)
    document.parsed = parser.parse(text)
    for token in document.parsed:
        for child in token.children or ():
            child.type = "hardbreak" if child.type == "softbreak" else child.type
    return document


@cache
def _kinds() -> tuple[Any, Any]:
    """Rich's document with headings and code as plain as the rest, and a parser; both take 50 ms to import."""
    from markdown_it import MarkdownIt  # noqa: PLC0415
    from rich.markdown import CodeBlock, Heading, Markdown  # noqa: PLC0415
    from rich.padding import Padding  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class LeftHeading(Heading):
        def __rich_console__(self, console: Any, options: Any) -> Any:
            yield Text(f"{'#' * int(self.tag[1:])} {self.text.plain}", style=self.style_name)

    class PlainCode(CodeBlock):
        @classmethod
        def create(cls, markdown: Any, token: Any) -> Any:  # noqa: ARG003 - rich calls it
            return cls(token.info or "", "")  # what stands behind the fence, whole

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
    return Document, parser


def _emphasis(state: Any, silent: bool) -> bool:
    """Stars around words, and none in `2*3*4`, `**/*.py` or `*args`; `_` is a letter of names."""
    from markdown_it.rules_inline.state_inline import Delimiter  # noqa: PLC0415 - see above

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
