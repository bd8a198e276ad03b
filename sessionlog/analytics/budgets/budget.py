"""Budget: an agent asks it before a call, so that several agents together stay within one limit.

    budget = Budget(usd=5.0, window="5h", session_id="s-42")
    if answer := budget.allows(0.12):
        …                                  # the call; its response, once it is logged, ends the reservation
    else:
        print(answer.reason)

The invariant: a call is allowed only if known use, live reservations and its cost together stay within the budget.
Before each answer, new log content is read into the ledger. Then one write transaction sums use and live reservations
and, if there is room, stores a reservation. The answer is no, with the reason, when use is not fully known:

- the ledger cannot be opened, is damaged, or another process has been writing to it for too long;
- another process is reading the logs, or a log in the budget's scope cannot be read;
- the clock was set, or the ledger deleted or replaced, since the first query (see `tamper_check` for what is detected);
- the budget is in US dollars, and a model in its scope has no price (`sessionlog pricing MODEL` shows how to set one);
- a response in its scope has no usage in its log or, where the budget has a time window, no time.

With `on_unknown="allow"` the answer is then yes, with the reason, and a reservation is stored if possible. What is
known to exceed the budget is refused in any case.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from sessionlog.analytics.budgets import tamper_check
from sessionlog.analytics.budgets.caveats import amount_words, use_caveats
from sessionlog.analytics.budgets.clock import ClockReading, read_clock
from sessionlog.analytics.budgets.ledger import bring_up_to_date, keep_open, ledger_error_text
from sessionlog.analytics.budgets.reservations import Live, live_reservations, release, reserve
from sessionlog.analytics.budgets.rules import EXAMPLE, BudgetRule, parse_budget, parse_each_budget
from sessionlog.analytics.budgets.sums import is_excluded, scope_of, time_of, use_since
from sessionlog.errors import InvalidQuery, InvalidSettings
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.settings import load_settings

if TYPE_CHECKING:
    from sessionlog.analytics.budgets.clock import Clock

OnUnknown = Literal["deny", "allow"]
Patterns = str | Sequence[str] | None

_UP = Context(prec=60, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What is left of a budget.

    Attributes:
        amount: US dollars, tokens or requests, never below 0; None if unknown.
        reason: Why it is unknown; empty if it is known.
        unit: `usd`, `tokens` or `requests`.
    """

    amount: float | None
    reason: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The answer to `Budget.allows`; true if the call may be made.

    Attributes:
        allowed: Whether the call may be made.
        reason: Why it may not; or, for an allowed call, what is unknown, or that the session is excluded. Else empty.
        reservation: The number of the stored reservation; None without one.
        give_back: Deletes a reservation by its number.
    """

    allowed: bool
    reason: str = ""
    reservation: int | None = None
    give_back: Callable[[int], None] | None = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.allowed

    def release(self) -> None:
        """Delete the reservation of a call that will not be made; one that cannot be deleted expires by itself."""
        if self.give_back is not None and self.reservation is not None:
            self.give_back(self.reservation)


class Budget:
    """A limit in US dollars, tokens or requests, for a period of time.

    Threads may share it, and it works after a fork. Budgets of the same unit, period and scope share their reservations
    in all processes, whatever their amounts.
    """

    def __init__(
        self,
        *,
        usd: float | None = None,
        tokens: int | None = None,
        requests: int | None = None,
        window: str | None = None,
        period: str | None = None,
        per: str | None = None,
        session_id: str | None = None,
        source: Patterns = None,
        provider: Patterns = None,
        model: Patterns = None,
        project: Patterns = None,
        meta: Mapping[str, str | Sequence[str]] | None = None,
        exclude: Patterns = None,
        stop: float | None = None,
        name: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        on_unknown: OnUnknown = "deny",
        clock: Clock = read_clock,
    ) -> None:
        """Describe a budget; nothing is read yet.

        Args:
            usd: The amount in US dollars. Give exactly one amount.
            tokens: The amount in tokens of all classes.
            requests: The amount in requests.
            window: A rolling window: `5h`, `7d`, `30min`, `1mo`. Give exactly one of window, period and per.
            period: A calendar period in the time zone of the settings: `hour`, `day`, `week`, `month`.
            per: `session`: only the session named by `session_id` counts.
            session_id: The caller's session; its responses end reservations.
            source: Globs, as the filters of `usage`; only matching usage counts.
            provider: As `source`.
            model: As `source`.
            project: As `source`.
            meta: Key of a session's metadata → globs.
            exclude: Globs of the ids of sessions that do not count; if `session_id` matches, every call is allowed.
            stop: Percent of the amount that may be used; 100 if None.
            name: The budget's name in reasons.
            ledger: The ledger's file; that of the settings if None.
            env: The environment; the process's if None.
            on_unknown: What to answer when use is not fully known: `deny` or `allow`.
            clock: Returns the present by both clocks.

        Raises:
            InvalidSettings: The budget is not valid; the message names what is allowed.
        """
        given = {
            "usd": usd, "tokens": tokens, "requests": requests, "window": window, "period": period, "per": per,
            "source": source, "provider": provider, "model": model, "project": project, "meta": meta,
            "exclude": exclude, "stop": stop,
        }  # fmt: skip
        table = {key: _plain(value) for key, value in given.items() if value is not None}
        self._begin(parse_budget(name or "", table), session_id, ledger, env, on_unknown, clock)

    @classmethod
    def named(
        cls,
        name: str,
        *,
        session_id: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        on_unknown: OnUnknown = "deny",
        clock: Clock = read_clock,
    ) -> Budget:
        """Return the budget `[budgets.NAME]` of config.toml; the arguments are those of the constructor.

        Raises:
            InvalidSettings: No budget has that name, or it is not valid.
        """
        settings = load_settings(env)
        rules, errors = parse_each_budget(settings.budgets, path=settings.config_path)
        found = next((rule for rule in rules if rule.name == name), None)
        if name in errors:
            raise InvalidSettings(errors[name])
        if found is None:
            known = f"there are {', '.join(rule.name for rule in rules)}" if rules else f"write one:\n{EXAMPLE}"
            raise InvalidSettings(f"there is no budget {name!r} in {settings.config_path}; {known}")
        self = cls.__new__(cls)
        self._begin(found, session_id, ledger, env, on_unknown, clock)
        return self

    def _begin(
        self,
        rule: BudgetRule,
        session_id: str | None,
        ledger: str | os.PathLike[str] | None,
        env: Mapping[str, str] | None,
        on_unknown: OnUnknown,
        clock: Clock,
    ) -> None:
        if rule.is_per_session and not session_id:
            whose = f"Budget.named({rule.name!r})" if rule.name else 'Budget(per="session")'
            raise InvalidSettings(f"{whose} needs session_id=…: every session has that budget of its own")
        if on_unknown not in {"deny", "allow"}:
            raise InvalidSettings(f"on_unknown must be 'deny' or 'allow'; it is {on_unknown!r}")
        settings = load_settings(env)
        environment = {**(os.environ if env is None else env), "SESSIONLOG_DIR": settings.session_dir}
        self.rule = rule
        self._session = session_id or ""
        self._allows_unknown = on_unknown == "allow"
        self._zone = settings.timezone or "local"
        self._clock = clock
        path = settings.ledger_path if ledger is None else os.fspath(ledger)
        self._path, self._env = path, environment
        self._ledger = keep_open(path, PriceBook.load(settings.prices), environment, clock)

    def remaining(self) -> Remaining:
        """Return the amount that is neither used nor reserved."""
        try:
            with self._ledger.locked() as book:
                caveats = bring_up_to_date(book, self._env)
                with book.reading():
                    found = self._sum(book, caveats)
        except Exception as error:  # noqa: BLE001 - a damaged ledger may raise anything; an unknown amount is None
            return Remaining(amount=None, reason=self._unknown([ledger_error_text(error)]), unit=self.rule.unit)
        amount = self.rule.in_unit(max(0, found.left))
        if found.left > 0 and found.caveats:
            return Remaining(amount=None, reason=self._unknown(found.caveats), unit=self.rule.unit)
        return Remaining(amount=amount, reason="", unit=self.rule.unit)

    def allows(self, cost: float) -> Allowance:
        """Return whether a call of this cost may be made; if it may, reserve the cost.

        Args:
            cost: In the budget's unit: US dollars, tokens or requests. 0 asks whether anything is left, and reserves
                nothing.

        Raises:
            InvalidQuery: The cost is not a finite number of 0 or more.
        """
        amount = self._amount(cost)
        try:
            with self._ledger.locked() as book:
                caveats = bring_up_to_date(book, self._env)
                with book.writing():
                    if self._session and is_excluded(book.query, self.rule, self._session):
                        reason = f"{self._called}session {self._session} is excluded"
                        return Allowance(allowed=True, reason=reason)
                    found = self._sum(book, caveats)
                    if found.left < max(amount, 1):
                        return Allowance(allowed=False, reason=self._too_much(found, amount))
                    if found.caveats and not self._allows_unknown:
                        return Allowance(allowed=False, reason=self._unknown(found.caveats))
                    number = self._reserve(book, found, amount) if amount else None
        except Exception as error:  # noqa: BLE001 - as above
            return Allowance(allowed=self._allows_unknown, reason=self._unknown([ledger_error_text(error)]))
        reason = self._unknown(found.caveats) if found.caveats else ""
        return Allowance(allowed=True, reason=reason, reservation=number, give_back=partial(self._release, found.now))

    def close(self) -> None:
        """Close the ledger; the next query opens it again."""
        self._ledger.close()

    def _sum(self, book: Book, caveats: list[str]) -> _Sums:
        now = self._clock()
        rule, session = self.rule, self._session if self.rule.is_per_session else None
        start_ns, _ = time_of(rule, now.wall_ns, self._zone)
        use = use_since(book.query, rule, start_ns, session=session)
        scope, parameters = scope_of(rule)
        live = live_reservations(book.query, rule.key(self._session), now, scope=scope, parameters=parameters)
        caveats = [
            *caveats,
            *tamper_check.warnings(book.query, self._path, self._env, now),
            *use_caveats(book.query, rule, start_ns, use.amount, session=session),
        ]
        return _Sums(now=now, used=use.amount, live=live, left=rule.cap - use.amount - live.amount, caveats=caveats)

    def _reserve(self, book: Book, found: _Sums, amount: int) -> int:
        if not found.caveats:
            tamper_check.write_seal(book.connection, book.query, found.now)
        key = self.rule.key(self._session)
        number = reserve(book.connection, book.query, key, self._session, amount, found.now, found.live)
        book.commit()
        return number

    def _release(self, made: ClockReading, number: int) -> None:
        try:
            with self._ledger.locked() as book, book.writing():
                release(book.connection, number, made)
                book.commit()
        except Exception:  # noqa: BLE001 - the reservation expires by itself, and the caller can do nothing about the error
            return

    def _amount(self, cost: float) -> int:
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost) or not cost >= 0:
            raise InvalidQuery(f"a cost is a number of {self.rule.unit}, 0 or more; it is {cost!r}")
        exact = Decimal(repr(cost)) * self.rule.in_one
        return min(int(_UP.create_decimal(exact).to_integral_value(context=_UP)), 2**62)

    def _too_much(self, found: _Sums, amount: int) -> str:
        rule = self.rule
        shown = [amount_words(rule, one) for one in (rule.cap, found.used, found.live.amount, amount)]
        reserved = f" and {shown[2]} reserved" if found.live.amount else ""
        asked = f"; {shown[3]} more would be too much" if found.left > 0 else ""
        return f"{self._called}{shown[1]} used{reserved} of {shown[0]} per {rule.span}{asked}"

    @property
    def _called(self) -> str:
        return f"budget {self.rule.name!r}: " if self.rule.name else ""

    def _unknown(self, caveats: Sequence[str]) -> str:
        return f"{self._called}what is left is not known: {'; '.join(caveats)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Amounts in the budget's inner unit, and the reasons why they may be incomplete."""

    now: ClockReading
    used: int
    live: Live
    left: int
    caveats: list[str]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return list(value) if isinstance(value, tuple | list | set | frozenset) else value
