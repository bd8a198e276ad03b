"""A query's result as a stream of rows in bounded memory, whichever database answers it.

The database runs in its own thread, which checks for cancellation. One call of a function may take hours and cannot be
ended everywhere, so the caller does not wait for the thread: it goes on in the background until the process ends.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from sessionlog.errors import InvalidQuery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Protocol, Self

    class Query(Protocol):
        """A query of a database, which runs in a thread of its own."""

        def results(self, is_cancelled: Callable[[], bool]) -> Iterator[Any]:
            """Yield True once the database is open, the column names, then batches of rows, empty at the end.

            Closing the iterator closes the database.
            """

        def cancel(self) -> None:
            """Interrupt the database; called from another thread, at most once."""

        def refusal(self, error: BaseException) -> BaseException:
            """Return the error for the caller: InvalidQuery for what the database refuses."""


SECONDS = 60.0
"""The default time limit of a query."""

LARGEST_ANSWER = 32 << 20
"""The approximate limit in bytes of a result that is returned whole."""

THREAD = "sessionlog query"
"""The name of a query's thread."""

_BATCH, _BATCH_SECONDS = 1 << 18, 0.05  # approximate bytes, and time, of rows that are passed on together
_CELL = 60  # approximate bytes of a small value
_LOOK_SECONDS = 0.1  # an interrupt may not end a wait for another thread
_END_SECONDS = 0.2  # how long to wait for a cancelled thread


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The result of a query.

    Attributes:
        columns: Their names; a repeated name is `name:2`.
        rows: Values: None, bool, int, float, str, bytes.
        more: Whether there are rows beyond the limit.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False


class ResultStream:
    """A result whose rows are iterated as the database finds them; use it in a `with` statement.

    Attributes:
        columns: Their names, as in `QueryResult`.
    """

    def __init__(self, query: Query, *, seconds: float = SECONDS) -> None:
        """Start a query.

        Opening the database does not count towards the limit. The caller's CPU time between two rows does; waiting for
        its output does not.

        Raises:
            InvalidQuery: The query is not valid, not allowed, too slow or too large; the message has the reason.
        """
        self._query, self._seconds, self._left = query, seconds, math.inf
        self._used = time.thread_time()
        self._is_cancelled = False
        self._wanted: SimpleQueue[None] = SimpleQueue()  # a Ctrl-C at the wrong moment leaves a Semaphore locked
        self._found: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._work, name=THREAD, daemon=True)
        self._thread.start()
        try:
            self._next()
            self._left = seconds
            self.columns: tuple[str, ...] = self._next()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while rows := self._next():
            yield from rows

    def close(self) -> None:
        """Cancel the query; the thread ends at the database's next check."""
        self._is_cancelled = True
        self._wanted.put(None)
        if self._thread.is_alive():
            self._query.cancel()
        self._thread.join(_END_SECONDS)

    def _next(self) -> Any:
        """Return the thread's next value."""
        self._wanted.put(None)
        used = time.thread_time()
        self._left -= used - self._used
        self._used = used
        while True:
            if self._left <= 0:  # also if the thread is fast and the caller slow
                raise InvalidQuery(f"it took longer than {self._seconds:g} seconds")
            began = time.monotonic()
            try:
                found = self._found.get(timeout=min(self._left, _LOOK_SECONDS))
                break
            except Empty:
                continue
            finally:
                self._left -= time.monotonic() - began
        if isinstance(found, BaseException):
            raise self._query.refusal(found) from found
        return found

    def _work(self) -> None:
        results = self._query.results(lambda: self._is_cancelled)
        try:
            while True:
                self._wanted.get()
                if self._is_cancelled:
                    break
                self._found.put(next(results))
        except BaseException as error:  # noqa: BLE001 - every error is raised in the caller's thread
            self._found.put(error)
        finally:
            close = getattr(results, "close", None)
            if close is not None:
                close()


def read_batch(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the next rows of an iterator, as many as are passed on together; none at its end."""
    batch, size, until = [], 0, time.monotonic() + _BATCH_SECONDS
    for row in rows:
        batch.append(row)
        size += _size(row)
        if size > _BATCH or time.monotonic() > until:
            break
    return batch


def read_result(found: ResultStream, limit: int | None = None) -> QueryResult:
    """Return a whole result, or its first rows up to a limit.

    Raises:
        InvalidQuery: As `ResultStream` does, or the result is larger than `LARGEST_ANSWER`.
    """
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in found:
        if limit is not None and len(rows) == limit:
            return QueryResult(columns=found.columns, rows=tuple(rows), more=True)
        rows.append(row)
        size += _size(row)
        if size > LARGEST_ANSWER:
            raise InvalidQuery(
                f"the answer is larger than {LARGEST_ANSWER >> 20} MiB after {len(rows):,} rows; add a LIMIT, "
                "or let --csv or --json write its rows as they come"
            )
    return QueryResult(columns=found.columns, rows=tuple(rows))


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return column names of which a repeated one is `name:2`."""
    return tuple(
        name if name not in names[:index] else f"{name}:{names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    )


def _size(row: tuple[Any, ...]) -> int:
    return _CELL * (1 + len(row)) + sum(len(cell) for cell in row if isinstance(cell, str | bytes))
