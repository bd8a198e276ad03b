"""What the responses of a session used, in disjoint token classes.

Whether the input of a provider holds what came from a cache shows only when all its responses of a session are known;
so they are collected first and read at the end.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from typing import Any

from sessionlog.events.tokens import TOKEN_CLASSES, TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.sources.fizeau_dialect import is_native, normalise_usage

_NAME = 200  # characters; a longer name is damage


class ResponseUsages:
    """Collects the usage of responses, in their order.

    Attributes:
        start: The payload of the session's start, which says how its numbers are to be read.
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
        """Take the payload of a session's start; the first one counts."""
        self.start = self.start or start

    def add(self, data: Mapping[str, Any]) -> None:
        """Take a response, the payload of its event."""
        usage, provider = self.learn(data)
        self._counts.extend(getattr(usage, name) for name in TOKEN_CLASSES)
        self._providers.append(sys.intern(provider))
        self._estimated.append(data.get("quality") == "estimated")

    def read(self) -> list[TokenUsage]:
        """Return what each response used."""
        width = len(TOKEN_CLASSES)
        rows = (self._counts[width * n : width * (n + 1)] for n in range(len(self)))
        usages = (TokenUsage(**dict(zip(TOKEN_CLASSES, row, strict=True))) for row in rows)
        return [self._disjoint(usage, provider) for usage, provider in zip(usages, self._providers, strict=True)]

    def reported(self) -> list[TokenUsage]:
        """Return what providers counted for each response: nothing where an agent estimated it itself."""
        read = zip(self.read(), self._estimated, strict=True)
        return [TokenUsage() if is_estimated else usage for usage, is_estimated in read]

    def provider_of(self, data: Mapping[str, Any]) -> str:
        """Return who served a response, "" where neither it nor its session says."""
        attempt = data.get("attempt")
        system = attempt.get("provider_system") if isinstance(attempt, Mapping) else None
        named = (system, data.get("provider"), self.start.get("provider"))
        return next((name[:_NAME] for name in named if isinstance(name, str) and name), "")

    def learn(self, data: Mapping[str, Any]) -> tuple[TokenUsage, str]:
        """Return a response's usage as logged and its provider, and note how that counts: sub-agents show it, too."""
        usage, provider = read_usage(data.get("usage"))[0], self.provider_of(data)
        if usage.cache_read > usage.input:
            self._exclusive.add(provider)
        return usage, provider

    def _disjoint(self, usage: TokenUsage, provider: str) -> TokenUsage:
        if is_native(self.start) or provider in self._exclusive:
            return usage
        named = self.start.get("resolved_harness")
        return normalise_usage(usage, harness=named if isinstance(named, str) else "", provider=provider)
