"""Tables: make those of a new ledger, and bring those of an older one up to this version in place."""

from __future__ import annotations

from sessionlog.ledger.columns import (
    TABLES,
    Call,
    Facts,
    File,
    Label,
    Limit,
    Name,
    Response,
    Session,
    columns_of,
    define,
)  # fmt: skip
from sessionlog.ledger.quarter_hours import define_sums, define_totals
from sessionlog.ledger.schema import APPLICATION, CHANGES, RESUMES, VERSION, VIEWS, WIRE_INDEX
from sessionlog.ledger.trust import version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

ROW_TABLES = (
    define("log_sessions", Facts, "PRIMARY KEY (file_id, session_id, n)", options="STRICT, WITHOUT ROWID"),
    define("all_sessions", Session, "UNIQUE (source, session, place)"),
    define("labels", Label, has_id=True),
    define("responses", Response, "PRIMARY KEY (file_id, n)", options="STRICT, WITHOUT ROWID"),
    define("names", Name, has_id=True),
    define("calls", Call, "PRIMARY KEY (file_id, n)", options="STRICT, WITHOUT ROWID"),
)
"""The tables of the rows of logs, which a file that is handed over to a ledger has, too."""

_FROM_1 = (
    "DROP INDEX IF EXISTS responses_told",
    "DROP INDEX IF EXISTS calls_told",
    "DROP INDEX IF EXISTS told_by_session",
    "DROP INDEX IF EXISTS cells_by_session",
    "ALTER TABLE told RENAME TO log_sessions",
    "ALTER TABLE cells RENAME TO quarter_hours",
    "ALTER TABLE sessions RENAME TO all_sessions",
    "ALTER TABLE all_sessions ADD COLUMN elsewhere INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE responses RENAME COLUMN standing TO copy_rank",
    "UPDATE responses SET copy_rank = copy_rank - 1 WHERE copy_rank < 2",  # a rank has come between 1 and 2
    "ALTER TABLE responses RENAME COLUMN told_by TO superseded_by",
    "ALTER TABLE calls RENAME COLUMN told_by TO superseded_by",
    "DROP TABLE resumes",  # logs that have grown are read again
    RESUMES,
    "DELETE FROM meta WHERE name IN ('surroundings', 'commit')",
    "INSERT OR REPLACE INTO meta VALUES ('unreconciled', 'yes')",
)
_FROM_2 = (
    "ALTER TABLE files ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT 0",  # so every log is read again
    "ALTER TABLE files ADD COLUMN prefix TEXT NOT NULL DEFAULT ''",
)
_FROM_3 = (
    "ALTER TABLE responses ADD COLUMN saved_nano INTEGER",
    "ALTER TABLE quarter_hours ADD COLUMN saved_nano INTEGER",
    "UPDATE meta SET value = '' WHERE name = 'prices'",  # so everything is priced again
)
_FROM_4 = (
    "ALTER TABLE all_sessions ADD COLUMN on_wire_of TEXT",
    "ALTER TABLE responses ADD COLUMN response_id INTEGER",
    "ALTER TABLE responses ADD COLUMN summed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE responses ADD COLUMN chosen INTEGER NOT NULL DEFAULT 1",
    "UPDATE responses SET chosen = 0 WHERE NOT counts",
    "DELETE FROM meta WHERE name = 'snapshot'",  # so that logs which have not changed are read by the present parsers
)
_FROM_5 = (CHANGES,)
_FROM_10 = (
    "DROP TABLE IF EXISTS wire_matches",
    "DROP INDEX IF EXISTS sessions_absorbed",
    "DROP INDEX IF EXISTS sessions_on_wire",
    "DELETE FROM responses WHERE n <= -(1 << 40)",  # rows that were made of a log and the wire
    WIRE_INDEX,
)
_FROM_12 = tuple(f"DROP TABLE IF EXISTS {table}" for table in ("variables", "listings", "agents", "current_prices"))
_DROPPED = {"absorbed", "checksum"}
"""Columns that older versions have."""


def tables() -> tuple[str, ...]:
    """Return the statements that make the tables, views and indexes of an empty ledger."""
    return (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE folders (path ANY PRIMARY KEY, mtime_ns INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        define("files", File, "UNIQUE (path)"),
        RESUMES,
        CHANGES,
        *ROW_TABLES,
        define("limits", Limit),
        define_totals(),
        """CREATE TABLE reservations (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            budget TEXT NOT NULL,
            session TEXT NOT NULL,
            amount INTEGER NOT NULL,
            boot TEXT NOT NULL,
            boot_ns INTEGER NOT NULL,
            wall_ns INTEGER NOT NULL,
            after_ns INTEGER NOT NULL
        ) STRICT""",
        *VIEWS,
        WIRE_INDEX,
        f"PRAGMA application_id = {APPLICATION}",
        f"PRAGMA user_version = {VERSION}",
    )


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables of an older version up to date, in the caller's transaction; derived values stay as they are."""
    version = version_of(connection)
    steps = (
        (2, _FROM_1), (3, _FROM_2), (4, _FROM_3), (5, _FROM_4), (6, _FROM_5), (11, _FROM_10), (13, _FROM_12),
    )  # fmt: skip
    for (view,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
        connection.execute(f"DROP VIEW {view}")
    for older_than, statements in steps:
        for statement in statements if version < older_than else ():
            connection.execute(statement)
    _fit_columns(connection)
    for view in VIEWS:
        connection.execute(view)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _fit_columns(connection: sqlite3.Connection) -> None:
    """Add the columns that the tables of an older version do not have, and drop those without use.

    Rows get the defaults. Logs that have not changed are read again where the present parser has another version.
    """
    is_complete = True
    wanted = {table: [column.sql for column in columns_of(row)] for table, row in TABLES.items()}
    for table, columns in {**wanted, "quarter_hours": define_sums()}.items():
        known = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
        for column in columns:
            if column.partition(" ")[0] not in known:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
                is_complete = False
        for name in known & _DROPPED:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
    if not is_complete:
        connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
