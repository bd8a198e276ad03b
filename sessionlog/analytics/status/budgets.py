"""Provider budgets: the rate-limit windows that logs report, by name, in the same shape as own budgets (`status.own`).

`limits` reads them, for every command. The module imports little (see `status.sums`).
"""

from __future__ import annotations

from sessionlog.analytics.limits import RateLimit, rate_limits, stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.analytics.conditions import Query

WINDOWS = (("hourly", 300.0), ("weekly", 10080.0))
"""Name and minutes of providers' windows; the document's name of the five hours is `hourly`."""

_NEAR = 0.01  # some logs have 299 minutes


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
    budgets: dict[str, dict[str, Any] | None] = {}
    limits = rate_limits(query, now_ns, source)
    for one in sorted(limits, key=lambda one: (one.window_minutes or 0, one.source, one.name)):
        name = free_name(_name(one.name, one.window_minutes), one.source, budgets)
        budgets[name] = _window(one, f"usage.budgets.{name}", unavailable)
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


def _window(one: RateLimit, at: str, unavailable: dict[str, str]) -> dict[str, Any]:
    entry = window_entry(_whole(one.used_percent), one.window_minutes, one.resets_ns, one.source)
    if one.has_reset:
        entry["resetsAt"] = None
        when = f"over at {stamp(one.over_ns)}{'' if one.resets_ns is not None else ' at the latest'}"
        reason = f"the window that was {_whole(one.logged_percent)} % used was {when}; nothing newer is logged"
        unavailable |= {f"{at}.{field}": reason for field in ("used", "percent", "left", "resetsAt")}
    elif one.resets_ns is None:
        unavailable[f"{at}.resetsAt"] = "the log has no reset time"
    if one.window_minutes is None:
        unavailable[f"{at}.windowSeconds"] = "the log does not have its length"
    if not one.plan:
        unavailable[f"{at}.plan"] = "the log names no plan"
    return {**entry, "said": stamp(one.time_ns), "name": one.name, "plan": one.plan or None}


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


def _whole(number: Any) -> Any:
    """A whole float as an int; other values as they are."""
    return int(number) if isinstance(number, float) and number == int(number) else number
