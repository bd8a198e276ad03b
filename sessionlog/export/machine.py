"""The machine of an export: the ledger's, or a new one where another ledger goes on under its id.

A copied ledger has the id of its original, and both would change and delete each other's rows. What a copy cannot have
is the manifests that the other one has written since: a ledger goes on under an id only while the newest manifest there
is one of its own, and otherwise becomes a new machine. Devices, inodes and host names show less: restarts, containers
and moved disks change them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sessionlog import files
from sessionlog.export.destination import Destination
from sessionlog.export.manifests import Manifest, Manifests
from sessionlog.export.revisions import Revisions
from sessionlog.export.state_database import state_path
from sessionlog.hashes import digest_of
from sessionlog.ledger.book import Book
from sessionlog.ledger.changes import exported_manifests, has_manifests, was_made_anew
from sessionlog.ledger.machine import SECRET_BYTES, copy_path, machine_id, replace_secret
from sessionlog.places import state_home


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine at a destination, for one export.

    Attributes:
        secret: Its secret.
        revisions: What the destination has of it.
        manifests: Its manifests there.
        newest: The newest one.
        notes: A sentence about a new id.
    """

    secret: bytes
    revisions: Revisions
    manifests: Manifests
    newest: Manifest
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Its id."""
        return machine_id(self.secret)


@contextmanager
def open_machine(
    book: Book, ledger: str | None, target: Destination, secret: bytes, env: Mapping[str, str], *, is_dry: bool
) -> Iterator[Machine]:
    """Open the machine of a ledger at a destination; until the end, no other export has it there.

    Args:
        book: The ledger.
        ledger: Its path; None for logs without a ledger, of which nothing is ever deleted.
        target: The destination.
        secret: The ledger's secret, which is replaced where another ledger goes on under its id.
        env: The environment, which names the folder for state.
        is_dry: Replace nothing.

    Raises:
        NotExported: The destination or the state cannot be read, or another export to it is running.
    """
    with Revisions(_path(secret, target, env)) as revisions:
        manifests = Manifests(target, machine_id(secret))
        newest = manifests.newest()
        if ledger is None or _is_own(book, target, revisions, newest):
            yield Machine(secret, revisions, manifests, newest)
            return
    if is_dry:
        new = secrets.token_bytes(SECRET_BYTES)
    else:
        new = replace_secret(book, copy_path(state_home(env), ledger), secret)
    note = (
        f"another ledger, a copy or an older state of this one, exports as machine {machine_id(secret)}: this one "
        f"{'would become' if is_dry else 'is now'} a new machine, with all of its rows; what both have counts once"
    )
    path = _path(new, target, env)
    try:
        with Revisions(path) as revisions:
            manifests = Manifests(target, machine_id(new))
            yield Machine(new, revisions, manifests, manifests.newest(), (note,))
    finally:
        if is_dry:
            files.remove_file(path)


def name_of(target: Destination) -> str:
    """Return the name of a destination in a ledger."""
    return digest_of(target.place).hex()


def _path(secret: bytes, target: Destination, env: Mapping[str, str]) -> str:
    return state_path(state_home(env), f"{machine_id(secret)} {target.place}")


def _is_own(book: Book, target: Destination, revisions: Revisions, newest: Manifest) -> bool:
    """Whether this ledger has written the newest manifests, or there is none.

    A ledger that was lost and made anew does not know the places that it has exported to before: at the first export to
    each of them the state of the last one is believed.
    """
    known = exported_manifests(book.connection)
    if not known or (was_made_anew(book.connection) and not has_manifests(book.connection, name_of(target))):
        state = revisions.manifest.names
        return not state or known.union(state).issuperset(newest.names)
    return known.issuperset(newest.names)
