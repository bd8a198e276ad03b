"""Machine: a random secret of a ledger, made once, and the machine's id that is derived from it.

The id marks what a ledger exports. Of the secret itself nothing leaves the ledger: it is the key of hashes of names
that could be guessed, such as paths.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from sessionlog.hashes import blake2b
from sessionlog.ledger.book import Book

_BYTES = 32


def machine_secret(book: Book, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> bytes:
    """Return the secret of a ledger; the first call makes it. Of two processes that do so at once, both get one.

    Raises:
        sqlite3.OperationalError: The ledger is locked for longer than a writer waits.
    """
    if (known := book.meta("machine")) is None:
        book.connection.execute("INSERT OR IGNORE INTO meta VALUES ('machine', ?)", (random_bytes(_BYTES).hex(),))
        known = book.meta("machine") or ""
    return bytes.fromhex(known)


def machine_id(secret: bytes) -> str:
    """Return the id of a machine, 16 hexadecimal digits, from which its secret cannot be found."""
    return blake2b(b"machine", key=secret, digest_size=8).hexdigest()
