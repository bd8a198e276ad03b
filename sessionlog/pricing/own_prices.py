"""OwnPrices: the prices that a user has configured, which take precedence over the shipped list.

A key is "provider/model" or "model", without regard to case; only `*` and `?` are wildcards. An exact "provider/model"
wins over an exact "model", an exact key over wildcards, and the longest wildcard over shorter ones. A wrong entry is an
error when the prices are read, never a wrong cost later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sessionlog.errors import InvalidPrices
from sessionlog.pricing.model_pricing import ModelPricing, check_price

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PRICE_KEYS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
_ALLOWED = "input, output (both required), cache_read, cache_write, cache_write_1h: US dollars per million tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrice:
    """One entry: the key as the user wrote it, and its prices by token class."""

    key: str
    prices: Mapping[str, float]

    @property
    def pricing(self) -> ModelPricing:
        """The prices as a `ModelPricing`."""
        return ModelPricing(**{f"{name}_per_mtok": price for name, price in self.prices.items()})


class OwnPrices:
    """A user's prices, checked and indexed."""

    __slots__ = ("_exact", "_globs", "entries")

    def __init__(self, entries: tuple[OwnPrice, ...] = ()) -> None:
        self.entries = entries
        keyed = {entry.key.strip().lower(): entry for entry in entries}
        self._exact = {key: entry for key, entry in keyed.items() if not _is_glob(key)}
        patterns = sorted((key for key in keyed if _is_glob(key)), key=lambda key: (-len(key), key))
        # fnmatch would read `[1m]` as a set of letters, but model names do carry brackets.
        self._globs = [(pattern.replace("[", "[[]"), keyed[pattern]) for pattern in patterns]

    def find(self, provider: str, model: str) -> OwnPrice | None:
        """Return the user's price for a model of a provider; None if there is none."""
        if not self.entries:
            return None
        bare = model.strip().lower()
        full = f"{provider.strip().lower()}/{bare}"
        exact = self._exact.get(full) or self._exact.get(bare)
        if exact is not None or not self._globs:
            return exact
        from fnmatch import fnmatchcase

        hits = (entry for pattern, entry in self._globs if fnmatchcase(full, pattern) or fnmatchcase(bare, pattern))
        return next(hits, None)

    def canonical(self) -> bytes:
        """Return bytes that are the same for the same prices in any order."""
        prices = {e.key.strip().lower(): sorted((k, float(v)) for k, v in e.prices.items()) for e in self.entries}
        return repr(sorted(prices.items())).encode()


def parse_own_prices(table: Mapping[str, Any] | None) -> OwnPrices:
    """Check a `[prices]` table and return its prices.

    Args:
        table: Key to {input, output, cache_read?, cache_write?, cache_write_1h?} in US dollars per million tokens.

    Raises:
        InvalidPrices: An entry is not a table, lacks input or output, or has an unknown key or an invalid price.
    """
    if table is None:
        return OwnPrices()
    if not isinstance(table, Mapping):
        raise InvalidPrices(
            f'prices is a {type(table).__name__}, but it is a table of entries like [prices."vllm/qwen3-32b"]'
        )
    seen: dict[str, str] = {}
    for key in table:
        plain = str(key).strip().lower()
        if plain in seen:
            raise InvalidPrices(f'prices."{key}" and prices."{seen[plain]}" name the same model')
        seen[plain] = str(key)
    return OwnPrices(tuple(_parse_entry(key, entry) for key, entry in table.items()))


def _parse_entry(key: Any, entry: Any) -> OwnPrice:
    place = f'prices."{key}"'
    if not isinstance(key, str) or not key.strip():
        raise InvalidPrices(f"{place}: the key names a model, as provider/model or model")
    if not isinstance(entry, Mapping):
        raise InvalidPrices(f"{place} is {entry!r}, but it is a table with {_ALLOWED}")
    for name, value in entry.items():
        if name not in PRICE_KEYS:
            # An unquoted dot in TOML makes a table inside the table.
            hint = f'; quote a name with a dot: [prices."{key}.{name}"]' if isinstance(value, Mapping) else ""
            raise InvalidPrices(f"{place} has the unknown key {name!r}; allowed are {_ALLOWED}{hint}")
        check_price(f"{place}.{name}", value)
    for name in ("input", "output"):
        if name not in entry:
            raise InvalidPrices(f"{place} has no {name}; it needs {_ALLOWED}")
    return OwnPrice(key=key, prices=dict(entry))


def _is_glob(key: str) -> bool:
    return "*" in key or "?" in key
