"""Spending: which budgets and limits of cost the present session has reached.

A budget stops a session only if the session's next request would count for it: one for another project, agent or model
is left alone. Use whose price is unknown is not counted here: a guard stops at what is known to be spent.
"""

from __future__ import annotations

from sessionlog.analytics.budgets.rules import BudgetRule
from sessionlog.analytics.budgets.states import budget_states, level_of
from sessionlog.analytics.budgets.sums import is_excluded, time_of, use_of_sessions, use_since
from sessionlog.analytics.conditions import matches
from sessionlog.analytics.sums import Row, read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.budgets.states import BudgetState
    from sessionlog.analytics.conditions import Query
    from sessionlog.guard.hook import Hook
    from sessionlog.guard.unread import Unread

_MINUTES = 5
"""Over how many minutes the cost per minute is measured: a single large response is no runaway session."""

_NO_SESSION = -1
"""A session number that does not occur in a ledger."""

_MINUTE_NS = 60 * 1_000_000_000
_RECENT_NS = 15 * _MINUTE_NS
_SESSION = """SELECT id FROM sessions WHERE source = :source AND session = :session
    UNION ALL SELECT t.session_id FROM files f JOIN log_sessions t ON t.file_id = f.id WHERE f.path = :log LIMIT 1"""
_LABEL = {name: f"l.{name}" for name in ("provider", "model", "project")}
_LABELS = f"""FROM quarter_hours r JOIN labels l ON l.id = r.label_id WHERE r.session_id = :id
    AND r.last_ns > (SELECT MAX(last_ns) - {_RECENT_NS} FROM quarter_hours WHERE session_id = :id)"""  # noqa: S608 - a number


class Spending:
    """What the ledger knows of the session that a hook is about."""

    def __init__(self, query: Query, hook: Hook, *, now_ns: int, zone: str) -> None:
        """Find the session.

        Args:
            query: Runs a statement on a ledger whose connection has `budgets.states.FUNCTIONS`.
            hook: The call of the hook.
            now_ns: The present.
            zone: The time zone of days, weeks and months.
        """
        self._query, self._hook, self._now_ns, self._zone = query, hook, now_ns, zone
        found = query(_SESSION, {"source": hook.agent.id, "session": hook.session, "log": hook.log})
        self.session: int | None = found[0][0] if found else None
        self._amounts: dict[str, int] = {}

    def reached(self, rules: Sequence[BudgetRule]) -> list[BudgetState]:
        """Return the budgets that are at their warning or stop level and count this session's next request."""
        rules = [rule for rule in rules if self._level(rule) != "ok" and self._counts(rule)]
        return budget_states(self._query, rules, now_ns=self._now_ns, zone=self._zone, session_id=self.session)

    def is_near(self, rules: Sequence[BudgetRule], cost_per_minute: float | None, unread: Unread) -> bool:
        """Return whether responses that are not in the ledger yet may bring a budget or the limit to its next level.

        Args:
            rules: The budgets.
            cost_per_minute: The limit in US dollars; None for any amount.
            unread: How many there are, and what they are at most.
        """
        for rule in rules:
            amount = self._amount(rule)
            if level_of(rule, amount + unread.most(rule.unit)) != level_of(rule, amount):
                return True
        if cost_per_minute is None:
            return False
        return self.cost_per_minute() + _RECENT_COST.in_unit(unread.most("usd")) / _MINUTES > cost_per_minute

    def _level(self, rule: BudgetRule) -> str:
        """The level of a budget by one sum; `budget_states` needs five."""
        return level_of(rule, self._amount(rule))

    def _amount(self, rule: BudgetRule) -> int:
        if rule.name not in self._amounts:
            self._amounts[rule.name] = self._sum(rule)
        return self._amounts[rule.name]

    def _sum(self, rule: BudgetRule) -> int:
        if not rule.is_per_session:
            start_ns, _ = time_of(rule, self._now_ns, self._zone)
            return use_since(self._query, rule, start_ns).amount
        if self.session is None:
            return 0
        uses = use_of_sessions(self._query, rule, None, now_ns=self._now_ns, session_id=self.session)
        return uses[0].amount if uses else 0

    def _counts(self, rule: BudgetRule) -> bool:
        """Whether the session's next request would count for a budget, by the labels of its last ones."""
        if rule.is_of_all:
            return True
        if rule.meta or is_excluded(self._query, rule, self._hook.session):
            return False  # metadata is that of sessions in the native format
        return any(self._matches(rule, label) for label in self._labels())

    def _labels(self) -> Iterator[dict[str, Any]]:
        """Yield the known source, provider, model and project of the session's requests."""
        last = read_rows(self._query, Row, {}, _LABELS, {"id": self.session}, by=_LABEL)
        unknown = {"provider": None, "model": self._hook.model or None, "project": self._hook.cwd or None}
        for label in [row.keys for row in last] or [unknown]:
            yield {"source": self._hook.agent.id, **label}

    def _matches(self, rule: BudgetRule, label: dict[str, Any]) -> bool:
        conditions, parameters = matches(rule.filters, {key: f":is_{key}" for key in rule.filters})
        sql = f"SELECT {' AND '.join(conditions) or '1'}"
        values = {f"is_{key}": label[key] for key in rule.filters}
        return bool(self._query(sql, {**parameters, **values})[0][0])

    def cost_per_minute(self) -> float:
        """Return the session's US dollars a minute, over the last five minutes; responses without a price are free."""
        if self.session is None:
            return 0.0
        rule, query = _RECENT_COST, self._query
        start_ns = self._now_ns - _MINUTES * _MINUTE_NS
        uses = use_of_sessions(query, rule, start_ns, now_ns=self._now_ns, session_id=self.session)
        return rule.in_unit(sum(use.amount for use in uses)) / _MINUTES

    def unknown(self, rules: Sequence[BudgetRule], *, ledger: str, env: Mapping[str, str]) -> list[str]:
        """Return a sentence for each reason why what is left of this session's budgets is not fully known."""
        from sessionlog.analytics.budgets.caveats import budget_caveats
        from sessionlog.analytics.budgets.clock import read_clock

        rules = [rule for rule in rules if self._counts(rule)]
        states = budget_states(
            self._query, rules, now_ns=self._now_ns, zone=self._zone, session_id=self.session or _NO_SESSION
        )
        found = budget_caveats(self._query, states, ledger=ledger, env=env, now=read_clock())
        return list(dict.fromkeys(sentence for sentences in found.values() for sentence in sentences))


_RECENT_COST = BudgetRule(
    name="", unit="usd", limit=1, is_per_session=False, window_ns=_MINUTES * _MINUTE_NS, months=None, period=None,
    span="5min", filters={}, meta={}, exclude=(), warn=80.0, stop=100.0,
)  # fmt: skip
