"""Status: what a session used, what fills its context, and how much of the budgets is left, as one JSON document.

Everything is asked of the ledger, and nothing is guessed: what is not known is null, and `unavailable` says why. Names
are camelCase, as those who first asked for it write them. Nothing is imported for it that a question can do without:
the shortest way to a status (`cli.warm`) and the whole one (`status.reader`) share this.
"""

from __future__ import annotations

import os

from sessionlog.analytics.status import sums
from sessionlog.analytics.status.document import NOTHING_YET, document_of, empty_document

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo
    from typing import Any

    from sessionlog.analytics.conditions import Query
    from sessionlog.analytics.status.fed import Fed
    from sessionlog.analytics.status.own import Place
    from sessionlog.analytics.status.sums import Found


class Status:
    """The status of one session, or of all; a value that does not change.

    Everything that it gives away is a copy, in JSON types.
    """

    __slots__ = ("_document",)

    _document: dict[str, Any]

    def __init__(self, document: dict[str, Any]) -> None:
        object.__setattr__(self, "_document", document)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a status does not change: {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Status) and self._document == other._document

    __hash__ = None  # type: ignore[assignment] # it holds dictionaries

    def __repr__(self) -> str:
        return f"Status({self._document!r})"

    @property
    def session(self) -> dict[str, Any] | None:
        """Which session it is; None if it is of all, or there is none."""
        return self.to_dict()["session"]  # type: ignore[no-any-return] # the document's types are its schema's

    @property
    def usage(self) -> dict[str, Any]:
        """`session`, `lastTurn`, `today` and `budgets`."""
        return self.to_dict()["usage"]  # type: ignore[no-any-return] # as above

    @property
    def context(self) -> dict[str, Any] | None:
        """What the main agent's last request sent, against the model's window; no matter of billing."""
        return self.to_dict()["context"]  # type: ignore[no-any-return] # as above

    @property
    def typical(self) -> dict[str, Any] | None:
        """Medians of finished sessions by task, and how many of them fit in what is left."""
        return self.to_dict()["typical"]  # type: ignore[no-any-return] # as above

    @property
    def unavailable(self) -> dict[str, str]:
        """Place of each null that could have been a value → why it is none."""
        return self.to_dict()["unavailable"]  # type: ignore[no-any-return] # as above

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.status/1`."""
        copy: dict[str, Any] = _copied(self._document)
        return copy


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def choose_session(query: Query, target: str | None, now_ns: int) -> Found | None:
    """Return the session that is meant: by a path, an id or a part of one, else the one with the newest event.

    Raises:
        AmbiguousSession: Several sessions match.
    """
    if target is None:
        found = sums.find_newest(query, now_ns)
    elif os.path.exists(target):
        found = sums.find_in_log(query, _spellings(target), now_ns)
    else:
        found = sums.find_named(query, target, now_ns)
    if len(found) > 1:
        from sessionlog.errors import AmbiguousSession  # noqa: PLC0415 - 25 ms, for those who have to type again

        names = {one.session for one in found}
        alike = len(names) < len(found)
        raise AmbiguousSession(str(target), tuple(one.path if alike else one.session for one in found))
    return found[0] if found else None


def _spellings(path: str) -> tuple[str | bytes, ...]:
    """The names under which the ledger may have a log."""
    from sessionlog.ledger.identity import stored_path  # noqa: PLC0415 - only for those who name a path

    ways = (path, os.path.abspath(path), os.path.realpath(path))
    return tuple(map(stored_path, dict.fromkeys(ways)))


def answer(
    query: Query,
    *,
    now_ns: int,
    target: str | None = None,
    fed: Fed | None = None,
    everything: bool = False,
    alone: bool = False,
    zone: tzinfo | None = None,
    rules: Sequence[Any] = (),
    mistake: str = "",
    place: Place | None = None,
    with_typical: bool = True,
) -> tuple[Status, int | None] | None:
    """Return the status that is wanted and the session's number in the ledger; None if what was named is not there.

    Args:
        query: Runs a statement on the ledger; with rules its connection has to know `budgets.FUNCTIONS`.
        now_ns: The present.
        target: A path, an id or a part of one; None for the session of which was `fed`, else the newest.
        fed: What the agent itself tells.
        everything: The sum over all sessions.
        alone: The book holds what was named and nothing else.
        zone: Whose days; None for the machine's.
        rules: The user's own budgets.
        mistake: Why they cannot be read; empty if they can.
        place: Where the ledger is; None if the answer is not the ledger's.
        with_typical: See `document_of`.

    Raises:
        AmbiguousSession: Several sessions match.
    """
    missing = NOTHING_YET
    if everything:
        found = None
    elif target is None and fed is not None and (fed.path or fed.session):
        found, missing = _fed_session(query, fed, now_ns), "the ledger knows nothing of it yet"
    else:
        found = choose_session(query, None if alone else target, now_ns)
        if found is None and target is not None:
            return None
    document = document_of(
        query, found, now_ns=now_ns, zone=zone, rules=rules, mistake=mistake, everything=everything,
        alone=alone, missing=missing, fed=None if everything or target is not None else fed, place=place,
        with_typical=with_typical,
    )  # fmt: skip
    return Status(document), None if found is None else found.id


def _fed_session(query: Query, fed: Fed, now_ns: int) -> Found | None:
    found = choose_session(query, fed.path, now_ns) if fed.path and os.path.exists(fed.path) else None
    if found is None and fed.session:
        named = sums.find_named(query, fed.session, now_ns)
        found = next((one for one in named if one.session == fed.session), None)
    return found


def nothing_known(reason: str) -> Status:
    """Return the status of which nothing is known."""
    return Status(empty_document(reason))
