"""LogReport: what a report on logs says beside its rows: of which time it is, and what is wrong with the logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessionlog.analytics.window import UsageWindow
from sessionlog.errors import Problem
from sessionlog.ledger.reading import ReadBook


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport:
    """A report on logs.

    Attributes:
        window: Which time was asked for; None for all.
        problem_count: Findings about the logs.
        problems: The first of them.
        unrecognised: Files under the paths that are no log of a known agent.
        notes: What could not be done as it should be, a sentence each.
    """

    window: UsageWindow | None
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()
    unrecognised: int = 0
    notes: tuple[str, ...] = ()

    @property
    def window_dict(self) -> dict[str, str | None] | None:
        """The window as JSON."""
        return None if self.window is None else self.window.to_dict()


def findings_of(book: ReadBook) -> dict[str, Any]:
    """Return the fields of a report that say what is wrong with a book's logs."""
    return {
        "problem_count": book.problem_count, "problems": tuple(book.problems), "unrecognised": book.unrecognised,
        "notes": tuple(book.notes),
    }  # fmt: skip
