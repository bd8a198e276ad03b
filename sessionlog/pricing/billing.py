"""Billing: what the price list does not have, as data: factors of regions and tiers, prices of searches, other names.

`sessionlog/data/billing.json` has a source for each entry, and one date on which all of them were right:

    {"date",
     "factors": [{"provider", "when", "times", "from"?, "models"?, "except"?, "source"}],
     "searches": [{"provider", "usd_per_thousand", "from"?, "models"?, "source"}],
     "names": [{"provider", "name", "model", "from"?, "source"}],
     "suffixes": [{"provider", "suffix", "when", "source"}],
     "routes": [prefix], "tags": [suffix]}

Of several entries that apply the first one holds. `models`, `except` and `name` are clauses, as the price list has
them (`lookup.Clause`), on the id of a listed model or on a logged name; `from` is an ISO date. A factor multiplies all
prices of tokens, where the list has none for this `when` on that day. A name is the price list's `model`
("vendor/name"); a name with a suffix is the model without it, in the request's `when`. Routes are what gateways write
before the name of the model that they ask, tags what they write behind it without another price.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache

from sessionlog.errors import InvalidPrices
from sessionlog.hashes import blake2b
from sessionlog.pricing.lookup import matches
from sessionlog.pricing.schedule import day_text, priced_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from decimal import Decimal
    from typing import Any

    from sessionlog.pricing.lookup import Listing

    Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """The content of the file.

    Attributes:
        date: ISO date on which its entries were right.
        digest: Hash of the whole content.
        entries: Section → its entries.
    """

    date: str
    digest: str
    entries: Mapping[str, Sequence[Any]]

    def source(self, entry: Entry) -> str:
        """Return the source of an entry, and the date on which it was right."""
        return f"{entry['source']}, as of {self.date}"

    def times(self, listing: Listing, day: int, context: Mapping[str, str]) -> Decimal | None:
        """Return the factor of a listed model's prices for what a request is and the list has no price for.

        None for none. `context` is as in `schedule.spans_of_day`.
        """
        if not context or listing.resold:
            return None
        has_prices = priced_words(listing.model, day, context)
        found = []
        for word in context.items():
            if word[0] not in has_prices:
                factors = (one for one in self.factors(listing, day) if word in one["when"].items())
                found += [one["times"] for one in factors][:1]
        if not found:
            return None
        from decimal import Decimal
        from math import prod

        return prod(map(Decimal, found), start=Decimal(1))

    def factors(self, listing: Listing, day: int | None = None) -> Iterator[Entry]:
        """Yield all factors of a listed model: on a day, or at any time."""
        return self._of("factors", listing, None if day is None else day_text(day))

    def search(self, listing: Listing, day: int) -> Entry | None:
        """Return the price of searches of a listed model on a day; None for none."""
        return next(self._of("searches", listing, day_text(day)), None)

    def other_name(self, provider: str | None, name: str, today: str) -> Entry | None:
        """Return the entry of a name that the list does not have; `provider` is its id in the list, None if unknown."""
        for one in self.entries["names"]:
            vendor, slash, bare = name.partition("/")
            plain = bare if slash and vendor == one["provider"] else name
            if provider in {None, one["provider"]} and _has_begun(one, today) and matches(one["name"], plain):
                found: Entry = one
                return found
        return None

    def without_route(self, name: str) -> tuple[str, bool]:
        """Return a name without what a gateway writes before and behind it, and whether there was something before."""
        plain = name
        for route in self.entries["routes"]:
            plain = plain.removeprefix(route)
        is_routed = plain != name
        for tag in self.entries["tags"]:
            plain = plain.removesuffix(tag)
        return plain, is_routed

    def _of(self, section: str, listing: Listing, today: str | None) -> Iterator[Entry]:
        name = listing.model["id"].lower()
        for one in self.entries[section] if not listing.resold else ():
            is_active = today is None or _has_begun(one, today)
            if is_active and one["provider"] == listing.provider and _is_of(one, name):
                yield one


def _is_of(entry: Entry, model: str) -> bool:
    return matches(entry.get("models", _ANY), model) and not matches(entry.get("except", _NONE), model)


_ANY: Entry = {"starts_with": ""}
_NONE: Entry = {"or": []}


def _has_begun(entry: Entry, today: str) -> bool:
    return str(entry.get("from", "")) <= today


def parse_billing(content: bytes) -> Billing:
    """Parse the content of the file.

    Raises:
        InvalidPrices: It is not such a file, or a part of it is missing.
    """
    try:
        data = json.loads(content)
        entries = {name: data[name] for name in ("factors", "searches", "names", "suffixes", "routes", "tags")}
        date = str(data["date"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidPrices(f"billing.json cannot be read: {error}") from error
    return Billing(date=date, digest=blake2b(content, digest_size=32).hexdigest(), entries=entries)


@cache
def load_billing() -> Billing:
    """Return the shipped data, read at the first call."""
    loader: Any = __spec__.loader  # as in `load_price_list`
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "billing.json")
    return parse_billing(loader.get_data(path))
