"""A parser of simple TOML, as most settings are: importing `tomllib` takes 20 ms.

It parses tables, and keys with a number, a boolean or a plain string, each on one line. For anything else, and for
anything that may be invalid, it returns None: then the caller uses `tomllib`, which reports errors.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_DIGITS = frozenset("0123456789")
_BOOLEANS = {"true": True, "false": False}
_MAX_LENGTH = 15
"""Characters of a number; longer ones are left to `tomllib`."""


def parse_plain_toml(text: str) -> dict[str, Any] | None:
    """Return the parsed document; None if it is not simple."""
    document: dict[str, Any] = {}
    table, headings = document, set()
    for line in text.replace("\r\n", "\n").split("\n"):
        bare = line.strip(" \t")
        if not bare or (bare[0] == "#" and bare.isprintable()):
            continue
        if bare[0] == "[":
            opened = _open_table(document, bare) if bare not in headings else None
            headings.add(bare)
            if opened is None:
                return None
            table = opened
            continue
        key, equals, value = (part.strip(" \t") for part in bare.partition("="))
        parsed = _value(value)
        if not equals or not _is_name(key) or key in table or parsed is None:
            return None
        table[key] = parsed
    return document


def _open_table(document: dict[str, Any], heading: str) -> dict[str, Any] | None:
    """Add the table of a heading such as `[budgets.daily]`; None if the table exists or the heading is not simple."""
    names = heading[1:-1].split(".")
    if heading[-1] != "]" or not all(map(_is_name, names)):
        return None
    table = document
    for number, name in enumerate(names):
        last = number == len(names) - 1
        inner = table.get(name)
        if inner is None:
            inner = table[name] = {}
        elif last or not isinstance(inner, dict):
            return None
        table = inner
    return table


def _is_name(text: str) -> bool:
    return bool(text) and _BARE.issuperset(text)


def _value(text: str) -> str | int | float | bool | None:
    if len(text) > 1 and text[0] == text[-1] == '"':
        inner = text[1:-1]
        return inner if inner.isascii() and inner.isprintable() and '"' not in inner and "\\" not in inner else None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    integer, dot, fraction = text.partition(".")
    parts = integer.split("_")
    digits = "".join(parts)
    if not all(parts) or not _DIGITS.issuperset(digits) or len(text) > _MAX_LENGTH:
        return None
    if digits[0] == "0" and len(digits) > 1:
        return None
    if not dot:
        return int(digits)
    return float(f"{digits}.{fraction}") if fraction and _DIGITS.issuperset(fraction) else None
