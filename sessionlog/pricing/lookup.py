"""Lookup: find a model in the price list by the provider's and the model's name as a log writes them.

A wrong price is worse than none. A known provider sells only what its own list (or the list of a vendor whose models
it resells) names. A local server has no list price. Without a provider, or behind a gateway, the name must show who
made the model (`vendor/model`, or a name that a vendor claims); a bare name behind a gateway, or one with a tag
(`:8b`), must be listed literally.
"""

from __future__ import annotations

from dataclasses import dataclass

from sessionlog.pricing.provider_names import GATEWAY, NOT_GIVEN, PROVIDER_ALIASES, is_local, normal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from sessionlog.pricing.price_list import Listed, PriceList

    Clause = Mapping[str, Any]
    """How the price list recognises a name: {KIND: text} with KIND equals, starts_with, ends_with, contains or regex,
    or {"or": [clauses]}, {"and": [clauses]}. Names are compared in lower case; the list's texts already are, and its
    regexes search lower-case names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A model in the price list.

    Attributes:
        provider: Id of the provider that bills.
        model: The model's entry.
        resold: The entry is another vendor's; the provider's batch and service tiers are then not known.
    """

    provider: str
    model: Listed
    resold: bool = False


_MAX_NAME = 256
"""Longer names are damage; they are not looked up."""


def find_listing(price_list: PriceList, provider: str, model: str, *, is_routed: bool = False) -> Listing | None:
    """Find a model; None if the list has no certain match. Never raises for odd names.

    Args:
        price_list: The list.
        provider: As a log names it.
        model: As a log names it.
        is_routed: The name was written behind that of a gateway.
    """
    name = model.strip().lower()
    given = normal_name(provider)
    if name in NOT_GIVEN or len(name) > _MAX_NAME or len(given) > _MAX_NAME or is_local(given):
        return None
    known = find_provider(price_list, provider)
    if known is not None:
        return _find_at(price_list, known, name)
    behind_gateway = is_routed or given not in NOT_GIVEN
    return _find_anywhere(price_list, name, literally=_has_tag(name) or (behind_gateway and "/" not in name))


def find_provider(price_list: PriceList, provider: str) -> str | None:
    """The id under which the list knows a provider, from its id, an alias, a part of its name or its URL."""
    given = normal_name(provider)
    if given in NOT_GIVEN:
        return None
    plain = provider.strip().lower()
    for name in (plain, given):
        if name in price_list.providers:
            return name
    alias = PROVIDER_ALIASES.get(given)
    if alias is not None:
        return None if alias == GATEWAY else alias
    if "://" in plain:
        from re import match

        return next((key for key, entry in price_list.providers.items() if match(entry["api"], plain)), None)
    for key, entry in price_list.providers.items():
        if "provider_match" in entry and matches(entry["provider_match"], plain):
            return key
    return None


def _find_at(price_list: PriceList, provider: str, name: str, *, literally: bool = False) -> Listing | None:
    sellers = [provider, *price_list.providers[provider].get("fallback", ())]
    for form in _spellings(name, vendor=provider):
        for seller in sellers:
            model = _first_match(price_list.providers[seller], form)
            if model is not None and _is_meant(model, form, literally=literally):
                return Listing(provider=provider, model=model, resold=seller != provider)
    return None


def _find_anywhere(price_list: PriceList, name: str, *, literally: bool) -> Listing | None:
    for provider, bare in _candidates(price_list, name):
        listing = _find_at(price_list, provider, bare, literally=literally)
        if listing is not None:
            return listing
    return None


def _candidates(price_list: PriceList, name: str) -> Iterator[tuple[str, str]]:
    """Yield (provider, model's name there) for each provider that a name alone points to."""
    vendor, slash, bare = name.partition("/")
    if _is_bedrock_name(name):
        yield "aws", name
    elif slash and is_local(normal_name(vendor)):
        return
    elif slash:
        maker = find_provider(price_list, vendor)
        if maker is not None and bare:
            yield maker, bare
        yield "openrouter", name
    tried: set[str] = set()
    for form in _spellings(name):
        claimant = _claimant(price_list, form)
        if claimant is not None and claimant not in tried:
            tried.add(claimant)
            yield claimant, name


def _claimant(price_list: PriceList, name: str) -> str | None:
    entries = price_list.providers.items()
    return next((key for key, e in entries if "model_match" in e and matches(e["model_match"], name)), None)


def _spellings(name: str, *, vendor: str = "") -> Iterator[str]:
    """Yield the spellings of a name; the patterns behind them are loaded only if the name itself is not listed."""
    yield name
    from sessionlog.pricing.spellings import spellings

    yield from spellings(name, vendor=vendor)[1:]


def _is_bedrock_name(name: str) -> bool:
    if "." not in name and not name.startswith("arn:"):
        return False
    from sessionlog.pricing.spellings import is_bedrock_name

    return is_bedrock_name(name)


def _has_tag(name: str) -> bool:
    if ":" not in name:
        return False
    from sessionlog.pricing.spellings import has_tag

    return has_tag(name)


def _first_match(provider: Listed, name: str) -> Listed | None:
    return next((model for model in provider["models"] if matches(model["match"], name)), None)


def _is_meant(model: Listed, name: str, *, literally: bool) -> bool:
    if not literally and not name.endswith(":free"):
        return True
    return bool(model["id"].lower() == name) or names_exactly(model["match"], name)


def matches(clause: Clause, name: str) -> bool:
    """Whether a clause recognises a lower-case name."""
    [(kind, value)] = clause.items()
    match kind:
        case "equals":
            return name == str(value)
        case "starts_with":
            return name.startswith(value)
        case "ends_with":
            return name.endswith(value)
        case "contains":
            return value in name
        case "regex":
            return _may_match(value, name) and _search(value, name)
        case "or":
            return any(matches(part, name) for part in value)
        case "and":
            return all(matches(part, name) for part in value)
        case _:
            raise ValueError(f"a price list with the clause {kind!r} is newer than this sessionlog")


def _may_match(pattern: str, name: str) -> bool:
    """Whether a name has the letters with which an anchored regex begins: a no saves loading `re`, which takes 6 ms."""
    if not pattern.startswith("^") or "|" in pattern:
        return True
    length = next((n for n, sign in enumerate(pattern[1:]) if not (sign.isalnum() or sign == "-")), len(pattern))
    return name.startswith(pattern[1:length])  # without the last letter, which a sign behind it may make optional


def _search(pattern: str, name: str) -> bool:
    from re import search

    return search(pattern, name) is not None


def names_exactly(clause: Clause, name: str) -> bool:
    """Whether a clause lists a name literally, so that the match cannot be another model with a similar name."""
    [(kind, value)] = clause.items()
    if kind == "equals":
        return name == str(value)
    return kind == "or" and any(names_exactly(part, name) for part in value)
