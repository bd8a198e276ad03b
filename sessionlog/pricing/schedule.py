"""Schedule: which of a model's listed prices hold on a day, at an hour, for a kind of request.

A list keeps history: prices that begin on a date, and prices for hours of the day. The last active period wins; if none
is active, the first one holds. Then variants (batch, service tier, speed) replace single prices, and the first variant
that names a price wins. Days and hours are UTC. Prices are resolved per day, so that a caller can cache them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from sessionlog.pricing.price_list import Listed

_EPOCH = date(1970, 1, 1).toordinal()
_LAST = date.max.toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Prices from a second of the day until the next span.

    Attributes:
        second: Second of the UTC day at which these prices begin to hold.
        prices: Prices by token class; None when the list has no token price.
        valid_from: ISO date since which they hold, None when they are the oldest known.
    """

    second: int
    prices: Listed | None
    valid_from: str | None


def day_text(day: int) -> str:
    """Return the ISO date of a day counted from 1970-01-01; days outside the calendar give its first or last day."""
    return date.fromordinal(min(max(day + _EPOCH, 1), _LAST)).isoformat()


def spans_of_day(model: Listed, day: int, context: Mapping[str, str]) -> tuple[Span, ...]:
    """Return the prices of a listed model through one day, as spans of which the first begins at second 0.

    `context` describes the request: {"processing": "batch"}, {"service_tier": "flex"}, {"speed": "fast"}.
    """
    today = day_text(day)
    periods: list[Listed] = model["periods"]
    edges = {0}
    for period in periods:
        edges.update(_seconds(text) for text in period.get("hours", ()))
    return tuple(_span(model, periods, today, second, context) for second in sorted(edges))


def active_variants(model: Listed, day: int) -> tuple[Listed, ...]:
    """Return the descriptions of the requests that have a price of their own on a day."""
    today = day_text(day)
    return tuple(variant["when"] for variant in model.get("variants", ()) if _has_begun(variant, today))


def kind_name(when: Mapping[str, str]) -> str:
    """Return the name of a kind of request: `batch`, `service_tier=flex`."""
    return " ".join(value if key == "processing" else f"{key}={value}" for key, value in when.items())


def priced_words(model: Listed, day: int, context: Mapping[str, str]) -> frozenset[str]:
    """Return the keys of a request's description for which a listed model has a price on a day."""
    today = day_text(day)
    active = (v["when"] for v in model.get("variants", ()) if _has_begun(v, today) and _suits(v["when"], context))
    return frozenset(key for when in active for key in when)


def _span(model: Listed, periods: list[Listed], today: str, second: int, context: Mapping[str, str]) -> Span:
    period = next((p for p in reversed(periods) if _is_active(p, today, second)), periods[0])
    prices: Listed | None = period["prices"]
    if prices is not None and context:
        chosen = (v["prices"] for v in model.get("variants", ()) if _has_begun(v, today) and _suits(v["when"], context))
        prices = _replace(prices, chosen)
    return Span(second=second, prices=prices, valid_from=period.get("from"))


def _replace(standard: Listed, variants: Iterable[Listed]) -> Listed:
    replaced: dict[str, Any] = {}
    for prices in variants:
        for key, price in prices.items():
            replaced.setdefault(key, price)
    return {**standard, **replaced}


def _has_begun(entry: Listed, today: str) -> bool:
    # ISO dates compare as texts.
    return str(entry.get("from", "")) <= today


def _is_active(period: Listed, today: str, second: int) -> bool:
    if not _has_begun(period, today):
        return False
    hours = period.get("hours")
    if hours is None:
        return True
    start, end = map(_seconds, hours)
    return start <= second < end if start <= end else second >= start or second < end


def _suits(when: Mapping[str, str], context: Mapping[str, str]) -> bool:
    return all(context.get(key) == value for key, value in when.items())


def _seconds(clock: str) -> int:
    hours, minutes, seconds = map(int, clock.split(":"))
    return hours * 3600 + minutes * 60 + seconds
