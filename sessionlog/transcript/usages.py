"""Token usage of a session's responses, in disjoint token classes.

Some providers count cached tokens as part of the input, others beside it. Only all responses of a provider together
show which, so they are collected first and converted at the end.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

from sessionlog.events.tokens import TOKEN_CLASSES, TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.sources.fizeau_dialect import is_native, normalise_usage

_MAX_NAME = 200  # characters; a longer name is damage


class ResponseUsages:
    """Collects the usage of responses, in order.

    Attributes:
        start: The payload of `session.start`; it names the dialect and the provider.
    """

    def __init__(self) -> None:
        self.start: Mapping[str, Any] = {}
        self._counts = array("q")  # one for each class and response
        self._providers: list[str] = []
        self._estimated: list[bool] = []
        self._exclusive: set[str] = set()

    def __len__(self) -> int:
        return len(self._providers)

    def begin(self, start: Mapping[str, Any]) -> None:
        """Set the payload of `session.start`; only the first one counts."""
        self.start = self.start or start

    def add(self, data: Mapping[str, Any]) -> None:
        """Add a response, the payload of its event."""
        usage, provider = self.observe(data)
        self._counts.extend(getattr(usage, name) for name in TOKEN_CLASSES)
        self._providers.append(sys.intern(provider))
        self._estimated.append(data.get("quality") == "estimated")

    def read(self) -> Iterator[TokenUsage]:
        """Yield the usage of each response."""
        width = len(TOKEN_CLASSES)
        rows = (self._counts[width * n : width * (n + 1)] for n in range(len(self)))
        usages = (TokenUsage(**dict(zip(TOKEN_CLASSES, row, strict=True))) for row in rows)
        return (self._disjoint(usage, provider) for usage, provider in zip(usages, self._providers, strict=True))

    def reported(self) -> Iterator[TokenUsage]:
        """Yield the usage of each response as its provider counted it; empty where the agent estimated it."""
        read = zip(self.read(), self._estimated, strict=True)
        return (TokenUsage() if is_estimated else usage for usage, is_estimated in read)

    def provider_of(self, data: Mapping[str, Any]) -> str:
        """Return the provider that served a response; "" where neither it nor its session names one."""
        attempt = data.get("attempt")
        system = attempt.get("provider_system") if isinstance(attempt, Mapping) else None
        named = (system, data.get("provider"), self.start.get("provider"))
        return next((name[:_MAX_NAME] for name in named if isinstance(name, str) and name), "")

    def observe(self, data: Mapping[str, Any]) -> tuple[TokenUsage, str]:
        """Return a response's usage as logged and its provider; note whether the provider counts the cache apart.

        Responses of sub-agents, which are not added, show that as well.
        """
        usage, provider = read_usage(data.get("usage"))[0], self.provider_of(data)
        if usage.cache_read > usage.input:
            self._exclusive.add(provider)
        return usage, provider

    def _disjoint(self, usage: TokenUsage, provider: str) -> TokenUsage:
        if is_native(self.start) or provider in self._exclusive:
            return usage
        named = self.start.get("resolved_harness")
        return normalise_usage(usage, harness=named if isinstance(named, str) else "", provider=provider)
