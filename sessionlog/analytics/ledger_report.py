"""LedgerReport: the ledger's data of each agent, and what only the ledger still has."""

from __future__ import annotations

from dataclasses import dataclass

from sessionlog.analytics.columns import Column, counted
from sessionlog.analytics.report import Report
from sessionlog.events.times import format_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Self

    from sessionlog.ledger.summary import KeptSource, Summary

COLUMNS = (
    Column("source", "text", "AGENT", label="agent"),
    Column("files", "count", "LOGS", label="logs"),
    Column("sessions", "count", "SESSIONS", 2),
    Column("records", "count", "RECORDS"),
    Column("archived_files", "count", "GONE LOGS", 1, label="gone logs"),
    Column("archived_sessions", "count", "REMEMBERED SESSIONS", 4, label="remembered sessions"),
    Column("archived_records", "count", "REMEMBERED RECORDS", 3, label="remembered records"),
    Column("elsewhere_files", "count", "ELSEWHERE", 5, label="elsewhere"),
)
"""The columns of an agent, in the order of JSON, CSV and tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport(Report):
    """The content of a ledger.

    Attributes:
        rows: The data of each agent.
        totals: Of all agents.
        file: The file itself.
    """

    schema = "sessionlog.ledger/2"
    title = "Ledger"
    thing = "agent"
    columns = COLUMNS

    rows: tuple[KeptSource, ...] = ()
    file: Summary

    @classmethod
    def of(cls, summary: Summary) -> Self:
        """Return the report of a ledger's summary."""
        return cls(
            rows=summary.sources, totals=summary.total, archived_sessions=summary.total.archived_sessions,
            priced_from=summary.priced_from, file=summary,
        )  # fmt: skip

    @property
    def extra(self) -> Mapping[str, Any]:
        """The file's path, size and version, and its oldest, newest and last synced times."""
        file = self.file
        return {
            "path": file.path, "exists": file.exists, "version": file.version, "bytes": file.bytes,
            "tool_calls": file.tool_calls, "oldest": _time(file.oldest_ns), "newest": _time(file.newest_ns),
            "synced": _time(file.synced_ns), "priced_from": file.priced_from,
        }  # fmt: skip

    def footnotes(self) -> Iterator[str]:
        """Yield the number of records that only the ledger has, and of logs that reports leave out."""
        total: KeptSource = self.totals
        if total.archived_records or total.archived_files:
            records, logs = counted(total.archived_records, "record"), counted(total.archived_files, "log")
            verb = "is" if total.archived_files == 1 else "are"
            yield f"{records} of {logs} that {verb} gone: only the ledger remembers (`sessionlog ledger backup FILE`)"
        if total.elsewhere_files:
            yield f"{counted(total.elsewhere_files, 'log')} not where logs are looked for now: left out"


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else format_time(time_ns)
