"""State of an export: a small database for each destination, which one export at a time has.

It lies beside the user's other state. It may be deleted: then what it has is read or sent again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sessionlog import files
from sessionlog.errors import NotExported
from sessionlog.hashes import blake2b


def state_path(folder: str, destination: str) -> str:
    """Return the path of a destination's database in the folder for state, named for a hash of it."""
    name = blake2b(destination.encode(), digest_size=8).hexdigest()
    return os.path.join(folder, "sessionlog", "export", f"{name}.sqlite")


class StateDatabase:
    """The database of one destination, open and locked until it is closed, with a transaction that has begun.

    Args:
        path: The database; it is created with its folders, for the user alone.
        tables: The statements that create its tables, where they are missing.
        wait_seconds: How long to wait for another export.

    Raises:
        NotExported: It cannot be opened, or another export has it.
    """

    PLACE = "the same place"
    """What an error names while another export has the database."""

    REMEDY = "without the file all is compared again"
    """What an error adds if the file is damaged."""

    def __init__(self, path: str, tables: str, *, wait_seconds: float = 1.0) -> None:
        self._path = path
        with self._named():
            files.make_directories(os.path.dirname(path))
            files.make_private(path)
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=wait_seconds)
            try:
                self._connection.executescript(f"PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; {tables}")
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                reason = f"another export to {self.PLACE} is running; try again when it has ended"
            else:
                reason = f"{self._path}: {files.reason_of(error)}"
                if not isinstance(error, OSError | sqlite3.OperationalError):
                    reason += f"; {self.REMEDY}"
            raise NotExported(reason) from error
