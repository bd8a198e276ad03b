"""What rows begin with: most rows of a log say the same of themselves, letter for letter, so it is read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from sessionlog.sources.claude_code.account import Account, Session
from sessionlog.sources.claude_code.answer import Head
from sessionlog.sources.claude_code.shapes import RESULT

_REMEMBERED = 256


class Beginning:
    """One spelling of a row's beginning.

    Attributes:
        spelled: Its bytes.
        head: What they say.
        result: The same of a row with a tool's result, up to the call's id.
        echo: What it says of a sub-agent's row that is embedded in such a row.
    """

    __slots__ = ("_account", "_session", "echo", "head", "result", "spelled")

    def __init__(self, account: Account, spelled: bytes, head: Head, echo: Head) -> None:
        self._account, self.spelled, self.head, self.echo = account, spelled, head, echo
        self.result = spelled + RESULT
        self._session: Session | None = None

    def at(self, time_ns: int) -> Session:
        """Take the time of a row that is accounted for, and return the session it belongs to."""
        session = self._session
        if session is None:  # not before: a session is known once a row of it counts
            session = self._session = self._account.enter(self.head)
        self._account.begin(session, time_ns)
        return session


class Beginnings:
    """The beginnings that a log has had."""

    def __init__(self, account: Account, read_head: Callable[[Mapping[str, Any]], Head]) -> None:
        self._account, self._read_head = account, read_head
        self._known: dict[bytes, Beginning | None] = {}

    def of(self, segment: bytes) -> Beginning | None:
        """Return what members of a row say, a comma behind each; None when they are not JSON."""
        known = self._known
        if segment not in known:
            if len(known) > _REMEMBERED:
                known.clear()
            known[segment] = self._read(segment)
        return known[segment]

    def _read(self, segment: bytes) -> Beginning | None:
        try:
            row = orjson.loads(b"{%s}" % segment[:-1])
        except ValueError:
            return None
        return Beginning(self._account, segment, self._read_head(row), self._read_head({**row, "isSidechain": True}))
