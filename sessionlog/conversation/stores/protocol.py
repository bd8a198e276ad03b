"""SessionStore: five methods that keep sessions as JSON objects by id, between processes.

`load` returns a copy of what `save` was given. A store with versions turns a lost update into an error: it refuses to
overwrite a version that the saver has not seen (`Versions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from sessionlog.errors import StaleSession


class Saved(dict[str, Any]):
    """A session from a store: a dict with a version.

    Attributes:
        version: Its version in that store; None for a store without versions. A save updates it.
    """

    __slots__ = ("version",)

    def __init__(self, data: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), *, version: int | None = None) -> None:
        super().__init__(data)
        self.version = version


@runtime_checkable
class SessionStore(Protocol):
    """Keeps sessions. Any object with these methods is a store; a subclass inherits `exists`.

    `sessionlog.testing.SessionStoreContract` is a test class for everything stated here.
    """

    def save(self, session_id: str, data: Mapping[str, Any]) -> int | None:
        """Create or replace a session; return its version, None for a store without versions.

        Modify and save the `Saved` that `load` returned: it carries the version that it is based on. A plain dict has
        none, and is assumed to be based on the last version that any caller of this store object has seen: tasks and
        threads that share the object and save plain dicts may undo each other's saves.

        Raises:
            InvalidSessionId: The store cannot use this id.
            InvalidHistory: The data contains something that is not JSON; nothing is changed.
            StaleSession: `data` is a `Saved` with a version, and the stored version is another.
            SessionNotSaved: The data could not be written; the stored session is unchanged.
        """
        ...

    def load(self, session_id: str) -> dict[str, Any] | None:
        """Return a session, as `Saved` if the store has versions; None if there is none with this id.

        Raises:
            InvalidHistory: The stored data is damaged or has another schema; it is left unchanged.
        """
        ...

    def delete(self, session_id: str) -> bool:
        """Remove a session; return whether there was one."""
        ...

    def list_sessions(self) -> list[str]:
        """Return the ids of all sessions, the most recently saved first."""
        ...

    def exists(self, session_id: str) -> bool:
        """Whether there is a session with this id."""
        return self.load(session_id) is not None


class StoreSlot:
    """One session's key in a store, and its version seen last.

    Attributes:
        store: The store; None saves nothing.
        session_id: The session's id in the store.
        version: The version seen last; None overwrites any version.
    """

    __slots__ = ("session_id", "store", "version")

    def __init__(self, store: SessionStore | None, session_id: str) -> None:
        self.store, self.session_id = store, session_id
        self.version: int | None = 0  # a version that no stored session has

    def set_version(self, data: Mapping[str, Any]) -> None:
        """Remember the version of loaded data."""
        self.version = data.version if isinstance(data, Saved) else None

    def load(self) -> Mapping[str, Any] | None:
        """Return the stored session; None if there is none."""
        data = None if self.store is None else self.store.load(self.session_id)
        if data is not None:
            self.set_version(data)
        return data

    def write(self, data: Mapping[str, Any]) -> None:
        """Save a session; do nothing without a store. Raises as `SessionStore.save` does."""
        if self.store is not None:
            self.version = self.store.save(self.session_id, Saved(data, version=self.version))


def check_version(session_id: str, seen: int | None, stored: int | None) -> None:
    """Refuse to overwrite a version that the saver has not seen. A deleted session may be saved again.

    Args:
        session_id: The session.
        seen: The version that the saver has seen; None if none.
        stored: The version in the store; None if there is no such session.

    Raises:
        StaleSession: The versions differ.
    """
    if stored is None or stored == seen:
        return
    if seen is None:
        raise StaleSession(
            f"session {session_id!r} is stored already (version {stored}) and was not loaded; load it and continue "
            "from there, or choose another id"
        )
    raise StaleSession(
        f"session {session_id!r} was saved by another writer (version {stored}, this one comes from {seen}); load it "
        "and continue from there, or save this one under another id"
    )


class Versions:
    """The versions that one store object has seen.

    A `Saved` has its own version; any other dict is assumed to be based on the version seen last. A save that failed
    may still have been written (the disk did not confirm it); it is remembered, so that a retry is not refused.
    """

    __slots__ = ("_seen", "_tried")

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._tried: dict[str, tuple[int | None, int]] = {}

    def check(self, session_id: str, data: Mapping[str, Any], stored: int | None) -> None:
        """Refuse to overwrite a version that `data` is not based on.

        Raises:
            StaleSession: As for `check_version`.
        """
        seen = self._base_version(session_id, data)
        if self._tried.get(session_id) != (seen, stored):
            check_version(session_id, seen, stored)

    def start_save(self, session_id: str, data: Mapping[str, Any], version: int) -> None:
        """Note that a save of `data` as `version` starts."""
        self._tried[session_id] = self._base_version(session_id, data), version

    def finish_save(self, session_id: str, data: Mapping[str, Any], version: int) -> int:
        """Note that `data` was saved as `version`, and return the version."""
        self._tried.pop(session_id, None)
        self._seen[session_id] = version
        if isinstance(data, Saved):
            data.version = version
        return version

    def finish_load(self, session_id: str, data: Mapping[str, Any], version: int) -> Saved:
        """Note that `version` was loaded; return the data with it."""
        self._seen[session_id] = version
        return Saved(data, version=version)

    def forget(self, session_id: str) -> None:
        """Remove a deleted session."""
        self._seen.pop(session_id, None)
        self._tried.pop(session_id, None)

    def _base_version(self, session_id: str, data: Mapping[str, Any]) -> int | None:
        given = data.version if isinstance(data, Saved) else None
        return self._seen.get(session_id) if given is None else given
