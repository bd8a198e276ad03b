"""StatuslineInput: the JSON that Claude Code writes to a status line command's stdin.

Its values replace the ledger's (it is the only source of the provider's windows); the ledger fills in the rest. The
input is untrusted: a value of an unexpected type counts as missing.
"""

from __future__ import annotations

import json

from sessionlog.analytics.status.budgets import free_name, window_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SOURCE = "claude-code"
_CONFIG = "config"  # the source of the user's own budgets

_WINDOWS = (("hourly", "five_hour", 300.0), ("weekly", "seven_day", 10080.0))
_PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_LONG = 200_000
_LONGEST = 4096
_MOST = 1e12
_ROUNDED = 1  # percent


class StatuslineInput:
    """The values of the input; None, or an empty dict, for missing ones.

    Attributes:
        session: The session's id.
        path: Its log.
        model: The model in use.
        cost: What the session cost so far, in US dollars.
        percent: How much of the context window is used.
        used: The prompt tokens of the last request; 0 if unknown.
        is_long: They are more than 200,000.
        window: The size of the context window in tokens.
        budgets: The provider's windows, by name: (percent used, reset time in nanoseconds or None).
    """

    __slots__ = ("budgets", "cost", "is_long", "model", "path", "percent", "session", "used", "window")

    def __init__(self, data: Mapping[str, Any]) -> None:
        model, context, limits = _object(data, "model"), _object(data, "context_window"), _object(data, "rate_limits")
        self.session = _text(data, "session_id")
        self.path = _text(data, "transcript_path")
        self.model = _text(model, "id") or _text(model, "display_name")
        self.cost = _number(_object(data, "cost"), "total_cost_usd")
        self.percent = _number(context, "used_percentage")
        self.window = _number(context, "context_window_size")
        counts = _object(context, "current_usage")
        self.used = sum(_number(counts, name) or 0 for name in _PROMPT)
        self.is_long = data.get("exceeds_200k_tokens") is True
        self.budgets: dict[str, tuple[float, int | None]] = {}
        for name, key, _ in _WINDOWS:
            used, resets = _number(_object(limits, key), "used_percentage"), _number(_object(limits, key), "resets_at")
            if used is not None:
                self.budgets[name] = used, None if resets is None else int(resets * 1_000_000_000)


def parse_statusline_input(text: str) -> StatuslineInput | None:
    """Parse the input; None if it is not a JSON object."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return StatuslineInput(data) if isinstance(data, dict) else None


def with_statusline_input(
    document: Mapping[str, Any], statusline_input: StatuslineInput | None, now_ns: int
) -> dict[str, Any]:
    """Return a status document in which the input's values replace the ledger's."""
    if statusline_input is None:
        return dict(document)
    session, usage = {**(document["session"] or {})}, {**document["usage"]}
    if statusline_input.model:
        session["model"] = statusline_input.model
    if statusline_input.cost is not None:
        known = {"cost": statusline_input.cost, "costIsPartial": False, "costSource": "recorded"}
        usage["session"] = {**(usage["session"] or {}), **known}
    context = _context({**(document["context"] or {})}, statusline_input, session.get("model"))
    budgets = {**usage["budgets"]}
    for name, _, minutes in _WINDOWS:
        used, resets_ns = statusline_input.budgets.get(name, (None, None))
        if used is not None and (resets_ns is None or resets_ns > now_ns):
            if (budgets.get(name) or {}).get("source") == _CONFIG:
                budgets[free_name(name, "own", budgets)] = budgets[name]
            budgets[name] = window_entry(used, minutes, resets_ns, SOURCE)
    usage["budgets"] = budgets
    return {**document, "session": session or None, "usage": usage, "context": context or None}


def _context(context: dict[str, Any], given: StatuslineInput, model: str | None) -> dict[str, Any]:
    """Return the context with the input's values.

    Claude Code may take a session with a million tokens for one of 200,000, and call it full: a window that is smaller
    than what was sent is replaced by one that is known to hold that, or by none. A share that its own tokens refute is
    replaced by theirs.
    """
    percent, window = given.percent, given.window
    used = given.used or context.get("used") or 0
    sent = max(used, (window or 0) * (percent or 0) / 100, _LONG + 1 if given.is_long else 0)
    if window and sent > window:
        from sessionlog.context.windows import window_for

        window = window_for(int(sent), context.get("window"), models=(model, context.get("model")))
        percent = used / window * 100 if window and used else None
        return {**context, "window": window, "percent": percent}
    if window and percent is not None and given.used:
        exact = given.used / window * 100
        percent = percent if abs(percent - exact) <= _ROUNDED else exact
    if percent is not None:
        context["percent"] = percent
    if window:
        context["window"] = int(window)
    return context


def _object(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST and "\0" not in value else None


def _number(data: Mapping[str, Any], key: str) -> float | None:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return None
    return value
