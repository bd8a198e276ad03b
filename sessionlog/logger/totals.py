"""Totals: what the responses recorded by one logger used, for its `session.end`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.events.billing import read_whole
from sessionlog.events.money import read_usd, usd
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage

_INTERRUPTED = ("cancelled", "interrupted")


class Totals:
    """Running sums; a response without a cost makes the session's cost unknown, never smaller.

    Attributes:
        responses: How many there were.
        counted: How many of these had a usage.
        usage: The sum of their usage.
    """

    __slots__ = ("_cost_nano", "_costs_known", "counted", "responses", "usage")

    def __init__(self) -> None:
        self.responses = self.counted = 0
        self.usage = TokenUsage()
        self._cost_nano = 0
        self._costs_known = True

    def add(self, data: Any) -> tuple[str, ...]:
        """Add one llm.response payload; return what is wrong with its numbers."""
        if not isinstance(data, Mapping):
            return ()
        self.responses += 1
        logged = data.get("usage")
        self.counted += logged is not None
        usage, issues = read_usage(logged)
        if type(logged) is dict and "iterations" in logged:
            usage, issues = read_whole(logged)
        self.usage += usage
        cost, issue = read_usd(data.get("cost_usd"))
        if cost is not None:
            self._cost_nano += cost
        elif usage or (logged is None and _was_answered(data)):
            self._costs_known = False
        return (*issues, issue) if issue else issues

    @property
    def cost_usd(self) -> float | None:
        """The sum of the recorded costs in US dollars; None when a response that may have cost had none."""
        return usd(self._cost_nano) if self._costs_known and self.responses else None


def _was_answered(data: Mapping[str, Any]) -> bool:
    """Whether a response may have cost something: a failed call without content is free, an interrupted one is not."""
    return not data.get("error") or bool(data.get("content")) or data.get("partial") in _INTERRUPTED
