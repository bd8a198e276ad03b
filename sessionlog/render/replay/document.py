"""Write a session as a Markdown document: for an issue, a pull request, or notes.

The invariant: a text of the log cannot leave its place, and nothing in it is loaded or run. A text that would, in any
viewer, is put into a fence: HTML, pictures, links to anything but the web, fences that are not closed, definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from sessionlog.render.escape import html, markdown_cell, one_line, strip_line_ends, terminal
from sessionlog.render.replay.blocks import (
    Block,
    MessageBlock,
    ResponseBlock,
    SessionEndBlock,
    SessionStartBlock,
    ToolCallBlock,
)
from sessionlog.render.replay.changes import changes_of
from sessionlog.render.replay.layout import block_lines, response_figures
from sessionlog.render.replay.layout_tools import by_size, json_text, outcome
from sessionlog.render.replay.lines import Limit, Line, Span, View, joined, shorten

_TITLE = 100
_END = "the-end-of-a-text"
_TICKS = re.compile(r"`{3,}")
_LONGEST = 100_000
"""Characters; longer texts are put into a fence without being parsed."""


def render_document(blocks: Iterable[Block], view: View) -> Iterator[str]:
    """Yield the pieces of a document, each with its line ends; a viewer shows the results of tools folded."""
    turn = 0
    agent = ""
    is_open = False  # has the turn only prompts so far?
    for block in blocks:
        if block.agent != agent:
            agent = block.agent
            name = markdown_cell(one_line(agent, _TITLE))
            yield f"*sub-agent {name}:*\n\n" if agent else "*the session's own agent:*\n\n"
        match block:
            case SessionStartBlock():
                name = markdown_cell(one_line(block.session_id or "session", _TITLE))
                yield f"# {name}\n\n{_listed(block_lines(view, block))}\n"
            case MessageBlock(role="user") if not agent:
                turn += not is_open
                is_open, title = True, "" if is_open else f"## {turn}. you\n\n"
                yield f"{title}{_quoted(_prose(block.text, view.limits.prose))}\n"
            case MessageBlock():
                limit = view.limits.output if block.role == "tool" else view.limits.system
                name = html(one_line(f"{block.role} {block.tool}", _TITLE))
                is_plan = block.role == "plan"
                yield (
                    f"{_prose(block.text, view.limits.prose)}\n" if is_plan else _folded(name, fence(block.text, limit))
                )
            case ResponseBlock():
                is_open = False
                yield _response(block, view)
            case ToolCallBlock():
                is_open = False
                yield _tool(block, view)
            case SessionEndBlock():
                yield f"---\n\n{_listed(block_lines(view, block))}"
            case _:
                yield f"{_listed(block_lines(view, block))}\n"


def fence(text: str, limit: Limit, language: str = "") -> str:
    """Return a text in a fence that it cannot close, cut to `limit`; "" where it is blank."""
    shown, left_out = shorten(strip_line_ends(text), limit)
    if not shown.strip():
        return ""
    ticks = "`" * (max((len(found) for found in _TICKS.findall(shown)), default=2) + 1)
    cut = f"\n… {left_out} (--full)\n" if left_out else ""
    return f"{ticks}{language}\n{terminal(shown, newline=True, tab=True)}\n{ticks}\n{cut}"


def is_contained(text: str) -> bool:
    """Whether a text of Markdown ends where it ends, and nothing in it is loaded, run or linked but for the web."""
    if len(text) > _LONGEST:
        return False
    try:
        environment: dict[str, Any] = {}
        tokens = _parser().parse(f"{text}\n\n{_END}", environment)
    except Exception:  # noqa: BLE001 - whatever fails in the library, the text is put into a fence
        return False
    last = tokens[-2] if len(tokens) > 1 else None
    if environment.get("references") or last is None or last.content != _END or last.level != 1:
        return False
    return all(map(_is_harmless, (child for token in tokens for child in (token, *(token.children or ())))))


def _is_harmless(token: Any) -> bool:
    if token.type in {"html_block", "html_inline", "image"}:
        return False
    return token.type != "link_open" or str(token.attrGet("href")).startswith(("https://", "http://"))


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.validateLink = lambda _: True  # type: ignore[method-assign, assignment] # see all of them
    return parser


def _prose(text: str, limit: Limit) -> str:
    """Return a text as Markdown, or in a fence; "" where it is blank."""
    shown, left_out = shorten(strip_line_ends(text.lstrip("\r\n")), limit)
    safe = terminal(shown, newline=True, tab=True)
    if not safe.strip():
        return ""
    if not is_contained(safe):
        return fence(text, limit, "text")
    return f"{safe.rstrip()}\n" + (f"\n… {left_out} (--full)\n" if left_out else "")


def _quoted(text: str) -> str:
    return "".join(f"> {line}\n" if line else ">\n" for line in text.rstrip("\n").split("\n"))


def _listed(lines: Iterable[Line]) -> str:
    """Return lines of the layout as lines of a paragraph."""
    texts = (markdown_cell("".join(part.text for part in line).strip("━ ")) for line in lines)
    return "".join(f"{text}  \n" for text in texts if text) or "\n"


def _figures(spans: Iterable[Span]) -> str:
    return markdown_cell("".join(part.text for part in joined([span for span in spans if span.text])))


def _folded(summary: str, *parts: str) -> str:
    """Return parts that a viewer folds; blank lines keep them Markdown inside the element."""
    body = "\n".join(part for part in parts if part)
    if not body:
        return f"⚙ {summary}\n\n"
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>\n\n"


def _response(block: ResponseBlock, view: View) -> str:
    name = "request failed" if block.error else one_line(block.served.model, _TITLE) or "answer"
    figures = _figures(response_figures(view, block))
    head = f"**{markdown_cell(name)}**{f' · {figures}' if figures else ''}\n\n"
    thought = _folded("thinking", fence(block.thought, view.limits.thought)) if block.thought.strip() else ""
    error = fence(block.error, view.limits.prose) + "\n" if block.error else ""
    text = _prose(block.text, view.limits.prose)
    broken = "*broke off here: no response was recorded*\n\n" if block.unfinished else ""
    return f"{head}{thought}{error}{text}{chr(10) if text else ''}{broken}"


def _tool(block: ToolCallBlock, view: View) -> str:
    changed, shown = changes_of(block.call.arguments)
    main, short, long = by_size(block.call, shown, _TITLE)
    figures = "".join(part.text for part in joined(list(outcome(view, block))))
    words = " · ".join(filter(None, (one_line(main, _TITLE), figures)))
    summary = f"<b>{html(one_line(block.call.name, _TITLE) or '(unnamed tool)')}</b> {html(words)}".rstrip()
    lines = [f"{' ' if line.sign == '@' else line.sign} {line.text}" for line in changed]
    return _folded(
        summary,
        fence(json_text(view, short), view.limits.arguments) if short else "",
        *(fence(text, view.limits.arguments) for text in long.values()),
        fence("\n".join(lines), view.limits.output, "diff"),
        fence(block.output, view.limits.output),
        fence(block.error, view.limits.output),
    )
