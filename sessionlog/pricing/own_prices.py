"""OwnPrices: the prices and aliases that a user has configured, which take precedence over the shipped list.

A key is "provider/model" or "model", without regard to case; only `*` and `?` are wildcards. An exact "provider/model"
wins over an exact "model", an exact key over wildcards, and the longest wildcard over shorter ones. An alias gives a
name the price of another one, "vendor/model". A wrong entry is an error when the prices are read, never a wrong cost
later.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A name, as the user wrote it, and the one whose price it has."""

    key: str
    vendor: str
    model: str

    @property
    def target(self) -> str:
        """The other name."""
        return f"{self.vendor}/{self.model}"


class OwnPrices:
    """A user's prices and aliases, checked and indexed.

    Attributes:
        entries: The prices.
        aliases: The aliases.
    """

    __slots__ = ("_exact", "_globs", "aliases", "entries")

    def __init__(self, entries: tuple[OwnPrice, ...] = (), aliases: tuple[Alias, ...] = ()) -> None:
        self.entries, self.aliases = entries, aliases
        all_entries: tuple[OwnPrice | Alias, ...] = (*entries, *aliases)
        keyed = {entry.key.strip().lower(): entry for entry in all_entries}
        self._exact = {key: entry for key, entry in keyed.items() if not _is_glob(key)}
        patterns = sorted((key for key in keyed if _is_glob(key)), key=lambda key: (-len(key), key))
        # fnmatch would read `[1m]` as a set of letters, but model names do carry brackets.
        self._globs = [(pattern.replace("[", "[[]"), keyed[pattern]) for pattern in patterns]

    def find(self, provider: str, model: str) -> OwnPrice | Alias | None:
        """Return the user's price or alias for a model of a provider; None if there is none."""
        if not self._exact and not self._globs:
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
        aliases = sorted((alias.key.strip().lower(), alias.target.lower()) for alias in self.aliases)
        return repr((sorted(prices.items()), aliases) if aliases else sorted(prices.items())).encode()

    def table(self) -> tuple[tuple[str, str | tuple[tuple[str, float], ...]], ...]:
        """Return the entries from which `parse_own_prices` makes the same, as a value that can be sent and hashed."""
        prices = ((entry.key, tuple(entry.prices.items())) for entry in self.entries)
        return (*prices, *((alias.key, alias.target) for alias in self.aliases))


def parse_own_prices(table: Mapping[str, Any] | None) -> OwnPrices:
    """Check a table of prices and aliases and return them.

    Args:
        table: Key to {input, output, cache_read?, cache_write?, cache_write_1h?} in US dollars per million tokens, or
            to "vendor/model".

    Raises:
        InvalidPrices: An entry is neither a table nor a name, lacks input or output, or has an unknown key or an
            invalid price; the message names it.
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
    aliases = tuple(_parse_alias(key, entry) for key, entry in table.items() if isinstance(entry, str))
    others = tuple(_parse_entry(key, entry) for key, entry in table.items() if not isinstance(entry, str))
    return OwnPrices(others, aliases)


def _parse_alias(key: Any, target: str) -> Alias:
    place = f'aliases."{key}"'
    if not isinstance(key, str) or not key.strip() or _is_glob(key):
        raise InvalidPrices(f"{place}: the key is one name, as provider/model or model, without * and ?")
    vendor, _, model = target.strip().partition("/")
    if not vendor or not model:
        raise InvalidPrices(
            f'{place} is {target!r}, but it is the name of a listed model as "vendor/model", such as "openai/gpt-5.5";'
            " `sessionlog pricing --list` has them"
        )
    if key.strip().lower() == target.strip().lower():
        raise InvalidPrices(f"{place} is {target!r}, which is the same name")
    return Alias(key=key, vendor=vendor, model=model)


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
