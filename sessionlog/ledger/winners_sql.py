"""Winners in SQL: the rule of `copies` for exported rows, with the columns of the export, for DuckDB.

A place has the rows of many machines, with all copies and all revisions. Here are the statements that choose what
counts; the tests prove that they choose what `copies` does. Other engines with window functions can run them, too; most
call `unnest` by another name, as Spark does `explode`.

A tie of two copies goes to the one that counts on its own machine, then to the order of values, machines and records:
paths, which decide it in a ledger, are not exported.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessionlog.ledger.columns import Label
from sessionlog.ledger.parquet_schema import EXPORTED

_OF_PLACE = (
    "machine_id", "source", "session", "session_key", "time_ns", "active_ms", "project", "branch", "version", "agent",
)  # fmt: skip
_NAMES_OF_NUMBERS = tuple(name for name in Label._fields if name not in _OF_PLACE)
_OF_NUMBERS = (
    "requests", "failed", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "cache_write_1h_tokens", "reasoning_tokens", "recorded_nano_usd", "estimated_nano_usd", "saved_nano_usd",
    "price_list", "priced", "latency_ms", *EXPORTED.values(), *_NAMES_OF_NUMBERS,
)  # fmt: skip

RESPONSE = ("key", *_OF_PLACE, *_OF_NUMBERS)
"""The columns of `winning_responses`."""

CALL = (
    "key", "machine_id", "source", "session", "session_key", "time_ns", "finished", "failed", "duration_ms",
    "output_bytes", "tool", "server", "agent", "project",
)  # fmt: skip
"""The columns of `winning_calls`."""

MERGED_SESSION = (
    "session_key", "source", "session", "parent", "start_ns", "last_ns", "status", "project", "harness", "duration_ms",
    "turns", "counted", "absorbed",
)  # fmt: skip
"""The columns of `merged_sessions`, which of a session's single row are those of the row."""

_TOTAL = " + ".join(
    f"CAST({name} AS DECIMAL(38, 0))"
    for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
)
_LATER_MONEY = "".join(f"{name} DESC NULLS LAST, " for name in EXPORTED.values() if name.endswith("_usd"))
_LATER_COUNTS = "".join(f"{name} DESC NULLS LAST, " for name in EXPORTED.values() if not name.endswith("_usd"))
_HEAVIEST = f"""output_tokens DESC, {_TOTAL} DESC, input_tokens DESC, cache_read_tokens DESC, cache_write_tokens DESC,
    cache_write_1h_tokens DESC, reasoning_tokens DESC, recorded_nano_usd DESC NULLS LAST,
    estimated_nano_usd DESC NULLS LAST, saved_nano_usd DESC NULLS LAST, {_LATER_MONEY}requests DESC, failed DESC,
    priced DESC, latency_ms DESC NULLS LAST, {_LATER_COUNTS}
    {", ".join(f"{name} DESC NULLS LAST" for name in _NAMES_OF_NUMBERS)}, price_list DESC NULLS LAST"""
_EARLIEST = """time_ns NULLS LAST, counts DESC, active_ms DESC, source, session, project, branch, version, agent,
    machine_id, record"""
_FIRST_CALL = """finished DESC, time_ns NULLS LAST, counts DESC, source, session, tool, server, agent, project, failed,
    duration_ms NULLS LAST, output_bytes, machine_id, record"""


def latest_rows(rows: str, columns: Sequence[str]) -> str:
    """Return the statement of the latest revision of each row of a relation, without those that are deleted."""
    return f"""SELECT {", ".join(columns)} FROM (
    SELECT *, row_number() OVER (PARTITION BY machine_id, record ORDER BY revision DESC, state DESC) AS age FROM {rows}
) AS revisions WHERE age = 1 AND NOT deleted"""  # noqa: S608 - names of the schema


def known_sessions(sessions: str) -> str:
    """Return the statement of the sessions that may supersede others', as `source:session` in the column `name`."""
    return f"SELECT DISTINCT concat(source, ':', session) AS name FROM {sessions}"  # noqa: S608 - names of the schema


def winning_responses(copies: str, known: str) -> str:
    """Return the statement of the responses that count, each once, with the columns `RESPONSE`.

    Args:
        copies: A relation with the latest rows of the table `usage`. Whether a copy counts depends on all rows of its
            family and of its key, and on no others.
        known: A relation with `known_sessions`.
    """
    return merged_copies(f"({best_copies(copies, known)})")


def best_copies(copies: str, known: str) -> str:
    """Return the statement of the copies, several of a key perhaps, of which `merged_copies` makes a response.

    Args:
        copies: A relation as of `winning_responses`, of whose columns `family`, `key`, `copy_rank`, `replaced` and
            `superseded_by` are enough.
        known: A relation with `known_sessions`.
    """
    return f"""WITH ranked AS (
    SELECT *, max(copy_rank) OVER (PARTITION BY key) AS key_rank,
        max(copy_rank) OVER (PARTITION BY family) AS family_rank,
        bool_or(replaced) OVER (PARTITION BY key) AS is_replaced
    FROM {copies}
), best AS (
    SELECT * FROM ranked
    WHERE copy_rank = key_rank AND NOT is_replaced AND (family_rank < 1 OR copy_rank = family_rank)
), superseded AS (
    SELECT DISTINCT key FROM (SELECT key, unnest(superseded_by) AS name FROM best) AS listed
    WHERE name IN (SELECT name FROM {known})
)
SELECT * FROM best WHERE key NOT IN (SELECT key FROM superseded)"""  # noqa: S608 - names of the schema


def merged_copies(best: str) -> str:
    """Return the statement of one response for each key of `best_copies`, with the columns `RESPONSE`.

    A single copy is the response as it is.

    Args:
        best: A relation with all columns of `best_copies`.
    """
    columns = ", ".join(
        ["place.key", *(f"place.{name}" for name in _OF_PLACE), *(f"numbers.{name}" for name in _OF_NUMBERS)]
    )
    return f"""WITH ordered AS (
    SELECT *, row_number() OVER (PARTITION BY key ORDER BY {_HEAVIEST}) AS by_weight,
        row_number() OVER (PARTITION BY key ORDER BY {_EARLIEST}) AS by_age
    FROM {best} AS best
)
SELECT {columns} FROM ordered AS place JOIN ordered AS numbers ON numbers.key = place.key
WHERE place.by_age = 1 AND numbers.by_weight = 1"""  # noqa: S608 - names of the schema


def winning_calls(copies: str, known: str) -> str:
    """Return the statement of the tool calls that count, each once, with the columns `CALL`.

    Args:
        copies: A relation with the latest rows of the table `tools`; all copies of a call have one key.
        known: A relation with `known_sessions`.
    """
    return f"""WITH superseded AS (
    SELECT DISTINCT key FROM (SELECT key, unnest(superseded_by) AS name FROM {copies}) AS listed
    WHERE name IN (SELECT name FROM {known})
), ordered AS (
    SELECT *, row_number() OVER (PARTITION BY key ORDER BY {_FIRST_CALL}) AS by_age
    FROM {copies} WHERE key NOT IN (SELECT key FROM superseded)
)
SELECT {", ".join(CALL)} FROM ordered WHERE by_age = 1"""  # noqa: S608 - names of the schema


def merged_sessions(sessions: str) -> str:
    """Return the statement of the sessions of all machines, each once, with the columns that a ledger has, too.

    As in `sessions.merge_sessions`: the machine whose main log is the latest has a session's end, the one with the
    earliest its beginning; machines that have only logs of its sub-agents extend its times.

    Args:
        sessions: A relation with the latest rows of the table `sessions`.
    """
    first = "ORDER BY start_of_main NULLS LAST, last_of_main DESC NULLS LAST, machine_id, record"
    last = "ORDER BY last_of_main DESC NULLS LAST, status NULLS LAST, machine_id, record"
    return f"""WITH timed AS (
    SELECT *, min(start_ns) OVER ({_SAME}) AS first_ns, max(last_ns) OVER ({_SAME}) AS final_ns,
        CASE WHEN COALESCE(part, true) THEN start_ns ELSE main_start_ns END AS start_of_main,
        CASE WHEN COALESCE(part, true) THEN last_ns ELSE main_last_ns END AS last_of_main,
        COALESCE(part, false) AND NOT bool_and(COALESCE(part, false)) OVER ({_SAME}) AS has_main_elsewhere
    FROM {sessions}
), ordered AS (
    SELECT *, row_number() OVER ({_SAME} {first}) AS by_start, row_number() OVER ({_SAME} {last}) AS by_end
    FROM timed WHERE NOT has_main_elsewhere
)
SELECT session_key, min(source) AS source, min(session) AS session,
    {_first_of("parent", "NULLIF(parent, '')")}, min(first_ns) AS start_ns, max(final_ns) AS last_ns,
    max(CASE WHEN by_end = 1 THEN status END) AS status,
    {_first_of("project", _KNOWN.format("project"))},
    {_first_of("harness", _KNOWN.format("harness"))},
    max(CASE WHEN by_end = 1 THEN duration_ms END) AS duration_ms,
    max(turns) AS turns, bool_or(counted) AS counted, bool_or(absorbed) AS absorbed
FROM ordered GROUP BY session_key"""  # noqa: S608 - names of the schema


_SAME = "PARTITION BY session_key"
_KNOWN = "NULLIF(NULLIF({}, ''), 'unknown')"


def _first_of(name: str, known: str) -> str:
    """Return the expression of a column's first known value, by start; if none is known, of any."""
    return f"COALESCE(min_by({known}, CASE WHEN {known} IS NOT NULL THEN by_start END), max({name})) AS {name}"
