"""TokenCounter: what the requests of one session have used, summed up and saved with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.errors import InvalidHistory
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.events.usage import read_usage


class TokenCounter:
    """What a session has used, summed up.

    Attributes:
        usage: Its tokens, in disjoint classes.
        requests: How often a model was asked.
    """

    __slots__ = ("requests", "usage")

    def __init__(self, usage: TokenUsage | None = None, requests: int = 0) -> None:
        self.usage = usage or TokenUsage()
        self.requests = requests

    def add(self, usage: TokenUsage | None) -> None:
        """Count one more request; None is one of which nobody told the tokens."""
        self.requests += 1
        if usage is not None:
            self.usage += usage

    def to_dict(self) -> dict[str, int]:
        """JSON shape: the classes of a native log, and `requests`."""
        return {**self.usage.to_dict(), "requests": self.requests}

    @classmethod
    def from_dict(cls, value: Any, place: str = "token_usage") -> TokenCounter:
        """Read what `to_dict` has saved; None is a counter that has counted nothing.

        Raises:
            InvalidHistory: A number in it is none.
        """
        if value is None:
            return cls()
        usage, issues = read_usage(value)
        requests, issue = read_count(value.get("requests") if isinstance(value, Mapping) else None)
        wrong = [*issues, *([f"requests: {issue}"] if issue else [])]
        if wrong:
            raise InvalidHistory(f"{place}: {'; '.join(wrong)}")
        return cls(usage, requests)
