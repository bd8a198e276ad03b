"""Turn blocks into lines, with one function per kind of block, and separate them by blank lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from sessionlog.analytics.zones import local_time
from sessionlog.events.times import SECOND
from sessionlog.render.cells import cell_len
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
_SPEAKERS = {"user": Span("you ▸", "you"), "plan": Span("plan ▸", "title"), "assistant": Span("assistant ▸", "model")}
_ANSWER, _NO_TEXT = Span("◂ ", "model"), Span("  (no text)", "note")


def lay_out(blocks: Iterable[Block], view: View) -> Iterator[list[Line]]:
    """Yield the lines of each block, with a blank line first unless it belongs to the block before."""
    last: Block | None = None
    margin = None if view.exact or (view.width or 0) < _LEAST else Margin(view)
    for block in blocks:
        attached = isinstance(last, _ATTACHED.get(type(block), ())) and last.agent == block.agent
        if margin is None or isinstance(block, SessionStartBlock | SessionEndBlock):
            lines = _of_agent(view, block, last)
        else:
            lines = margin.beside(block, _of_agent(margin.view, block, last))
        yield lines if last is None or attached else [(), *lines]
        last = block


def _of_agent(view: View, block: Block, last: Block | None) -> list[Line]:
    """Return the lines of a block; those of a sub-agent behind a bar, with its name where it begins."""
    if not block.agent:
        return list(block_lines(view, block))
    bar = Span("  ┆ ", "tool")
    narrow = view if view.width is None else replace(view, width=max(20, view.width - 4))
    lines: list[Line] = [(bar, *line) for line in block_lines(narrow, block)]
    if last is None or last.agent != block.agent:
        lines.insert(0, (bar, words(f"sub-agent {block.agent}", "tool")))
    return lines


def block_lines(view: View, block: Block) -> Iterable[Line]:
    """Return the lines of a block."""
    return _BLOCKS[type(block)](view, block)


def _request(view: View, block: RequestBlock) -> list[Line]:
    facts = [Span(counted(view, block.messages, "message")), Span(counted(view, block.tools, "tool"))]
    return head(view, (Span("▹ request", "note"), Span("  "), words(block.model, "note")), facts)


def _message(view: View, block: MessageBlock) -> list[Line]:
    if block.role == "tool":
        label = clipped((Span("tool ▸ ", "tool"), words(block.tool, "tool")), view.width)
        return [label, *body(view, block.text, view.limits.output, indent=2, gutter="│ ", prose=False)]
    speaker = _SPEAKERS.get(block.role)
    if speaker is None:
        limit = view.limits.system if block.role in {"system", "developer"} else view.limits.prose
        lines = labelled_text(view, (Span(f"{words(block.role).text} ▸", "note"),), block.text, limit, "note")
    else:
        lines = labelled((speaker,), prose(view, block.text, indent=cell_len(speaker.text) + 1))
    for call in block.calls:
        lines += tool_call(view, call, ())
    return lines


def _rewrite(view: View, block: RewriteBlock) -> list[Line]:
    left_out = counted(view, block.left_out, "earlier message")
    verb = "is" if block.left_out == 1 else "are"
    text = f"{left_out} {verb} not in this request" if block.kept else "a new conversation begins"
    return [(Span("↺ history  ", "note"), Span(text, "note"))]


def _response(view: View, block: ResponseBlock) -> list[Line]:
    served = block.served
    left: Line = (_ANSWER, words(served.model or "answer", "model"))
    if block.error:
        name = words(served.model, "failed")
        left = (Span("✘ request failed", "failed"), Span("  " if name.text else ""), name)
    if served.provider:
        left += (Span("  via ", "note"), words(served.provider, "note"))
    lines = head(view, left, response_figures(view, block))
    if block.error:
        lines += body(view, block.error, view.limits.prose, indent=2, style="failed")
        if block.text.strip():
            lines.append((Span("  ◌ what had arrived:", "unfinished"),))
            lines += body(view, block.text, view.limits.prose, indent=2, gutter="│ ")
        return lines
    if block.thought.strip():
        lines += labelled_text(view, (Span("  thinking ▸", "note"),), block.thought, view.limits.thought, "note")
    lines += prose(view, block.text, indent=2)
    if block.unfinished:
        lines.append((Span("  ◌ broke off here: no response was recorded", "unfinished"),))
    elif not block.calls and not block.text.strip():
        lines.append((_NO_TEXT,))
    return lines


def response_figures(view: View, block: ResponseBlock) -> list[Span]:
    """Return the figures of a response: attempt, how it stopped, time, tokens, cost."""
    served = block.served
    figures: list[Span] = []
    if served.attempt > 1:
        figures.append(Span(f"attempt {served.attempt}", "unfinished"))
    if served.finish_reason not in _ORDINARY:
        figures.append(words(f"stopped: {served.finish_reason}", "unfinished"))
    figures.append(span_of_time(view, served.latency_ms))
    figures += tokens(view, served.usage)
    if block.calls and view.exact and not block.error:
        figures.append(Span(counted(view, block.calls, "tool call")))
    figures.append(money(view, served.cost))
    return figures


def _note(view: View, block: NoteBlock) -> list[Line]:
    style = "failed" if block.severity == "damage" else "note"
    mark = "!" if block.severity == "damage" else "·"
    text = block.text or ("" if block.data is None else json_text(view, block.data))
    lines = body(view, f"{words(block.kind).text}  {text}", _NOTE, indent=4, style=style)
    if lines:
        lines[0] = (Span(f"{mark} ", style), *lines[0][1:])
    return lines + body(view, block.more, view.limits.output, indent=4, gutter="│ ")


def _payload(view: View, block: PayloadBlock) -> Iterable[Line]:
    return _PAYLOADS[block.type](view, block.payload)


_PAYLOADS: Mapping[str, Callable[[View, Any], Iterable[Line]]] = {
    "routing_decision": routed,
    "override": pinned,
    "rejected_override": pinned,
    "compaction.start": compacting,
    "compaction.end": compacted,
}
_BLOCKS: Mapping[type[Block], Callable[[View, Any], Iterable[Line]]] = {
    SessionStartBlock: session_head,
    RequestBlock: _request,
    MessageBlock: _message,
    RewriteBlock: _rewrite,
    ResponseBlock: _response,
    ToolCallBlock: tool_result,
    SessionEndBlock: session_end,
    NoteBlock: _note,
    PayloadBlock: _payload,
}


_WIDTH = 8
_NO_LABEL = Span(" " * _WIDTH, "note")
_LEAST = 60  # columns; narrower terminals get no margin


class Margin:
    """Writes the number of a request or a time beside the lines of a block; only on terminals.

    Attributes:
        view: The view with the width that the margin leaves.
    """

    def __init__(self, view: View) -> None:
        self._day = self._minute = ""
        self._begin_ns = self._end_ns = 0  # of the minute shown last
        self.view = replace(view, width=(view.width or 0) - _WIDTH)

    def beside(self, block: Block, lines: Iterable[Line]) -> list[Line]:
        """Return the lines of a block behind their labels: its number on the first line, its time on the next."""
        number = block.request if isinstance(block, ResponseBlock) else 0
        labelled: list[Line] = []
        for line in lines:
            label, number = f"#{number}" if number else self._time(block.time_ns), 0
            margin = Span(f"{label[: _WIDTH - 2]:>{_WIDTH - 2}}  ", "note") if label else _NO_LABEL
            labelled.append((margin, *line) if line else line)
        return labelled

    def _time(self, time_ns: int | None) -> str:
        """Return the day or the minute if it differs from the last one shown, else ""."""
        if time_ns is None or self._begin_ns <= time_ns < self._end_ns:
            return ""
        time = local_time(time_ns, self.view.zone)
        day, minute = f"{time:%d %b}".lstrip("0"), f"{time:%H:%M}"
        if day != self._day:
            is_first, self._day, self._minute = not self._day, day, ""
            if not is_first:
                self._begin_ns = self._end_ns = 0  # a time that goes back to the former minute has another day
                return day
        self._begin_ns = time_ns - time_ns % SECOND - time.second * SECOND
        self._end_ns = self._begin_ns + 60 * SECOND
        if minute == self._minute:
            return ""
        self._minute = minute
        return minute
