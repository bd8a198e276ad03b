"""Guard limits: the `[guard]` table of config.toml, for what budgets do not express.

[guard]
repeats = 5               # the same calls with the same results so often are a loop; 0 turns this off
cost_per_minute = 2.5     # US dollars that a session may cost a minute, over five minutes; none by default
interrupt = true          # end the turn of `codex exec` by SIGINT, as its hooks cannot

A key that is not known is an error, as elsewhere in config.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_KEYS = ("repeats", "cost_per_minute", "interrupt")
_REPEATS, _FEWEST, _MOST = 5, 2, 1000
_MOST_USD = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLimits:
    """The limits of the guard beside the budgets.

    Attributes:
        repeats: How often the same calls with the same results may be made in a row before the last is denied, that one
            included; 0 for any number.
        cost_per_minute: US dollars; None for any amount.
        interrupt: Whether to end a turn by SIGINT where hooks cannot.
    """

    repeats: int = _REPEATS
    cost_per_minute: float | None = None
    interrupt: bool = True


def parse_limits(table: Mapping[str, Any], *, path: str = "") -> GuardLimits:
    """Parse the `[guard]` table; `path` is its file, for messages.

    Raises:
        InvalidSettings: It is not valid; the message names the file, the key, and what is allowed.
    """
    for key in table:
        if key not in _KEYS:
            raise _invalid(path, f"unknown key {key!r}; known are {', '.join(_KEYS)}")
    repeats = table.get("repeats", _REPEATS)
    if type(repeats) is not int or not (repeats == 0 or _FEWEST <= repeats <= _MOST):
        raise _invalid(path, f"repeats must be 0 or a whole number from {_FEWEST} to {_MOST:,}; it is {repeats!r}")
    cost = table.get("cost_per_minute")
    if cost is not None and (type(cost) not in {int, float} or not 0 < cost <= _MOST_USD):
        raise _invalid(path, f"cost_per_minute must be a number above 0, up to {_MOST_USD:,}; it is {cost!r}")
    interrupt = table.get("interrupt", True)
    if not isinstance(interrupt, bool):
        raise _invalid(path, f"interrupt must be true or false; it is {interrupt!r}")
    return GuardLimits(repeats=repeats, cost_per_minute=cost, interrupt=interrupt)


def _invalid(path: str, why: str) -> Exception:
    from sessionlog.errors import InvalidSettings

    return InvalidSettings(f"{path}: [guard] {why}" if path else f"[guard] {why}")
