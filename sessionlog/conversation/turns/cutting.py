"""Cutting: a session's history is cut before its agent is asked, and whatever fails in that, the agent is asked.

A summary is somebody's own function, and often a model's answer: one that fails is done without. So no question is
lost for the sake of what was said long ago.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.turns.drive import Do, Step
from sessionlog.conversation.turns.line import Line


def truncated(line: Line) -> Generator[Step, Any, Truncation | None]:
    """Cut the history, and tell the log; returns what that did, None if nothing was done and nothing is to be said."""
    conversation, beside = line.conversation, line.beside()
    before = conversation.messages
    try:
        cut: Truncation = yield Do(lambda: conversation.truncate_history(beside), blocking=True, whole=True)
    except Exception as error:  # noqa: BLE001 - somebody's own function may raise anything, and the response tells it
        cut = _without_it(line, beside, error)
    after = conversation.messages
    line.recorder.truncated(before, after, cut)
    return cut if cut.warning or before != after else None


def _without_it(line: Line, beside: int, error: Exception) -> Truncation:
    """Drop the oldest messages, and say why."""
    conversation, chosen = line.conversation, line.conversation.settings
    conversation.settings = replace(chosen, truncation_strategy="drop_oldest", summary=None)
    try:
        cut = conversation.truncate_history(beside)
    finally:
        conversation.settings = chosen
    strategy = chosen.truncation_strategy
    named = "the summary" if isinstance(strategy, str) else getattr(strategy, "__name__", "the truncation")
    why = f"{named} failed: {type(error).__name__}: {error}".rstrip(": ")
    how = "the oldest were dropped without one" if isinstance(strategy, str) else "the oldest were dropped instead"
    return Truncation(
        cut.dropped,
        strategy=cut.strategy,
        tokens_before=cut.tokens_before,
        tokens_after=cut.tokens_after,
        is_over_budget=cut.is_over_budget,
        warning="; ".join(filter(None, (why, how if cut.dropped else "nothing was dropped", cut.warning))),
    )
