"""Which status is wanted, and the answer that a book has to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from sessionlog.analytics.status.answer import Status, answer
from sessionlog.analytics.status.fed import Fed
from sessionlog.errors import LogNotReadable
from sessionlog.ledger.reading import ReadBook


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusQuestion:
    """Which status is wanted.

    Attributes:
        target: A log, or an id or a part of one; None for the session of which was `fed`, else the newest.
        fed: What an agent itself tells, which names its session.
        everything: The sum over all sessions.
        zone: Whose day `today` is; None for the machine's.
        rules: The user's own budgets.
    """

    target: str | None = None
    fed: Fed | None = None
    everything: bool = False
    zone: tzinfo | None = None
    rules: tuple[Any, ...] = ()

    def answer(self, book: ReadBook, now_ns: int, *, alone: bool = False) -> tuple[Status, int | None] | None:
        """Return the status and the session's number in the book; None if the session that was named is not there."""
        if self.rules:
            from sessionlog.analytics.budgets.states import FUNCTIONS  # noqa: PLC0415 - for those who have budgets

            for name, function in FUNCTIONS.items():
                book.define(name, function)
        return answer(
            book.query, now_ns=now_ns, target=self.target, fed=self.fed, everything=self.everything, alone=alone,
            zone=self.zone, rules=self.rules,
        )  # fmt: skip

    def none_such(self) -> LogNotReadable:
        """The error for a session that is not there."""
        if os.path.exists(str(self.target)):
            return LogNotReadable(f"{self.target}: there is no session in it")
        return LogNotReadable(f"{self.target}: no such file, and no session begins or ends with it")
