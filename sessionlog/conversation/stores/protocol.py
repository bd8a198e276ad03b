"""What a store is: five methods that keep sessions by their id, as JSON objects, between processes.

What is saved is what is loaded, and nothing that a caller does with either afterwards changes it. A store that counts
versions makes a lost update an error: it refuses to save over what the saver has not seen.
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
        taken as made from what this store object has seen last, whoever loaded it: tasks and threads that share the
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
        f"session {session_id!r} was saved by somebody else (version {stored}, this one comes from {seen}); load it "
        "and go on from there, or save this one under another id"
    )
