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

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sessionlog.ledger.rows import Row
from sessionlog.ledger.schema import ATTRIBUTION, CALL, LABEL, RESPONSE
from sessionlog.sources.record import CopyRank

_AT = {name: index for index, name in enumerate(RESPONSE)}
_KEY, _RANK, _SUPERSEDED_BY, _TIME = (_AT[name] for name in ("key", "copy_rank", "superseded_by", "time_ns"))
_FILE, _SESSION, _LABEL, _ACTIVE = (_AT[name] for name in ("file_id", "session_id", "label_id", "active_ms"))
_key_of = itemgetter(_KEY)
_FIRST, _LAST = _AT["requests"], _AT["latency_ms"] + 1
_INPUT, _OUTPUT, _READ, _WRITE = (_AT[name] for name in ("input", "output", "cache_read", "cache_write"))
_COUNTS = tuple(
    _AT[name]
    for name in (
        "input", "cache_read", "cache_write", "cache_write_1h", "reasoning", "cost_nano", "estimate_nano",
        "saved_nano", "latency_ms", "requests", "failed", "priced",
    )
)  # fmt: skip
_OF_PLACE = ("project", "branch", "version", "agent")
_names_of_place = itemgetter(*map(LABEL.index, _OF_PLACE))
_names_of_counts = itemgetter(
    *map(
        LABEL.index,
        ("quality", "granularity", "provider", "model", "response_model", "speed", "service_tier", *ATTRIBUTION),
    )
)

_CALL = {name: index for index, name in enumerate(CALL)}


class Names(NamedTuple):
    """Look-ups of the ids in rows.

    Attributes:
        label: Label's id → its names.
        call: Name's id → (tool, server, agent, project).
        path: File's id → its path as bytes.
        session: Session's id → its name.
    """

    label: Callable[[int], Row]
    call: Callable[[int], Row]
    path: Callable[[int], bytes]
    session: Callable[[int], str]


class Winner(NamedTuple):
    """The copies of one key that count.

    Attributes:
        counts: The copy whose numbers count.
        place: The copy whose session, project and time count; mostly the same one.
    """

    counts: Row
    place: Row


def winners(copies: Sequence[Row], names: Names, known: Collection[str]) -> list[Winner]:
    """Return the winners of all copies of one family, which are rows of `responses` with the columns of `RESPONSE`.

    Args:
        copies: The copies, in any order.
        names: Look-ups of their ids.
        known: `source:session` of the sessions that are known.
    """
    found: list[Winner] = []
    superseded: list[bool] = []
    for _, group in groupby(sorted(copies, key=_key_of), key=_key_of):
        best = _best(list(group))
        found.append(_winner(best, names))
        superseded.append(any(_is_superseded(copy[_SUPERSEDED_BY], known) for copy in best))
    top = max((winner.counts[_RANK] for winner in found), default=0)
    least = top if top >= CopyRank.COPIED else CopyRank.EMBEDDED
    pairs = [(w, s) for w, s in zip(found, superseded, strict=True) if w.counts[_RANK] >= least]
    return [winner for winner, is_superseded in pairs if not is_superseded]


def _is_superseded(by: str | None, known: Collection[str]) -> bool:
    return by is not None and any(session in known for session in by.split("\n"))


def superseding_sessions(rows: Iterable[Row], column: int) -> str | None:
    """Return the sessions that supersede any of these rows, one a line; None for none."""
    return "\n".join(sorted({one for row in rows if row[column] for one in row[column].split("\n")})) or None


def _best(copies: list[Row]) -> list[Row]:
    """The copies of the highest copy_rank."""
    if len(copies) == 1:
        return copies
    top = max(copy[_RANK] for copy in copies)
    return [copy for copy in copies if copy[_RANK] == top]


def _winner(copies: list[Row], names: Names) -> Winner:
    if len(copies) == 1:
        return Winner(copies[0], copies[0])
    place = min(copies, key=lambda copy: _age(copy, names))
    counted = place[_FIRST:_LAST]
    label = _label_of_counts(place, names)
    if all(copy[_FIRST:_LAST] == counted and _label_of_counts(copy, names) == label for copy in copies):
        return Winner(place, place)
    counts = max(copies, key=lambda copy: _weight(copy, names))
    return Winner(place if _weight(counts, names) == _weight(place, names) else counts, place)


def merged_row(winner: Winner, label_id: int) -> Row:
    """Return the row merged from a winner's two copies: in the file of its place, with a negative `n`."""
    counts, place = winner
    row = list(counts)
    for index in (_FILE, _SESSION, _TIME, _ACTIVE):
        row[index] = place[index]
    row[_LABEL] = label_id
    row[_AT["n"]] = -1 - place[_AT["n"]]
    row[_AT["counts"]] = row[_AT["chosen"]] = 1
    return tuple(row)


def label_of(winner: Winner, names: Names) -> Row:
    """Return the names of a winner's label: project, branch, version and agent of `place`, the others of `counts`."""
    counted, place = names.label(winner.counts[_LABEL]), names.label(winner.place[_LABEL])
    return tuple(p if name in _OF_PLACE else c for name, p, c in zip(LABEL, place, counted, strict=True))


def _label_of_counts(copy: Row, names: Names) -> Row:
    label: Row = _names_of_counts(names.label(copy[_LABEL]))
    return label


def _weight(copy: Row, names: Names) -> Row:
    total = copy[_INPUT] + copy[_READ] + copy[_WRITE] + copy[_OUTPUT]
    numbers = ((copy[i] is not None, copy[i] or 0) for i in _COUNTS)
    return copy[_OUTPUT], total, *numbers, *_label_of_counts(copy, names)


def _age(copy: Row, names: Names) -> Row:
    """Sort key of copies: the earliest first; of two rows of one log at the same time the one with more activity."""
    place = _names_of_place(names.label(copy[_LABEL]))
    return *_since(copy[_TIME], copy[_FILE], names), -copy[_ACTIVE], names.session(copy[_SESSION]), *place


def _since(time_ns: int | None, file_id: int, names: Names) -> tuple[bool, int, bytes]:
    return time_ns is None, time_ns or 0, names.path(file_id)


def winning_call(copies: Iterable[Row], names: Names, known: Collection[str]) -> Row | None:
    """Return the copy of a tool call that counts: finished before others, then the earliest; None if superseded."""
    calls = list(copies)
    if any(_is_superseded(call[_CALL["superseded_by"]], known) for call in calls):
        return None
    return min(calls, key=lambda call: _call_order(call, names))


def _call_order(call: Row, names: Names) -> Row:
    tool, server, agent, project = names.call(call[_CALL["name_id"]])
    since = _since(call[_CALL["time_ns"]], call[_CALL["file_id"]], names)
    took = call[_CALL["duration_ms"]]
    return (
        not call[_CALL["finished"]], *since, names.session(call[_CALL["session_id"]]), tool, server, agent, project,
        call[_CALL["failed"]], took is None, took or 0, call[_CALL["output_bytes"]],
    )  # fmt: skip


def by_column(rows: Iterable[Row], column: int) -> Iterator[tuple[int, list[Row]]]:
    """Group rows that are sorted by a column; yield (value, rows)."""
    for value, group in groupby(rows, key=lambda row: row[column]):
        yield value, list(group)
