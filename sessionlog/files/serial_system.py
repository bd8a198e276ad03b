"""A file system that serves one call at a time, for clients that threads cannot share, as that of SFTP.

Two threads in one connection of paramiko take each other's answers and wait for ever. A file is read whole when it is
opened, so that whoever reads it needs no further call.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from io import BytesIO
from typing import Any

from fsspec import AbstractFileSystem


class SerialFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Another file system, for reading.

    Args:
        system: The other one.
        turn: Held while it is called.
    """

    cachable = False

    def __init__(self, system: Any, turn: AbstractContextManager[Any]) -> None:
        super().__init__()
        self._system, self._turn = system, turn
        self.protocol = system.protocol
        self._strip_protocol = system._strip_protocol  # noqa: SLF001 - fsspec's own way from a URL to a path

    def info(self, path: str, **options: Any) -> Any:
        """Return the state of a file."""
        with self._turn:
            return self._system.info(self._strip_protocol(path), **options)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        """Return what a folder has."""
        with self._turn:
            return self._system.ls(self._strip_protocol(path), detail=detail, **options)

    def modified(self, path: str) -> Any:
        """Return when a file was written."""
        with self._turn:
            return self._system.modified(self._strip_protocol(path))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> Any:
        """Return bytes of a file."""
        with self._turn:
            return self._system.cat_file(self._strip_protocol(path), start=start, end=end, **options)

    def _open(self, path: str, *_: Any, **__: Any) -> BytesIO:
        return BytesIO(self.cat_file(path))
