"""Budget states: how much of each budget is used, how fast, and when it will run out; computed in SQL on the ledger.

`used` is the use in the ledger: a lower bound if requests have no price, whose number is `unpriced`. Reservations are
separate, for they may never be used: only use exceeds a budget. A per-session budget shows the session of the last ten
minutes that used most of it, ended or not: many logs record an end after every turn. This module imports little,
because the status line uses it.
"""

from __future__ import annotations

from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.reservations import live_reservations
from sessionlog.analytics.budgets.sums import HOUR_NS, Use, scope_of, time_of, use_of_sessions, use_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import tzinfo
    from typing import Any, Literal, NoReturn

    from sessionlog.analytics.budgets.clock import ClockReading
    from sessionlog.analytics.budgets.rules import BudgetRule, Unit
    from sessionlog.analytics.conditions import Query

    Level = Literal["ok", "warn", "exceeded"]


def lower_case(text: str | None) -> str | None:
    """Return a text in lower case; NULL stays NULL, which matches nothing."""
    return None if text is None else text.lower()


FUNCTIONS: Mapping[str, Callable[[str | None], str | None]] = {"lower_case": lower_case}
"""SQL functions of one argument that the connection needs before a query."""

SOURCE = "config"
_DEFAULTS = {"estimated": False}
_LAST_NS = 253_402_300_799 * 1_000_000_000  # the end of the year 9999
_SECOND_NS = 1_000_000_000


class BudgetState:
    """The state of one budget; immutable. Amounts are in its unit, times in nanoseconds since 1970 UTC.

    Attributes:
        name: Its name.
        used: The use in its period and scope; a lower bound if there are `unpriced` requests.
        reserved: The live reservations.
        limit: The amount that may be used.
        percent: `used` as a percentage of `limit`.
        unit: `usd`, `tokens` or `requests`.
        window_seconds: The length of its period; None for a per-session budget.
        start_ns: When its period began; None for a per-session budget.
        resets_ns: When a period ends, or the oldest use leaves a rolling window; None for a per-session budget and
            where nothing was used.
        burn_per_hour: The use per hour, measured over the last hour or over a shorter rolling window.
        runs_out_ns: When it will be used up to its stop level at this rate; None if all current use is reset before.
        level: `ok`, `warn` or `exceeded`.
        estimated: Whether a part of the use is estimated from list prices, for a budget in US dollars.
        unpriced: Requests without a cost, for a budget in US dollars; at least 1 if any use has no cost.
        source: Where the limit comes from.
        session: For a per-session budget the ledger's number of the session shown; None for others, and without one.
        rule: The configured rule.
    """

    __slots__ = (
        "burn_per_hour", "estimated", "level", "limit", "name", "percent", "reserved", "resets_ns", "rule",
        "runs_out_ns", "session", "source", "start_ns", "unit", "unpriced", "used", "window_seconds",
    )  # fmt: skip

    name: str
    used: float
    reserved: float
    limit: float
    percent: float
    unit: Unit
    window_seconds: int | None
    start_ns: int | None
    resets_ns: int | None
    burn_per_hour: float
    runs_out_ns: int | None
    level: Level
    unpriced: int
    estimated: bool
    source: str
    session: int | None
    rule: BudgetRule

    def __init__(self, **values: Any) -> None:
        for name in BudgetState.__slots__:
            object.__setattr__(self, name, values[name] if name in values else _DEFAULTS[name])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a budget's state cannot be changed: {name}")

    @property
    def left(self) -> float | None:
        """The amount up to the stop level that is neither used nor reserved, never below 0; None if unknown."""
        rule = self.rule
        left = rule.cap / rule.in_one - self.used - self.reserved
        if self.is_idle or (self.unpriced and left > 0):
            return None
        return max(0, left)

    @property
    def is_unknown(self) -> bool:
        """Whether its use is entirely unknown."""
        return self.is_idle or bool(self.unpriced and not self.used)

    @property
    def is_idle(self) -> bool:
        """Whether it is a per-session budget without a session to show: its use is unknown then."""
        return self.rule.is_per_session and self.session is None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of a budget, the same in every document; use is null for an idle one."""
        return {
            "used": None if self.is_idle else self.used,
            "limit": self.limit,
            "percent": None if self.is_idle else self.percent,
            "unit": self.unit,
            "windowSeconds": self.window_seconds,
            "resetsAt": _stamp(self.resets_ns),
            "source": self.source,
            "reserved": self.reserved,
            "level": self.level,
            "burnPerHour": self.burn_per_hour,
            "runsOutAt": _stamp(self.runs_out_ns),
            "unpricedRequests": self.unpriced,
        }


def budget_states(
    query: Query,
    rules: Iterable[BudgetRule],
    *,
    now_ns: int,
    zone: str | tzinfo,
    session_id: int | None = None,
    moment: ClockReading | None = None,
) -> list[BudgetState]:
    """Return the state of every budget, in the order of the rules.

    Args:
        query: Runs a statement on a ledger whose connection has `FUNCTIONS`.
        rules: The budgets.
        now_ns: The present, for their periods.
        zone: The time zone of days, weeks and months.
        session_id: The ledger's number of the session for per-session budgets; None for the session of the last ten
            minutes that used most.
        moment: The present by both clocks, for the age of reservations; read from the clocks if None.

    Raises:
        InvalidWindow: The time zone is unknown.
    """
    now = moment or read_clock()
    return [_state(query, rule, now_ns, zone, session_id, now) for rule in rules]


def _state(
    query: Query, rule: BudgetRule, now_ns: int, zone: str | tzinfo, session_id: int | None, now: ClockReading
) -> BudgetState:
    start_ns, end_ns = time_of(rule, now_ns, zone)
    span_ns = HOUR_NS if rule.window_ns is None else min(HOUR_NS, rule.window_ns)
    if rule.is_per_session:
        each = use_of_sessions(query, rule, None, now_ns=now_ns, session_id=session_id)
        use = max(each, key=lambda one: (one.amount, one.unpriced, -(one.session or 0)), default=Use())
        recent = _recent(query, rule, now_ns - span_ns, now_ns, use.session)
    else:
        use = use_since(query, rule, start_ns)
        recent = use_since(query, rule, now_ns - span_ns)
    scope, parameters = scope_of(rule)
    session = session_id if rule.is_per_session and use.session is None else use.session
    key = rule.key(_name_of(query, session))
    reserved = live_reservations(query, key, now, scope=scope, parameters=parameters).amount
    burn = recent.amount * HOUR_NS / span_ns
    resets_ns = end_ns
    if end_ns is None and start_ns is not None:
        resets_ns = None if use.first_ns is None else _drops_out(rule, use.first_ns, start_ns, now_ns, zone)
    return BudgetState(
        name=rule.name, used=rule.in_unit(use.amount), reserved=rule.in_unit(reserved), limit=rule.in_unit(rule.limit),
        percent=100 * use.amount / rule.limit, unit=rule.unit, window_seconds=_seconds(start_ns, end_ns, now_ns),
        start_ns=start_ns, resets_ns=resets_ns, burn_per_hour=burn / rule.in_one, level=level_of(rule, use.amount),
        runs_out_ns=_runs_out(rule, use.amount, burn, now_ns, _reset(start_ns, end_ns, now_ns)),
        unpriced=use.unpriced if rule.unit == "usd" else 0,
        estimated=use.estimated and rule.unit == "usd", source=SOURCE, session=session, rule=rule,
    )  # fmt: skip


def _recent(query: Query, rule: BudgetRule, start_ns: int, now_ns: int, session: int | None) -> Use:
    if session is None:
        return Use()
    found = use_of_sessions(query, rule, start_ns, now_ns=now_ns, session_id=session)
    return found[0] if found else Use()


def _drops_out(rule: BudgetRule, first_ns: int, start_ns: int, now_ns: int, zone: str | tzinfo) -> int:
    """When the use at `first_ns` leaves a rolling window."""
    if rule.months is None or first_ns > now_ns:
        return first_ns + now_ns - start_ns
    from sessionlog.analytics.budgets.calendar import months_later

    return months_later(rule, first_ns, now_ns, zone)


def level_of(rule: BudgetRule, amount: int) -> Level:
    """Return a budget's level for a used amount in its inner unit."""
    percent = 100 * amount / rule.limit
    return "exceeded" if percent >= rule.stop else "warn" if percent >= rule.warn else "ok"


def _seconds(start_ns: int | None, end_ns: int | None, now_ns: int) -> int | None:
    if start_ns is None:
        return None
    return ((now_ns if end_ns is None else end_ns) - start_ns) // _SECOND_NS


def _reset(start_ns: int | None, end_ns: int | None, now_ns: int) -> int | None:
    """When none of the current use counts any more."""
    return end_ns if end_ns is not None or start_ns is None else now_ns + now_ns - start_ns


def _runs_out(rule: BudgetRule, amount: int, burn: float, now_ns: int, reset_ns: int | None) -> int | None:
    left = rule.cap - amount
    if left <= 0 or burn <= 0:
        return None
    at_ns = now_ns + round(left / burn * HOUR_NS)
    return at_ns if at_ns < (_LAST_NS if reset_ns is None else reset_ns) else None


def _name_of(query: Query, session: int | None) -> str:
    """The source's id of a session; empty for None."""
    if session is None:
        return ""
    found = query("SELECT session FROM sessions WHERE id = :session_id", {"session_id": session})
    return str(found[0][0]) if found else ""


def _stamp(time_ns: int | None) -> str | None:
    if time_ns is None:
        return None
    from sessionlog.events.times import format_time

    return format_time(time_ns)
