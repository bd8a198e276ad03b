"""Budgets: how much of each is used, how fast, and when it will run out; asked of the ledger in SQL.

`used` is what the ledger knows; where requests have no price it is a lower bound and `unpriced` says of how many. What
is reserved is told apart: it may never be used. A budget is exceeded by use alone. Of a budget that every session has
for itself the one is shown that has used most of it, of those of the last ten minutes: many logs tell of an end after
every turn. Nothing is imported for it but what a calendar needs: the status line asks this, too.
"""

from __future__ import annotations

from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.reservations import live_reservations
from sessionlog.analytics.budgets.sums import HOUR_NS, Use, scope_of, time_of, use_of_sessions, use_since

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import tzinfo
    from typing import Any, Literal, NoReturn

    from sessionlog.analytics.budgets.clock import ClockReading
    from sessionlog.analytics.budgets.rules import BudgetRule, Unit
    from sessionlog.analytics.conditions import Query

    Level = Literal["ok", "warn", "exceeded"]


def lower_case(text: str | None) -> str | None:
    """Return a text in lower case; NULL stays NULL, which fits nothing."""
    return None if text is None else text.lower()


FUNCTIONS: Mapping[str, Callable[[str | None], str | None]] = {"lower_case": lower_case}
"""What a connection has to know before it is asked: SQL functions of one argument."""

SOURCE = "config"
_DEFAULTS = {"estimated": False}
_LAST_NS = 253_402_300_799 * 1_000_000_000  # the end of the year 9999
_SECOND_NS = 1_000_000_000


class BudgetState:
    """One budget as it is now; it cannot be changed. Amounts are in its unit, times in nanoseconds since 1970 UTC.

    Attributes:
        name: What it is called.
        used: What was used in its time and scope; a lower bound if there are `unpriced` requests.
        reserved: What agents have asked for and not used yet.
        limit: What may be used.
        percent: `used` of `limit`.
        unit: `usd`, `tokens` or `requests`.
        window_seconds: How long its time is; None for a session's.
        start_ns: When its time began; None for a session's.
        resets_ns: When a period ends, or the oldest use drops out of a rolling window; None for a session's and where
            nothing was used.
        burn_per_hour: What the last hour used, or a rolling window that is shorter, in an hour.
        runs_out_ns: When it will be used up to its stop level at this rate; None if that is not before everything used
            so far has been reset.
        level: `ok`, `warn` or `exceeded`.
        estimated: A part of what was used is estimated from list prices, in a budget of US dollars.
        unpriced: Requests without a cost, in a budget of US dollars; at least 1 where anything used has none.
        source: Who says the limit.
        session: Of a session's budget the ledger's number of the session shown; None for others, and if there is none.
        rule: As configured.
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
        """What is neither used nor reserved up to the stop level, never below 0; None if that is not known."""
        rule = self.rule
        left = rule.cap / rule.in_one - self.used - self.reserved
        if self.is_idle or (self.unpriced and left > 0):
            return None
        return max(0, left)

    @property
    def is_unknown(self) -> bool:
        """Whether nothing at all is known of its use."""
        return self.is_idle or bool(self.unpriced and not self.used)

    @property
    def is_idle(self) -> bool:
        """Whether every session has its own, and there is none to show it of: nothing is known of its use then."""
        return self.rule.is_per_session and self.session is None

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of a budget wherever one is shown; use is null where there is no session to show it of."""
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
        query: Runs a statement on a ledger whose connection knows `FUNCTIONS`.
        rules: The budgets.
        now_ns: The present, for their times.
        zone: Whose days, weeks and months.
        session_id: The ledger's number of the session whose own budgets are asked for; that of the sessions
            of the last ten minutes that has used most if None.
        moment: The present by both clocks, for how long reservations count; the clocks' if None.

    Raises:
        InvalidWindow: There is no such zone.
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
    """When a use is no longer in a rolling window."""
    if rule.months is None or first_ns > now_ns:
        return first_ns + now_ns - start_ns
    from sessionlog.analytics.budgets.calendar import months_later  # noqa: PLC0415 - for those who need a calendar

    return months_later(rule, first_ns, now_ns, zone)


def level_of(rule: BudgetRule, amount: int) -> Level:
    """Return what an amount used means to a budget."""
    percent = 100 * amount / rule.limit
    return "exceeded" if percent >= rule.stop else "warn" if percent >= rule.warn else "ok"


def _seconds(start_ns: int | None, end_ns: int | None, now_ns: int) -> int | None:
    if start_ns is None:
        return None
    return ((now_ns if end_ns is None else end_ns) - start_ns) // _SECOND_NS


def _reset(start_ns: int | None, end_ns: int | None, now_ns: int) -> int | None:
    """When nothing of what is used now will count any more."""
    return end_ns if end_ns is not None or start_ns is None else now_ns + now_ns - start_ns


def _runs_out(rule: BudgetRule, amount: int, burn: float, now_ns: int, reset_ns: int | None) -> int | None:
    left = rule.cap - amount
    if left <= 0 or burn <= 0:
        return None
    at_ns = now_ns + round(left / burn * HOUR_NS)
    return at_ns if at_ns < (_LAST_NS if reset_ns is None else reset_ns) else None


def _name_of(query: Query, session: int | None) -> str:
    """The id of a session as its source names it; empty for none."""
    if session is None:
        return ""
    found = query("SELECT session FROM sessions WHERE id = :session_id", {"session_id": session})
    return str(found[0][0]) if found else ""


def _stamp(time_ns: int | None) -> str | None:
    if time_ns is None:
        return None
    from sessionlog.events.times import format_time  # noqa: PLC0415 - 8 ms, for who wants a document

    return format_time(time_ns)
