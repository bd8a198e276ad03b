"""Replay: render a session for people.

`fold_replay` turns events into blocks without what was shown before, `lay_out` turns blocks into lines of styled,
escaped text, and `Paint` turns lines into plain or coloured text. Each stage is a generator, so that a log of any size
starts to show at once, in constant memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from sessionlog.analytics.question import Question
from sessionlog.analytics.session_totals import totals_alone
from sessionlog.analytics.zones import resolve_zone
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.render.replay.fold import Subagents, fold_replay
from sessionlog.render.replay.layout import lay_out
from sessionlog.render.replay.lines import SHOWN, Limits, View, limits_to
from sessionlog.render.replay.paint import Paint
from sessionlog.sources.find import log_at, name_of_session
from sessionlog.transcript.fold import OWN
from sessionlog.transcript.inherited import read_session

if TYPE_CHECKING:
    from sessionlog.pricing.book import PriceBook
    from sessionlog.pricing.seed_table import PricingTable

__all__ = ["LONGEST", "Paint", "fold_replay", "lay_out", "pace", "replay", "selector", "since"]

T = TypeVar("T")

_BEGIN = frozenset({"llm.request", "llm.response"})
"""Types of events with which something new begins."""

LONGEST = 5.0
"""Seconds of the longest pause that `pace` makes."""


def replay(
    path: str | os.PathLike[str],
    *,
    full: bool = False,
    all_messages: bool = False,
    only: Iterable[str] = (),
    tz: str = "UTC",
    width: int | None = None,
    cut: int = SHOWN,
    prices: PriceBook | PricingTable | None = None,
    subagents: Subagents = "inline",
) -> Iterator[str]:
    """Yield the replay of a log line by line while it is read: stable text without colours or control characters.

    The totals at its end are those of this log alone, as `list_sessions(path)` has them: a fork's log may hold
    responses that count in another session, and sub-agents may have logs of their own.

    Args:
        path: The log, of any agent whose logs are known.
        full: Show long texts in full.
        all_messages: Show the messages of every request, also those that have been shown before.
        only: Event types to show, such as `tool.call` or `llm.*`; all where it is empty.
        tz: The zone of times: an IANA name, `UTC`, or `local`.
        width: Wrap at this many columns; None never wraps.
        cut: Characters of a text that are shown where the replay is not full; some kinds of text are cut shorter.
        prices: Prices of responses without a recorded cost, a table's before the list prices; the list prices when
            None.
        subagents: Whether the work of sub-agents is shown: `inline` behind a bar, `none`, or `only` that.

    Raises:
        LogNotReadable: The path cannot be read, or is not a log of a known agent.
        InvalidWindow: No such time zone.
    """
    log, book = log_at(os.fspath(path)), Question(prices=prices).price_book()
    view = View(width=width, zone=resolve_zone(tz), limits=Limits() if full else limits_to(cut))
    blocks = fold_replay(
        read_session(log),
        own=log.source.id in OWN,
        session_id=name_of_session(log),
        all_messages=all_messages,
        chosen=selector(only),
        subagents=subagents,
        price=book.price,
        totals=lambda: totals_alone(log, prices=book),
    )
    paint = Paint()
    for lines in lay_out(blocks, view):
        yield from map(paint, lines)


def selector(only: Iterable[str]) -> Callable[[str], bool] | None:
    """Return a test of event types by names or patterns; None without any."""
    patterns = tuple(only)
    return (lambda kind: any(fnmatchcase(kind, pattern) for pattern in patterns)) if patterns else None


def since(items: Iterable[T], start_ns: int | None) -> Iterator[T]:
    """Yield the events or blocks of a session from a moment on: from the prompt or answer that was going on then.

    The start of the session is always among them; None yields everything.
    """
    held: list[T] = []
    rest = iter(items)
    for item in rest if start_ns is not None else ():
        time_ns, kind = getattr(item, "time_ns", None), getattr(item, "type", "")
        if kind == "session.start":
            yield item
            continue
        if time_ns is not None and time_ns > start_ns:
            held.append(item)
            break
        if kind in _BEGIN and getattr(held[0] if held else None, "time_ns", None) != start_ns:
            held = []
        held.append(item)
    yield from held
    yield from rest


def pace(
    items: Iterable[Event | Problem],
    *,
    speed: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Event | Problem]:
    """Yield `items` unchanged, each after the gap between its `ts` and that of the event before, divided by `speed`.

    A pause never lasts longer than `LONGEST`, and a `ts` that goes backwards causes none. If the consumer takes longer
    than a pause, later pauses are not shortened to catch up.
    """
    before: int | None = None
    due = clock()
    for item in items:
        now = item.time_ns if isinstance(item, Event) else None
        if now is not None:
            gap = 0.0 if before is None else max(0.0, (now - before) / 1e9 / speed)
            before = now
            due = max(due, clock() - min(gap, LONGEST)) + min(gap, LONGEST)
            if due > clock():
                sleep(due - clock())
        yield item
