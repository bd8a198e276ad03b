"""Format the figures of a replay as spans: short on a terminal, exact in pipes and diffs."""

from __future__ import annotations

from sessionlog.analytics.zones import local_time
from sessionlog.events.money import NANO
from sessionlog.events.money import usd as dollars
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.numbers import cost_text, duration, human_count, percent
from sessionlog.render.replay.blocks import Cost
from sessionlog.render.replay.lines import NOTHING, Span, View
from sessionlog.render.times import stamp


def count(view: View, number: int) -> str:
    """Return a count: `14.1k`, or every digit."""
    return str(number) if view.exact else human_count(number)


def counted(view: View, number: int, word: str) -> str:
    """Return a count with its noun: `1 tool`, `24 tools`."""
    return f"{count(view, number)} {word}{'' if number == 1 else 's'}"


def span_of_time(view: View, milliseconds: float | None) -> Span:
    """Return a duration, "" where it is unknown."""
    if milliseconds is None:
        return NOTHING
    if not view.exact:
        return Span(duration(milliseconds), "note")
    places = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2 if milliseconds >= 1 else 3  # three digits
    return Span(f"{round(milliseconds, places):.15g} ms", "note")


def money(view: View, cost: Cost | None) -> Span:
    """Return a cost, "" where it is unknown: `$0.031`, `~$0.02` estimated, `$0 (free)`, `$0` as logged."""
    if cost is None:
        return NOTHING
    if cost.nano == 0 and not cost.partial:
        return Span(cost_text(0) if cost.unchecked else f"{cost_text(0)} (free)")
    amount = f"{'~' if cost.estimated else ''}${_digits(cost.nano)}" if view.exact else ""
    amount = amount or cost_text(dollars(cost.nano), estimated=cost.estimated)
    return Span(f"{amount}{' + unknown' if cost.partial else ''}", "estimated" if cost.estimated else "")


def tokens(view: View, usage: TokenUsage | None, *, hit_rate: bool = False) -> list[Span]:
    """Return the token classes: `812 in`, `14.1k cached`, `2.0k written`, `96 out (44 reasoning)`."""
    if usage is None:
        return []
    figures = [Span(f"{count(view, usage.input)} in")]
    if usage.cache_read:
        rate = f" ({percent(usage.cache_read / usage.prompt)})" if hit_rate else ""
        figures.append(Span(f"{count(view, usage.cache_read)} cached{rate}", "cached"))
    if usage.cache_write:
        figures.append(Span(f"{count(view, usage.cache_write)} written"))
    reasoning = f" ({count(view, usage.reasoning)} reasoning)" if usage.reasoning else ""
    figures.append(Span(f"{count(view, usage.output)} out{reasoning}"))
    return figures


def moment(view: View, time_ns: int | None) -> Span:
    """Return a time: `21 Nov 09:58`, or exact with seconds and zone; "" where it is unknown."""
    if time_ns is None:
        return Span("")
    if not view.exact:
        return Span(stamp(time_ns, view.zone, now=view.now))
    return Span(f"{local_time(time_ns, view.zone):%Y-%m-%d %H:%M:%S %Z}")


def _digits(nano: int) -> str:
    """Format nano-dollars as dollars with all digits, at least cents."""
    whole, rest = divmod(nano, NANO)
    return f"{whole}.{f'{rest:09}'.rstrip('0').ljust(2, '0')}"
