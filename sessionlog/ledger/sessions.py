"""Sessions: each log's facts about a session, stored as text, and the row of `sessions` merged from them.

Each log's facts are kept, because the row changes with every log that is read or forgotten. It does not depend on the
order in which logs were read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import orjson
from msgspec.json import Decoder
from msgspec.structs import replace

from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.columns import Session
from sessionlog.ledger.storable import metadata_text, storable
from sessionlog.sources.record import ScannedSession

_decode = Decoder().decode
_FIELDS = tuple(name for name in ScannedSession.__struct_fields__ if name not in {"metadata", "records", "tools"})
_values_of = attrgetter(*_FIELDS)
_RENAMED = {"session": "session_id", "end_status": "status"}
_OWN = ("id", "metadata", "archived", "elsewhere", "home", "rewritten")  # what a row has besides fields
_PLACE = {name: number for number, name in enumerate((*_FIELDS, *_OWN))}
_in_order = itemgetter(*(_PLACE[_RENAMED.get(name, name)] for name in Session._fields))


def facts_text(session: ScannedSession) -> str:
    """Return a session's facts as JSON."""
    facts: dict[str, Any] = dict(zip(_FIELDS, _values_of(session), strict=True))
    facts["metadata"] = metadata_text(session.metadata)
    try:
        return orjson.dumps(facts).decode()
    except TypeError:  # numbers beyond 64 bits, names that are no valid text
        return json.dumps(facts)


def facts_of(text: str) -> ScannedSession:
    """Parse facts that `facts_text` wrote."""
    facts = _read_json(text)
    facts["metadata"] = _read_json(facts["metadata"])
    return ScannedSession(**facts)


def _read_json(text: str) -> Any:
    try:
        return _decode(text)  # numbers beyond 64 bits stay whole, which orjson makes floats
    except ValueError:  # names that are no valid text
        return json.loads(text)


def session_row(session_id: int, facts: Sequence[str], *, archived: bool, elsewhere: bool) -> Session:
    """Return a session's row, from the facts of all its logs."""
    whole = merge_sessions([facts_of(text) for text in facts])
    own = (session_id, metadata_text(whole.metadata), archived, elsewhere, None, 0)  # as `_OWN`
    row: tuple[Any, ...] = _in_order((*_values_of(whole), *own))
    return Session._make(map(_bound, row))


def _bound(value: Any) -> Any:
    if type(value) is str:
        return storable(value)
    return +value if type(value) is bool else value  # sqlite3 takes ten times as long for a bool as for a number


def merge_sessions(facts: Sequence[ScannedSession]) -> ScannedSession:
    """Merge one session's facts from all its logs, without records and tool calls; a log's later scan comes later.

    Facts come from the main logs; logs of sub-agents only extend the times. Of several main logs the latest gives the
    end, the earliest the start. Logs repeat each other's turns, so the greatest number of turns counts.
    """
    if len(facts) == 1 and _is_complete(facts[0]):
        return facts[0]
    mains = [one for one in facts if not one.part] or facts
    begun = sorted(mains, key=_begin)
    ended = sorted(mains, key=lambda one: (one.last_ns is not None, one.last_ns or 0, _path(one)))
    metadata: dict[str, Any] = {}
    for one in sorted(mains, key=_begin, reverse=True):  # of two scans of one log, the later one
        metadata |= one.metadata
    return replace(
        begun[0],
        start_ns=min(_known(one.start_ns for one in facts), default=None),
        last_ns=max(_known(one.last_ns for one in facts), default=None),
        status=ended[-1].status,
        error=ended[-1].error,
        prompt=_first(one.prompt for one in begun),
        project=_first(one.project for one in begun) or UNKNOWN,
        harness=_first(one.harness for one in begun) or UNKNOWN,
        route=_first(one.route for one in begun) or UNKNOWN,
        parent=_first(one.parent for one in begun),
        duration_ms=ended[-1].duration_ms,
        metadata=metadata,
        turns=max(_known(one.turns for one in mains), default=None),
        last_turn_ns=max(_known(one.last_turn_ns for one in mains), default=None),
        counted=any(one.counted for one in mains),
        records=(),
        tools=(),
    )


def _is_complete(one: ScannedSession) -> bool:
    """Whether there is nothing to merge in the facts of a single log."""
    has_names = bool(one.project and one.harness and one.route) and UNKNOWN not in {one.prompt, one.parent}
    return has_names and not (one.records or one.tools)


def _known(values: Iterable[int | None]) -> Iterator[int]:
    return (value for value in values if value is not None)


def _first(names: Iterable[str]) -> str:
    """Return the first name that is known; "" for none."""
    return next((name for name in names if name not in {"", UNKNOWN}), "")


def _begin(session: ScannedSession) -> tuple[bool, int, bytes]:
    return session.start_ns is None, session.start_ns or 0, _path(session)


def _path(session: ScannedSession) -> bytes:
    return session.path.encode("utf-8", "surrogatepass")
