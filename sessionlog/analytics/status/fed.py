"""What an agent tells of itself when it asks for a status line: Claude Code writes it to the command's stdin.

What it tells, it knows best (the provider's windows are told nowhere else), and the ledger fills in the rest. Nothing
in it is trusted: whatever is not of the expected kind is as if it was not there.
"""

from __future__ import annotations

from sessionlog.analytics.status.budgets import free_name, window_entry
from sessionlog.analytics.status.json_reader import read_json

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SOURCE = "claude-code"
_CONFIG = "config"  # what a budget of one's own has as its source

_WINDOWS = (("hourly", "five_hour", 300.0), ("weekly", "seven_day", 10080.0))
_LONGEST = 4096
_MOST = 1e12


class Fed:
    """What was told; None, or nothing, for what was not.

    Attributes:
        session: The session's id.
        path: Its log.
        model: The model in use.
        cost: What the session cost so far, in US dollars.
        percent: How much of the context window is used.
        window: Its size in tokens.
        budgets: The provider's windows, by name: (percent used, when it starts anew, in nanoseconds or None).
    """

    __slots__ = ("budgets", "cost", "model", "path", "percent", "session", "window")

    def __init__(self, told: Mapping[str, Any]) -> None:
        model, context, limits = _object(told, "model"), _object(told, "context_window"), _object(told, "rate_limits")
        self.session = _text(told, "session_id")
        self.path = _text(told, "transcript_path")
        self.model = _text(model, "id") or _text(model, "display_name")
        self.cost = _number(_object(told, "cost"), "total_cost_usd")
        self.percent = _number(context, "used_percentage")
        self.window = _number(context, "context_window_size")
        self.budgets: dict[str, tuple[float, int | None]] = {}
        for name, key, _ in _WINDOWS:
            used, resets = _number(_object(limits, key), "used_percentage"), _number(_object(limits, key), "resets_at")
            if used is not None:
                self.budgets[name] = used, None if resets is None else int(resets * 1_000_000_000)


def read_fed(text: str) -> Fed | None:
    """Return what a text tells; None if it is not the JSON object that an agent writes."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        told = read_json(text)
    except ValueError:
        return None
    return Fed(told) if isinstance(told, dict) else None


def with_fed(document: Mapping[str, Any], fed: Fed | None, now_ns: int) -> dict[str, Any]:
    """Return a status's document with what was told in the place of what the ledger has."""
    if fed is None:
        return dict(document)
    session, usage = {**(document["session"] or {})}, {**document["usage"]}
    context = {**(document["context"] or {})}
    if fed.model:
        session["model"] = fed.model
    if fed.cost is not None:
        known = {"cost": fed.cost, "costIsPartial": False, "costSource": "recorded"}
        usage["session"] = {**(usage["session"] or {}), **known}
    if fed.percent is not None:
        context["percent"] = fed.percent
    if fed.window:
        context["window"] = int(fed.window)
    budgets = {**usage["budgets"]}
    for name, _, minutes in _WINDOWS:
        used, resets_ns = fed.budgets.get(name, (None, None))
        if used is not None and (resets_ns is None or resets_ns > now_ns):
            if (budgets.get(name) or {}).get("source") == _CONFIG:
                budgets[free_name(name, "own", budgets)] = budgets[name]
            budgets[name] = window_entry(used, minutes, resets_ns, SOURCE)
    usage["budgets"] = budgets
    return {**document, "session": session or None, "usage": usage, "context": context or None}


def _object(told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = told.get(key)
    return value if isinstance(value, dict) else {}


def _text(told: Mapping[str, Any], key: str) -> str | None:
    value = told.get(key)
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST and "\0" not in value else None


def _number(told: Mapping[str, Any], key: str) -> float | None:
    value = told.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return None
    return value
