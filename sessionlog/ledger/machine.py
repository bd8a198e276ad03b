"""Machine: a random secret of a ledger, made once, and the machine's id that is derived from it.

The id marks what a ledger exports. Of the secret itself nothing leaves the ledger: it is the key of hashes of names
that could be guessed, such as paths.
"""

from __future__ import annotations

import os
import secrets

from sessionlog import files
from sessionlog.hashes import blake2b
from sessionlog.ledger.book import Book
from sessionlog.ledger.changes import forget_exports, note_made_anew

SECRET_BYTES = 32


def machine_secret(book: Book, copy: str) -> bytes:
    """Return the secret of a ledger; the first call makes it. Of two processes that do so at once, both get one.

    Args:
        book: The ledger.
        copy: A file outside the ledger that has its secret, too: a ledger that was lost and made anew is the same
            machine. It is created, with its folders, for the user alone.

    Raises:
        sqlite3.OperationalError: The ledger is locked for longer than a writer waits.
        OSError: The copy cannot be read or written.
    """
    if (known := book.meta("machine")) is None:
        secret = _read(copy)
        if secret is not None:
            note_made_anew(book.connection)
        secret = secret or secrets.token_bytes(SECRET_BYTES)
        book.connection.execute("INSERT OR IGNORE INTO meta VALUES ('machine', ?)", (secret.hex(),))
        known = book.meta("machine") or ""
    secret = bytes.fromhex(known)
    if _read(copy) != secret:
        _write(copy, secret)
    return secret


def replace_secret(book: Book, copy: str, secret: bytes) -> bytes:
    """Replace the secret of a ledger, so that it is another machine from now on; return the new one.

    Of two processes that do so at once, both get one.

    Args:
        book: The ledger.
        copy: As in `machine_secret`.
        secret: The one that is to be replaced.

    Raises:
        sqlite3.OperationalError: The ledger is locked for longer than a writer waits.
        OSError: The copy cannot be read or written.
    """
    book.connection.execute("BEGIN IMMEDIATE")
    try:
        if book.meta("machine") == secret.hex():
            new = secrets.token_bytes(SECRET_BYTES).hex()
            book.connection.execute("UPDATE meta SET value = ? WHERE name = 'machine'", (new,))
            forget_exports(book.connection)
        book.connection.execute("COMMIT")
    except BaseException:
        book.connection.execute("ROLLBACK")
        raise
    return machine_secret(book, copy)


def secret_without_ledger(path: str) -> bytes:
    """Return the secret in a file, which the first call makes, with its folders, for the user alone.

    Raises:
        OSError: It cannot be read or written.
    """
    known = _read(path)
    if known is None:
        _write(path, secrets.token_bytes(SECRET_BYTES))
        known = _read(path) or b""
    return known


def copy_path(folder: str, ledger: str | None) -> str:
    """Return where the copy of a ledger's secret is in the folder for state; without a ledger, where its secret is."""
    name = "logs" if ledger is None else blake2b(os.fsencode(os.path.abspath(ledger)), digest_size=8).hexdigest()
    return os.path.join(folder, "sessionlog", "export", f"machine-{name}")


def machine_id(secret: bytes) -> str:
    """Return the id of a machine, 16 hexadecimal digits, from which its secret cannot be found."""
    return blake2b(b"machine", key=secret, digest_size=8).hexdigest()


def _read(path: str) -> bytes | None:
    """Return the secret in a file; None if there is none, or something else."""
    text = files.read_small(path) or b""
    try:
        secret = bytes.fromhex(text.decode())
    except ValueError:
        return None
    return secret if len(secret) == SECRET_BYTES else None


def _write(path: str, secret: bytes) -> None:
    files.make_directories(os.path.dirname(path))
    files.replace_file(path, [secret.hex().encode()])
