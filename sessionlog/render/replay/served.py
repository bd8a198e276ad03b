"""Read the figures of a single response: who answered, its tokens in disjoint classes, and what it cost.

The names are those of the response's record in the ledger. A cost is recorded, estimated or unknown, and unknown is
never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sessionlog.events.billing import Billed, read_billed
from sessionlog.events.money import read_usd
from sessionlog.events.payloads import SessionStart
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay.blocks import Cost, Served
from sessionlog.render.replay.partial import Partial
from sessionlog.sources import values
from sessionlog.sources.fizeau_dialect import cost_is_recorded, normalise_usage
from sessionlog.sources.native import read_milliseconds

_NO_NAMES = ("", "", "")


class Price(Protocol):
    """Returns nano-dollars, or None where there is no price."""

    def __call__(
        self, provider: str, model: str, usage: TokenUsage, time_ns: int | None, /, *, service_tier: str = "",
        speed: str = "", region: str = "", searches: int = 0,
    ) -> int | None:  # fmt: skip
        """Price one request."""


class ResponseReader:
    """Reads the figures of a session's responses.

    Attributes:
        start: The session.start, which names provider and dialect; empty for a log without one.
        requested_model: The model of the last request, which its response does not repeat.
    """

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self.start = SessionStart()
        self.requested_model = ""

    def other_provider(self, provider: object) -> str:
        """Return a provider that session.start does not name, else ""."""
        if not provider:
            return ""
        known = {self.start.provider, self.start.selected_provider, self.start.selected_route}
        return provider if isinstance(provider, str) and provider not in known else ""

    def usage(self, logged: TokenUsage | None, provider: str = "") -> TokenUsage | None:
        """Return logged usage in disjoint classes; in logs of the Go original the dialect depends on the provider."""
        if logged is None or not logged.cache_read or self.start.v is not None:
            return logged
        harness = self.start.resolved_harness or ""
        return normalise_usage(logged, harness=harness, provider=provider or self.start.provider or "")

    def read(
        self, data: Mapping[str, Any], response: Mapping[str, Any], partial: Partial, time_ns: int | None
    ) -> Served:
        """Return the figures of a response.

        Args:
            data: The payload as logged.
            response: Its fields, as read.
            partial: The stream before it, which may name model and provider.
            time_ns: When it came, None where it is not logged.
        """
        attempt, served = response.get("attempt") or {}, response.get("model") or ""
        fields = ("provider_system", "requested_model", "response_model")
        system, asked, answered = [values.text(attempt, field) for field in fields] if attempt else _NO_NAMES
        provider = system or response.get("provider") or ""
        usage = self.usage(response.get("usage"), provider)
        models = (answered or served, asked or response.get("requested_model") or self._requested(served))
        shown = attempt.get("provider_name") or response.get("provider") or partial.provider
        return Served(
            model=response.get("model") or partial.model,
            provider=self.other_provider(shown),
            latency_ms=read_milliseconds(data.get("latency_ms")),
            usage=usage,
            cost=self._cost(data, response, usage, provider, models, time_ns),
            finish_reason=response.get("finish_reason") or "",
            attempt=response.get("attempt_index") or 1,
        )

    def _requested(self, served: str) -> str:
        """Return the model that was asked for, where the response does not name it."""
        configured = self.start.resolved_model or self.start.model or ""
        return self.requested_model or (served if self.start.v is not None else "") or configured or served

    def _cost(
        self,
        data: Mapping[str, Any],
        response: Mapping[str, Any],
        usage: TokenUsage | None,
        provider: str,
        models: tuple[str, str],
        time_ns: int | None,
    ) -> Cost | None:
        nano, _ = read_usd(response.get("cost_usd"))
        if nano:
            return Cost(nano=nano)
        provider = provider or self.start.served_by
        estimate = self._estimate(provider, models, usage, time_ns, read_billed(data)[0]) if usage else None
        if not estimate and cost_is_recorded(nano, response.get("attempt") or {}):
            return Cost(nano=0, unchecked=self._price is None)
        return None if estimate is None else Cost(nano=estimate, estimated=True)

    def _estimate(
        self, provider: str, models: tuple[str, str], usage: TokenUsage, time_ns: int | None, billed: Billed
    ) -> int | None:
        """Return the cost by the first of the models that has a price."""
        if self._price is None:
            return None
        for model in filter(None, dict.fromkeys(models)):
            price = self._price(provider, model, usage, time_ns, **billed._asdict())
            if price is not None:
                return price
        return None
