"""Costs: what a response cost, as its log recorded it, else by the price list of its date, else unknown.

Prices are looked up once per label and day, because a log has thousands of responses of a few models.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from sessionlog.events.names import UNKNOWN
from sessionlog.events.tokens import TOKEN_CLASSES, TokenUsage
from sessionlog.ledger.columns import Label, Response, names_of
from sessionlog.pricing.book import DAY_NS, MOST_NANO, PriceBook, rates_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.pricing.book import Spans

COSTS = names_of(Response, "cost")
"""The columns of a response that `PricedLabels` computes."""

Costs = tuple[int | None, int | None, int | None, int | None]
"""The values of these columns, in nano-dollars: recorded, estimated, saved by the cache, charged beside tokens."""

costs_of: Callable[[Response], Costs] = attrgetter(*COSTS)
"""Row → its costs."""

_usage_of = attrgetter(*TOKEN_CLASSES)


class PricedLabels:
    """Labels, numbered, and the costs of their responses.

    Attributes:
        numbers: Label → its number, in the order of first use.
    """

    def __init__(self, prices: PriceBook) -> None:
        self._prices = prices
        self.numbers: dict[Label, int] = {}
        self._labels: list[Label] = []
        self._is_request: list[bool] = []
        self._spans: dict[tuple[int, int], list[Spans]] = {}

    def number(self, label: Label) -> int:
        """Return the number of a label, which is a new one on first use."""
        number = self.numbers.get(label)
        if number is None:
            number = self.numbers[label] = len(self._labels)
            self._labels.append(label)
            self._is_request.append(label.granularity == "request")
        return number

    def costs(self, label: int, row: Response) -> Costs:
        """Return the costs of a row with the label of a number."""
        usage = TokenUsage(**dict(zip(TOKEN_CLASSES, _usage_of(row), strict=True)))
        return self.cost(
            label, usage, row.time_ns, row.recorded_nano, row.recorded_extra_nano, row.requests, row.searches,
            failed=bool(row.failed), priced=bool(row.priced),
        )  # fmt: skip

    def cost(
        self, label: int, usage: TokenUsage, time_ns: int | None, recorded: int | None, extra: int | None,
        requests: int, searches: int, *, failed: bool, priced: bool,
    ) -> Costs:  # fmt: skip
        """Return the costs of a response.

        At most one of the first two is known, and includes the last one. Savings are always at list prices, even where
        the log recorded the cost; they are None where nothing was cached.

        Args:
            label: The number of its label.
            usage: Its tokens.
            time_ns: When it was made.
            recorded: What the log recorded.
            extra: What of that, or beside the tokens, it recorded as charged for something else.
            requests: How many requests it sums up.
            searches: How many searches of the provider's own tool they made.
            failed: The request failed.
            priced: False if there is nothing to price yet.
        """
        has_cached = usage.cache_read or usage.cache_write
        if not has_cached and not searches and (recorded or not priced):
            return recorded, None, None, _part(extra, recorded)
        day, ns = divmod(self._prices.now_ns() if time_ns is None else time_ns, DAY_NS)
        found = self._spans.get((label, day))
        if found is None:
            found = self._spans[label, day] = self._look_up(label, day)
        estimate = saved = searched = None
        for spans in found:  # of the model that answered, else of the one asked for
            rates = spans[0][1] if len(spans) == 1 else rates_at(spans, ns)
            if rates is not None and estimate is None:
                # Tiers are for single requests.
                estimate, saved = rates.cost_and_savings(usage, tiered=requests == 1 and self._is_request[label])
                searched = searches * rates.search or None
        extra = searched if extra is None else extra
        if not has_cached or estimate is None:
            saved = None
        if recorded or not priced:
            return recorded, None, saved, _part(extra, recorded)
        if requests and not failed and not usage.total:
            estimate = None  # an answer without token counts did use tokens: its cost is unknown, not 0
        if recorded == 0 and not estimate:  # a recorded 0 is free only where there is no list price
            return 0, None, saved, None
        if estimate is None or estimate + (extra or 0) > MOST_NANO:
            return None, None, saved, None
        return None, estimate + (extra or 0), saved, extra

    def _look_up(self, label: int, day: int) -> list[Spans]:
        one = self._labels[label]
        models = [one.response_model] if one.response_model != UNKNOWN else []
        models += [one.model] if one.model != one.response_model else []
        tier, speed, region = one.service_tier or None, one.speed or None, one.region or None
        return [
            self._prices.spans(one.provider, name, day, service_tier=tier, speed=speed, region=region)
            for name in models
        ]


def _part(extra: int | None, recorded: int | None) -> int | None:
    """Return what is charged beside tokens as a part of a recorded cost; None where neither is known."""
    return None if extra is None or recorded is None else min(extra, recorded)
