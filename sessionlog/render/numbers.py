"""Format numbers for people: short, and never more certain than they are.

Formatted numbers are never parsed or added up: JSON and CSV have the exact values. An unknown value is a dash and never
0. Rounding never reaches a limit: 99.97 % is `>99 %`, a cost below the last digit `<$0.000001`.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

from sessionlog.render.currency import currency

UNKNOWN = "\N{EN DASH}"
"""The text of an unknown value."""

_COUNT_UNITS = ("", "k", "M", "G", "T", "P", "E")
# Wide enough for the digits of any float.
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)
_SIZE_UNITS = (" B", " kB", " MB", " GB", " TB", " PB", " EB")


def exact(value: object) -> str:
    """Format a CSV cell: a number with all digits, `true` or `false`, "" for None."""
    if value is None:
        return ""
    return repr(value).lower() if isinstance(value, bool) else repr(value)


def human_count(count: int) -> str:
    """Format a count in at most seven characters: `812`, `14.1k`, `402.1M`; exact below 1000, then one decimal."""
    return _scaled(count, _COUNT_UNITS)


def size(count: int) -> str:
    """Format a number of bytes: `812 B`, `14.1 kB`, `1.2 MB`, in steps of 1000."""
    return _scaled(count, _SIZE_UNITS)


def cost_text(amount: float | None, *, estimated: bool = False) -> str:
    """Format US dollars in the user's currency: `$412.07`, `€1,234.50`, `~$0.61` where estimated.

    Small amounts keep two significant digits, up to the sixth decimal: `$0.031`, `$0.0019`.
    """
    shown = currency()
    if amount is None or not math.isfinite(amount * shown.rate):
        return UNKNOWN
    mark, minus = "~" if estimated else "", "-" if amount < 0 else ""
    if amount == 0:
        return f"{mark}{shown.sign}0"
    value = abs(Decimal(repr(amount * shown.rate)))
    places = min(6, max(2, 1 - value.adjusted()))
    rounded = value.quantize(Decimal(1).scaleb(-places), context=_WIDE)
    if rounded == 0:
        return f"{mark}{minus}<{shown.sign}0.000001"
    whole, _, cents = f"{rounded:,}".partition(".")
    return f"{mark}{minus}{shown.sign}{whole}.{cents.rstrip('0').ljust(2, '0')}"


def price_text(price: float) -> str:
    """Format a price in US dollars with up to six decimals: `$1.25`, `$0.125`."""
    whole, _, fraction = f"{price:.6f}".rstrip("0").partition(".")
    return f"${whole}.{fraction:0<2}"


def percent(rate: float | None) -> str:
    """Format a rate as whole percent: `97 %`; `0 %` and `100 %` only if exact, else `<1 %`, `>99 %`, `>100 %`."""
    if rate is None or not math.isfinite(rate * 100):
        return UNKNOWN
    if rate < 0:
        return f"-{percent(-rate)}"
    whole = math.floor(rate * 100 + 0.5)
    if whole == 0 and rate > 0:
        return "<1 %"
    if whole == 100 and rate != 1:
        return ">99 %" if rate < 1 else ">100 %"
    return f"{whole} %"


def rate(value: float | None) -> str:
    """Format a speed or mean with one decimal: `58.1`, `1,234.5`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.1f}"


def duration(milliseconds: float | None) -> str:
    """Format a time span in its two largest units: `12 ms`, `4.2 s`, `12m 04s`, `1h 02m`, `3d 4h`."""
    if milliseconds is None or not math.isfinite(milliseconds):
        return UNKNOWN
    if milliseconds < 0:
        return f"-{duration(-milliseconds)}"
    if 0 < milliseconds < 1:
        return "<1 ms"
    whole = round(milliseconds)
    # Each unit is chosen by the rounded value, so that 59.97 s is a minute and not `60.0 s`.
    if whole < 1000:
        return f"{whole} ms"
    if (tenths := _half_up(whole, 100)) < 600:
        return f"{tenths // 10}.{tenths % 10} s"
    if (seconds := _half_up(whole, 1000)) < 3600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    if (minutes := _half_up(whole, 60_000)) < 24 * 60:
        return f"{minutes // 60}h {minutes % 60:02}m"
    hours = _half_up(whole, 3_600_000)
    return f"{hours // 24}d {hours % 24}h"


def _half_up(value: int, unit: int) -> int:
    return (2 * value + unit) // (2 * unit)


def _scaled(count: int, units: tuple[str, ...]) -> str:
    sign, rest = ("-", -count) if count < 0 else ("", count)
    if rest < 1000:
        return f"{sign}{rest}{units[0]}"
    for power, unit in enumerate(units[1:], start=1):
        # Integers throughout: 999,950 is 1.0M because its rounded tenths no longer fit, not by a float's luck.
        tenths = _half_up(rest * 10, 1000**power)
        if tenths < 10_000:
            return f"{sign}{tenths // 10}.{tenths % 10}{unit}"
    return f"{sign}{Decimal(rest):.0e}{units[0]}"  # a log may hold integers beyond any float
