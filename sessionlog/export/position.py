"""Position: which items an endpoint has confirmed, and in which state, in a small database for each endpoint.

An item is marked only after the collector has confirmed it: after a kill it is sent again, with the same id. An item
that has changed since (an answer that was still being written) is new again, and its earlier counts are known, so that
counters grow by the difference. Each signal has its own position. The endpoint is known without its password, so that a
new one does not send everything again. One export at a time runs: two would add to the collector's counters twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessionlog.export.items import PAGE, Item, State
from sessionlog.export.state_database import StateDatabase

New = tuple[Item, State | None]
"""An item to send, and the state in which it was sent before; None if it was not."""

_TABLE = """
CREATE TABLE IF NOT EXISTS {signal} (
    id INTEGER PRIMARY KEY, time_ns INTEGER, length_ns INTEGER, outcome INTEGER,
    input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER, reasoning INTEGER
) STRICT;
"""
SIGNALS = ("traces", "metrics", "events")
"""What is sent and confirmed on its own; each has a table."""

_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """What a collector refused of a batch that it has accepted otherwise.

    Attributes:
        count: How many spans, points or records.
        message: The collector's words; empty for none.
    """

    count: int = 0
    message: str = ""


NOTHING = Rejected()


class Position(StateDatabase):
    """What one endpoint has confirmed.

    Args:
        path: The database; it is created with its folders, for the user alone.

    Raises:
        NotExported: It cannot be opened, or another export has it.
    """

    PLACE = "this endpoint"
    REMEDY = "without the file all is sent again"

    def __init__(self, path: str) -> None:
        tables = "".join(_TABLE.format(signal=signal) for signal in SIGNALS)
        super().__init__(path, f"{tables} COMMIT", wait_seconds=_WAIT_SECONDS)

    def select(self, signal: str, items: Sequence[Item]) -> list[New]:
        """Return the items that are new to a signal, or have changed since they were sent.

        Raises:
            NotExported: The database cannot be read.
        """
        known: dict[int, State] = {}
        with self._named():
            for start in range(0, len(items), PAGE):
                ids = ", ".join(str(_signed(item.id)) for item in items[start : start + PAGE])
                rows = self._connection.execute(f"SELECT * FROM {signal} WHERE id IN ({ids})")  # noqa: S608 - numbers
                known |= {row[0]: row[1:] for row in rows}
        sent = ((item, known.get(_signed(item.id))) for item in items)
        return [(item, before) for item, before in sent if before != item.state]

    def mark(self, signal: str, items: Iterable[Item]) -> None:
        """Store that a signal's items are confirmed, in one transaction.

        Raises:
            NotExported: The database cannot be written.
        """
        with self._named():
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                f"INSERT OR REPLACE INTO {signal} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - one of ours
                [(_signed(item.id), *item.state) for item in items],
            )
            self._connection.execute("COMMIT")


def _signed(number: int) -> int:
    """Return 64 bits as SQLite's integers have them."""
    return number - (1 << 64) if number >> 63 else number
