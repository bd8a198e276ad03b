"""Which version of each session a store object has seen: what a save is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.conversation.stores.protocol import Saved, check_version


class Versions:
    """The versions that one store object has seen.

    A `Saved` brings its own; any other dict is taken as made from what this object saw last. A save that failed may
    have been done all the same (the disk did not confirm it): it is remembered, so that trying again is not refused.
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
