"""How a replay is wanted: for whom, how wide, how much of it."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from msgspec import Struct, field

SHOWN = 4000
"""Characters of one text that are shown by default."""


class Limit(Struct, frozen=True, kw_only=True):
    """How much of a text is shown; None is all."""

    chars: int | None = None
    lines: int | None = None


class Limits(Struct, frozen=True, kw_only=True):
    """How much is shown of each kind of text; `Limits()` shows all.

    Attributes:
        prose: What people and models say, and errors.
        system: System prompts.
        output: A tool's result.
        thought: What a model thinks.
        arguments: A tool's arguments.
    """

    prose: Limit = Limit()
    system: Limit = Limit()
    output: Limit = Limit()
    thought: Limit = Limit()
    arguments: Limit = Limit()


def limits_to(chars: int) -> Limits:
    """Limits of at most `chars` characters; what a reader skims is cut shorter than what he reads."""
    return Limits(
        prose=Limit(chars=chars),
        system=Limit(chars=min(chars, 400), lines=4),
        output=Limit(chars=min(chars, 1200), lines=12),
        thought=Limit(chars=min(chars, 600), lines=6),
        arguments=Limit(chars=min(chars, 1200), lines=6),
    )


class View(Struct, frozen=True, kw_only=True):
    """A frozen answer to every question the layout has.

    Attributes:
        width: Columns of the terminal; None never wraps and never aligns, for pipes and diffs.
        exact: Numbers in full (`14100 in · 4200 ms · $0.0010272`) instead of short ones.
        limits: How much of long texts is shown.
        zone: Where times are shown.
        now: The year that goes without saying.
        home: The folder shown as `~`; empty shows paths as logged.
        markdown: Whether what people and models say is shown as Markdown; only colours can.
    """

    width: int | None = None
    exact: bool = True
    limits: Limits = field(default_factory=lambda: limits_to(SHOWN))
    zone: tzinfo = UTC
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    home: str = ""
    markdown: bool = False
