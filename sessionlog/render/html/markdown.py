"""Render Markdown of people and models as elements of our own list; whatever else it has stays text.

The library parses only, and each element is made by `tag`: HTML in a text, pictures, and links to anything but http and
https are shown as typed. A link whose words are not its address is followed by its host, so that it cannot mislead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from sessionlog.render.escape import strip_line_ends, terminal
from sessionlog.render.html.code import highlight, language_of
from sessionlog.render.html.page import Html, join, tag

_SIGNS = re.compile(
    r"[*`|_\[~]|https?:|^ {0,3}(?:#{1,6}|[-+>]|\d{1,9}[.)])(?:\s|$)|^(?: {4}|\t)|\n {0,3}[=-]", re.MULTILINE
)
_LONGEST = 200_000
"""Characters; longer texts are shown as they are."""

_PLAIN = {
    "paragraph": "p", "blockquote": "blockquote", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li",
    "strong": "strong", "em": "em", "s": "s", "table": "table", "thead": "thead", "tbody": "tbody", "tr": "tr",
    "th": "th", "td": "td",
}  # fmt: skip


def markdown(text: str) -> Html:
    """Return a text of Markdown as elements; a text that is none, or that is long, as it was typed."""
    shown = terminal(strip_line_ends(text.lstrip("\r\n")), newline=True, tab=True)
    if not _SIGNS.search(shown) or len(shown) > _LONGEST:
        return tag("div", shown, class_="typed") if shown.strip() else Html("")
    try:
        from markdown_it.tree import SyntaxTreeNode

        return _all(SyntaxTreeNode(_parser().parse(shown)).children)
    except Exception:  # noqa: BLE001 - whatever fails in the library, the plain text can be shown
        return tag("div", shown, class_="typed")


def code_block(code: Html | str) -> Html:
    """Return a block of code; the page's script gives it a button to copy it."""
    return tag("div", tag("pre", tag("code", code), tabindex=0), class_="code")


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 40}).enable(["table", "strikethrough"])
    # Entities would bring back characters that were made visible; a lone HTML tag is a text.
    parser.disable(["html_block", "html_inline", "image", "entity", "lheading"])
    parser.validateLink = _is_web  # type: ignore[method-assign, assignment] # the documented way
    return parser


def _is_web(address: str) -> bool:
    return address.lower().startswith(("http://", "https://"))


def _all(nodes: Sequence[Any]) -> Html:
    return join(*map(_element, nodes))


def _element(node: Any) -> Html:
    """Return the element of a node, and the content of one that has none."""
    kind = node.type
    if kind in _PLAIN:
        content = _all(node.children)
        if kind == "paragraph" and node.hidden:
            return content
        made = tag(_PLAIN[kind], content, start=node.attrs.get("start") if kind == "ordered_list" else None)
        return tag("div", made, class_="scroll", tabindex=0) if kind == "table" else made
    match kind:
        case "text" | "html_inline" | "html_block":
            return join(str(node.content))
        case "inline":
            return _all(node.children)
        case "softbreak" | "hardbreak":
            return tag("br")
        case "hr":
            return tag("hr")
        case "code_inline":
            return tag("code", str(node.content))
        case "fence" | "code_block":
            return _fence(node.content, node.info if kind == "fence" else "")
        case "heading":
            # No h2: the page's own headings are its outline.
            return tag("p", _all(node.children), class_=f"heading {node.tag}")
        case "link":
            return _link(node)
    return _all(node.children) if node.children else join(str(node.content or ""))


def _fence(content: str, info: str) -> Html:
    name = info.strip()
    code = highlight(content.rstrip("\n"), language_of(name.split()[0] if name else ""))
    return join(tag("p", name, class_="language") if name else None, code_block(code))


def _link(node: Any) -> Html:
    address, words = str(node.attrs.get("href", "")), _all(node.children)
    if not _is_web(address):
        return words
    link = tag("a", words, href=address, rel="noreferrer noopener")
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return words
    text = "".join(child.content for child in node.walk() if child.type in ("text", "code_inline"))
    if text.strip() == address or text.strip().removesuffix("/") == host:
        return link
    return join(link, tag("span", f" ({host})", class_="dim"))
