"""The TOML that most settings are made of, read without the 20 ms that the whole language takes to import.

Tables, and keys with a number, a truth or a plain text, each on one line. Whatever is more than that, or may be wrong,
is not read at all: None, and `tomllib` reads it or says what is wrong.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from typing import Any

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_DIGITS = frozenset("0123456789")
_TRUTHS = {"true": True, "false": False}
_MOST_DIGITS = 15


def read_plain(text: str) -> dict[str, Any] | None:
    """Return what a text means; None if it is not plain."""
    whole: dict[str, Any] = {}
    table, headings = whole, set()
    for line in text.replace("\r\n", "\n").split("\n"):
        bare = line.strip(" \t")
        if not bare or (bare[0] == "#" and bare.isprintable()):
            continue
        if bare[0] == "[":
            entered = _enter(whole, bare) if bare not in headings else None
            headings.add(bare)
            if entered is None:
                return None
            table = entered
            continue
        key, equals, value = (part.strip(" \t") for part in bare.partition("="))
        meant = _value(value)
        if not equals or not _is_name(key) or key in table or meant is None:
            return None
        table[key] = meant
    return whole


def _enter(whole: dict[str, Any], heading: str) -> dict[str, Any] | None:
    """Make the table of a heading such as `[budgets.daily]`; None if there is one, or it is written in another way."""
    names = heading[1:-1].split(".")
    if heading[-1] != "]" or not all(map(_is_name, names)):
        return None
    table = whole
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
    if text in _TRUTHS:
        return _TRUTHS[text]
    whole, dot, fraction = text.partition(".")
    parts = whole.split("_")
    digits = "".join(parts)
    if not all(parts) or not _DIGITS.issuperset(digits) or len(text) > _MOST_DIGITS:
        return None
    if digits[0] == "0" and len(digits) > 1:
        return None
    if not dot:
        return int(digits)
    return float(f"{digits}.{fraction}") if fraction and _DIGITS.issuperset(fraction) else None
