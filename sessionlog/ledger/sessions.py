"""Sessions: each log's facts about a session, stored as text, and the row of `sessions` merged from them.

Each log's facts are kept, because the row changes with every log that is read or forgotten. It does not depend on the
order in which logs were read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode
from msgspec.structs import replace

from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.schema import SESSION
from sessionlog.ledger.storable import metadata_text, storable
from sessionlog.sources.record import ScannedSession

_FIELDS = tuple(name for name in ScannedSession.__struct_fields__ if name not in {"metadata", "records", "tools"})


def facts_text(session: ScannedSession) -> str:
    """Return a session's facts as JSON."""
    facts: dict[str, Any] = {name: getattr(session, name) for name in _FIELDS}
    return json.dumps(facts | {"metadata": metadata_text(session.metadata)})


def facts_of(text: str) -> ScannedSession:
    """Parse facts that `facts_text` wrote."""
    facts = _json(text)
    return ScannedSession(**facts | {"metadata": _json(facts["metadata"])})


def _json(text: str) -> Any:
    try:
        return decode(text)
    except DecodeError:  # it knows no lone surrogates, infinite numbers and NaN, and `json` takes six times as long
        return json.loads(text)


def session_row(session_id: int, facts: Sequence[str], *, archived: bool, elsewhere: bool) -> tuple[Any, ...]:
    """Return a session's row, in the order of `SESSION`, from the facts of all its logs."""
    whole = merge_sessions([facts_of(text) for text in facts])
    values = {name: getattr(whole, name) for name in _FIELDS} | {
        "id": session_id, "session": whole.session_id, "end_status": whole.status,
        "metadata": metadata_text(whole.metadata), "part": +whole.part, "counted": +whole.counted,
        "archived": +archived, "elsewhere": +elsewhere, "absorbed": 0,
    }  # fmt: skip
    return tuple(storable(value) if isinstance(value, str) else value for value in map(values.__getitem__, SESSION))


def merge_sessions(facts: Sequence[ScannedSession]) -> ScannedSession:
    """Merge one session's facts from all its logs, without records and tool calls; a log's later scan comes later.

    Facts come from the main logs; logs of sub-agents only extend the times. Of several main logs the latest gives the
    end, the earliest the start. Logs repeat each other's turns, so the greatest number of turns counts.
    """
    if len(facts) == 1:
        [one] = facts
        return replace(
            one,
            prompt=_known_name(one.prompt),
            project=_known_name(one.project) or UNKNOWN,
            harness=_known_name(one.harness) or UNKNOWN,
            route=_known_name(one.route) or UNKNOWN,
            parent=_known_name(one.parent),
            records=(),
            tools=(),
        )
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


def _known(values: Iterable[int | None]) -> Iterator[int]:
    return (value for value in values if value is not None)


def _first(names: Iterable[str]) -> str:
    """Return the first name that is known; "" for none."""
    return next(filter(_known_name, names), "")


def _known_name(name: str) -> str:
    return "" if name == UNKNOWN else name


def _begin(session: ScannedSession) -> tuple[bool, int, bytes]:
    return session.start_ns is None, session.start_ns or 0, _path(session)


def _path(session: ScannedSession) -> bytes:
    return session.path.encode("utf-8", "surrogatepass")
