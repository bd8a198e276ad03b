"""Told: what providers told that each answer of a session used, read in one way for the whole session.

Whether a provider's input holds what came from a cache shows only when all its answers are known, so the classes are
made disjoint last, by the rule of `usage` and of the X-ray. A sub-agent's answers fill no window of this session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.context.usage import Counts
from sessionlog.context.xray.requests import provider_of
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.sources.fizeau_dialect import is_native, normalise_usage

Json = Any


class Told:
    """Listens to the responses of a session in their order."""

    def __init__(self) -> None:
        self._start: Mapping[str, Json] = {}
        self._told: list[tuple[Counts, TokenUsage, str]] = []
        self._exclusive: set[str] = set()
        self._apart: list[tuple[TokenUsage, str]] = []

    def begin(self, start: Mapping[str, Json]) -> None:
        """Take a session's start; the first one counts."""
        self._start = self._start or start

    def answered(self, data: Mapping[str, Json]) -> Counts:
        """Take a response, the payload of its event; what is returned stands for its usage until `read`."""
        usage, provider = self.overheard(data)
        counts = Counts.of_usage(usage)
        self._told.append((counts, usage, provider))
        return counts

    def overheard(self, data: Mapping[str, Json]) -> tuple[TokenUsage, str]:
        """Learn how a provider counts from a response that does not count itself."""
        usage, provider = read_usage(data.get("usage"))[0], provider_of(data, self._start)
        if usage.cache_read > usage.input:
            self._exclusive.add(provider)
        return usage, provider

    def aside(self, data: Mapping[str, Json]) -> None:
        """Take a sub-agent's response, or that of whoever wrote a summary."""
        self._apart.append(self.overheard(data))

    def apart(self) -> Counts:
        """Return what those used, added up."""
        used = [self._disjoint(usage, provider) for usage, provider in self._apart]
        return Counts.of_usage(sum(used, TokenUsage()))

    def read(self) -> dict[int, Counts]:
        """Return what each answer used, by the `id` of what stood for it."""
        return {id(counts): Counts.of_usage(self._disjoint(usage, provider)) for counts, usage, provider in self._told}

    def _disjoint(self, usage: TokenUsage, provider: str) -> TokenUsage:
        if is_native(self._start) or provider in self._exclusive:
            return usage
        named = self._start.get("resolved_harness")
        return normalise_usage(usage, harness=named if isinstance(named, str) else "", provider=provider)
