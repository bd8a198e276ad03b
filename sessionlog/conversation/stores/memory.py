"""MemoryStore: sessions for as long as the process lives.

It keeps JSON texts, not objects, so that it copies and refuses the same values as the other stores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from sessionlog.conversation.stores.json_text import check_key, from_json, to_json
from sessionlog.conversation.stores.protocol import Saved, Versions
from sessionlog.locks import RLock


class MemoryStore:
    """Keeps sessions in memory. Threads may share it; a forked process has a copy.

    `len(store)` is the number of its sessions.
    """

    __slots__ = ("_last", "_lock", "_pid", "_sessions", "_versions")

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[int, str]] = {}
        self._versions = Versions()
        self._last = 0
        self._lock = RLock()
        self._pid = os.getpid()

    def __len__(self) -> int:
        return len(self._sessions)

    def __bool__(self) -> bool:
        return True  # an empty store is a store

    def save(self, session_id: str, data: Mapping[str, Any]) -> int:
        """Keep a copy of a session; return its version.

        Raises:
            InvalidSessionId: The id is not a text, or empty.
            InvalidHistory: The data contains something that is not JSON.
            StaleSession: Another writer has saved the session meanwhile.
        """
        text = to_json(check_key(session_id), data)
        with self._own_lock():
            stored = self._sessions.get(session_id)
            self._versions.check(session_id, data, stored and stored[0])
            self._last += 1
            self._sessions[session_id] = self._last, text
            return self._versions.finish_save(session_id, data, self._last)

    def load(self, session_id: str) -> Saved | None:
        """Return a copy of a session; None if there is none with this id."""
        stored = self._sessions.get(session_id)
        if stored is None:
            return None
        return self._versions.finish_load(session_id, from_json(stored[1], session_id), stored[0])

    def delete(self, session_id: str) -> bool:
        """Remove a session; return whether there was one."""
        with self._own_lock():
            self._versions.forget(session_id)
            return self._sessions.pop(session_id, None) is not None

    def list_sessions(self) -> list[str]:
        """Return the ids of all sessions, the most recently saved first."""
        with self._own_lock():
            return sorted(self._sessions, key=lambda session_id: -self._sessions[session_id][0])

    def exists(self, session_id: str) -> bool:
        """Whether there is a session with this id."""
        return session_id in self._sessions

    def clear(self) -> None:
        """Remove all sessions."""
        with self._own_lock():
            self._sessions.clear()
            self._versions = Versions()

    def _own_lock(self) -> AbstractContextManager[bool]:
        """Return the lock, a new one after a fork: a thread that held the old one does not exist here."""
        if os.getpid() != self._pid:
            self._lock, self._pid = RLock(), os.getpid()
        return self._lock
