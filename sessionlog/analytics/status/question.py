"""StatusQuestion: the parameters of a status, and the query of a book with them; the budgets of the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import tzinfo
from typing import NamedTuple

from sessionlog.analytics.status.answer import Status, answer
from sessionlog.analytics.status.statusline_input import StatuslineInput
from sessionlog.errors import InvalidSettings, LogNotReadable, Problem
from sessionlog.ledger.book import Book

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.settings import Settings

_NEXT = "`sessionlog sessions` lists the sessions"


class StatusQuestion(NamedTuple):
    """The parameters of a status.

    Attributes:
        target: A log, or an id or a part of one; None for the session of `statusline_input`, else the newest.
        statusline_input: The agent's input for a status line, which names its session.
        everything: Sum over all sessions.
        zone: The time zone of `today`; None for the machine's.
        rules: The user's own budgets.
        config_error: Why the budgets cannot be used; empty if they can.
        ledger: The ledger's file; empty for a book in memory.
        env: The environment, by which the ledger's marker is found.
        with_typical: Whether the status shows what sessions typically use.
    """

    target: str | None = None
    statusline_input: StatuslineInput | None = None
    everything: bool = False
    zone: tzinfo | None = None
    rules: tuple[Any, ...] = ()
    config_error: str = ""
    ledger: str = ""
    env: Mapping[str, str] = {}
    with_typical: bool = True

    def answer(self, book: Book, now_ns: int, *, alone: bool = False) -> tuple[Status, int | None] | None:
        """Return the status and the session's number in the book; None if the target does not exist."""
        location = None
        if self.rules:
            from sessionlog.analytics.budgets.states import FUNCTIONS

            for name, function in FUNCTIONS.items():
                book.define(name, function)
            from sessionlog.analytics.status.own import LedgerLocation

            location = LedgerLocation(self.ledger if book.meta("synced") is not None else "", self.env)
        return answer(
            book.query, now_ns=now_ns, target=self.target, statusline_input=self.statusline_input,
            everything=self.everything, alone=alone, zone=self.zone, rules=self.rules, config_error=self.config_error,
            location=location, with_typical=self.with_typical,
        )  # fmt: skip

    def not_found(self) -> LogNotReadable:
        """The error for a target that does not exist."""
        if os.path.exists(str(self.target)):
            from sessionlog.sources.discover import recognise

            log = recognise(str(self.target))
            if isinstance(log, Problem) and log.kind == "unreadable":
                return LogNotReadable(f"{self.target}: {log.detail}")
            return LogNotReadable(f"{self.target}: there is no session in it; {_NEXT}")
        return LogNotReadable(f"{self.target}: no such file, and no session begins or ends with it; {_NEXT}")


def budget_rules(settings: Settings) -> tuple[Any, ...]:
    """Return the budgets of the settings.

    Raises:
        InvalidSettings: One of them is not valid.
    """
    table = settings.budgets
    if not table:
        return ()
    from sessionlog.analytics.budgets.rules import parse_budgets

    return tuple(parse_budgets(table, path=settings.config_path))


def budget_rules_or_error(settings: Settings) -> tuple[tuple[Any, ...], str]:
    """Return the budgets of the settings and an empty text; if one is not valid, none and the error."""
    try:
        return budget_rules(settings), ""
    except InvalidSettings as error:
        text = str(error)
        return (), text if text.startswith(settings.config_path) else f"{settings.config_path}: {text}"
