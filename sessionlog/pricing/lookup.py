"""Finding a model in the price list from a provider's and a model's name as a log writes them.

A wrong price is worse than none. A known provider sells only what its own list (or the list of a vendor whose models
it resells) names. A server of one's own sells nothing. Without a provider, or behind a gateway, the name must say who
made the model (`vendor/model`, or a name that a vendor claims); a bare name behind a gateway, or one with a tag
(`:8b`), must be listed literally.
"""

from __future__ import annotations

import re

from msgspec import Struct

from sessionlog.pricing.matching import matches, names_exactly
from sessionlog.pricing.price_list import Listed, PriceList
from sessionlog.pricing.provider_names import GATEWAY, NOT_GIVEN, PROVIDER_ALIASES, is_local, normal_name
from sessionlog.pricing.spellings import MAX_NAME, has_tag, is_bedrock_name, spellings


class Listing(Struct, frozen=True, kw_only=True):
    """A model in the price list.

    Attributes:
        provider: Id of the provider that was asked.
        model: The model's entry.
        resold: The entry is another vendor's; the provider's batch and service tiers are then not known.
    """

    provider: str
    model: Listed
    resold: bool = False


def find_listing(price_list: PriceList, provider: str, model: str) -> Listing | None:
    """Find a model, None when nothing in the list is certainly meant. Never raises for odd names."""
    name = model.strip().lower()
    given = normal_name(provider)
    if name in NOT_GIVEN or len(name) > MAX_NAME or len(given) > MAX_NAME or is_local(given):
        return None
    known = find_provider(price_list, provider)
    if known is not None:
        return _find_at(price_list, known, name)
    behind_gateway = given not in NOT_GIVEN
    return _find_anywhere(price_list, name, literally=has_tag(name) or (behind_gateway and "/" not in name))


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
    for key, entry in price_list.providers.items():
        if "://" in plain:
            if re.match(entry["api"], plain):
                return key
        elif "provider_match" in entry and matches(entry["provider_match"], plain):
            return key
    return None


def _find_at(price_list: PriceList, provider: str, name: str, *, literally: bool = False) -> Listing | None:
    sellers = [provider, *price_list.providers[provider].get("fallback", ())]
    for form in spellings(name, vendor=provider):
        for seller in sellers:
            model = _first_match(price_list.providers[seller], form)
            if model is not None and _is_meant(model, form, literally=literally):
                return Listing(provider=provider, model=model, resold=seller != provider)
    return None


def _find_anywhere(price_list: PriceList, name: str, *, literally: bool) -> Listing | None:
    for provider, bare in _places(price_list, name):
        listing = _find_at(price_list, provider, bare, literally=literally)
        if listing is not None:
            return listing
    return None


def _places(price_list: PriceList, name: str) -> list[tuple[str, str]]:
    """Providers that a name alone points to, each with the name to ask it for."""
    vendor, slash, bare = name.partition("/")
    places: list[tuple[str, str]] = []
    if is_bedrock_name(name):
        places.append(("aws", name))
    elif slash and is_local(normal_name(vendor)):
        return places
    elif slash:
        maker = find_provider(price_list, vendor)
        if maker is not None and bare:
            places.append((maker, bare))
        places.append(("openrouter", name))
    claimants = (_claimant(price_list, form) for form in spellings(name))
    return [*places, *((claimant, name) for claimant in dict.fromkeys(claimants) if claimant is not None)]


def _claimant(price_list: PriceList, name: str) -> str | None:
    entries = price_list.providers.items()
    return next((key for key, e in entries if "model_match" in e and matches(e["model_match"], name)), None)


def _first_match(provider: Listed, name: str) -> Listed | None:
    return next((model for model in provider["models"] if matches(model["match"], name)), None)


def _is_meant(model: Listed, name: str, *, literally: bool) -> bool:
    if not literally and not name.endswith(":free"):
        return True
    return bool(model["id"].lower() == name) or names_exactly(model["match"], name)
