"""Token usage of a session's responses, in disjoint token classes.

Some providers count cached tokens as part of the input, others beside it. Only all responses of a provider together
show which, so they are collected first and converted at the end.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

from sessionlog.events.tokens import TOKEN_CLASSES, TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.sources.fizeau_dialect import is_native, normalise_usage

_MAX_NAME = 200  # characters; a longer name is damage
_classes_of = attrgetter(*TOKEN_CLASSES)


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
        self._counts.extend(_classes_of(usage))
        self._providers.append(sys.intern(provider))
        self._estimated.append(data.get("quality") == "estimated")

    def read(self) -> Iterator[TokenUsage]:
        """Yield the usage of each response."""
        is_disjoint, named = is_native(self.start), self.start.get("resolved_harness")
        harness = named if isinstance(named, str) else ""
        counts = iter(self._counts)
        for provider, row in zip(self._providers, zip(*[counts] * len(TOKEN_CLASSES), strict=True), strict=True):
            given, output, read, written, reasoning, written_1h = row
            usage = TokenUsage(
                input=given, output=output, cache_read=read, cache_write=written, reasoning=reasoning,
                cache_write_1h=written_1h,
            )  # fmt: skip
            if not is_disjoint and provider not in self._exclusive:
                usage = normalise_usage(usage, harness=harness, provider=provider)
            yield usage

    def reported(self) -> Iterator[TokenUsage]:
        """Yield the usage of each response as its provider counted it; empty where the agent estimated it."""
        read = zip(self.read(), self._estimated, strict=True)
        return (TokenUsage() if is_estimated else usage for usage, is_estimated in read)

    def provider_of(self, data: Mapping[str, Any]) -> str:
        """Return the provider that served a response; "" where neither it nor its session names one."""
        attempt = data.get("attempt")
        system = attempt.get("provider_system") if isinstance(attempt, Mapping) else None
        for name in (system, data.get("provider"), self.start.get("provider")):
            if isinstance(name, str) and name:
                return name[:_MAX_NAME]
        return ""

    def observe(self, data: Mapping[str, Any]) -> tuple[TokenUsage, str]:
        """Return a response's usage as logged and its provider; note whether the provider counts the cache apart.

        Responses of sub-agents, which are not added, show that as well.
        """
        usage, provider = read_usage(data.get("usage"))[0], self.provider_of(data)
        if usage.cache_read > usage.input:
            self._exclusive.add(provider)
        return usage, provider
