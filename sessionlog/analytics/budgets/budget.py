"""Budget: what an agent asks before a call, so that nobody spends what is not there.

    budget = Budget(usd=5.0, window="5h", session_id="s-42")
    if answer := budget.allows(0.12):
        …                                  # the call; its response, once it is logged, ends the reservation
    else:
        print(answer.reason)

The invariant: what the ledger knows to be used and what is reserved never exceed the budget by a yes. Before every
answer the logs are read as far as they go; then, in one transaction that no other process can interleave with, use and
live reservations are summed and, if there is room, a reservation is written down. What is not known is not allowed:

- the ledger cannot be opened, is damaged, or another process has been writing to it for too long;
- not all is read: somebody else is reading, or a log of the budget's scope cannot be read;
- the clock was set, or the ledger deleted or replaced, since it was asked first (what of that can be seen says
  `tamper_check`);
- a budget in US dollars, and a model in its scope without a price (`sessionlog pricing MODEL` says how to set one);
- a response in its scope whose log has no usage or, where there is a window, no time.

Then the answer is no, and says why; with `on_unknown="allow"` it is yes, says why, and reserves where it can. What is
known to be too much is no in any case.
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
from sessionlog.analytics.budgets.book import BudgetBook
from sessionlog.analytics.budgets.clock import ClockReading, read_clock
from sessionlog.analytics.budgets.doubts import amount_words
from sessionlog.analytics.budgets.gaps import error_words, find_gaps
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
        amount: US dollars, tokens or requests, never below 0; None if it is not known.
        reason: Why it is not known; empty if it is.
        unit: `usd`, `tokens` or `requests`.
    """

    amount: float | None
    reason: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The answer to `Budget.allows`; true if the call may be made.

    Attributes:
        allowed: Whether it may.
        reason: Why not; also why it may although something is unknown, or that the session is excluded. Else empty.
        reservation: The number of what was written down; None for nothing.
        give_back: Takes a reservation back.
    """

    allowed: bool
    reason: str = ""
    reservation: int | None = None
    give_back: Callable[[int], None] | None = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.allowed

    def release(self) -> None:
        """Take the reservation back, for a call that is not made; what cannot be taken back ends by itself."""
        if self.give_back is not None and self.reservation is not None:
            self.give_back(self.reservation)


class Budget:
    """An amount of US dollars, tokens or requests that may be used in some time, by everybody who asks.

    It may be shared by threads, and outlives a fork. Budgets that limit the same (amounts apart) share what is
    reserved, whoever asks, in whatever process.
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
            usd: The amount in US dollars. Exactly one amount is to be given.
            tokens: The amount in tokens of all classes.
            requests: The amount in requests.
            window: A rolling window: `5h`, `7d`, `30min`, `1mo`. Exactly one time is to be given.
            period: A period of the calendar, in the zone of the settings: `hour`, `day`, `week`, `month`.
            per: `session`: of the session named by `session_id` alone.
            session_id: The session of the one who asks: its responses end reservations.
            source: Globs, as the filters of `usage`; what they do not fit is not of the budget.
            provider: As `source`.
            model: As `source`.
            project: As `source`.
            meta: Key of a session's metadata → globs.
            exclude: Globs of the ids of sessions that do not count; if `session_id` is one, it is allowed everything.
            stop: Percent of the amount that may be used; 100 if None.
            name: What reasons call it.
            ledger: The ledger's file; that of the settings if None.
            env: The environment; the process's if None.
            on_unknown: Whether what is not known is allowed.
            clock: What time it is.

        Raises:
            InvalidSettings: The budget cannot be understood; the message says what is allowed.
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
        """Return the budget `[budgets.NAME]` of config.toml; the arguments are those of a new one.

        Raises:
            InvalidSettings: There is none of that name, or it cannot be used.
        """
        settings = load_settings(env)
        rules, flaws = parse_each_budget(settings.budgets, path=settings.config_path)
        found = next((rule for rule in rules if rule.name == name), None)
        if name in flaws:
            raise InvalidSettings(flaws[name])
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
        surroundings = {**(os.environ if env is None else env), "SESSIONLOG_DIR": settings.session_dir}
        self.rule = rule
        self._session = session_id or ""
        self._allows_unknown = on_unknown == "allow"
        self._zone = settings.timezone or "local"
        self._clock = clock
        path = settings.ledger_path if ledger is None else os.fspath(ledger)
        self._book = BudgetBook(path, PriceBook.load(settings.prices), surroundings, clock)

    def remaining(self) -> Remaining:
        """Return what is left: neither used nor reserved."""
        try:
            with self._book.asking() as book:
                gaps = self._book.bring_up_to_date(book)
                with book.reading():
                    found = self._look(book, gaps)
        except Exception as error:  # noqa: BLE001 - a damaged ledger may raise anything; what is unknown is no number
            return Remaining(amount=None, reason=self._unknown([error_words(error)]), unit=self.rule.unit)
        amount = self.rule.in_unit(max(0, found.left))
        if found.left > 0 and found.gaps:
            return Remaining(amount=None, reason=self._unknown(found.gaps), unit=self.rule.unit)
        return Remaining(amount=amount, reason="", unit=self.rule.unit)

    def allows(self, cost: float) -> Allowance:
        """Return whether something that will cost so much may be done; then that much is reserved.

        Args:
            cost: In the budget's unit: US dollars, tokens or requests. 0 asks whether there is anything left, and
                reserves nothing.

        Raises:
            InvalidQuery: It is no such amount.
        """
        amount = self._amount(cost)
        try:
            with self._book.asking() as book:
                gaps = self._book.bring_up_to_date(book)
                with self._book.writing(book):
                    if self._session and is_excluded(book.query, self.rule, self._session):
                        reason = f"{self._called}session {self._session} is excluded"
                        return Allowance(allowed=True, reason=reason)
                    found = self._look(book, gaps)
                    if found.left < max(amount, 1):
                        return Allowance(allowed=False, reason=self._too_much(found, amount))
                    if found.gaps and not self._allows_unknown:
                        return Allowance(allowed=False, reason=self._unknown(found.gaps))
                    number = self._reserve(book, found, amount) if amount else None
        except Exception as error:  # noqa: BLE001 - as above
            return Allowance(allowed=self._allows_unknown, reason=self._unknown([error_words(error)]))
        reason = self._unknown(found.gaps) if found.gaps else ""
        return Allowance(allowed=True, reason=reason, reservation=number, give_back=partial(self._release, found.now))

    def close(self) -> None:
        """Let go of the ledger; the next question opens it again."""
        self._book.close()

    def _look(self, book: Book, gaps: list[str]) -> _Found:
        now = self._clock()
        rule, session = self.rule, self._session if self.rule.is_per_session else None
        start_ns, _ = time_of(rule, now.wall_ns, self._zone)
        use = use_since(book.query, rule, start_ns, session=session)
        scope, parameters = scope_of(rule)
        live = live_reservations(book.query, rule.key(self._session), now, scope=scope, parameters=parameters)
        gaps = [*gaps, *find_gaps(self._book, book, rule, now, start_ns, use, session=session)]
        return _Found(now=now, used=use.amount, live=live, left=rule.cap - use.amount - live.amount, gaps=gaps)

    def _reserve(self, book: Book, found: _Found, amount: int) -> int:
        if not found.gaps:
            tamper_check.write_seal(book.connection, book.query, found.now)
        key = self.rule.key(self._session)
        number = reserve(book.connection, book.query, key, self._session, amount, found.now, found.live)
        book.commit()
        return number

    def _release(self, made: ClockReading, number: int) -> None:
        try:
            with self._book.asking() as book, self._book.writing(book):
                release(book.connection, number, made)
                book.commit()
        except Exception:  # noqa: BLE001 - it ends by itself; who gives something back has nothing to decide
            return

    def _amount(self, cost: float) -> int:
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost) or not cost >= 0:
            raise InvalidQuery(f"a cost is a number of {self.rule.unit}, 0 or more; it is {cost!r}")
        exact = Decimal(repr(cost)) * self.rule.in_one
        return min(int(_UP.create_decimal(exact).to_integral_value(context=_UP)), 2**62)

    def _too_much(self, found: _Found, amount: int) -> str:
        rule = self.rule
        shown = [amount_words(rule, one) for one in (rule.cap, found.used, found.live.amount, amount)]
        reserved = f" and {shown[2]} reserved" if found.live.amount else ""
        asked = f"; {shown[3]} more would be too much" if found.left > 0 else ""
        return f"{self._called}{shown[1]} used{reserved} of {shown[0]} per {rule.span}{asked}"

    @property
    def _called(self) -> str:
        return f"budget {self.rule.name!r}: " if self.rule.name else ""

    def _unknown(self, gaps: Sequence[str]) -> str:
        return f"{self._called}what is left is not known: {'; '.join(gaps)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What a question found: amounts in the inner unit, and why they may not be all."""

    now: ClockReading
    used: int
    live: Live
    left: int
    gaps: list[str]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return list(value) if isinstance(value, tuple | list | set | frozenset) else value
