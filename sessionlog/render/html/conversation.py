"""Elements of a conversation: one function per kind of block, from the same blocks and figures as the terminal replay.

Prompts and answers are Markdown, calls and thoughts fold, edits are diffs. Whatever has no form of its own here looks
as `layout` lays it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from sessionlog.render.escape import one_line, strip_line_ends
from sessionlog.render.html.code import highlight, language_of
from sessionlog.render.html.markdown import code_block, markdown
from sessionlog.render.html.page import Html, join, tag
from sessionlog.render.html.pictures import picture
from sessionlog.render.replay.blocks import Block, Call, MessageBlock, NoteBlock, Picture, ResponseBlock, ToolCallBlock
from sessionlog.render.replay.changes import ChangedLine, changes_of
from sessionlog.render.replay.layout import block_lines, response_figures
from sessionlog.render.replay.layout_tools import by_size, json_text, outcome
from sessionlog.render.replay.lines import Limit, Limits, Line, Span, View, joined, shorten
from sessionlog.render.times import clock

CUT = Limits(
    prose=Limit(chars=40_000),
    system=Limit(chars=4_000, lines=80),
    output=Limit(chars=6_000, lines=120),
    thought=Limit(chars=8_000, lines=150),
    arguments=Limit(chars=6_000, lines=120),
)
"""What a page shows of long texts by default: more than a terminal, as it folds."""

CUT_LATER = Limits(
    prose=Limit(chars=40_000),
    system=Limit(chars=2_000, lines=40),
    output=Limit(chars=2_000, lines=40),
    thought=Limit(chars=2_000, lines=40),
    arguments=Limit(chars=2_000, lines=40),
)
"""What is shown of them once a page is long, so that it stays readable on a phone."""

CUT_OUTLINE = Limits(
    prose=Limit(chars=300),
    system=Limit(chars=200, lines=4),
    output=Limit(chars=200, lines=4),
    thought=Limit(chars=200, lines=4),
    arguments=Limit(chars=200, lines=4),
)
"""What is shown of them in a page's outline, which stands for the rest of a very long session."""

_CLASSES = {
    "failed": "bad", "unfinished": "unsure", "note": "dim", "estimated": "unsure", "cached": "good", "title": "strong",
    "tool": "strong", "model": "strong", "you": "strong",
}  # fmt: skip
_ROLES = {"user": "you", "assistant": "assistant", "plan": "plan", "system": "system prompt"}
_SUMMARY = 100
"""Characters of a call's main argument, or of a thought, on the line that unfolds it."""

_OPEN = 40
"""A diff of at most so many lines is unfolded at first."""


def element_of(block: Block, view: View) -> Html:
    """Return the element of a block within a turn."""
    match block:
        case MessageBlock():
            return _message(block, view)
        case ResponseBlock():
            return _response(block, view)
        case ToolCallBlock():
            return _tool(block, view)
    is_damage = isinstance(block, NoteBlock) and block.severity == "damage"
    return tag("div", lines_of(block_lines(view, block)), class_="step aside bad" if is_damage else "step aside")


def lines_of(lines: Iterable[Line]) -> Html:
    """Return lines of a layout, each as a line of its own."""
    return join(*(tag("div", spans_of(line), class_="line") for line in lines))


def spans_of(line: Iterable[Span]) -> Html:
    """Return the parts of a line with the page's classes for their styles."""
    parts = groupby(line, key=lambda span: _CLASSES.get(str(span.style), "dim") if span.style else "")
    return join(*(_span("".join(span.text for span in spans), class_name) for class_name, spans in parts))


def figures_of(spans: Iterable[Span]) -> Html | None:
    """Return figures in a row; None without any."""
    line = joined([span for span in spans if span.text])
    return tag("span", spans_of(line), class_="figures") if line else None


def time_of(time_ns: int | None, view: View) -> Html | None:
    """Return the time of day as an element; None where it is unknown."""
    return None if time_ns is None else tag("time", clock(time_ns, view.zone), class_="dim")


def _span(text: str, class_name: str) -> Html:
    return tag("span", text, class_=class_name) if class_name else join(text)


def _message(block: MessageBlock, view: View) -> Html:
    if block.role == "tool":
        summary = join(tag("b", "result"), " ", tag("bdi", one_line(block.tool, _SUMMARY)))
        return _folded("tool", summary, _output(block.text, view.limits.output), *_pictures(block.pictures))
    role = _ROLES.get(block.role, one_line(block.role, 40))
    calls = [_call_element(call, view) for call in block.calls]
    if block.role in {"system", "developer"}:
        body = _output(block.text, view.limits.system)
        return _folded("system", join(tag("b", role), " ", _first_words(block.text)), body, *calls)
    name = "prompt" if block.role == "user" else "answer"
    head = tag("p", tag("b", role), " ", time_of(block.time_ns, view), class_="who")
    return tag("div", head, *_prose(block.text, view), *_pictures(block.pictures), *calls, class_=f"step {name}")


def _response(block: ResponseBlock, view: View) -> Html:
    model = one_line(block.served.model, _SUMMARY) or ("" if block.error else "answer")
    number = f"request-{block.request}" if block.request else None
    anchor = tag("a", f"#{block.request}", href=f"#{number}", class_="dim anchor") if number else None
    name = (
        join(tag("b", "request failed", class_="bad"), " " + model)
        if block.error
        else tag("bdi", model, class_="model")
    )
    via = f" via {one_line(block.served.provider, _SUMMARY)}" if block.served.provider else ""
    figures = figures_of(response_figures(view, block))
    head = tag("p", name, tag("span", via, class_="dim") if via else None, " ", anchor, " ", figures, class_="who")
    parts: list[Html] = [head]
    if block.error:
        parts.append(tag("div", *_typed(block.error, view.limits.prose), class_="typed bad"))
    if block.thought.strip():
        summary = join(tag("b", "thinking"), " ", _first_words(block.thought))
        thought = tag("div", *_typed(block.thought, view.limits.thought), class_="typed")
        parts.append(tag("details", tag("summary", summary), thought, class_="thinking"))
    if block.error and block.text.strip():
        parts.append(tag("p", "what had arrived:", class_="unsure"))
    parts += _prose(block.text, view)
    if block.unfinished:
        parts.append(tag("p", "broke off here: no response was recorded", class_="unsure"))
    elif not block.text.strip() and not block.calls and not block.error:
        parts.append(tag("p", "(no text)", class_="dim"))
    return tag(
        "div", *parts, class_="step answer" if block.text.strip() or block.error else "step answer brief", id=number
    )


def _tool(block: ToolCallBlock, view: View) -> Html:
    return _call_element(block.call, view, block)


def _call_element(call: Call, view: View, block: ToolCallBlock | None = None) -> Html:
    """Return a call with its result; without one, the call alone."""
    changed, shown = changes_of(call.arguments)
    main, short, long = by_size(call, shown, 4 * _SUMMARY)
    summary = join(
        tag("b", one_line(call.name, _SUMMARY) or "(unnamed tool)"), " ",
        tag("code", tag("bdi", one_line(main, _SUMMARY)), class_="main") if main else None, " ",
        None if block is None else figures_of(outcome(view, block)),
    )  # fmt: skip
    parts = [_output(main, view.limits.arguments, _language("", main, call))] if len(main) > _SUMMARY else []
    if short:
        parts.append(tag("p", json_text(view, short), class_="arguments"))
    for key, text in long.items():
        parts.append(tag("p", one_line(key, _SUMMARY), class_="language") if key else Html(""))
        parts.append(_output(text, view.limits.arguments, _language(key, main, call)))
    if changed:
        parts.append(_diff(changed, view.limits.output))
    if block is not None:
        parts += [_output(block.output, view.limits.output), *_pictures(block.pictures)]
        if block.error.strip():
            parts.append(tag("div", *_typed(block.error, view.limits.output), class_="typed bad"))
    is_failed = block is not None and bool(block.error)
    return _folded("tool failed" if is_failed else "tool", summary, *parts, is_open=0 < len(changed) <= _OPEN)


def _folded(name: str, summary: Html, *parts: Html, is_open: bool = False) -> Html:
    body = join(*parts)
    if not body:
        return tag("div", summary, class_=f"step {name} empty")
    return tag("details", tag("summary", summary), body, class_=f"step {name}", open=is_open)


def _language(key: str, main: str, call: Call) -> str:
    """Return the language of an argument: a command is one of a shell, a file's content that of its name."""
    if key in {"command", "cmd"} or (not key and isinstance(_argument(call, "command", "cmd"), str)):
        return "bash"
    path = _argument(call, "file_path", "path", "filename", "filePath")
    return language_of(path if isinstance(path, str) else main) if key else ""


def _argument(call: Call, *names: str) -> Any:
    given = call.arguments if isinstance(call.arguments, dict) else {}
    return next((given[name] for name in names if name in given), None)


def _prose(text: str, view: View) -> list[Html]:
    shown, left_out = shorten(text, view.limits.prose)
    body = markdown(shown)
    parts = [tag("div", body, class_="prose", dir="auto")] if body else []
    return [*parts, _left_out(left_out)] if left_out else parts


def _output(text: str, limit: Limit, language: str = "") -> Html:
    """Return a text as it is, in a block that scrolls; "" where it is blank."""
    if not text.strip():
        return Html("")
    shown, left_out = shorten(strip_line_ends(text), limit)
    return join(code_block(highlight(shown, language)), _left_out(left_out) if left_out else None)


def _typed(text: str, limit: Limit) -> list[str]:
    shown, left_out = shorten(strip_line_ends(text), limit)
    return [shown, *([_left_out(left_out)] if left_out else [])]


def _left_out(what: str) -> Html:
    return tag("p", f"… {what} (--full)", class_="dim cut")


def _first_words(text: str) -> Html:
    return tag("bdi", one_line(text[: 8 * _SUMMARY], _SUMMARY), class_="dim")


def _diff(lines: Sequence[ChangedLine], limit: Limit) -> Html:
    most = len(lines) if limit.lines is None else limit.lines
    names = {"+": "ins", "-": "del", "@": "hunk"}
    rows = [
        tag("span", f"{' ' if line.sign == '@' else line.sign} {line.text}\n", class_=names.get(line.sign))
        for line in lines[:most]
    ]
    cut = _left_out(f"+{len(lines) - most:,} lines") if len(lines) > most else None
    return join(tag("div", tag("pre", *rows, tabindex=0), class_="code diff"), cut)


def _pictures(pictures: Iterable[Picture]) -> list[Html]:
    return [made for one in pictures if (made := picture(one)) is not None]
