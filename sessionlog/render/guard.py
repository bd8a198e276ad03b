"""Sentences of the guard, as an agent shows them to its user and its model: what was reached, and what to do next."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sessionlog.analytics.zones import day_key, resolve_zone
from sessionlog.render.escape import one_line, terminal
from sessionlog.render.numbers import cost_text
from sessionlog.render.times import clock, home_path, stamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from sessionlog.analytics.budgets.states import BudgetState

_NAME, _PATH, _CALL, _REASON = 60, 200, 80, 400


class Sentences:
    """Makes the sentences for one user: in their time zone, with the path of their config file."""

    def __init__(self, *, config_path: str, home: str, tz: str, now: datetime) -> None:
        """Keep what all sentences need.

        Args:
            config_path: The config file.
            home: The user's home folder, which paths show as `~`.
            tz: The time zone's IANA name, or `local`.
            now: The present.
        """
        self._config = one_line(home_path(config_path, home), _PATH)
        self._zone: tzinfo = resolve_zone(tz)
        self._now = now

    def spent(self, state: BudgetState) -> str:
        """Return the sentence on a budget that is used up."""
        stop = "" if state.rule.stop == 100 else f" (it stops at {state.rule.stop:g} %)"
        name = one_line(state.name, _NAME)
        return (
            f"Budget '{name}' is spent: {self._used(state)}{stop}{self._reset(state)}; "
            f"raise it in {self._config} ([budgets.{name}])"
        )

    def nearly_spent(self, state: BudgetState) -> str:
        """Return the sentence on a budget at its warning level."""
        name = one_line(state.name, _NAME)
        return f"Budget '{name}' is {state.percent:.0f} % used: {self._used(state)}{self._reset(state)}"

    def repeated(self, tool: str, call: str, count: int) -> str:
        """Return the sentence on a loop that ends with this call."""
        what = f"{one_line(tool, _NAME)} ({one_line(call, _CALL)})" if call else one_line(tool, _NAME)
        return (
            f"The agent goes in circles: {what} for the {_ordinal(count)} time in a row, with the same results; "
            f"try another way, or raise `repeats` in {self._config} ([guard])"
        )

    def too_fast(self, cost_per_minute: float, limit: float) -> str:
        """Return the sentence on a session that costs too much a minute."""
        return (
            f"The session costs {cost_text(cost_per_minute)} a minute, more than {cost_text(limit)}; "
            f"wait some minutes, or raise `cost_per_minute` in {self._config} ([guard])"
        )

    def unknown(self, reasons: Sequence[str]) -> str:
        """Return the sentence on what a guard that is strict has to know and does not."""
        return f"sessionlog guard --strict: {one_line('; '.join(reasons), _REASON)}"

    def _used(self, state: BudgetState) -> str:
        """`$5.02 of $5.00 since 00:00`, `3 of 3 requests in this session`, `12 of 10 tokens in 5h`."""
        rule = state.rule
        if rule.unit == "usd":
            amount = f"{cost_text(state.used, estimated=state.estimated)} of {cost_text(state.limit)}"
        else:
            amount = f"{round(state.used):,} of {round(state.limit):,} {rule.unit}"
        if rule.is_per_session:
            return f"{amount} in this session"
        return f"{amount} since {self._when(state.start_ns)}" if rule.period else f"{amount} in {rule.span}"

    def _reset(self, state: BudgetState) -> str:
        if state.resets_ns is None:
            return ""
        return f"; {'resets' if state.rule.period else 'begins to reset'} at {self._when(state.resets_ns)}"

    def _when(self, time_ns: int | None) -> str:
        """The time of day, with the date unless it is today."""
        if time_ns is None:
            return "the start"
        today = day_key(round(self._now.timestamp()) * 1_000_000_000, self._zone)
        if day_key(time_ns, self._zone) == today:
            return clock(time_ns, self._zone)
        return stamp(time_ns, self._zone, now=self._now)


def _ordinal(count: int) -> str:
    suffix = "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{suffix}"


def error_sentence(error: Exception) -> str:
    """Return an error of the guard itself in one line."""
    return f"sessionlog guard: {terminal(one_line(f'{error}' or type(error).__name__, _REASON))}"
