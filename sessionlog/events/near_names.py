"""Finds misspelt field names such as `useage` and `cost`. Any other unknown name is a field of the caller's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache, lru_cache

from sessionlog.events.payloads import PAYLOADS

_OTHER_NAMES: Mapping[str, str] = {"tokens": "usage", "token_usage": "usage", "price": "cost_usd", "result": "output"}
_CHECKED = frozenset({"llm.response", "tool.call", "session.end"})  # a request has as many settings as there are models
_SHORTEST = 4


def misspelt(type_: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each field that is probably misspelt: `useage: unknown; is usage meant?`."""
    if type_ not in _CHECKED:
        return ()
    known = _known(type_)
    if known.issuperset(names):
        return ()
    unknown = [name for name in names if isinstance(name, str) and name not in known]
    return tuple(f"{name[:80]}: unknown; is {meant} meant?" for name in unknown if (meant := _meant(type_, name)))


@cache
def _known(type_: str) -> frozenset[str]:
    return frozenset(one.name for one in fields(PAYLOADS[type_]))


@lru_cache(1024)
def _meant(type_: str, name: str) -> str | None:
    other = _OTHER_NAMES.get(name)
    if other in _known(type_):
        return other
    if not _SHORTEST <= len(name) <= 40:
        return None
    return next((known for known in sorted(_known(type_)) if _is_near(name, known)), None)


def _is_near(name: str, known: str) -> bool:
    """Whether the unit is missing, or one letter is extra, missing, wrong, or swapped with the next one."""
    if known in (f"{name}_ms", f"{name}_usd"):
        return True
    first = next((at for at, (a, b) in enumerate(zip(name, known, strict=False)) if a != b), min(len(name), len(known)))
    rest, known_rest = name[first:], known[first:]
    return (
        rest[1:] == known_rest
        or rest == known_rest[1:]
        or (rest[1:] == known_rest[1:] and len(name) > _SHORTEST)
        or (rest[:2] == known_rest[:2][::-1] and rest[2:] == known_rest[2:])
    )
