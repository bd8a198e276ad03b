"""Problems: findings about logs as the ledger keeps them, and the note of a ledger that is being written to."""

from __future__ import annotations

import json

from sessionlog.errors import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.sources.record import Problems

MOST_NAMED = 100
"""Problems that are kept; beyond that they are only counted."""

BUSY = "another sessionlog is reading new logs into the ledger: these are the numbers without them"


def problems_text(problems: Problems) -> str:
    """Return the named problems as JSON."""
    if not problems.first:
        return "[]"
    return json.dumps([problem._asdict() for problem in problems.first[:MOST_NAMED]])


def problems_of(text: str) -> list[Problem]:
    """Parse problems that `problems_text` wrote."""
    return [Problem(**fields) for fields in json.loads(text)]
