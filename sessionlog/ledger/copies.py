"""Copies: which copy of a response counts, so that each response counts once, however many logs repeat it.

The source gives each response a key; the rules are the same for all sources and do not depend on the order in which
logs are read (the tests try every order):

- Of copies with one key the one of the highest rank wins, then that with the greatest output, then the greatest total.
  The record has its counts, cost and speed; session, project and time are those of the earliest copy of that rank
  (time, then path).
- Where a family has a copied or an original record, its records of a lower rank do not count.
- A record that is superseded by another session's does not count if that session is known. A copy of the winning rank
  has to name it.

If counts and place come from two copies, neither counts, but a row merged from both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from sessionlog.ledger.columns import Call, Label, Name, Response, names_of
from sessionlog.sources.record import CopyRank

_PLACE, _NAMES_OF_PLACE = names_of(Response, "place"), names_of(Label, "place")
numbers_of = attrgetter(*names_of(Response, "number"))
"""Row → what the response used."""
_place_of = attrgetter(*_NAMES_OF_PLACE)
_others_of = attrgetter(*(name for name in Label._fields if name not in _NAMES_OF_PLACE))
_UNITS = (*names_of(Response, "tokens"), *names_of(Response, "money"))
_units_of = attrgetter(*_UNITS, *(name for name in names_of(Response, "number") if name not in _UNITS))
_key_of = attrgetter("key")


class Names(NamedTuple):
    """Look-ups of the ids in rows.

    Attributes:
        label: Label's id → its names.
        call: Name's id → (tool, server, agent, project).
        path: File's id → its path as bytes.
        session: Session's id → its name.
    """

    label: Callable[[int], Label]
    call: Callable[[int], Name]
    path: Callable[[int], bytes]
    session: Callable[[int], str]


class Winner(NamedTuple):
    """The copies of one key that count.

    Attributes:
        counts: The copy whose numbers count.
        place: The copy whose session, project and time count; mostly the same one.
    """

    counts: Response
    place: Response


def winners(copies: Sequence[Response], names: Names, known: Collection[str]) -> list[Winner]:
    """Return the winners of all copies of one family.

    Args:
        copies: The copies, in any order.
        names: Look-ups of their ids.
        known: `source:session` of the sessions that are known.
    """
    best = [_best(list(group)) for _, group in groupby(sorted(copies, key=_key_of), key=_key_of)]
    top = max((some[0].copy_rank for some in best), default=0)
    least = top if top >= CopyRank.COPIED else CopyRank.EMBEDDED
    return [
        _winner(some, names)
        for some in best
        if some[0].copy_rank >= least and not any(_is_superseded(copy.superseded_by, known) for copy in some)
    ]


def _is_superseded(by: str | None, known: Collection[str]) -> bool:
    return by is not None and any(session in known for session in by.split("\n"))


def superseding_sessions(rows: Iterable[Response | Call]) -> str | None:
    """Return the sessions that supersede any of these rows, one a line; None for none."""
    return (
        "\n".join(sorted({one for row in rows if row.superseded_by for one in row.superseded_by.split("\n")})) or None
    )


def _best(copies: list[Response]) -> list[Response]:
    """The copies of the highest rank."""
    if len(copies) == 1:
        return copies
    top = max(copy.copy_rank for copy in copies)
    return [copy for copy in copies if copy.copy_rank == top]


def _winner(copies: list[Response], names: Names) -> Winner:
    if len(copies) == 1:
        return Winner(copies[0], copies[0])
    place = min(copies, key=lambda copy: _age(copy, names))
    numbers, label = numbers_of(place), _others_of(names.label(place.label_id))
    if all(numbers_of(copy) == numbers and _others_of(names.label(copy.label_id)) == label for copy in copies):
        return Winner(place, place)
    counts = max(copies, key=lambda copy: _weight(copy, names))
    return Winner(place if _weight(counts, names) == _weight(place, names) else counts, place)


def merged_row(winner: Winner, label_id: int) -> Response:
    """Return the row merged from a winner's two copies: in the file of its place, with a negative `n`."""
    counts, place = winner
    places = {name: getattr(place, name) for name in _PLACE}
    return counts._replace(**places, label_id=label_id, n=-1 - place.n, counts=1, chosen=1)


def label_of(winner: Winner, names: Names) -> Label:
    """Return the names of a winner's label: project, branch, version and agent of `place`, the others of `counts`."""
    place = names.label(winner.place.label_id)
    return names.label(winner.counts.label_id)._replace(**{name: getattr(place, name) for name in _NAMES_OF_PLACE})


def total_tokens(row: Response) -> int:
    """Return the sum of a response's disjoint token classes."""
    return row.input + row.cache_read + row.cache_write + row.output


def _weight(copy: Response, names: Names) -> tuple[Any, ...]:
    numbers = ((number is not None, number or 0) for number in _units_of(copy))
    return copy.output, total_tokens(copy), *numbers, *_others_of(names.label(copy.label_id))


def _age(copy: Response, names: Names) -> tuple[Any, ...]:
    """Sort key of copies: the earliest first; of two rows of one log at the same time the one with more activity."""
    place = _place_of(names.label(copy.label_id))
    return *_since(copy, names), -copy.active_ms, names.session(copy.session_id), *place


def _since(row: Response | Call, names: Names) -> tuple[bool, int, bytes]:
    return row.time_ns is None, row.time_ns or 0, names.path(row.file_id)


def winning_call(copies: Sequence[Call], names: Names, known: Collection[str]) -> Call | None:
    """Return the copy of a tool call that counts: finished before others, then the earliest; None if superseded."""
    if any(_is_superseded(call.superseded_by, known) for call in copies):
        return None
    return min(copies, key=lambda call: _call_order(call, names))


def _call_order(call: Call, names: Names) -> tuple[Any, ...]:
    took = call.duration_ms
    return (
        not call.finished, *_since(call, names), names.session(call.session_id), *names.call(call.name_id), call.failed,
        took is None, took or 0, call.output_bytes,
    )  # fmt: skip
