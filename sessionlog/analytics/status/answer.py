"""Status: a session's usage, its context and what is left of the budgets, as one JSON document.

Every value comes from the ledger, and none is guessed: an unknown value is null, and `unavailable` has the reason.
Names are camelCase, as the first users of the document need them. The module imports little, because a status
line uses it, too.
"""

from __future__ import annotations

import os

from sessionlog.analytics.status import sums
from sessionlog.analytics.status.document import NOTHING_YET, document_of, empty_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.analytics.conditions import Query
    from sessionlog.analytics.status.statusline_input import StatuslineInput
    from sessionlog.analytics.status.sums import SessionRow


class Status:
    """The status of one session, or of all; immutable.

    Its properties return copies, in JSON types.
    """

    __slots__ = ("_document",)

    _document: dict[str, Any]

    def __init__(self, document: dict[str, Any]) -> None:
        object.__setattr__(self, "_document", document)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a status cannot be changed: {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Status) and self._document == other._document

    __hash__ = None  # type: ignore[assignment] # it holds dictionaries

    def __repr__(self) -> str:
        return f"Status({self._document!r})"

    @property
    def session(self) -> dict[str, Any] | None:
        """The session; None for the sum over all, or without a session."""
        return self.to_dict()["session"]  # type: ignore[no-any-return] # the document's types are its schema's

    @property
    def usage(self) -> dict[str, Any]:
        """`session`, `lastTurn`, `today` and `budgets`."""
        return self.to_dict()["usage"]  # type: ignore[no-any-return] # as above

    @property
    def context(self) -> dict[str, Any] | None:
        """The prompt tokens of the main agent's last request, and the model's context window."""
        return self.to_dict()["context"]  # type: ignore[no-any-return] # as above

    @property
    def typical(self) -> dict[str, Any] | None:
        """Medians of finished sessions by task, and how many more of them the budgets allow."""
        return self.to_dict()["typical"]  # type: ignore[no-any-return] # as above

    @property
    def unavailable(self) -> dict[str, str]:
        """Path of each null in the document → the reason."""
        return self.to_dict()["unavailable"]  # type: ignore[no-any-return] # as above

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.status/1`."""
        copy: dict[str, Any] = _copied(self._document)
        return copy


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def choose_session(query: Query, target: str | None, now_ns: int) -> SessionRow | None:
    """Return the session of a path, an id or a part of one; without a target the one with the newest event.

    Raises:
        AmbiguousSession: Several sessions match.
    """
    if target is None:
        found = sums.find_newest(query, now_ns)
    elif os.path.exists(target):
        from sessionlog.ledger.identity import stored_forms

        found = sums.find_in_log(query, stored_forms(target), now_ns)
    else:
        found = sums.find_named(query, target, now_ns)
    if len(found) > 1:
        from sessionlog.errors import AmbiguousSession

        names = {one.session for one in found}
        alike = len(names) < len(found)
        raise AmbiguousSession(str(target), tuple(one.path if alike else one.session for one in found))
    return found[0] if found else None


def answer(
    query: Query,
    *,
    now_ns: int,
    target: str | None = None,
    statusline_input: StatuslineInput | None = None,
    everything: bool = False,
    alone: bool = False,
    **options: Any,
) -> tuple[Status, int | None] | None:
    """Return the status and the session's number in the ledger; None if the target does not exist.

    Args:
        query: Runs a statement on the ledger; with rules its connection needs `budgets.states.FUNCTIONS`.
        now_ns: The present.
        target: A path, an id or a part of one; None for the session of `statusline_input`, else the newest.
        statusline_input: The agent's input for a status line.
        everything: Sum over all sessions.
        alone: Whether the book holds the target and nothing else.
        options: `zone`, `rules`, `config_error`, `location` and `with_typical` of `document_of`.

    Raises:
        AmbiguousSession: Several sessions match.
    """
    missing = NOTHING_YET
    if everything:
        found = None
    elif target is None and statusline_input is not None and (statusline_input.path or statusline_input.session):
        found, missing = _session_of_input(query, statusline_input, now_ns), "the ledger has no data of it yet"
    else:
        found = choose_session(query, None if alone else target, now_ns)
        if found is None and target is not None:
            return None
    document = document_of(
        query, found, now_ns=now_ns, everything=everything, alone=alone, missing=missing,
        statusline_input=None if everything or target is not None else statusline_input, **options,
    )  # fmt: skip
    return Status(document), None if found is None else found.id


def _session_of_input(query: Query, statusline_input: StatuslineInput, now_ns: int) -> SessionRow | None:
    path, session = statusline_input.path, statusline_input.session
    found = choose_session(query, path, now_ns) if path and os.path.exists(path) else None
    if found is None and session:
        named = sums.find_named(query, session, now_ns)
        found = next((one for one in named if one.session == session), None)
    return found


def nothing_known(reason: str) -> Status:
    """Return a status in which every value is unknown, for this reason."""
    return Status(empty_document(reason))
