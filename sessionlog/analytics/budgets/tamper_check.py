"""Tamper check: whether the ledger was replaced or the clock was set since budgets were first queried.

Use is stored in the ledger, and the clock decides which of it counts: replacing the ledger, or setting the clock
forward, makes a used-up budget look unused. So the first query stores a seal: a random id inside the ledger and in a
marker file outside of it, and how far the wall clock is ahead of the boot clock. If they disagree later, the amount
left is unknown, with a warning, until a person confirms the ledger and the clock (`sessionlog budget reset`). Nothing
else replaces a seal.

Invariant: without a warning, the ledger is the one queried before at this path or an older copy of it; since the first
query of this boot the wall clock has advanced as far as the boot clock, to a minute; and over a reboot it has not gone
back. Two things are not detected: an older copy of the same ledger, which lacks later reservations and the use of
deleted logs; and, where boots have no id (see `clock`), a clock set forward between two processes.
"""

from __future__ import annotations

import os

from sessionlog import files
from sessionlog.places import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from sessionlog.analytics.budgets.clock import ClockReading
    from sessionlog.analytics.conditions import Query
    from sessionlog.ledger.book import Book

APART_NS = 60 * 1_000_000_000
"""The difference between the two clocks up to which there is no warning."""

CONFIRM = "`sessionlog budget reset` confirms that"

_ID, _CLOCK = "budget_id", "budget_clock"
_SET = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
_LONGEST = 200


def marker_path(ledger: str, env: Mapping[str, str]) -> str:
    """Return the marker file of the ledger at a path: it holds the ledger's id."""
    from sessionlog.hashes import blake2b

    name = blake2b(os.fsencode(files.real_path(ledger)), digest_size=12).hexdigest()
    return os.path.join(state_home(env), "sessionlog", "budgets", name)


def warnings(query: Query, ledger: str, env: Mapping[str, str], now: ClockReading) -> list[str]:
    """Return a sentence for each sign of tampering with the ledger or the clock, without a change to either.

    Raises:
        LogNotReadable: The marker is there and cannot be read.
    """
    found = []
    marker, own = _marker(ledger, env), _read_meta(query, _ID)
    if marker and marker != own:
        found.append(f"the ledger {ledger} was deleted or replaced since it was last asked: {CONFIRM}")
    clock = _read_meta(query, _CLOCK)
    if clock:
        found += _clock_warnings(clock, now)
    return found


def is_marked(ledger: str, env: Mapping[str, str]) -> bool:
    """Whether a ledger at this path has a marker."""
    return bool(_marker(ledger, env))


def write_seal(connection: sqlite3.Connection, query: Query, now: ClockReading) -> str:
    """Create or update the seal inside the ledger; return the ledger's id. A clock with a warning keeps its seal.

    The caller holds the write lock, commits, and then writes the marker (`mark`): a marker written before the commit
    could hold an id that no ledger has.
    """
    own = _read_meta(query, _ID)
    if not own:
        own = os.urandom(16).hex()
        connection.execute(_SET, (_ID, own))
    clock = _read_meta(query, _CLOCK) or ""
    if not clock or not _clock_warnings(clock, now):
        boot, ahead, *_ = *clock.split(), "", ""
        ahead = ahead if now.boot and boot == now.boot else str(now.wall_ns - now.boot_ns)
        connection.execute(_SET, (_CLOCK, f"{now.boot or '-'} {ahead} {now.wall_ns}"))
    return own


def confirm(connection: sqlite3.Connection, query: Query, now: ClockReading) -> str:
    """Accept the ledger and the clock as they are: write a new seal, as `write_seal` does."""
    connection.execute("DELETE FROM meta WHERE name = ?", (_CLOCK,))
    return write_seal(connection, query, now)


def seal(book: Book, ledger: str, env: Mapping[str, str], now: ClockReading) -> None:
    """Write the seal of a ledger without a marker, and the marker.

    Raises:
        OSError: The marker cannot be written.
        LogNotReadable: It cannot be read.
    """
    if is_marked(ledger, env):
        return
    with book.writing():
        own = write_seal(book.connection, book.query, now)
        book.commit()
    mark(ledger, env, own)


def confirm_ledger(book: Book, ledger: str, env: Mapping[str, str], now: ClockReading) -> list[str]:
    """Accept a ledger and the clock as they are; return the warnings that this ends. Errors are those of `seal`."""
    with book.writing():
        found = warnings(book.query, ledger, env, now)
        own = confirm(book.connection, book.query, now)
        book.commit()
    mark(ledger, env, own)
    return found


def mark(ledger: str, env: Mapping[str, str], own: str) -> None:
    """Write the marker of a ledger with this id.

    Raises:
        OSError: It cannot be written.
    """
    path = marker_path(ledger, env)
    files.make_directories(os.path.dirname(path))
    files.replace_file(path, [own.encode("ascii"), b"\n"])


def _clock_warnings(clock: str, now: ClockReading) -> list[str]:
    try:
        boot, ahead, last = clock.split()
        ahead_ns, last_ns = int(ahead), int(last)
    except ValueError:
        return [f"the ledger's note on the clock is damaged: {CONFIRM}"]
    if now.boot and boot == now.boot:
        apart = now.wall_ns - now.boot_ns - ahead_ns
        way = "forward" if apart > 0 else "back"
    else:  # another or an unknown boot: only a clock that goes back is detectable
        apart = min(0, now.wall_ns - last_ns)
        way = "back"
    if abs(apart) <= APART_NS:
        return []
    return [f"the clock was set {way} by {abs(apart) // 1_000_000_000:,} s since the ledger was first asked: {CONFIRM}"]


def _read_meta(query: Query, name: str) -> str | None:
    found = query("SELECT value FROM meta WHERE name = :name", {"name": name})
    return str(found[0][0]) if found else None


def _marker(ledger: str, env: Mapping[str, str]) -> str:
    return (files.read_small(marker_path(ledger, env), _LONGEST) or b"").decode("ascii", "replace").strip()
