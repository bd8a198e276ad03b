"""Page sums: a CRC-32 of every page of the ledger's file, kept beside it by whoever writes, so that damage shows.

What a page holds after a commit is its last committed frame in SQLite's write-ahead log, else what the file says; a
checkpoint moves pages and changes none. The ledger numbers its commits (`meta`, "commit") and the sums say of which
they are: after a kill between the two they are of another, nothing is concluded from them, and the next commit sums
everything anew. Whoever commits holds the sums' lock meanwhile, so that nobody commits in between. A ledger without
sums, or one that cannot have them, works as well: only `verify` knows less.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

from sessionlog import files
from sessionlog.errors import LogNotReadable

ENDING = ".sums"

State = Literal["current", "none", "unreadable", "older", "newer", "unnumbered"]

_WAIT_SECONDS = 5.0
_HEAD, _FRAME = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)
_SCHEMA = """CREATE TABLE IF NOT EXISTS sums (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, salts BLOB NOT NULL,
    frames INTEGER NOT NULL, pages BLOB NOT NULL, own INTEGER NOT NULL) STRICT"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The sums of one commit.

    Attributes:
        number: The commit's.
        salts: What the write-ahead log began with; it begins anew when all of it has been moved into the file.
        frames: Its frames up to the commit.
        pages: CRC-32 of page 1, 2, …
    """

    number: int
    salts: bytes
    frames: int
    pages: array[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCheck:
    """What the sums tell of the file.

    Attributes:
        state: `current`: the pages were compared. Else why not: there are no sums, they cannot be read, are of an
            `older` commit than the ledger (a writer was killed) or of a `newer` one (its last commits were lost).
            `unnumbered`: compared, though the ledger does not say of which commit it is.
        pages: Pages that the ledger has.
        damaged: Those that are not what was written, from 1 on.
    """

    state: State
    pages: int = 0
    damaged: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wal:
    """What is committed in a write-ahead log, from some frame on: page → sum; `size` is 0 if that is nothing."""

    salts: bytes = b""
    frames: int = 0
    size: int = 0
    sums: dict[int, int]


@contextmanager
def keeping_sums(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit inside: the sums of what was written are kept; a book in memory has none."""
    path = _path_of(connection)
    if not path:
        yield
        return
    number = (commit_number(connection) or 0) + 1
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('commit', ?)", (_word(number),))
    with _locked(path) as kept:
        yield
        if kept is not None:
            with suppress(sqlite3.Error, OSError):
                _write(kept, _after(path, _read(kept), number))


def commit_number(connection: sqlite3.Connection) -> int | None:
    """Return which commit a ledger is of; None if it does not say, or what it says is damaged."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'commit'").fetchone()
    text = str(row[0]).partition(":")[0] if row else ""
    return int(text) if text.isdecimal() and text.isascii() and _word(int(text)) == row[0] else None


def disown_sums(connection: sqlite3.Connection) -> None:
    """Say of a copy that no sums are of it: it may take the place of a ledger that has some."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('commit', ?)", (_word(0),))


def check_pages(path: str, connection: sqlite3.Connection | None) -> PageCheck:
    """Compare all pages of a ledger with their sums; nobody commits meanwhile.

    Args:
        path: The ledger's file.
        connection: The same, open; None if SQLite cannot open it.
    """
    if files.stat_path(path + ENDING) is None:
        return PageCheck(state="none")
    with _locked(path) as kept:
        sums = None if kept is None else _read(kept)
        if sums is None:
            return PageCheck(state="unreadable")
        number, moved = _number_and_moved(connection)
        if number is not None and number != sums.number:
            return PageCheck(state="older" if number > sums.number else "newer")
        damaged = _compare(path, sums.pages, moved=moved)
        return PageCheck(state="unnumbered" if number is None else "current", pages=len(sums.pages), damaged=damaged)


def _number_and_moved(connection: sqlite3.Connection | None) -> tuple[int | None, bool]:
    """The ledger's commit, and whether all that is in the write-ahead log is in the file as well."""
    if connection is not None:
        with suppress(sqlite3.Error, UnicodeDecodeError):
            [(busy, frames, moved)] = connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            return commit_number(connection), not busy and frames == moved
    return None, False


def _compare(path: str, pages: array[int], *, moved: bool) -> tuple[int, ...]:
    """Pages that are not what they were, in the file or in the write-ahead log."""
    wal = _wal_of(path)
    found, page_size = _sums_of(path)
    size = wal.size or len(found)
    damaged = set(range(min(size, len(pages)) + 1, max(size, len(pages)) + 1))
    for page, expected in enumerate(pages[:size], start=1):
        if page in wal.sums and wal.sums[page] != expected:
            damaged.add(page)
        if (moved or page not in wal.sums) and (page > len(found) or found[page - 1] != expected):
            damaged.add(page)
    rest = files.stat_path(path)
    if rest is not None and rest.st_size % page_size:
        damaged.add(rest.st_size // page_size + 1)
    return tuple(sorted(damaged))


def _after(path: str, before: Sums | None, number: int) -> Sums:
    """The sums after a commit: of what it wrote if those before it are of the one before it, else of everything."""
    if before is not None and before.number == number - 1:
        wal = _wal_of(path, before.salts, before.frames)
        if wal.size:
            return Sums(number=number, salts=wal.salts, frames=wal.frames, pages=_changed(before.pages, wal))
    wal = _wal_of(path)
    found, _ = _sums_of(path)
    return Sums(number=number, salts=wal.salts, frames=wal.frames, pages=_changed(found, wal))


def _changed(pages: array[int], wal: _Wal) -> array[int]:
    size = wal.size or len(pages)
    changed = pages[:size]
    changed.extend([0] * (size - len(changed)))
    for page, found in wal.sums.items():
        if page <= size:
            changed[page - 1] = found
    return changed


def _wal_of(path: str, salts: bytes = b"", frames: int = 0) -> _Wal:
    """Read what is committed in the write-ahead log; of the one that began with these salts, from a frame on."""
    try:
        file = files.open_log(f"{path}-wal")
    except LogNotReadable:
        return _Wal(sums={})
    sums: dict[int, int] = {}
    waiting: dict[int, int] = {}
    size = 0
    with file:
        head = file.read(_HEAD)
        if len(head) < _HEAD or int.from_bytes(head[:4], "big") not in _MAGIC:
            return _Wal(sums={})
        length = _FRAME + int.from_bytes(head[8:12], "big")
        now = head[16:24]
        last = count = frames if now == salts else 0
        file.seek(_HEAD + count * length)
        while len(frame := file.read(length)) == length and frame[8:16] == now:
            count += 1
            waiting[int.from_bytes(frame[:4], "big")] = crc32(memoryview(frame)[_FRAME:])
            committed = int.from_bytes(frame[4:8], "big")
            if committed:
                sums |= waiting
                waiting.clear()
                last, size = count, committed
    return _Wal(salts=now, frames=last, size=size, sums=sums)


def _sums_of(path: str) -> tuple[array[int], int]:
    """Sum all pages of the file itself; return their length, too."""
    sums = array("I")
    with files.open_log(path) as file:
        told = int.from_bytes(file.read(18)[16:18], "big")
        length = 65_536 if told == 1 else told
        if length < 512 or length & (length - 1):
            length = 4096  # the head is damaged; its page will not fit its sum
        file.seek(0)
        while len(page := file.read(length)) == length:
            sums.append(crc32(page))
    return sums, length


def _path_of(connection: sqlite3.Connection) -> str:
    return next((str(file) for _, name, file in connection.execute("PRAGMA database_list") if name == "main"), "")


def _word(number: int) -> str:
    """A commit's number as it is written down: with a sum of its own, so that a damaged one is known."""
    return f"{number}:{crc32(str(number).encode()):08x}"


@contextmanager
def _locked(path: str) -> Iterator[sqlite3.Connection | None]:
    """Hold the sums' lock; None if they cannot be had."""
    place = path + ENDING
    kept = None
    try:
        files.make_private(place)
        kept = _open(place)
    except (sqlite3.OperationalError, OSError):
        kept = None
    except sqlite3.DatabaseError:  # damaged: nothing is lost but the time of summing everything
        with suppress(sqlite3.Error, OSError):
            files.replace_file(place, [])
            kept = _open(place)
    try:
        yield kept
    finally:
        if kept is not None:
            with suppress(sqlite3.Error):
                kept.execute("COMMIT")
            kept.close()


def _open(place: str) -> sqlite3.Connection:
    kept = sqlite3.connect(place, isolation_level=None, timeout=_WAIT_SECONDS)
    try:
        kept.execute("PRAGMA synchronous = OFF")  # what a power loss tears does not fit its own sum
        kept.execute("BEGIN IMMEDIATE")
        kept.execute(_SCHEMA)
    except BaseException:
        kept.close()
        raise
    return kept


def _read(kept: sqlite3.Connection) -> Sums | None:
    """The sums, if they are whole."""
    try:
        row = kept.execute("SELECT number, salts, frames, pages, own FROM sums WHERE id = 1").fetchone()
    except sqlite3.Error:
        return None
    if row is None or _own(*row[:4]) != row[4]:
        return None
    pages = array("I")
    pages.frombytes(row[3])
    return Sums(number=row[0], salts=row[1], frames=row[2], pages=_portable(pages))


def _write(kept: sqlite3.Connection, sums: Sums) -> None:
    values = sums.number, sums.salts, sums.frames, _portable(sums.pages).tobytes()
    kept.execute("INSERT OR REPLACE INTO sums VALUES (1, ?, ?, ?, ?, ?)", (*values, _own(*values)))


def _own(number: int, salts: bytes, frames: int, pages: bytes) -> int:
    return crc32(pages, crc32(b"%d %d %b " % (number, frames, salts)))


def _portable(pages: array[int]) -> array[int]:
    """Numbers as files have them, and back."""
    if sys.byteorder == "big":
        pages = array("I", pages)
        pages.byteswap()
    return pages
