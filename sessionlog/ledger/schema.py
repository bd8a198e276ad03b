"""The ledger's schema: how far each log was read, its rows, and which of these count.

The rows of every log are kept, whether they count or not, so that a log can be read again, replaced, deleted or
forgotten without reading others: `responses` and `calls` hold all copies, `counts` marks those that count, and the
views `records` and `tools` show these. `quarter_hours` are totals of records per session, label and quarter hour; they
are derived, as `all_sessions` is from the facts in `log_sessions`. A session is `elsewhere` if all its logs are outside
the places that are searched now: its rows do not count, and the view `sessions` leaves it out. `chosen` marks what
counts of copies; it counts unless a request on the wire is the same one (see `wire`): then a row made from both does,
with an `n` below `MADE`, `wire_matches` has the pair, and a session of which the wire's log has given all to agents'
sessions is `absorbed`, and not in `sessions` either. `variables`, `folders`
and `listings` are the snapshot of the last sync (see `freshness`), `session_changes` spares exports what has not
changed (see `changes`). `agents` describes the sources of that sync (see `agents`), and `current_prices` has what each
model costs now (see `current_prices`): reports without news read them in place of sources and the price list.
`reservations` belong to budgets, not to logs.

Money is in nano-dollars, time in nanoseconds since 1970 UTC. `cost_nano` is the cost as recorded in the log,
`estimate_nano` the estimate for records without one; a record with neither is unpriced, unless it has nothing to price
(`priced = 0`). `saved_nano` is how much more it would cost without a cache, at list prices. A label is a combination of
names that many records have in common. `family` and `key` are hashes (see `rows`). A histogram is a text with one
letter per request: the letter's code minus `LETTER` is the bucket of its latency.
"""

from __future__ import annotations

VERSION = 8
"""`PRAGMA user_version`: to be raised when an older sessionlog can no longer read the file."""

APPLICATION = 0x5E5510C6
"""`PRAGMA application_id`, which marks a database as a ledger."""

QUARTER_NS = 900 * 1_000_000_000
"""Offsets of time zones are multiples of a quarter hour: days and hours of any zone consist of whole quarter hours."""

LETTER = 4096

MADE = -(1 << 40)
"""Rows of `responses` that are made of a request on the wire have an `n` below this, merged copies one above it."""

HERE, GONE, ELSEWHERE, UNREADABLE = range(4)
"""Values of `files.missing`: the log exists; was deleted; is outside the places searched now; cannot be read."""

CHANGES = "CREATE TABLE session_changes (session_id INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT"
RESUMES = "CREATE TABLE resumes (file_id INTEGER PRIMARY KEY, state BLOB NOT NULL) STRICT"

KEPT = (
    """CREATE TABLE agents (
        n INTEGER PRIMARY KEY,
        source TEXT NOT NULL,
        title TEXT NOT NULL,
        places ANY NOT NULL,
        kept_days INTEGER,
        kept_by TEXT,
        caveat TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE current_prices (
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        input_usd REAL,
        output_usd REAL,
        source TEXT NOT NULL,
        until_ns INTEGER,
        PRIMARY KEY (provider, model)
    ) STRICT, WITHOUT ROWID""",
)
"""What reports without news need of sources and the price list."""

VIEWS = (
    "CREATE VIEW records AS SELECT * FROM responses WHERE counts",
    """CREATE VIEW tools AS SELECT c.*, n.tool, n.server, n.agent, n.project
    FROM calls c JOIN names n ON n.id = c.name_id
    WHERE c.counts AND c.session_id NOT IN (SELECT id FROM all_sessions WHERE absorbed)""",
    "CREATE VIEW sessions AS SELECT * FROM all_sessions WHERE NOT elsewhere AND NOT absorbed",
)

WIRE = (
    """CREATE TABLE wire_matches (
        wire_session INTEGER NOT NULL,
        file_id INTEGER NOT NULL,
        n INTEGER NOT NULL,
        session_id INTEGER NOT NULL,
        log_file INTEGER,
        log_n INTEGER,
        matched_by TEXT NOT NULL,
        made_file INTEGER NOT NULL,
        made_n INTEGER NOT NULL,
        PRIMARY KEY (wire_session, file_id, n)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX wire_matches_by_session ON wire_matches(session_id)",
    "CREATE INDEX sessions_on_wire ON all_sessions(start_ns, last_ns) WHERE on_wire_of IS NOT NULL",
    "CREATE INDEX sessions_absorbed ON all_sessions(id) WHERE absorbed",
)
"""A request on the wire (`file_id`, `n`), the session in which it counts, its row in the agent's log (NULL: it is only
on the wire), and the row that counts."""

SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE variables (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

CREATE TABLE folders (path ANY PRIMARY KEY, mtime_ns INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE listings (folder ANY NOT NULL, prefix TEXT NOT NULL, names ANY NOT NULL) STRICT;

CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path ANY NOT NULL UNIQUE,
    source TEXT NOT NULL,
    parser INTEGER NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL DEFAULT 0,
    beside TEXT NOT NULL,
    settled INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    line INTEGER NOT NULL,
    head TEXT NOT NULL,
    print TEXT NOT NULL,
    prefix TEXT NOT NULL DEFAULT '',
    missing INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    problems INTEGER NOT NULL,
    named TEXT NOT NULL,
    checksum TEXT NOT NULL DEFAULT ''
) STRICT;

{RESUMES};

{CHANGES};

CREATE TABLE log_sessions (
    file_id INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    facts TEXT NOT NULL,
    PRIMARY KEY (file_id, session_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE all_sessions (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    session TEXT NOT NULL,
    place TEXT NOT NULL,
    path TEXT NOT NULL,
    parent TEXT NOT NULL,
    part INTEGER NOT NULL,
    start_ns INTEGER,
    last_ns INTEGER,
    end_status TEXT,
    project TEXT NOT NULL,
    harness TEXT NOT NULL,
    route TEXT NOT NULL,
    duration_ms INTEGER,
    prompt TEXT NOT NULL,
    error TEXT NOT NULL,
    metadata TEXT NOT NULL,
    turns INTEGER,
    last_turn_ns INTEGER,
    counted INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    elsewhere INTEGER NOT NULL DEFAULT 0,
    on_wire_of TEXT,
    absorbed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (source, session, place)
) STRICT;

CREATE TABLE labels (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    response_model TEXT NOT NULL,
    project TEXT NOT NULL,
    branch TEXT NOT NULL,
    version TEXT NOT NULL,
    agent TEXT NOT NULL,
    granularity TEXT NOT NULL,
    quality TEXT NOT NULL,
    speed TEXT NOT NULL,
    service_tier TEXT NOT NULL,
    skill TEXT NOT NULL DEFAULT '',
    plugin TEXT NOT NULL DEFAULT '',
    mcp TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE responses (
    file_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    label_id INTEGER NOT NULL,
    family INTEGER,
    key INTEGER,
    copy_rank INTEGER NOT NULL,
    superseded_by TEXT,
    counts INTEGER NOT NULL,
    time_ns INTEGER,
    requests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    recorded_nano INTEGER,
    cost_nano INTEGER,
    estimate_nano INTEGER,
    saved_nano INTEGER,
    priced INTEGER NOT NULL,
    latency_ms REAL,
    latency_bucket INTEGER,
    active_ms INTEGER NOT NULL,
    response_id INTEGER,
    summed INTEGER NOT NULL DEFAULT 0,
    chosen INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (file_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    server TEXT NOT NULL,
    agent TEXT NOT NULL,
    project TEXT NOT NULL
) STRICT;

CREATE TABLE calls (
    file_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    name_id INTEGER NOT NULL,
    key INTEGER NOT NULL,
    superseded_by TEXT,
    counts INTEGER NOT NULL,
    time_ns INTEGER,
    finished INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    duration_ms REAL,
    duration_bucket INTEGER,
    output_bytes INTEGER NOT NULL,
    PRIMARY KEY (file_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE limits (
    file_id INTEGER NOT NULL,
    source TEXT NOT NULL,
    name TEXT NOT NULL,
    time_ns INTEGER NOT NULL,
    used_percent ANY NOT NULL,
    window_minutes ANY,
    resets_ns INTEGER,
    plan TEXT NOT NULL
) STRICT;

CREATE TABLE quarter_hours (
    session_id INTEGER NOT NULL,
    label_id INTEGER NOT NULL,
    time_ns INTEGER,
    first_ns INTEGER,
    last_ns INTEGER,
    requests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost_nano INTEGER,
    estimate_nano INTEGER,
    unknown INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    generated INTEGER NOT NULL,
    generation_us INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
    latencies TEXT,
    saved_nano INTEGER
) STRICT;

CREATE TABLE reservations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    budget TEXT NOT NULL,
    session TEXT NOT NULL,
    amount INTEGER NOT NULL,
    boot TEXT NOT NULL,
    boot_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    after_ns INTEGER NOT NULL
) STRICT;

{"; ".join((*KEPT, *VIEWS, *WIRE))};
"""

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

SESSION = (
    "id", "source", "session", "place", "path", "parent", "part", "start_ns", "last_ns", "end_status", "project",
    "harness", "route", "duration_ms", "prompt", "error", "metadata", "turns", "last_turn_ns", "counted",
    "archived", "elsewhere", "on_wire_of", "absorbed",
)  # fmt: skip
ATTRIBUTION = ("skill", "plugin", "mcp")
"""What a log charges a response to; "" for none."""

LABEL = (
    "provider", "model", "response_model", "project", "branch", "version", "agent", "granularity", "quality", "speed",
    "service_tier", *ATTRIBUTION,
)  # fmt: skip
NAME = ("tool", "server", "agent", "project")
RESPONSE = (
    "file_id", "n", "session_id", "label_id", "family", "key", "copy_rank", "superseded_by", "counts", "time_ns",
    "requests", "failed", "input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning",
    "recorded_nano", "cost_nano", "estimate_nano", "saved_nano", "priced", "latency_ms", "latency_bucket", "active_ms",
    "response_id", "summed", "chosen",
)  # fmt: skip
CALL = (
    "file_id", "n", "session_id", "name_id", "key", "superseded_by", "counts", "time_ns", "finished", "failed",
    "duration_ms", "duration_bucket", "output_bytes",
)  # fmt: skip
LIMIT = ("file_id", "source", "name", "time_ns", "used_percent", "window_minutes", "resets_ns", "plan")
FILE = (
    "path", "source", "parser", "device", "inode", "size", "mtime_ns", "ctime_ns", "beside", "settled", "offset",
    "line", "head", "print", "prefix", "missing", "stamp", "problems", "named", "checksum",
)  # fmt: skip
"""Columns in the order in which rows are written."""

RUNNING_NS = 600 * 1_000_000_000
"""A session without an end is running while its last event is younger than ten minutes."""

FROM = "records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id"
"""The FROM clause of reports on single records."""


def status(now_ns: str) -> str:
    """Return an SQL expression of the status of a session `s` at a moment, which is an expression, too."""
    return f"""CASE WHEN s.end_status IS NOT NULL THEN s.end_status
                WHEN s.last_ns > {now_ns} - {RUNNING_NS} THEN 'running' ELSE 'unfinished' END"""


def insert(table: str, columns: tuple[str, ...]) -> str:
    """Return the statement that inserts or replaces one row."""
    return f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - names of the schema
