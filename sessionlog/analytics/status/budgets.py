"""Provider budgets: the rate-limit windows that logs report, by name, in the same shape as own budgets (`status.own`).

How much a plan allows is never guessed: there is only the provider's last reported percentage, and no value once its
window is over. The module imports nothing (see `status.sums`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.analytics.conditions import Query

WINDOWS = (("hourly", 300.0), ("weekly", 10080.0))
"""Name and minutes of providers' windows; the document's name of the five hours is `hourly`."""

_NEAR = 0.01  # some logs have 299 minutes
_MINUTE_NS = 60 * 1_000_000_000
_LAST_NS = 253_402_300_799 * 1_000_000_000  # the end of the year 9999

_LIMITS = """
SELECT source, name, time_ns, used_percent, window_minutes, resets_ns, plan FROM limits
WHERE file_id NOT IN (SELECT id FROM files WHERE missing = 2)
  AND (:source IS NULL OR source = :source) AND time_ns <= :now_ns
ORDER BY time_ns, COALESCE(resets_ns, 0), used_percent
"""
"""The last row of a limit is the latest report of it, as in `Book.limits`."""


def provider_windows(
    query: Query, source: str | None, now_ns: int, unavailable: dict[str, str]
) -> dict[str, dict[str, Any] | None]:
    """Return name → the last report of each provider window.

    Args:
        query: Runs a statement.
        source: Id of the source whose logs count; None for all sources.
        now_ns: The present; later reports are ignored.
        unavailable: Gets a reason for each null.
    """
    latest = {(row[0], row[1]): row for row in query(_LIMITS, {"source": source, "now_ns": now_ns})}
    budgets: dict[str, dict[str, Any] | None] = {}
    for row in sorted(latest.values(), key=lambda row: (row[4] or 0, row[0], row[1])):
        name = free_name(_name(row[1], row[4]), str(row[0]), budgets)
        budgets[name] = _window(row, now_ns, f"usage.budgets.{name}", unavailable)
    for name, _ in WINDOWS:
        if name not in budgets:
            budgets[name] = None
            who = "no log" if source is None else f"no log of {source}"
            unavailable[f"usage.budgets.{name}"] = f"{who} reports such a window"
    return budgets


def window_entry(used: float | None, minutes: float | None, resets_ns: int | None, source: str) -> dict[str, Any]:
    """Return a provider's window in the shape of all budgets; `used` is percent, and so is the limit."""
    return {
        "used": used,
        "limit": 100,
        "percent": used,
        "left": None if used is None else max(0, 100 - used),
        "unit": "percent",
        "windowSeconds": None if minutes is None else _whole(minutes * 60),
        "resetsAt": stamp(resets_ns),
        "source": f"{source}: the provider's word",
    }


def _window(row: tuple[Any, ...], now_ns: int, at: str, unavailable: dict[str, str]) -> dict[str, Any]:
    source, name, time_ns, used, minutes, resets_ns, plan = row
    over_ns = time_ns + round(minutes * _MINUTE_NS) if resets_ns is None and minutes is not None else resets_ns
    entry = window_entry(_whole(used), minutes, resets_ns, str(source))
    if over_ns is not None and over_ns <= now_ns:
        entry |= {"used": None, "percent": None, "left": None, "resetsAt": None}
        reason = f"the window that was {_whole(used)} % used was over at {stamp(over_ns)}; nothing newer is logged"
        unavailable |= {f"{at}.{field}": reason for field in ("used", "percent", "left", "resetsAt")}
    elif resets_ns is None:
        unavailable[f"{at}.resetsAt"] = "the log has no reset time"
    if minutes is None:
        unavailable[f"{at}.windowSeconds"] = "the log does not have its length"
    if not plan:
        unavailable[f"{at}.plan"] = "the log names no plan"
    return {**entry, "said": stamp(time_ns), "name": str(name), "plan": str(plan) or None}


def _name(name: str, minutes: float | None) -> str:
    for known, length in WINDOWS:
        if minutes is not None and "/" not in name and abs(minutes - length) <= length * _NEAR:
            return known
    return str(name)


def free_name(name: str, whose: str, budgets: dict[str, dict[str, Any] | None]) -> str:
    """Return the name, with the prefix `whose:` if another budget has it."""
    while budgets.get(name):
        name = f"{whose}:{name}"
    return name


def stamp(time_ns: int | None) -> str | None:
    """Return an instant as `events.times.format_time` does, whose import takes 8 ms."""
    if time_ns is None:
        return None
    from time import gmtime

    seconds, rest = divmod(min(time_ns, _LAST_NS), 1_000_000_000)
    at = gmtime(seconds)
    day = f"{at.tm_year:04}-{at.tm_mon:02}-{at.tm_mday:02}"
    return f"{day}T{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}.{rest // 1000:06}Z"


def _whole(number: Any) -> Any:
    """A whole float as an int; other values as they are."""
    return int(number) if isinstance(number, float) and number == int(number) else number
