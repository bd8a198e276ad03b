"""Numbers as texts show them: a text stands for all values that would be shown so, and two texts agree if these meet."""

import re

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_SHOWN = re.compile(r"(?P<sign>~?)(?P<less>[<>]?)\$?(?P<number>-?[\d,]+(?:\.\d+)?)(?P<unit>[kMG]?)\+?(?P<percent> ?%)?")
UNKNOWN = {"", "-", "–", "unknown"}

Span = tuple[float, float] | None


def span(text: str | float | None) -> Span:
    """The least and the greatest value that a text can stand for; None where it says that there is none."""
    if text is None or (isinstance(text, str) and text in UNKNOWN):
        return None
    if not isinstance(text, str):
        return float(text), float(text)
    match = _SHOWN.fullmatch(text)
    assert match is not None, f"not a number: {text!r}"
    value = float(match["number"].replace(",", ""))
    half = 0.5 * 10.0 ** -len(match["number"].partition(".")[2])
    if not match["unit"] and not match["percent"] and "." not in match["number"]:
        half = 0.0  # a whole number is itself
    if match["less"]:
        half = 2 * half or value
    unit = _UNITS[match["unit"]] * (0.01 if match["percent"] else 1.0)
    slack = 1e-9 * abs(value)
    return (value - half - slack) * unit, (value + half + slack) * unit


def overlap(one: str | float | None, other: str | float | None) -> bool:
    """Whether two texts can stand for the same value."""
    first, second = span(one), span(other)
    if first is None or second is None:
        return first is second
    return first[0] <= second[1] and second[0] <= first[1]
