"""What a log tells of a session, as text that can be kept: facts change with every log that is read or forgotten."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sessionlog.ledger.lean import Row
from sessionlog.ledger.rows import metadata_text, storable
from sessionlog.ledger.sessions import merge_sessions
from sessionlog.sources.record import ScannedSession

_FIELDS = tuple(name for name in ScannedSession.__slots__ if name not in {"metadata", "records", "tools"})


def facts_text(session: ScannedSession) -> str:
    """Return a session's facts as JSON."""
    facts: dict[str, Any] = {name: getattr(session, name) for name in _FIELDS}
    return json.dumps(facts | {"metadata": metadata_text(session.metadata)})


def facts_of(text: str) -> ScannedSession:
    """Return the facts that `facts_text` wrote."""
    facts = json.loads(text)
    return ScannedSession(**facts | {"metadata": json.loads(facts["metadata"])})


def session_row(session_id: int, told: Sequence[str], *, archived: bool) -> Row:
    """Return a session's row, in the order of `schema.SESSION`, from all that its logs tell of it."""
    whole = merge_sessions([facts_of(text) for text in told])
    status = None if whole.status is None else storable(whole.status)
    return (
        session_id, whole.source, storable(whole.session_id), storable(whole.place), storable(whole.path),
        storable(whole.parent), whole.part, whole.start_ns, whole.last_ns, status, storable(whole.project),
        storable(whole.harness), storable(whole.route), whole.duration_ms, storable(whole.prompt),
        storable(whole.error), metadata_text(whole.metadata), whole.turns, whole.last_turn_ns,
        whole.counted, archived,
    )  # fmt: skip
