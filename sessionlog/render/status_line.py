"""Lay out a status on one line, for the bottom of an agent's screen.

    opus-4-5 · ctx 74 % · $4.10 session · $31.20 today · 5h ▓▓▓▓▓▓░░ 72 % until 12:10

Unknown parts are omitted; `~` marks an estimate, `+` an amount of which a part is unknown. Agents run it after every
step, so it imports only what the current line needs.
"""

from __future__ import annotations

import os

from sessionlog.render import numbers
from sessionlog.render.cells import cell_len
from sessionlog.render.escape import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import tzinfo
    from typing import IO, Any

    _Piece = tuple[int, str, str, str]
    """Rank (the highest is dropped first), separator before it, text, style."""

_CONTEXT, _MODEL, _SESSION, _REMARK, _TODAY, _UNTIL = range(1, 7)
"""Ranks of the pieces; the budget has 0 and is never dropped."""

CELLS = 8
NO_SESSION = "no session yet"
_NAME = 40
_NEARLY, _FULL = 80, 100
_DAY, _WEEK = 86_400, 604_800
_LABELS = {"hourly": "5h", "weekly": "7d"}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def status_line(
    document: Mapping[str, Any],
    *,
    now_ns: int,
    zone: tzinfo | None = None,
    remark: str = "",
    width: int | None = None,
) -> list[tuple[str, str]]:
    """Return the pieces of the line with their styles.

    Args:
        document: A status (see `analytics.status`).
        now_ns: The current time.
        zone: The zone of times; None for the machine's.
        remark: A text at the end.
        width: The columns to fit, by dropping the least important pieces; None drops none.
    """
    pieces = [*_pieces(document, now_ns, zone), *([(_REMARK, " · ", remark, "note")] if remark else ())]
    if all(piece[0] == _REMARK for piece in pieces):
        pieces = [(0, " · ", NO_SESSION, "secondary"), *pieces]
    while width is not None and len(pieces) > 1 and _length(pieces) > width:
        pieces.remove(max(pieces, key=lambda piece: piece[0]))
    line: list[tuple[str, str]] = []
    for _, gap, text, style in pieces:
        line += [(gap, "secondary"), (text, style)] if line else [(text, style)]
    return line


def line_width(stream: IO[str]) -> int | None:
    """Return the columns that a line may take: `$COLUMNS`, else the terminal's; None where neither is known."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal():
        return int(columns) or None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError, AttributeError):  # not a terminal, or closed
        return None


def _length(pieces: list[_Piece]) -> int:
    text = "".join(gap + text for _, gap, text, _ in pieces)[len(pieces[0][1]) :]
    return cell_len(text)


def _pieces(document: Mapping[str, Any], now_ns: int, zone: tzinfo | None) -> Iterator[_Piece]:
    session, usage, context = document["session"] or {}, document["usage"], document["context"] or {}
    if session.get("model"):
        yield _MODEL, " · ", safe_name(short_model(session["model"])), "model"
    if context.get("percent") is not None:
        yield _CONTEXT, " · ", f"ctx {percent(context['percent'])}", severity(context["percent"])
    for rank, name, used in ((_SESSION, "session", usage["session"]), (_TODAY, "today", usage["today"])):
        if used and used.get("cost") is not None:
            text, style = money(used)
            yield rank, " · ", f"{text} {'in all' if 'turnsArePartial' in used else name}", style
    tightest = tightest_budget(usage["budgets"])
    if tightest is not None:
        name, entry = tightest
        share, style = entry["percent"], severity(entry["percent"], entry)
        words = f"{budget_name(name, entry)} {block_bar(share)} {percent(share)}{at_least(entry)}"
        yield 0, " · ", f"{words} {level_word(entry)}".rstrip(), style
        until = until_words(entry.get("resetsAt"), now_ns, zone)
        if until:
            yield _UNTIL, " ", until, style


def tightest_budget(budgets: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the budget with the greatest used share; None if no share is known."""
    known = [(name, one) for name, one in budgets.items() if one is not None and one.get("percent") is not None]
    return max(known, key=lambda pair: pair[1]["percent"]) if known else None


def money(used: Mapping[str, Any]) -> tuple[str, str]:
    """Return a cost with its marks, and its style."""
    estimated = used["costSource"] in {"estimated", "mixed"}
    more = "+" if used["costIsPartial"] else ""
    return ("~" if estimated else "") + numbers.cost_text(used["cost"]) + more, "estimated" if estimated else ""


def amount_of(entry: Mapping[str, Any], name: str, *, with_unit: bool = False) -> str:
    """Return an amount of a budget by its name in the document, such as `left`; a dash if it is unknown."""
    value = entry.get(name)
    if value is None:
        return numbers.UNKNOWN
    if entry["unit"] in {"usd", "percent"}:
        return numbers.cost_text(value) if entry["unit"] == "usd" else percent(value)
    unit = {"tokens": " tok", "requests": " req"}.get(entry["unit"], "") if with_unit else ""
    return numbers.human_count(round(value)) + unit


def at_least(entry: Mapping[str, Any]) -> str:
    """Return the mark of a budget that may be used more than is known."""
    return "+" if entry.get("unknown") else ""


def level_word(entry: Mapping[str, Any]) -> str:
    """Return a budget's level in a word; "" for ok."""
    level = str(entry.get("level") or "")
    return level if level in {"warn", "exceeded"} else ""


def percent(share: float) -> str:
    """Format a share in percent (see `numbers.percent`)."""
    return numbers.percent(share / 100)


def severity(share: float, budget: Mapping[str, Any] | None = None) -> str:
    """Return the style of a used share in percent; a configured budget brings its own level."""
    level = (budget or {}).get("level")
    if level is not None:
        return {"warn": "unfinished", "exceeded": "failed"}.get(level, "")
    return "failed" if share >= _FULL else "unfinished" if share >= _NEARLY else ""


def block_bar(share: float) -> str:
    """Return a bar of whole cells: only 0 is empty, only 100 is full."""
    full = round(min(max(share, 0), 100) / 100 * CELLS)
    if 0 < share < _FULL:
        full = min(max(full, 1), CELLS - 1)
    return "▓" * full + "░" * (CELLS - full)


def budget_name(name: str, entry: Mapping[str, Any]) -> str:
    """Return a budget's name, or the length of a provider's rate limit window: `5h`, `7d`."""
    label = _LABELS.get(name) if entry["unit"] == "percent" else None
    return label or safe_name(name, 20)


def short_model(name: str) -> str:
    """Return a model's name without its maker, region and date: `opus-4-5`."""
    short = name.rpartition("/")[2]
    short = short.rpartition("claude-")[2] or short
    short = short.removesuffix("-latest").partition("-v1:")[0] or short
    words = short.replace("@", "-").split("-")
    if len(words) > 1 and words[-1].isdigit() and len(words[-1]) == len("20251101"):
        return "-".join(words[:-1])
    if list(map(len, words[-3:])) == [4, 2, 2] and "".join(words[-3:]).isdigit() and len(words) > len("ymd"):
        return "-".join(words[:-3])
    return short


def until_words(stamp: str | None, now_ns: int, zone: tzinfo | None) -> str:
    """Return when something resets: `until 12:10`, within a week `until Tue 12:10`, later `until 21 Nov`."""
    if stamp is None:
        return ""
    from datetime import UTC, datetime

    try:
        at = datetime.fromisoformat(stamp).astimezone(zone)
        now = datetime.fromtimestamp(now_ns / 1e9, UTC).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return ""
    clock = f"{at.hour:02}:{at.minute:02}"
    if at.date() == now.date():
        return f"until {clock}"
    if 0 < (at - now).total_seconds() < _WEEK - _DAY:
        return f"until {_DAYS[at.weekday()]} {clock}"
    return f"until {at.day} {_MONTHS[at.month - 1]}"


def safe_name(text: str, limit: int = _NAME) -> str:
    """Return a name of a log, escaped for a terminal."""
    return one_line(text, limit)
