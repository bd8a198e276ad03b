"""Reported: what the provider counted at one request of a session, by the rules of the X-ray, without its work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.context.xray.requests import Usages, provider_of
from sessionlog.events.envelope import Event
from sessionlog.events.usage import read_usage


class Reported:
    """Listens to the events of a session in their order.

    Args:
        request: Which request, from 1; one beyond the last is the last; None for the last that was counted.
    """

    def __init__(self, request: int | None = None) -> None:
        self._wanted = request
        self._start: Mapping[str, Any] = {}
        self._usages = Usages()
        self._outputs: list[int] = []
        self._is_asked = self._open = False

    @property
    def is_answered(self) -> bool:
        """Whether the request that was asked for has its answer."""
        return self._wanted is not None and len(self._outputs) >= self._wanted

    def take(self, event: Event) -> None:
        """Take the next event."""
        data = event.data if isinstance(event.data, Mapping) else {}
        if event.type == "session.start":
            self._start = self._start or data
        elif event.type == "llm.request":
            self._is_asked = self._open = True
        elif event.type == "llm.response" and "agent" not in data and (self._open or not self._is_asked):
            self._open = False
            self._usages.asked()
            self._usages.heard(data, provider_of(data, self._start))
            self._outputs.append(read_usage(data.get("usage"))[0].output)

    def counts(self) -> tuple[int | None, int | None]:
        """Return prompt tokens and output tokens, each None where the provider did not tell."""
        told = [sample.reported for sample in self._usages.samples([0] * len(self._outputs), self._start)]
        counted = list(zip(told, self._outputs, strict=True))
        if self._wanted is None:
            return next(((prompt, output) for prompt, output in reversed(counted) if prompt is not None), (None, None))
        prompt, output = counted[: max(0, self._wanted)][-1] if counted and self._wanted > 0 else (None, 0)
        return prompt, None if prompt is None else output
