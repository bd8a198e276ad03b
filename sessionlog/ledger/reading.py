"""Reading: a ledger that is open for queries only."""

from __future__ import annotations

from sessionlog.errors import Problem
from sessionlog.ledger.storable import rows_of, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from sessionlog.ledger.agents import Agent
    from sessionlog.ledger.current_prices import CurrentPrices

MOST_NAMED = 100
"""Problems that are kept; beyond that they are only counted."""


class ReadBook:
    """Sessions, records and tool calls in SQLite, for queries only.

    Attributes:
        connection: The open database.
        unrecognised: Number of files that are not a log of a known agent.
        notes: Sentences for the reader of a report about what went wrong.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.unrecognised = 0
        self.notes: list[str] = []

    @property
    def problem_count(self) -> int:
        """The number of problems of logs that exist."""
        [(count,)] = self.query("SELECT COALESCE(SUM(problems), 0) FROM files WHERE NOT missing", {})
        return int(count)

    @property
    def problems(self) -> list[Problem]:
        """The first of these problems, at most a hundred."""
        named: list[Problem] = []
        for (text,) in self.query("SELECT named FROM files WHERE problems AND NOT missing ORDER BY path", {}):
            if len(named) >= MOST_NAMED:
                break
            named += problems_of(text)
        return named[:MOST_NAMED]

    @property
    def unlisted(self) -> tuple[Problem, ...]:
        """The first problems that belong to no log; none, because no logs were listed."""
        return ()

    @property
    def priced_from(self) -> str:
        """The price list of estimates and its date, for a footer."""
        return self.meta("priced_from") or ""

    def meta(self, name: str) -> str | None:
        """Return a value of the table `meta`; None where there is none of that name."""
        row = self.connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def current_prices(self) -> CurrentPrices:
        """Return what models cost now, as far as that is kept; none, because that may be out of date."""
        return {}

    def agents(self, env: Mapping[str, str]) -> Sequence[Agent]:  # noqa: ARG002 - a `CurrentBook` needs it
        """Return the agents whose logs can be read, if they are kept; none, because that may be out of date."""
        return ()

    def machine_of(self, label_id: int) -> str:  # noqa: ARG002 - all labels of a ledger are of one machine
        """Return the name of the machine whose records have a label, or whose calls have a name."""
        from platform import node

        return node() or "unknown"

    def define(self, name: str, function: Any) -> None:
        """Register a Python function of one argument for queries."""
        self.connection.create_function(name, 1, function, deterministic=True)

    def query(
        self, sql: str, parameters: dict[str, Any], make: Callable[[tuple[Any, ...]], Any] | None = None
    ) -> list[Any]:
        """Run one query and return its rows, or what `make` makes of each (see `rows_of`)."""
        stored = {name: storable(value) if isinstance(value, str) else value for name, value in parameters.items()}
        return rows_of(self.connection, sql, stored, make)

    def close(self) -> None:
        """Close the database; one in memory is deleted."""
        self.connection.close()


def problems_of(text: str) -> list[Problem]:
    """Parse problems that `problems_text` wrote."""
    import json

    return [Problem(**fields) for fields in json.loads(text)]
