"""What a store is: five methods that keep sessions by their id, as JSON objects, between processes.

What is saved is what is loaded, and nothing that a caller does with either afterwards changes it. A store that counts
versions makes a lost update an error: it refuses to save over what the saver has not seen (`Versions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from sessionlog.errors import StaleSession


class Saved(dict[str, Any]):
    """What a store gave: a dict like any other, and the version that it is.

    Attributes:
        version: Its version in the store it came from; None where that store counts none. Saving it moves it on.
    """

    __slots__ = ("version",)

    def __init__(self, data: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), *, version: int | None = None) -> None:
        super().__init__(data)
        self.version = version


@runtime_checkable
class SessionStore(Protocol):
    """Keeps sessions. Anything with these methods is one; who derives from it gets `exists`.

    `sessionlog.testing.SessionStoreContract` is a test class that tries a store on all that is said here.
    """

    def save(self, session_id: str, data: Mapping[str, Any]) -> int | None:
        """Keep a session, or keep it anew; return its version, None where the store counts none.

        Save the `Saved` that `load` gave, changed: it says which version it is made from. A plain dict does not, and is
        taken as made from what this store object has seen last, by any caller: tasks and threads that share the
        object and save plain dicts may undo each other's saves.

        Raises:
            InvalidSessionId: The store cannot keep this id.
            InvalidHistory: There is something in it that is not JSON; nothing is changed.
            StaleSession: The stored version is another than `data.version`, if it is a `Saved` that has one.
            SessionNotSaved: It could not be written; what was stored before is as it was.
        """
        ...

    def load(self, session_id: str) -> dict[str, Any] | None:
        """Return a session, as `Saved` where the store counts versions; None if there is none of this id.

        Raises:
            InvalidHistory: What is stored is damaged or of another shape; it is left as it is.
        """
        ...

    def delete(self, session_id: str) -> bool:
        """Forget a session; whether there was one."""
        ...

    def list_sessions(self) -> list[str]:
        """Return the ids of all sessions, the most recently saved first."""
        ...

    def exists(self, session_id: str) -> bool:
        """Whether there is a session of this id."""
        return self.load(session_id) is not None


class StoreSlot:
    """One session's place in a store, and the version of it that was seen last.

    Attributes:
        store: The store; None keeps nothing.
        session_id: What the session is called there.
        version: Its version there; None saves over whatever is there.
    """

    __slots__ = ("session_id", "store", "version")

    def __init__(self, store: SessionStore | None, session_id: str) -> None:
        self.store, self.session_id = store, session_id
        self.version: int | None = 0  # which no stored session has

    def seen(self, data: Mapping[str, Any]) -> None:
        """Take the version of what was loaded."""
        self.version = data.version if isinstance(data, Saved) else None

    def load(self) -> Mapping[str, Any] | None:
        """Return what is there, None if nothing is."""
        data = None if self.store is None else self.store.load(self.session_id)
        if data is not None:
            self.seen(data)
        return data

    def write(self, data: Mapping[str, Any]) -> None:
        """Put a session there; raises what `SessionStore.save` does. Nothing happens without a store."""
        if self.store is not None:
            self.version = self.store.save(self.session_id, Saved(data, version=self.version))


def check_version(session_id: str, seen: int | None, stored: int | None) -> None:
    """Refuse to save over what the saver has not seen. What is gone can be saved again: nothing is lost by that.

    Args:
        session_id: The session.
        seen: The version that the saver has seen, None if none.
        stored: The version in the store, None if there is no such session.

    Raises:
        StaleSession: They differ.
    """
    if stored is None or stored == seen:
        return
    if seen is None:
        raise StaleSession(
            f"session {session_id!r} is stored already (version {stored}) and was not loaded; load it and go on from "
            "there, or choose another id"
        )
    raise StaleSession(
        f"session {session_id!r} was saved by another writer (version {stored}, this one comes from {seen}); load it "
        "and go on from there, or save this one under another id"
    )


class Versions:
    """The versions that one store object has seen.

    A `Saved` brings its own; any other dict is taken as made from what this object saw last. A save that failed may
    have been done all the same (the disk did not confirm it): it is kept in mind, so that trying again is not refused.
    """

    __slots__ = ("_seen", "_tried")

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._tried: dict[str, tuple[int | None, int]] = {}

    def check(self, session_id: str, data: Mapping[str, Any], stored: int | None) -> None:
        """Refuse to save over a version that `data` does not come from.

        Raises:
            StaleSession: As for `check_version`.
        """
        seen = self._of(session_id, data)
        if self._tried.get(session_id) != (seen, stored):
            check_version(session_id, seen, stored)

    def trying(self, session_id: str, data: Mapping[str, Any], version: int) -> None:
        """A save of `data` as this version begins."""
        self._tried[session_id] = self._of(session_id, data), version

    def saved(self, session_id: str, data: Mapping[str, Any], version: int) -> int:
        """It is done: `data` is this version now, which is returned."""
        self._tried.pop(session_id, None)
        self._seen[session_id] = version
        if isinstance(data, Saved):
            data.version = version
        return version

    def loaded(self, session_id: str, data: Mapping[str, Any], version: int) -> Saved:
        """Return what was loaded, with its version."""
        self._seen[session_id] = version
        return Saved(data, version=version)

    def forget(self, session_id: str) -> None:
        """It was deleted."""
        self._seen.pop(session_id, None)
        self._tried.pop(session_id, None)

    def _of(self, session_id: str, data: Mapping[str, Any]) -> int | None:
        given = data.version if isinstance(data, Saved) else None
        return self._seen.get(session_id) if given is None else given
