"""Spool: the complete results of a scan in a temporary file, once they are too large for memory.

Nearly all logs are small and need none. Complete records and tool calls of a large log go into an anonymous SQLite
database, and so do its earlier sessions; SQLite keeps a few megabytes of it in memory and the rest in a file
without a name. Items are decoded on each access: changing them has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

CACHE_KB = 4096

_TABLES = """
PRAGMA journal_mode = MEMORY;
PRAGMA synchronous = OFF;
CREATE TABLE found (
    session TEXT, kind TEXT, n INTEGER, count INTEGER, data BLOB, PRIMARY KEY (session, kind, n)
) WITHOUT ROWID;
CREATE TABLE sessions (n INTEGER PRIMARY KEY, id TEXT UNIQUE, is_marked INTEGER, data BLOB);
"""
_BATCH = 4096


class Lazily(Sequence[T]):
    """A sequence of known length that makes its items on each access, from the first one on."""

    def __init__(self, count: int, items: Callable[[], Iterator[T]]) -> None:
        self._count, self._items = count, items

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return self._items()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            return Lazily(len(range(start, stop, step)), lambda: islice(self._items(), start, stop, step))
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(index)
        return next(islice(self._items(), place, None))


class Spool:
    """Batches of items by session and kind, and sessions by id.

    Attributes:
        has_sessions: Sessions were put into it.
    """

    def __init__(self) -> None:
        """Create an empty one.

        Raises:
            sqlite3.Error: The temporary file cannot be made.
        """
        import sqlite3

        self._connection: sqlite3.Connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
        self._connection.executescript(_TABLES)
        self._batches = 0
        self.has_sessions = False

    def put(self, batches: Iterable[tuple[str, str, Sequence[Any]]]) -> None:
        """Store (session, kind, items); those of a session and kind are returned in this order."""
        rows = []
        for session, kind, items in batches:
            for start in range(0, len(items), _BATCH):
                some = items[start : start + _BATCH]
                self._batches += 1
                rows.append((_key(session), kind, self._batches, len(some), _encode(list(some))))
        self._write("INSERT INTO found VALUES (?, ?, ?, ?, ?)", rows)

    def items(self, session: str, kind: str, type_: type[T]) -> Sequence[T]:
        """Return all stored items of one kind of a session."""
        key = _key(session), kind
        sql = "SELECT COALESCE(SUM(count), 0) FROM found WHERE session = ? AND kind = ?"
        [(count,)] = self._connection.execute(sql, key)

        def read() -> Iterator[T]:
            sql = "SELECT data FROM found WHERE session = ? AND kind = ? ORDER BY n"
            for (data,) in self._connection.execute(sql, key):
                yield from _decode(data, list[type_])  # type: ignore[valid-type]

        return tuple(read()) if count <= _BATCH else Lazily(count, read)

    def put_sessions(self, sessions: Iterable[tuple[str, bool, Any]]) -> None:
        """Store (id, whether it is marked, session)."""
        rows = [(_key(session_id), is_marked, _encode(session)) for session_id, is_marked, session in sessions]
        self._write("INSERT OR REPLACE INTO sessions (id, is_marked, data) VALUES (?, ?, ?)", rows)
        self.has_sessions = True

    def take_session(self, session_id: str, type_: type[T]) -> T | None:
        """Remove a session and return it; None if it is not stored."""
        sql = "DELETE FROM sessions WHERE id = ? RETURNING data"
        rows = self._connection.execute(sql, (_key(session_id),)).fetchall()
        return _decode(rows[0][0], type_) if rows else None

    def sessions(self, type_: type[T]) -> Sequence[T]:
        """Return all stored sessions."""
        [(count,)] = self._connection.execute("SELECT COUNT(*) FROM sessions")

        def read() -> Iterator[T]:
            rows = self._connection.execute("SELECT data FROM sessions ORDER BY n")
            return (_decode(data, type_) for (data,) in rows)

        return Lazily(count, read)

    def has_marked(self) -> bool:
        """Whether any stored session is marked."""
        return self._connection.execute("SELECT 1 FROM sessions WHERE is_marked LIMIT 1").fetchone() is not None

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()

    def _write(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write all of the rows, or none if the disk is full."""
        self._connection.execute("BEGIN")
        try:
            self._connection.executemany(sql, rows)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _key(name: str) -> str | bytes:
    """Return a name as SQLite can store it: bytes if it has lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass")
    return name


def _encode(value: Any) -> bytes:
    try:
        return b"m" + msgspec.msgpack.encode(value)
    except (TypeError, ValueError, OverflowError):  # a number beyond 64 bits, a lone surrogate
        import pickle

        return b"p" + pickle.dumps(value)


def _decode(data: bytes, type_: type[T]) -> T:
    body = memoryview(data)[1:]
    if data[:1] == b"m":
        return msgspec.msgpack.decode(body, type=type_)
    import pickle

    value: T = pickle.loads(body)  # noqa: S301 - written by this process, into a file that has no name
    return value
