"""The ledger's schema: how far each log was read, its rows, and which of these count.

The rows of every log are kept, whether they count or not, so that a log can be read again, replaced, deleted or
forgotten without reading others: `responses` and `calls` hold all copies, `counts` marks those that count, and the
views `records` and `tools` show these. `quarter_hours` are totals of records per session, label and quarter hour; they
are derived, as `all_sessions` is from the facts in `log_sessions`. A session is `elsewhere` if all its logs are outside
the places that are searched now: its rows do not count, and the view `sessions` leaves it out. `chosen` marks what
counts of copies; it counts unless the same request counts elsewhere, on the wire or in a log (see `wire`). A session on
the wire of which nothing counts is not in `sessions` either; what counts of it is summed in its `home`, the agent's
session, if that is known. `folders` are those of the last sync (see `freshness`), `session_changes` spares exports what
has not changed (see `changes`). `reservations` belong to budgets, not to logs.

The columns of tables whose rows are values are in `columns`. A label is a combination of names that many records have
in common. A histogram is a text with one letter per request: the letter's code minus `LETTER` is the bucket of its
latency.
"""

from __future__ import annotations

VERSION = 14
"""`PRAGMA user_version`: to be raised when an older sessionlog can no longer read the file."""

APPLICATION = 0x5E5510C6
"""`PRAGMA application_id`, which marks a database as a ledger."""

QUARTER_NS = 900 * 1_000_000_000
"""Offsets of time zones are multiples of a quarter hour: days and hours of any zone consist of whole quarter hours."""

LETTER = 4096

HERE, GONE, ELSEWHERE, UNREADABLE = range(4)
"""Values of `files.missing`: the log exists; was deleted; is outside the places searched now; cannot be read."""

VANISHED = ":vanished"
"""The name, below the path of a log, under which responses that have vanished from it are kept (see `vanished`)."""

CHANGES = "CREATE TABLE session_changes (session_id INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT"
RESUMES = "CREATE TABLE resumes (file_id INTEGER PRIMARY KEY, state BLOB NOT NULL) STRICT"

NOTHING_LEFT = """s.on_wire_of IS NOT NULL AND s.counted AND NOT EXISTS (SELECT 1 FROM log_sessions t
    JOIN responses r ON r.file_id = t.file_id AND r.session_id = t.session_id WHERE t.session_id = s.id AND r.counts)"""
"""A condition on sessions: all of its requests were on the wire, and count in logs."""

VIEWS = (
    "CREATE VIEW records AS SELECT * FROM responses WHERE counts",
    """CREATE VIEW tools AS SELECT c.*, n.tool, n.server, n.agent, n.project
    FROM calls c JOIN names n ON n.id = c.name_id WHERE c.counts""",
    f"CREATE VIEW sessions AS SELECT * FROM all_sessions s WHERE NOT s.elsewhere AND NOT ({NOTHING_LEFT})",  # noqa: S608 - as above
)

WIRE_INDEX = "CREATE INDEX sessions_on_wire ON all_sessions(start_ns, last_ns) WHERE on_wire_of IS NOT NULL"

COPY_INDEXES = (
    "CREATE INDEX IF NOT EXISTS responses_by_family ON responses(family) WHERE family IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS responses_superseded ON responses(superseded_by) WHERE superseded_by IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS calls_by_key ON calls(key)",
    "CREATE INDEX IF NOT EXISTS calls_superseded ON calls(superseded_by) WHERE superseded_by IS NOT NULL",
)
"""Used by `reconcile` to find copies; created after the first logs are in, twice as fast as updating them meanwhile."""

INDEXES = (
    "CREATE INDEX IF NOT EXISTS log_sessions_by_session ON log_sessions(session_id)",
    "CREATE INDEX IF NOT EXISTS totals_by_session ON quarter_hours(session_id)",
    "CREATE INDEX IF NOT EXISTS limits_by_file ON limits(file_id)",
)
"""Created after the first `reconcile`."""

RUNNING_NS = 600 * 1_000_000_000
"""A session without an end is running while its last event is younger than ten minutes."""

FROM = "records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id"
"""The FROM clause of reports on single records."""


def status(now_ns: str) -> str:
    """Return an SQL expression of the status of a session `s` at a moment, which is an expression, too."""
    return f"""CASE WHEN s.end_status IS NOT NULL THEN s.end_status
                WHEN s.last_ns > {now_ns} - {RUNNING_NS} THEN 'running' ELSE 'unfinished' END"""
