"""Turn blocks into lines, with one function per kind of block, and separate them by blank lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from sessionlog.analytics.zones import local_time
from sessionlog.render.replay.blocks import (
    Block,
    MessageBlock,
    NoteBlock,
    PayloadBlock,
    RequestBlock,
    ResponseBlock,
    RewriteBlock,
    SessionEndBlock,
    SessionStartBlock,
    ToolCallBlock,
)
from sessionlog.render.replay.figures import counted, money, span_of_time, tokens
from sessionlog.render.replay.layout_session import compacted, compacting, pinned, routed, session_end, session_head
from sessionlog.render.replay.layout_tools import json_text, tool_call, tool_result
from sessionlog.render.replay.lines import (
    Limit,
    Line,
    Span,
    View,
    body,
    cells,
    clipped,
    head,
    labelled,
    labelled_text,
    words,
)
from sessionlog.render.replay.markdown import prose

_ATTACHED = {
    ToolCallBlock: (ToolCallBlock, ResponseBlock),
    MessageBlock: (RequestBlock,),
    NoteBlock: (NoteBlock,),
    RewriteBlock: (RequestBlock,),
}
_NOTE = Limit(chars=400)
_ORDINARY = frozenset(
    {"", "stop", "tool_calls", "tool_use", "end_turn", "stop_sequence", "completed", "function_call", "STOP"}
)
_SPEAKERS = {"user": ("you ▸", "you"), "plan": ("plan ▸", "title"), "assistant": ("assistant ▸", "model")}


def lay_out(blocks: Iterable[Block], view: View) -> Iterator[list[Line]]:
    """Yield the lines of each block, with a blank line first unless it belongs to the block before."""
    last: Block | None = None
    margin = None if view.exact or (view.width or 0) < _LEAST else Margin(view)
    for block in blocks:
        attached = isinstance(last, _ATTACHED.get(type(block), ())) and last.agent == block.agent
        gap: list[Line] = [] if last is None or attached else [()]
        if isinstance(block, SessionStartBlock | SessionEndBlock):
            lines = block_lines(view, block)
        elif margin is None:
            lines = _of_agent(view, block, last)
        else:
            lines = margin.beside(block, _of_agent(margin.view, block, last))
        yield [*gap, *lines]
        last = block


def _of_agent(view: View, block: Block, last: Block | None) -> Iterator[Line]:
    """Yield the lines of a block; those of a sub-agent behind a bar, with its name where it begins."""
    if not block.agent:
        yield from block_lines(view, block)
        return
    bar = Span("  ┆ ", "tool")
    if last is None or last.agent != block.agent:
        yield (bar, words(f"sub-agent {block.agent}", "tool"))
    narrow = view if view.width is None else replace(view, width=max(20, view.width - 4))
    for line in block_lines(narrow, block):
        yield (bar, *line)


def block_lines(view: View, block: Block) -> Iterator[Line]:
    """Yield the lines of a block."""
    if isinstance(block, PayloadBlock):
        yield from _PAYLOADS[block.type](view, block.payload)
    else:
        yield from _BLOCKS[type(block)](view, block)


def _request(view: View, block: RequestBlock) -> Iterator[Line]:
    facts = [Span(counted(view, block.messages, "message")), Span(counted(view, block.tools, "tool"))]
    yield from head(view, (Span("▹ request", "note"), Span("  "), words(block.model, "note")), facts)


def _message(view: View, block: MessageBlock) -> Iterator[Line]:
    if block.role == "tool":
        yield clipped((Span("tool ▸ ", "tool"), words(block.tool, "tool")), view.width)
        yield from body(view, block.text, view.limits.output, indent=2, gutter="│ ", prose=False)
        return
    label, style = _SPEAKERS.get(block.role, (f"{words(block.role).text} ▸", "note"))
    if style == "note":
        limit = view.limits.system if block.role in {"system", "developer"} else view.limits.prose
        yield from labelled_text(view, (Span(label, style),), block.text, limit, style)
    else:
        yield from labelled((Span(label, style),), prose(view, block.text, indent=cells((Span(label),)) + 1))
    for call in block.calls:
        yield from tool_call(view, call, ())


def _rewrite(view: View, block: RewriteBlock) -> Iterator[Line]:
    left_out = counted(view, block.left_out, "earlier message")
    verb = "is" if block.left_out == 1 else "are"
    text = f"{left_out} {verb} not in this request" if block.kept else "a new conversation begins"
    yield (Span("↺ history  ", "note"), Span(text, "note"))


def _response(view: View, block: ResponseBlock) -> Iterator[Line]:
    served = block.served
    left: Line = (Span("◂ ", "model"), words(served.model or "answer", "model"))
    if block.error:
        name = words(served.model, "failed")
        left = (Span("✘ request failed", "failed"), Span("  " if name.text else ""), name)
    via = (Span("  via ", "note"), words(served.provider, "note")) if served.provider else ()
    yield from head(view, (*left, *via), list(response_figures(view, block)))
    if block.error:
        yield from body(view, block.error, view.limits.prose, indent=2, style="failed")
        if block.text.strip():
            yield (Span("  ◌ what had arrived:", "unfinished"),)
            yield from body(view, block.text, view.limits.prose, indent=2, gutter="│ ")
        return
    if block.thought.strip():
        yield from labelled_text(view, (Span("  thinking ▸", "note"),), block.thought, view.limits.thought, "note")
    yield from prose(view, block.text, indent=2)
    if block.unfinished:
        yield (Span("  ◌ broke off here: no response was recorded", "unfinished"),)
    elif not block.text.strip() and not block.calls:
        yield (Span("  (no text)", "note"),)


def response_figures(view: View, block: ResponseBlock) -> Iterator[Span]:
    """Yield the figures of a response: attempt, how it stopped, time, tokens, cost."""
    served = block.served
    if served.attempt > 1:
        yield Span(f"attempt {served.attempt}", "unfinished")
    if served.finish_reason not in _ORDINARY:
        yield words(f"stopped: {served.finish_reason}", "unfinished")
    yield span_of_time(view, served.latency_ms)
    yield from tokens(view, served.usage)
    if block.calls and view.exact and not block.error:
        yield Span(counted(view, block.calls, "tool call"))
    yield money(view, served.cost)


def _note(view: View, block: NoteBlock) -> Iterator[Line]:
    style = "failed" if block.severity == "damage" else "note"
    mark = "!" if block.severity == "damage" else "·"
    text = block.text or ("" if block.data is None else json_text(view, block.data))
    for index, line in enumerate(body(view, f"{words(block.kind).text}  {text}", _NOTE, indent=4, style=style)):
        yield line if index else (Span(f"{mark} ", style), *line[1:])
    yield from body(view, block.more, view.limits.output, indent=4, gutter="│ ")


_BLOCKS: Mapping[type[Block], Callable[[View, Any], Iterator[Line]]] = {
    SessionStartBlock: session_head,
    RequestBlock: _request,
    MessageBlock: _message,
    RewriteBlock: _rewrite,
    ResponseBlock: _response,
    ToolCallBlock: tool_result,
    SessionEndBlock: session_end,
    NoteBlock: _note,
}
_PAYLOADS: Mapping[str, Callable[[View, Any], Iterator[Line]]] = {
    "routing_decision": routed,
    "override": pinned,
    "rejected_override": pinned,
    "compaction.start": compacting,
    "compaction.end": compacted,
}


_WIDTH = 8
_LEAST = 60  # columns; narrower terminals get no margin


class Margin:
    """Writes the number of a request or a time beside the lines of a block; only on terminals.

    Attributes:
        view: The view with the width that the margin leaves.
    """

    def __init__(self, view: View) -> None:
        self._day = self._minute = ""
        self.view = replace(view, width=(view.width or 0) - _WIDTH)

    def beside(self, block: Block, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines of a block behind their labels: its number on the first line, its time on the next."""
        number = block.request if isinstance(block, ResponseBlock) else 0
        for line in lines:
            label, number = f"#{number}" if number else self._time(block.time_ns), 0
            yield (Span(f"{label[: _WIDTH - 2]:>{_WIDTH - 2}}  ", "note"), *line) if line else line

    def _time(self, time_ns: int | None) -> str:
        """Return the day or the minute if it differs from the last one shown, else ""."""
        if time_ns is None:
            return ""
        time = local_time(time_ns, self.view.zone)
        day, minute = f"{time:%d %b}".lstrip("0"), f"{time:%H:%M}"
        if day != self._day:
            is_first, self._day, self._minute = not self._day, day, ""
            if not is_first:
                return day
        if minute == self._minute:
            return ""
        self._minute = minute
        return minute
