"""Budget rules: the amount, period and scope of a budget, as `[budgets.NAME]` of config.toml defines them.

    [budgets.daily]
    usd = 20                  # or tokens = 2_000_000, or requests = 500
    period = "day"            # or window = "5h" (rolling: N + min, h, d, w or mo), or per = "session"
    model = "claude-*"        # also source, provider, project: a glob or several, as the filters of `usage`
    meta = { team = "x" }     # of the session's metadata
    exclude = "test-*"        # ids of sessions that do not count
    warn = 80                 # percent of the amount
    stop = 100

Ambiguous rules are errors: a rule has exactly one amount, exactly one time and no unknown key. Internally amounts are
whole numbers: nano-dollars, tokens or requests. This module imports nothing, because the status line uses it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, NoReturn

    Unit = Literal["usd", "tokens", "requests"]

UNITS = ("usd", "tokens", "requests")
PERIODS = ("hour", "day", "week", "month")
SCOPE = ("source", "provider", "model", "project")
WARN, STOP = 80, 100
"""The default percentages of the amount at which a budget warns and stops."""

EXAMPLE = '[budgets.daily]\nusd = 20\nperiod = "day"\n'
"""A first budget for config.toml."""

_NANO = 1_000_000_000
_TIMES = ("per", "window", "period")
_KEYS = (*UNITS, *_TIMES, *SCOPE, "meta", "exclude", "warn", "stop")
_SECONDS = {"min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_WINDOWS = "a number and min, h, d, w or mo, such as 30min, 5h, 7d or 1mo"
_MOST_SECONDS = 100 * 366 * 86_400
_MOST_MONTHS = 1200
_MOST = 10**9
_MOST_COUNT = 10**18


class BudgetRule:
    """One budget as configured; immutable.

    Attributes:
        name: Its name; empty for one made in code.
        unit: `usd`, `tokens` or `requests`.
        limit: The amount: nano-dollars, tokens or requests.
        is_per_session: Whether the limit is for each session.
        window_ns: Length of a rolling window; None for another time.
        months: Length of a rolling window in calendar months; None for another time.
        period: `hour`, `day`, `week` or `month` of the calendar; None for another time.
        span: The time as it was written: `5h`, `day`, `session`.
        filters: `source`, `provider`, `model`, `project` → glob patterns of which one must match.
        meta: Key of the session's metadata → glob patterns of which one must match.
        exclude: Glob patterns of the ids of sessions that do not count.
        warn: Percent of the amount from which it warns.
        stop: Percent of the amount from which it is exceeded.
    """

    __slots__ = (
        "exclude", "filters", "is_per_session", "limit", "meta", "months", "name", "period", "span", "stop", "unit",
        "warn", "window_ns",
    )  # fmt: skip

    name: str
    unit: Unit
    limit: int
    is_per_session: bool
    window_ns: int | None
    months: int | None
    period: str | None
    span: str
    filters: Mapping[str, tuple[str, ...]]
    meta: Mapping[str, tuple[str, ...]]
    exclude: tuple[str, ...]
    warn: float
    stop: float

    def __init__(self, **values: Any) -> None:
        for name in BudgetRule.__slots__:
            object.__setattr__(self, name, values[name])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a budget's rule cannot be changed: {name}")

    @property
    def cap(self) -> int:
        """The amount at the stop level, rounded down: the most that may be used."""
        return int(self.limit * self.stop // 100)

    def key(self, session: str = "") -> str:
        """The unit, period and scope as text: budgets with the same key share their reservations."""
        time = f"{self.window_ns} ns" if self.window_ns is not None else self.span
        conditions = {**self.filters, **_dotted(self.meta), **({"exclude": self.exclude} if self.exclude else {})}
        scope = [(name, sorted(patterns)) for name, patterns in sorted(conditions.items())]
        return f"{self.unit} per {time} of {scope}" + (f" in {session}" if self.is_per_session else "")

    @property
    def is_of_all(self) -> bool:
        """Whether all use in its period counts."""
        return not (self.filters or self.meta or self.exclude)

    @property
    def in_one(self) -> int:
        """The inner units in one unit: nano-dollars in a dollar, else 1."""
        return _NANO if self.unit == "usd" else 1

    def in_unit(self, amount: int) -> float | int:
        """Convert an amount from the inner unit to dollars, tokens or requests."""
        return amount / _NANO if self.unit == "usd" else amount


def parse_budgets(table: Mapping[str, Any], *, path: str = "") -> tuple[BudgetRule, ...]:
    """Parse the `[budgets]` table, in its order; `path` is its file, for messages.

    Raises:
        InvalidSettings: A budget is not valid; the message names the file, the budget, the key, and what is allowed.
    """
    rules, errors = parse_each_budget(table, path=path)
    for error in errors.values():
        raise _invalid(error)
    return rules


def parse_each_budget(table: Mapping[str, Any], *, path: str = "") -> tuple[tuple[BudgetRule, ...], Mapping[str, str]]:
    """Return the valid budgets, and for the others name → error message with the file."""
    rules, errors = [], {}
    for name, entry in table.items():
        try:
            if not name.strip():
                raise _invalid(f"[budgets.{name!r}] needs a name, such as [budgets.daily]")
            rules.append(parse_budget(name, entry))
        except ValueError as error:
            errors[name] = f"{path}: {error}" if path else str(error)
    return tuple(rules), errors


def parse_budget(name: str, table: Any) -> BudgetRule:
    """Parse one budget; the name is empty for one made in code.

    Raises:
        InvalidSettings: The budget is not valid; the message names it, the key, and what is allowed.
    """
    if not isinstance(table, dict):
        raise _error(name, f"must be a table, such as [budgets.{name}] with usd = 20 and period = 'day'")
    for key in table:
        if key not in _KEYS:
            raise _error(name, f"unknown key {key!r}{_near(key)}; known are {', '.join(_KEYS)}")
    unit = _one_of(name, table, UNITS, "an amount")
    time = _one_of(name, table, _TIMES, "a time")
    stop = _percent(name, table, "stop", STOP)
    warn = _percent(name, table, "warn", min(WARN, stop * WARN / STOP))
    if warn >= stop:
        raise _error(name, f"warn must be below stop; it is {warn:g}, and stop is {stop:g}")
    window_ns, months = _window(name, table["window"]) if time == "window" else (None, None)
    if time == "per" and table["per"] != "session":
        raise _error(name, f"per must be 'session'; it is {_shown(table['per'])}")
    if time == "period" and table["period"] not in PERIODS:
        raise _error(name, f"period must be one of {', '.join(PERIODS)}; it is {_shown(table['period'])}")
    filters = {key: _patterns(name, key, table[key]) for key in SCOPE if key in table}
    meta = table.get("meta", {})
    if not isinstance(meta, dict):
        raise _error(name, "meta must be a table, such as { team = 'x' }")
    return BudgetRule(
        name=name, unit=unit, limit=_amount(name, unit, table[unit]), is_per_session=time == "per",
        window_ns=window_ns, months=months, period=table.get("period"), span=table[time], filters=filters,
        meta={str(key): _patterns(name, f"meta.{key}", value) for key, value in meta.items()},
        exclude=_patterns(name, "exclude", table["exclude"]) if "exclude" in table else (), warn=warn, stop=stop,
    )  # fmt: skip


def _one_of(name: str, table: Mapping[str, Any], keys: tuple[str, ...], what: str) -> Any:
    given = [key for key in keys if key in table]
    if len(given) != 1:
        found = f"it has {' and '.join(given)}" if given else "it has none"
        raise _error(name, f"needs exactly one of {', '.join(keys)} as {what}; {found}")
    return given[0]


def _amount(name: str, unit: str, value: object) -> int:
    if unit == "usd":
        if _is_number(value) and 0 < value <= _MOST and round(value * _NANO):  # type: ignore[operator] # a number
            return round(value * _NANO)  # type: ignore[operator] # as above
        raise _error(name, f"usd must be a number above 0, up to {_MOST:,}; it is {_shown(value)}")
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_COUNT:
        return value
    raise _error(name, f"{unit} must be a whole number above 0; it is {_shown(value)}")


def _percent(name: str, table: Mapping[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if _is_number(value) and 0 < value <= 10 * STOP:
        return float(value)
    raise _error(name, f"{key} must be a number of percent above 0, up to {10 * STOP}; it is {_shown(value)}")


def _window(name: str, value: object) -> tuple[int | None, int | None]:
    """A rolling window's nanoseconds, or its months."""
    text = value if isinstance(value, str) else ""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    word = text[len(digits) :]
    count = int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 12 else 0
    if word == "mo" and 0 < count <= _MOST_MONTHS:
        return None, count
    seconds = count * _SECONDS.get(word, 0)
    if 0 < seconds <= _MOST_SECONDS:
        return seconds * _NANO, None
    raise _error(name, f"window must be {_WINDOWS}, up to 100 years; it is {_shown(value)}")


def _patterns(name: str, key: str, value: object) -> tuple[str, ...]:
    patterns = [value] if isinstance(value, str) else value
    if isinstance(patterns, list | tuple) and patterns and all(isinstance(one, str) and one for one in patterns):
        return tuple(one.lower() for one in patterns)
    raise _error(name, f"{key} must be a text such as 'claude-*', or a list of them; it is {_shown(value)}")


def _dotted(meta: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {f"meta.{key}": patterns for key, patterns in meta.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


_MEANT = {"dollars": "usd", "dollar": "usd", "cost": "usd", "amount": "usd", "limit": "usd", "time": "period"}


def _near(key: str) -> str:
    """A suggestion for an unknown key; empty if none is similar."""
    from difflib import get_close_matches

    near = get_close_matches(key.lower(), [*_KEYS, *_MEANT], n=1)
    return f" (did you mean {_MEANT.get(near[0], near[0])!r}?)" if near else ""


def _error(name: str, why: str) -> Exception:
    return _invalid(f"[budgets.{name}] {why}" if name else why)


def _invalid(why: str) -> Exception:
    from sessionlog.errors import InvalidSettings

    return InvalidSettings(why)
