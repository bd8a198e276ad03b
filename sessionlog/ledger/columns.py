"""Columns: every column of the ledger's tables, once, as a field of the table's row.

A field's type is its column's type, `| None` allows NULL, and a default is what the rows of an older ledger get when
the column is added. The words beside the type name what is derived from the column:

- `number`: what a response used. Of two copies of it the greater one gives these (see `copies`).
- `place`: where and when a response was. Of two copies the earlier one gives these.
- `sum`: a sum of it is kept per quarter hour (see `quarter_hours`); `tokens` and `money` are its units.
- `charged`: names that a log charges a response to; "" for none.
- `record`: as the record of a scan has it; these columns come last.
- `cost`: computed from the price list, and again when it changes.
- `exported`: in exported files, too, but for those that are older than the column, which have null for it.

Rows are named tuples: SQLite binds them as they are, and a report without news imports no msgspec for them.

Times are in nanoseconds since 1970 UTC, money in nano-dollars. `cost_nano` is the cost as recorded in the log,
`estimate_nano` the estimate for records without one; a record with neither is unpriced, unless it has nothing to price
(`priced = 0`). `saved_nano` is how much more it would cost without a cache, at list prices. `extra_nano` is the part of
a cost that is charged beside tokens: as recorded (`recorded_extra_nano`), else for searches, at list prices. `family`
and `key` are hashes (see `rows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

Number = Annotated[int, "number"]
Sum = Annotated[int, "number", "sum"]
Tokens = Annotated[int, "number", "sum", "tokens"]
PartOfTokens = Annotated[int, "number", "tokens"]
PartOfMoney = Annotated[int | None, "number", "money"]
Logged = Annotated[int, "number", "sum", "record", "exported"]
Milliseconds = Annotated[float | None, "number", "record"]
Cost = Annotated[int | None, "number", "sum", "money", "cost"]
Extra = Annotated[int | None, "number", "sum", "money", "cost", "exported"]
Place = Annotated[int, "place"]
PlaceSum = Annotated[int, "place", "sum", "record"]
PlaceTime = Annotated[int | None, "place"]
PlaceName = Annotated[str, "place"]
Charged = Annotated[str, "charged"]


class File(NamedTuple):
    """A log, and how far it was read; its `id` is None before it is stored."""

    id: Any
    path: Any
    source: str = ""
    parser: int = 0
    device: int = 0
    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    beside: str = ""
    settled: int = 0
    offset: int = 0
    line: int = 0
    head: str = ""
    print: str = ""
    prefix: str = ""
    missing: int = 0
    stamp: int = 0
    problems: int = 0
    named: str = ""


class Session(NamedTuple):
    """A session, merged from the facts of its logs."""

    id: int
    source: str
    session: str
    place: str
    path: str
    parent: str
    part: int
    start_ns: int | None
    last_ns: int | None
    end_status: str | None
    project: str
    harness: str
    route: str
    duration_ms: int | None
    prompt: str
    error: str
    metadata: str
    turns: int | None
    last_turn_ns: int | None
    counted: int
    archived: int
    elsewhere: int = 0
    on_wire_of: str | None = None
    home: int | None = None
    rewritten: int = 0


class Label(NamedTuple):
    """Names that many responses have in common."""

    provider: str
    model: str
    response_model: str
    project: PlaceName
    branch: PlaceName
    version: PlaceName
    agent: PlaceName
    granularity: str
    quality: str
    speed: str
    service_tier: str
    skill: Charged = ""
    plugin: Charged = ""
    mcp: Charged = ""
    region: str = ""
    kind: str = ""


class Response(NamedTuple):
    """A copy of a response in a log, or a row made of several."""

    file_id: Place
    n: int
    session_id: Place
    label_id: int
    family: int | None
    key: int | None
    copy_rank: int
    superseded_by: str | None
    counts: int
    time_ns: PlaceTime
    requests: Sum
    failed: Sum
    input: Tokens
    output: Tokens
    cache_read: Tokens
    cache_write: Tokens
    cache_write_1h: PartOfTokens
    reasoning: Tokens
    recorded_nano: PartOfMoney
    cost_nano: Cost
    estimate_nano: Cost
    saved_nano: Cost = None
    priced: Number = 1
    latency_bucket: int | None = None
    response_id: int | None = None
    summed: int = 0
    chosen: int = 1
    recorded_extra_nano: PartOfMoney = None
    extra_nano: Extra = None
    latency_ms: Milliseconds = None
    active_ms: PlaceSum = 0
    searches: Logged = 0


class Name(NamedTuple):
    """Names that many tool calls have in common."""

    tool: str
    server: str
    agent: str
    project: str


class Call(NamedTuple):
    """A copy of a tool call in a log."""

    file_id: int
    n: int
    session_id: int
    name_id: int
    key: int
    superseded_by: str | None
    counts: int
    time_ns: int | None
    finished: int
    failed: int
    duration_ms: float | None
    duration_bucket: int | None
    output_bytes: int


class Limit(NamedTuple):
    """A log's latest report on a rate limit of the provider."""

    file_id: int
    source: str
    name: str
    time_ns: int
    used_percent: Any
    window_minutes: Any | None
    resets_ns: int | None
    plan: str


class Facts(NamedTuple):
    """A log's facts about a session, as JSON (see `sessions`)."""

    file_id: int
    session_id: int
    n: int
    facts: str


TABLES: Mapping[str, type[tuple[Any, ...]]] = {
    "files": File,
    "all_sessions": Session,
    "labels": Label,
    "responses": Response,
    "names": Name,
    "calls": Call,
    "limits": Limit,
    "log_sessions": Facts,
}
"""Table → the type of its rows."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: Its name.
        type: SQLite's name of its type.
        is_nullable: Whether it may be NULL.
        words: What is derived from it (see above).
        default: SQL of what rows without it get; "" if none are.
    """

    name: str
    type: str
    is_nullable: bool
    words: tuple[str, ...]
    default: str

    @property
    def sql(self) -> str:
        """Its definition."""
        if self.name == "id":
            return "id INTEGER PRIMARY KEY"
        default = f" DEFAULT {self.default}" if self.default else ""
        return f"{self.name} {self.type}{'' if self.is_nullable else ' NOT NULL'}{default}"


def insert(table: str, names: Sequence[str]) -> str:
    """Return the statement that inserts or replaces one row with these columns."""
    return f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - names of the schema


_TYPES = {int: "INTEGER", float: "REAL", str: "TEXT", Any: "ANY"}

Row = tuple[Any, ...]
"""A row of one of these types."""


@cache
def columns_of(row: type[Row]) -> tuple[Column, ...]:
    """Return the columns of a table, in the order of its row."""
    defaults: dict[str, object] = getattr(row, "_field_defaults")  # noqa: B009 - of every named tuple
    return tuple(
        _column(name, hint, defaults.get(name, ...)) for name, hint in get_type_hints(row, include_extras=True).items()
    )


def _column(name: str, hint: Any, default: object) -> Column:
    words: tuple[str, ...] = getattr(hint, "__metadata__", ())
    kind = get_args(hint)[0] if words else hint
    options = set(get_args(kind)) or {kind}
    [plain] = options - {type(None)}
    is_nullable = type(None) in options
    sql = "" if default is ... or default is None else repr(default)
    return Column(name, _TYPES[plain], is_nullable, words, sql)


def names_of(row: type[Row], word: str) -> tuple[str, ...]:
    """Return the names of the columns that have a word."""
    return tuple(column.name for column in columns_of(row) if word in column.words)


def define(table: str, row: type[Row], *constraints: str, has_id: bool = False, options: str = "STRICT") -> str:
    """Return the statement that creates a table for rows of this type.

    Args:
        table: Its name.
        row: The type of its rows.
        constraints: Constraints of the table.
        has_id: The table has a number for each row, which is not in the row.
        options: The options of the table.
    """
    first = ["id INTEGER PRIMARY KEY"] if has_id else []
    columns = ",\n    ".join([*first, *(column.sql for column in columns_of(row)), *constraints])
    return f"CREATE TABLE {table} (\n    {columns}\n) {options}"
