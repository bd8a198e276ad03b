"""Side: one of the two compared sessions, with its figures as `sessionlog sessions` counts them.

Cost is recorded, else estimated at the record's date, else None, never 0.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from sessionlog.analytics.diff.transcript import Transcript, fold_transcript
from sessionlog.analytics.sessions import SessionSummary, find_sessions, list_sessions
from sessionlog.sources.find import name_of_session
from sessionlog.transcript.fold import OWN
from sessionlog.transcript.inherited import read_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.sources.protocol import Env, Log

_FIGURES = (
    "start", "status", "models", "requests", "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "total_tokens", "known_cost_usd", "estimated_cost_usd", "cost_usd",
    "cost_is_partial", "duration_ms", "error",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One session.

    Attributes:
        source: The id of the log's source.
        session: The session's id.
        path: Its log.
        transcript: Its messages.
        summary: Its figures; None if no report has the log.
    """

    source: str
    session: str
    path: str
    transcript: Transcript
    summary: SessionSummary | None = None

    @property
    def parent(self) -> str:
        """The id of the session that it was forked from; empty for none."""
        return "" if self.summary is None else self.summary.parent

    def figures(self) -> dict[str, Any]:
        """Return the figures for comparison, in JSON types; None for unknown ones."""
        known = {} if self.summary is None else self.summary.to_dict()
        used = self.transcript.tools.values()
        return {
            **{name: known.get(name) for name in _FIGURES},
            "turns": self.transcript.turns,
            "messages": len(self.transcript.messages),
            "inherited_messages": len(self.transcript.inherited),
            "taken_back_messages": self.transcript.taken_back,
            "tool_calls": sum(tool.calls for tool in used),
            "failed_tool_calls": sum(tool.errors for tool in used),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        named = {"source": self.source, "session": self.session, "path": self.path, "parent": self.parent or None}
        return named | self.figures()


def read_side(
    log: Log,
    session: str | None,
    *,
    kept: int | None,
    prices: PriceBook | None = None,
    now: datetime | None = None,
    progress: Progress | None = None,
    env: Env | None = None,
    ledger: str | None = None,
) -> Side:
    """Read a session's messages and figures.

    Args:
        log: Its log.
        session: The id of one of the log's sessions; None for the first.
        kept: Characters that are kept of one text; None keeps all.
        prices: Prices of responses without a recorded cost; None for the list prices.
        now: The present, to distinguish running from unfinished sessions.
        progress: Called with the progress of the scan.
        env: The environment, by which the folders of agents' logs are found.
        ledger: The ledger's file: it has other files of the session too, and which requests a fork has copied. If it is
            None or does not exist, the figures are those of the log alone.

    Raises:
        LogNotReadable: The log cannot be read.
    """
    name = name_of_session(log, session)
    summary = None
    if ledger is not None and os.path.exists(ledger):
        known = find_sessions(
            name, env=env, ledger=ledger, filters={"source": [log.source.id]}, prices=prices, now=now, progress=progress
        )
        summary = next((one for one in known if _is_same_file(one.path, log.path)), None)
    if summary is None:
        paths = [log.path, *log.source.subagent_logs(log.path)]
        alone = list_sessions(paths, prices=prices, now=now, progress=progress).rows
        summary = next((one for one in alone if one.session == name), next(iter(alone), None))
    summary = summary and replace(summary, path=log.path)
    transcript = fold_transcript(read_session(log, session), own=log.source.id in OWN, kept=kept)
    return Side(source=log.source.id, session=name, path=log.path, transcript=transcript, summary=summary)


def is_same_log(left: tuple[Log, str | None], right: tuple[Log, str | None]) -> bool:
    """Whether both are the same session of the same file."""
    return (
        _is_same_file(left[0].path, right[0].path) and left[0].source.id == right[0].source.id and left[1] == right[1]
    )


def _is_same_file(left: str, right: str) -> bool:
    return os.path.realpath(left) == os.path.realpath(right)


def renamed(side: Side, path: str) -> Side:
    """Return the side with another path of its log: the log of an archive is read from a temporary file."""
    summary = side.summary and replace(side.summary, path=path)
    return replace(side, path=path, summary=summary)
