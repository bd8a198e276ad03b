"""Destination: a local folder, or a place that fsspec can write to, to which whole files are written.

A file is either there as a whole, or not at all: it is written under another name and renamed, or, where a store makes
an object visible only when all of it has arrived, sent in one transaction. No message shows a password of a URL. Others
may write to the same folder: a link in it, which could lead to any file of the user, is not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from sessionlog import files
from sessionlog.errors import LogNotReadable, NotExported, SessionLogError
from sessionlog.files.remote_errors import clean
from sessionlog.files.urls import is_url, secrets_of, without_password

_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss"})
"""Protocols of stores without folders, of which only buckets would have to be made."""


class Destination(Protocol):
    """A place for files; names are relative, with `/`.

    Attributes:
        place: The folder, or the URL without a password.
    """

    place: str

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole, with its folders.

        Raises:
            NotExported: It cannot be written.
        """

    def read(self, name: str) -> bytes:
        """Return a file's bytes.

        Raises:
            NotExported: It cannot be read.
        """

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error.

        Raises:
            NotExported: It cannot be removed.
        """

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, sorted; none if there is no such folder.

        Raises:
            NotExported: The store cannot be reached.
        """


def open_destination(place: str) -> Destination:
    """Return the destination of a path or URL.

    Raises:
        MissingExtra: A URL needs the extra `remote`, or the package of its protocol.
        NotExported: The URL has an unknown protocol, or names no bucket.
    """
    return RemoteFolder(place) if is_url(place) else LocalFolder(place)


class LocalFolder:
    """A folder of this machine; new files and folders are the user's alone."""

    def __init__(self, path: str) -> None:
        self.place = os.path.abspath(os.path.expanduser(path))

    def write(self, name: str, data: bytes) -> None:
        """Write a file under a temporary name, sync and rename it."""
        path = self._path(name)
        with self._named():
            files.make_directories(os.path.dirname(path))
            files.replace_file(path, [data])

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        path = self._path(name)
        with self._named(), files.open_log(path) as file:
            return file.read()

    def remove(self, name: str) -> None:
        """Remove a file, if that can be done."""
        files.remove_file(self._path(name))

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        path = os.path.dirname(self._path(f"{folder}/-"))
        return sorted(name for name in files.list_names(path) if files.is_file(os.path.join(path, name)))

    def _path(self, name: str) -> str:
        """Return the path of a name.

        Raises:
            NotExported: A folder on the way to it is a link.
        """
        *folders, _ = parts = name.split("/")
        folder = os.path.join(self.place, *folders)
        if files.real_path(folder) != os.path.join(files.real_path(self.place), *folders):
            raise NotExported(f"{folder}: a link leads to somewhere else; remove it to export to {self.place}")
        return os.path.join(self.place, *parts)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise NotExported(f"{self.place}: {files.reason_of(error)}") from error


class RemoteFolder:
    """A folder of any file system that fsspec knows, such as `s3://bucket/team`."""

    def __init__(self, url: str) -> None:
        from sessionlog.files import remote

        self.place = without_password(url)
        self._secrets = [secret.lower() for secret in secrets_of(url)]  # as `reason_of` returns them
        try:
            self._system, self._root = remote.connect(url, "export to")
        except LogNotReadable as error:
            raise NotExported(str(error)) from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file in a transaction, which makes it visible when all of it is there."""
        path = f"{self._root.rstrip('/')}/{name}"
        with self._named():
            if _OBJECT_STORES.isdisjoint(_protocols(self._system)):  # where a missing bucket would be made by a slip
                self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            with self._system.transaction, self._system.open(path, "wb") as file:
                file.write(data)

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        with self._named():
            data: bytes = self._system.cat_file(f"{self._root.rstrip('/')}/{name}")
            return data

    def remove(self, name: str) -> None:
        """Remove a file."""
        with self._named(), suppress(FileNotFoundError):
            self._system.rm_file(f"{self._root.rstrip('/')}/{name}")

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, as the store has them now."""
        with self._named():
            self._system.invalidate_cache()
            try:
                found = self._system.ls(f"{self._root.rstrip('/')}/{folder}", detail=True)
            except FileNotFoundError:
                return []
            return sorted(one["name"].rpartition("/")[2] for one in found if one.get("type") != "directory")

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except SessionLogError:
            raise
        except Exception as error:  # each file system has errors of its own, which share no base class
            raise NotExported(f"{self.place}: {clean(files.reason_of(error), self._secrets)}") from error


def _protocols(system: Any) -> tuple[str, ...]:
    """Return the protocols of a file system."""
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)
