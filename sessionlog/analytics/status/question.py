"""Which status is wanted, and the answer that a book has to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any

from sessionlog.analytics.status.answer import Status, answer
from sessionlog.analytics.status.fed import Fed
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.ledger.reading import ReadBook

_NEXT = "`sessionlog sessions` lists those that there are"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusQuestion:
    """Which status is wanted.

    Attributes:
        target: A log, or an id or a part of one; None for the session of which was `fed`, else the newest.
        fed: What an agent itself tells, which names its session.
        everything: The sum over all sessions.
        zone: Whose day `today` is; None for the machine's.
        rules: The user's own budgets.
        mistake: Why they cannot be read; empty if they can.
        ledger: The ledger's file; empty for a book in memory.
        env: The environment, which says where the ledger's marker is.
    """

    target: str | None = None
    fed: Fed | None = None
    everything: bool = False
    zone: tzinfo | None = None
    rules: tuple[Any, ...] = ()
    mistake: str = ""
    ledger: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    def answer(self, book: ReadBook, now_ns: int, *, alone: bool = False) -> tuple[Status, int | None] | None:
        """Return the status and the session's number in the book; None if the session that was named is not there."""
        place = None
        if self.rules:
            from sessionlog.analytics.budgets.states import FUNCTIONS  # noqa: PLC0415 - for those who have budgets

            for name, function in FUNCTIONS.items():
                book.define(name, function)
            from sessionlog.analytics.status.own import Place  # noqa: PLC0415 - as above

            place = Place(self.ledger if book.meta("synced") is not None else "", self.env)
        return answer(
            book.query, now_ns=now_ns, target=self.target, fed=self.fed, everything=self.everything, alone=alone,
            zone=self.zone, rules=self.rules, mistake=self.mistake, place=place,
        )  # fmt: skip

    def none_such(self) -> LogNotReadable:
        """The error for a session that is not there."""
        if os.path.exists(str(self.target)):
            from sessionlog.sources.discover import recognise  # noqa: PLC0415 - only a failure needs it

            log = recognise(str(self.target))
            if isinstance(log, Problem) and log.kind == "unreadable":
                return LogNotReadable(f"{self.target}: {log.detail}")
            return LogNotReadable(f"{self.target}: there is no session in it; {_NEXT}")
        return LogNotReadable(f"{self.target}: no such file, and no session begins or ends with it; {_NEXT}")
