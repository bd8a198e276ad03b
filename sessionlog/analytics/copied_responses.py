"""Copied responses: those that another session paid for, though the log that has the copies does not mark them.

Sessions that Claude Code up to 2.0.14 resumed repeat the rows of the former session, with new times. That they are
copies is known only where the originals are, too.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping

from sessionlog import files
from sessionlog.analytics.question import Question, answer
from sessionlog.context.cache_misses import Copied
from sessionlog.events.tokens import TokenUsage
from sessionlog.ledger.book import Book
from sessionlog.sources.find import name_of_session
from sessionlog.sources.protocol import Log
from sessionlog.sources.record import CopyRank

_COPIED = """
SELECT s.source, s.session, s.path, r.time_ns, r.input, r.output, r.cache_read, r.cache_write
FROM responses r JOIN sessions s ON s.id = r.session_id
WHERE NOT r.chosen AND NOT EXISTS (
    SELECT 1 FROM responses o WHERE o.family = r.family AND o.session_id = r.session_id AND o.chosen
)
"""
"""Responses that are copies of another session's."""

_MAY_BE_COPIED = "SELECT 1 FROM responses WHERE copy_rank = :rank LIMIT 1"


def copied_responses(book: Book) -> Mapping[tuple[str, str, str], frozenset[Copied]]:
    """Return (source, session, path) → the responses that another session paid for."""
    found: dict[tuple[str, str, str], set[Copied]] = defaultdict(set)
    for source, session, path, time_ns, given, output, cache_read, cache_write in book.query(_COPIED, {}):
        usage = TokenUsage(input=given, output=output, cache_read=cache_read, cache_write=cache_write)
        found[source, session, path].add((time_ns, usage))
    return {key: frozenset(copies) for key, copies in found.items()}


def copied_beside(log: Log, session: str | None = None) -> frozenset[Copied]:
    """Return the responses of a session that another one in the log's folder paid for.

    The folder is read only if the log has responses that may be copies.
    """
    path = files.absolute_path(log.path)
    if not answer(Question(paths=path), lambda book: book.query(_MAY_BE_COPIED, {"rank": int(CopyRank.COPIED)})):
        return frozenset()
    key = (log.source.id, name_of_session(log, session), path)
    return answer(Question(paths=os.path.dirname(path)), copied_responses).get(key, frozenset())
