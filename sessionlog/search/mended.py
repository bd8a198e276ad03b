"""Mended: what a session did after an error, up to the next success of the same tool.

Whether that success was due to what was done cannot be known: a log shows only what came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from sessionlog.search.find import Hit
from sessionlog.search.texts import open_log, read_items
from sessionlog.sources.fold_items import Item, Kind, call_text
from sessionlog.sources.steps import ToolCall, ToolResult

_MOST = 50
"""Calls that are kept."""

Outcome = Literal["same call", "same tool", "none"]


class Mended(Struct, frozen=True, kw_only=True):
    """An error, and what followed.

    Attributes:
        hit: The error.
        call: The text of the call that failed; "" where the log does not hold it.
        tool: Its tool.
        after: The calls after it, up to the one that succeeded, at most fifty.
        count: How many there were.
        outcome: Whether the same call succeeded, or else another call of the same tool, in this session.
        answer: The last answer of the session.
    """

    hit: Hit
    call: str
    tool: str
    after: tuple[ToolCall, ...]
    count: int
    outcome: Outcome
    answer: str


def mended(hit: Hit, env: Mapping[str, str]) -> Mended | None:
    """Return what followed an error; None if its log cannot be read any more."""
    if hit.item is None:
        return None
    is_gone = hit.where == "archive"
    with open_log(hit.path, hit.session.source, is_gone=is_gone, env=env) as log:
        return None if log is None else _fold(hit, hit.item, read_items(log.source, log.path, 0))


def _fold(hit: Hit, error: Item, items: Iterable[Item]) -> Mended:
    calls: dict[str, ToolCall] = {}
    after: list[ToolCall] = []
    failed: ToolCall | None = None
    tool = text = answer = ""
    has_begun = False
    same_tool = same_call = 0  # how many calls there were up to the first success
    for item in items:
        step = item.step
        if item.kind == Kind.CALL and isinstance(step, ToolCall):
            calls[step.key] = step
            if has_begun:
                after.append(step)
        elif not has_begun and _is_same(item, error):
            has_begun = True
            failed = calls.get(step.key) if isinstance(step, ToolResult) else None
            tool = failed.tool if failed is not None else getattr(step, "tool", "")
            text = call_text(failed) if failed is not None else ""
        elif has_begun and item.kind == Kind.ANSWER:
            answer = item.text
        elif has_begun and not same_call and item.kind == Kind.RESULT and isinstance(step, ToolResult):
            made = calls.get(step.key)
            if made is not None and made in after and made.tool == tool:
                same_tool = same_tool or after.index(made) + 1
                same_call = after.index(made) + 1 if call_text(made) == text else 0
    outcome: Outcome = "same call" if same_call else "same tool" if same_tool else "none"
    count = same_call or same_tool or len(after)
    return Mended(
        hit=hit,
        call=text,
        tool=tool,
        after=tuple(after[: min(count, _MOST)]),
        count=count,
        outcome=outcome,
        answer=answer,
    )


def _is_same(item: Item, error: Item) -> bool:
    return item.kind == error.kind and item.time == error.time and item.text == error.text
