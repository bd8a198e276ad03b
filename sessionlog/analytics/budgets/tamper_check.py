"""Tamper check: whether the ledger and the clock are still those that budgets were asked of before.

What was used is in the ledger, and which of it counts is said by the clock: whoever puts another ledger in its place,
or sets the clock forward, makes a spent budget look whole. So the ledger has a random id and a marker outside of it
knows that id; and the ledger knows how far the wall's clock was ahead of the boot's. Where they disagree nothing is
concluded: what is left is unknown, with the reason, until a person confirms it (`sessionlog budget reset`). Nothing
else changes a tamper_check. The first one that asks makes it.

Invariant: without a doubt here, the ledger is the one that was asked before in this place or an older copy of it, and
the wall clock has gone as far as the boot's clock since the first question of this boot, to a minute; over a reboot it
has not gone back. Two things are not seen: a copy of this very ledger that is put back knows neither what was reserved
since nor the use of logs that are gone; and where boots have no name (see `moment`) a clock that is set forward between
two processes.
"""

from __future__ import annotations

import os

from sessionlog import files
from sessionlog.places import state_home

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from sessionlog.analytics.budgets.clock import ClockReading
    from sessionlog.analytics.conditions import Query

APART_NS = 60 * 1_000_000_000
"""How far the two clocks may come apart."""

CONFIRM = "`sessionlog budget reset` confirms that"

_ID, _CLOCK = "budget_id", "budget_clock"
_SET = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
_LONGEST = 200


def marker_path(ledger: str, env: Mapping[str, str]) -> str:
    """Return the file that knows the id of the ledger at a path."""
    from sessionlog.hashes import blake2b  # noqa: PLC0415 - not for those who have no budgets

    name = blake2b(os.fsencode(files.real_path(ledger)), digest_size=12).hexdigest()
    return os.path.join(state_home(env), "sessionlog", "budgets", name)


def warnings(query: Query, ledger: str, env: Mapping[str, str], now: ClockReading) -> list[str]:
    """Return what speaks against the numbers of a ledger, a sentence each; nothing is changed.

    Raises:
        LogNotReadable: The marker is there and cannot be read.
    """
    found = []
    marker, own = _marker(ledger, env), _said(query, _ID)
    if marker and marker != own:
        found.append(f"the ledger {ledger} was deleted or replaced since it was last asked: {CONFIRM}")
    clock = _said(query, _CLOCK)
    if clock:
        found += _clock_doubts(clock, now)
    return found


def is_marked(ledger: str, env: Mapping[str, str]) -> bool:
    """Whether there is a marker of a ledger in this place."""
    return bool(_marker(ledger, env))


def write_seal(connection: sqlite3.Connection, query: Query, now: ClockReading) -> str:
    """Make or keep the seal inside the ledger; return the ledger's id. A clock that is in doubt stays so.

    The caller holds the write lock, commits, and then sees to the marker (`mark`): one that is made before the commit
    could know an id that no ledger has.
    """
    own = _said(query, _ID)
    if not own:
        own = os.urandom(16).hex()
        connection.execute(_SET, (_ID, own))
    clock = _said(query, _CLOCK) or ""
    if not clock or not _clock_doubts(clock, now):
        boot, ahead, *_ = *clock.split(), "", ""
        ahead = ahead if now.boot and boot == now.boot else str(now.wall_ns - now.boot_ns)
        connection.execute(_SET, (_CLOCK, f"{now.boot or '-'} {ahead} {now.wall_ns}"))
    return own


def confirm(connection: sqlite3.Connection, query: Query, now: ClockReading) -> str:
    """Take the ledger and the clock as they are for right, whatever is in doubt. As `write_seal` otherwise."""
    connection.execute("DELETE FROM meta WHERE name = ?", (_CLOCK,))
    return write_seal(connection, query, now)


def mark(ledger: str, env: Mapping[str, str], own: str) -> None:
    """Write the marker of a ledger with this id.

    Raises:
        OSError: It cannot be written.
    """
    path = marker_path(ledger, env)
    files.make_directories(os.path.dirname(path))
    files.replace_file(path, [own.encode("ascii"), b"\n"])


def _clock_doubts(clock: str, now: ClockReading) -> list[str]:
    try:
        boot, ahead, last = clock.split()
        ahead_ns, last_ns = int(ahead), int(last)
    except ValueError:
        return [f"the ledger's note on the clock is damaged: {CONFIRM}"]
    if now.boot and boot == now.boot:
        apart = now.wall_ns - now.boot_ns - ahead_ns
        way = "forward" if apart > 0 else "back"
    else:  # another boot, or none that is known: only a clock that goes back can be seen
        apart = min(0, now.wall_ns - last_ns)
        way = "back"
    if abs(apart) <= APART_NS:
        return []
    return [f"the clock was set {way} by {abs(apart) // 1_000_000_000:,} s since the ledger was first asked: {CONFIRM}"]


def _said(query: Query, name: str) -> str | None:
    found = query("SELECT value FROM meta WHERE name = :name", {"name": name})
    return str(found[0][0]) if found else None


def _marker(ledger: str, env: Mapping[str, str]) -> str:
    return (files.read_small(marker_path(ledger, env), _LONGEST) or b"").decode("ascii", "replace").strip()
