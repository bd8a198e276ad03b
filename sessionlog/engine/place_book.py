"""PlaceBook: what machines have exported to a place, as a ledger that every report can query.

DuckDB reads the files and chooses what counts of all machines' copies (see `ledger.winners_sql`). The ledger's schema
are views on that: of sums, which are made once, and of single responses and calls, which each query reads from the
files. `place_sql` runs the reports' SQL on them. (Copying sums and sessions into SQLite took 40 % of a report's time.)

Almost all responses have no copies. So those that may have one are found first, by family, and only these go through
the rule, with its window functions, on few columns: it names the rows that do not count, and all others count as they
are. Only several best copies of one response are read again, and merged to one row.
"""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import duckdb

from sessionlog import files
from sessionlog.engine.place import Place, PlaceFile, open_place, pattern_of
from sessionlog.engine.place_sql import PlaceSQL, clamped_sum, quarter_of
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.names import UNKNOWN as UNKNOWN_NAME
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import Label, Name
from sessionlog.ledger.histogram import LOWEST
from sessionlog.ledger.parquet_schema import ADDED, EXPORTED, SCHEMA_VERSION, TABLES
from sessionlog.ledger.problems import MOST_NAMED
from sessionlog.ledger.quarter_hours import names_of_totals
from sessionlog.ledger.schema import LETTER
from sessionlog.ledger.storable import storable
from sessionlog.ledger.winners_sql import (
    MERGED_SESSION,
    best_copies,
    known_sessions,
    latest_rows,
    merged_copies,
    merged_sessions,
    winning_calls,
)
from sessionlog.ledger.winners_sql import RESPONSE as WINNING_RESPONSE

_T = TypeVar("_T")

_MEMORY, _MOST_THREADS = "256MB", 4  # each thread needs some 50 MB
_FILE = 1
"""The `file_id` of all responses."""
_NAMED_LISTS = 2
_VERSION_KEY = "sessionlog_schema"
_OF_VERSION = f"key = '{_VERSION_KEY}' AND value = '{SCHEMA_VERSION}'"

_CONTESTED = """
SELECT family FROM usage WHERE family IS NOT NULL GROUP BY family
HAVING count(*) > 1 OR bool_or(replaced OR superseded_by IS NOT NULL OR record IN (FROM revised))
"""
"""Families of which a row may not count."""
_ROW = ("filename", "file_row_number")
"""Names a row: of two machines with one id, two files may have the same."""
_RANKED = (*_ROW, "machine_id", "record", "revision", "state", "deleted", "replaced", "superseded_by", "family", "key",
    "copy_rank")  # fmt: skip
_CONTESTED_SESSIONS = """
SELECT session_key FROM exported_sessions GROUP BY session_key
HAVING count(*) > 1 OR bool_or(record IN (SELECT record FROM exported_sessions WHERE revision > 1 OR deleted))
"""
"""Sessions of which a row may not be the whole."""
_SINGLE_SESSIONS = f"""
SELECT {", ".join(MERGED_SESSION)} FROM exported_sessions WHERE session_key NOT IN (FROM contested_sessions)
"""  # noqa: S608 - names of the schema
_SESSION_COPIES = "SELECT * FROM exported_sessions WHERE session_key IN (FROM contested_sessions) OR deleted"
_COPIES = f"SELECT {', '.join(_RANKED)} FROM usage WHERE family IN (FROM contested) OR deleted"  # noqa: S608 - names of the schema
_BEST = "SELECT {}, key, count(*) OVER (PARTITION BY key) AS copies FROM ({})"
_LOSERS = f"SELECT {', '.join(_ROW)} FROM copies ANTI JOIN (FROM best WHERE copies = 1) USING ({', '.join(_ROW)})"  # noqa: S608 - as above
_TIED = f"SELECT usage.* FROM usage SEMI JOIN (FROM best WHERE copies > 1) USING ({', '.join(_ROW)})"  # noqa: S608 - as above
_WINNERS = f"""
CREATE TEMP VIEW winners AS SELECT {", ".join(WINNING_RESPONSE)} FROM usage
ANTI JOIN losers USING ({", ".join(_ROW)}) WHERE family IS NOT NULL
UNION ALL SELECT {", ".join(WINNING_RESPONSE)} FROM merged
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
_NO_PRICE = "(priced AND recorded_nano_usd IS NULL AND estimated_nano_usd IS NULL)"
_MEASURED = "(latency_ms >= 0 AND latency_ms < 'infinity'::DOUBLE)"
_TIMED = f"({_MEASURED} AND NOT failed)"


def _bucket(milliseconds: str, measured: str) -> str:
    """Return the expression of a latency's bucket, as `ledger.rows.bucket_of` computes it."""
    floor = f"greatest({LOWEST}, floor(ln({milliseconds}) / {math.log(1.02)!r}))"
    return f"CASE WHEN {measured} THEN CASE WHEN {milliseconds} > 0 THEN {floor} ELSE {LOWEST} END::INTEGER END"


_GENERATION_US = f"CASE WHEN {_TIMED} THEN least(trunc(latency_ms * 1000 + 0.5), 9e18)::BIGINT ELSE 0 END"
_LATER_SUMS = "".join(f", {clamped_sum(exported)} AS {name}" for name, exported in EXPORTED.items())
_CELLS = f"""
SELECT session_key AS session_id, {{names}}, {{time}} AS time_ns, min(time_ns) AS first_ns, max(time_ns) AS last_ns,
    {clamped_sum("requests")} AS requests, {clamped_sum("failed::INTEGER")} AS failed,
    {clamped_sum("input_tokens")} AS input, {clamped_sum("output_tokens")} AS output,
    {clamped_sum("cache_read_tokens")} AS cache_read, {clamped_sum("cache_write_tokens")} AS cache_write,
    {clamped_sum("reasoning_tokens")} AS reasoning, {clamped_sum("recorded_nano_usd")} AS cost_nano,
    {clamped_sum("estimated_nano_usd")} AS estimate_nano, max({_NO_PRICE}::INTEGER) AS unknown,
    {clamped_sum(f"CASE WHEN {_NO_PRICE} THEN requests ELSE 0 END")} AS unpriced,
    {clamped_sum(f"CASE WHEN {_TIMED} THEN output_tokens ELSE 0 END")} AS generated,
    {clamped_sum(_GENERATION_US)} AS generation_us, {clamped_sum("active_ms")} AS active_ms,
    string_agg(chr({_bucket("latency_ms", _TIMED)} + {LETTER}), '') AS latencies,
    {clamped_sum("saved_nano_usd")} AS saved_nano, max(price_list) AS price_list{_LATER_SUMS}
FROM winners GROUP BY session_key, {{names}}, {{time}}
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
"""Sums of records as `ledger.quarter_hours` has them."""
_RESPONSES = f"""
CREATE TEMP VIEW responses AS SELECT {_FILE} AS file_id, key AS n, session_key AS session_id, {{label}} AS label_id,
    1 AS counts, 1 AS chosen, key AS family, time_ns, requests, failed::INTEGER AS failed, input_tokens AS input,
    output_tokens AS output,
    cache_read_tokens AS cache_read, cache_write_tokens AS cache_write, reasoning_tokens AS reasoning,
    recorded_nano_usd AS cost_nano, estimated_nano_usd AS estimate_nano, saved_nano_usd AS saved_nano,
    priced::INTEGER AS priced, latency_ms, {_bucket("latency_ms", _TIMED)} AS latency_bucket, active_ms
    {"".join(f", {exported} AS {name}" for name, exported in EXPORTED.items())}
FROM winners
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
_SESSIONS = f"""
CREATE TEMP VIEW sessions AS SELECT session_key AS id, source, session, session_key::VARCHAR AS place, '' AS path,
    parent, 0 AS part, start_ns, last_ns, status AS end_status, project, harness, '{UNKNOWN_NAME}' AS route,
    duration_ms, '' AS prompt, '' AS error, '{{}}' AS metadata, turns, NULL::BIGINT AS last_turn_ns,
    counted::INTEGER AS counted, 0 AS archived, 0 AS rewritten, 0 AS elsewhere, NULL::VARCHAR AS on_wire_of
FROM whole_sessions WHERE NOT absorbed
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
"""A session's key is its place, too, as several may have one id."""
_ALL_SESSIONS = """
CREATE TEMP VIEW all_sessions AS SELECT session_key AS id, NULL::VARCHAR AS on_wire_of, NULL::BIGINT AS home
FROM whole_sessions
"""
"""What was on the wire counts in its agent's session already."""
_LOG_SESSIONS = (
    f"CREATE TEMP VIEW log_sessions AS SELECT {_FILE} AS file_id, session_key AS session_id FROM whole_sessions"  # noqa: S608 - as above
)
_STRAYS = """
INSERT INTO whole_sessions
SELECT session_key, min(source), min(session), '', min(time_ns), max(time_ns), NULL, min(project), 'unknown', NULL,
    NULL, true, false
FROM {rows} WHERE session_key IN ({keys} EXCEPT SELECT session_key FROM whole_sessions) GROUP BY session_key
"""
"""Sessions whose own row is not there, because its file is damaged for example."""
_CALLS = f"""
CREATE TEMP VIEW tools AS SELECT session_key AS session_id, {{name}} AS name_id, key, time_ns, finished, failed,
    duration_ms, {_bucket("duration_ms", _MEASURED.replace("latency_ms", "duration_ms"))} AS duration_bucket,
    output_bytes, {", ".join(Name._fields)}
FROM calls
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
_NO_LIMITS = """
CREATE TEMP TABLE limits (file_id BIGINT, source VARCHAR, name VARCHAR, time_ns BIGINT, used_percent DOUBLE,
    window_minutes DOUBLE, resets_ns BIGINT, plan VARCHAR);
CREATE TEMP TABLE files (id BIGINT, missing BIGINT)
"""
"""They are not exported."""
_TEXTS = ("source", "harness", "end_status")
"""The columns of sessions that conditions and keys call functions of text for."""


class _DamagedError(Exception):
    """Some files cannot be read: all has to be chosen again without them.

    Args:
        problems: Path, as in `PlaceFile.path`, → what is wrong.
    """

    def __init__(self, problems: dict[str, Problem]) -> None:
        super().__init__()
        self.problems = problems


def ask_places(
    paths: Sequence[str],
    fold: Callable[[Book], _T],
    *,
    now_ns: int,
    labels: Collection[str] = Label._fields,
    by_time: bool = True,
    by_machine: bool = True,
) -> _T:
    """Return what `fold` returns for a book of what machines have exported.

    Args:
        paths: The places; the same machine may be in several of them.
        fold: Makes a report.
        now_ns: The present.
        labels: The names of `Label` that its queries need; all others are `unknown`.
        by_time: Whether they need the time of what they sum.
        by_machine: Whether they need the machine.

    Raises:
        MissingExtra: A URL needs the extra `remote`, or the package of its protocol.
        LogNotReadable: A place cannot be listed, or DuckDB cannot read it, for want of disk space for example.
    """
    places = [open_place(path, now_ns) for path in paths]
    while True:
        book = PlaceBook(places, labels, by_time=by_time, by_machine=by_machine)
        try:
            return fold(book)
        except _DamagedError as error:
            for place in places:
                place.problems.extend(error.problems[file.path] for file in place.files if file.path in error.problems)
                place.files[:] = [file for file in place.files if file.path not in error.problems]
        finally:
            book.close()


class PlaceBook(Book):
    """A ledger in DuckDB with what places have.

    Args:
        places: The places.
        labels: As in `ask_places`.
        by_time: As in `ask_places`.
        by_machine: As in `ask_places`.
    """

    def __init__(
        self,
        places: Sequence[Place],
        labels: Collection[str] = Label._fields,
        *,
        by_time: bool = True,
        by_machine: bool = True,
    ) -> None:
        self.unrecognised = 0
        self.notes = [note for place in places for note in place.notes]
        self._found = [problem for place in places for problem in place.problems]
        self._files = [file for place in places for file in place.files]
        self._machines = _titles({machine: name for place in places for machine, name in place.names.items()})
        self._machine_of: dict[int, str] = {}
        self._names = [name for name in Label._fields if name in labels]
        self._by_time, self._by_machine = by_time, by_machine
        self._filled: set[str] = set()
        self._scratch = files.temporary_directory("sessionlog-place-")
        self._duckdb = duckdb.connect(
            config={
                "threads": str(min(_MOST_THREADS, os.cpu_count() or 1)), "memory_limit": _MEMORY,
                "temp_directory": self._scratch, "preserve_insertion_order": "false",
                "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
            }
        )  # fmt: skip
        self._sql = PlaceSQL(self._duckdb, self._domain)
        for place in places:
            if place.system is not None:
                self._duckdb.register_filesystem(place.system)

    @property
    def problem_count(self) -> int:
        """The number of files and manifests that could not be used."""
        return len(self._found)

    @property
    def problems(self) -> list[Problem]:
        """The first of them."""
        return self._found[:MOST_NAMED]

    @property
    def priced_from(self) -> str:
        """The price lists of estimates, the newest first."""
        rows = "cells" if "cells" in self._filled else "winners" if "winners" in self._filled else ""
        found = self._all(f"SELECT DISTINCT price_list FROM {rows} WHERE price_list IS NOT NULL") if rows else []  # noqa: S608 - names of tables
        lists = sorted((name for (name,) in found), reverse=True)
        named = ", ".join(lists[:_NAMED_LISTS])
        return f"{named} and {len(lists) - _NAMED_LISTS} older" if len(lists) > _NAMED_LISTS else named

    def machine_of(self, label_id: int) -> str:
        """Return the name of the machine whose records or calls have a label or name."""
        return self._machine_of.get(label_id, UNKNOWN_NAME)

    def define(self, name: str, function: Any) -> None:
        """Register a Python function of one argument for queries."""
        self._sql.define(name, function)

    def query(
        self, sql: str, parameters: Mapping[str, Any], make: Callable[[tuple[Any, ...]], Any] | None = None
    ) -> list[Any]:
        """Run one query, as in `Book`, after filling the tables that it reads."""
        self._guarded(lambda: self._fill_tables(sql))
        named = {name: storable(value) if isinstance(value, str) else value for name, value in parameters.items()}
        return self._guarded(lambda: self._sql.query(sql, named, make or tuple))

    def close(self) -> None:
        """Close the database, and delete what it had on disk."""
        self._duckdb.close()
        files.remove_directory(self._scratch)

    def _guarded(self, work: Callable[[], _T]) -> _T:
        """Return what `work` returns.

        Raises:
            _DamagedError: Files are damaged.
            LogNotReadable: DuckDB failed for another reason.
        """
        try:
            return work()
        except duckdb.Error as error:
            problems = {file.path: problem for file in self._files if (problem := self._problem_of(file)) is not None}
            if problems:
                raise _DamagedError(problems) from error
            raise LogNotReadable(f"DuckDB cannot read the exported files: {_first_line(error)}") from error

    def _fill_tables(self, sql: str) -> None:
        """Make the tables and views that a query reads."""
        self._fill("sessions", self._fill_sessions)
        if "quarter_hours" in sql:
            self._fill("cells", self._fill_quarter_hours)
        if "tools r" in sql:
            self._fill("calls", self._fill_calls)
        if "FROM limits" in sql:
            self._fill("limits", self._fill_limits)
        if "records r" in sql or "responses r" in sql:
            self._fill("winners", self._fill_responses)

    def _fill(self, what: str, fill: Callable[[], None]) -> None:
        if what not in self._filled:
            fill()
            self._filled.add(what)

    def _domain(self, kind: str, sql: str) -> str:
        """Return the statement of the arguments that functions may get in a query, as `PlaceSQL` needs it."""
        if kind == "label":
            return "SELECT id FROM names" if "tools r" in sql else "SELECT id FROM labels"
        if kind == "time":
            rows = "calls" if "tools r" in sql else "cells" if "cells" in self._filled and self._by_time else "winners"
            return f"SELECT DISTINCT {quarter_of('time_ns')} FROM {rows}"  # noqa: S608 - names of the schema
        table, names = ("names", Name._fields) if "tools r" in sql else ("labels", Label._fields)
        columns = [*((name, table) for name in names), *((name, "sessions") for name in _TEXTS)]
        texts = " UNION ".join(f"SELECT {name} FROM {rows} WHERE {name} IS NOT NULL" for name, rows in columns)  # noqa: S608 - as above
        return f"{texts} UNION SELECT unnest(['running', 'unfinished', 'unknown', 'built-in', '-', ''])"

    def _fill_sessions(self) -> None:
        """Choose which responses count, and merge the sessions of all machines."""
        for table in ("usage", "sessions"):
            self._read_table(table)
        self._run("revised", "SELECT DISTINCT record FROM usage WHERE revision > 1 OR deleted")
        self._run("contested", _CONTESTED)
        self._run("exported_sessions", "FROM session_files")
        self._run("contested_sessions", _CONTESTED_SESSIONS)
        latest = latest_rows(f"({_SESSION_COPIES})", tuple(TABLES["sessions"]))
        self._run("whole_sessions", f"{merged_sessions(f'({latest})')} UNION ALL {_SINGLE_SESSIONS}")
        self._run("known", known_sessions("whole_sessions"))
        self._run("copies", _COPIES)
        latest = latest_rows("copies", _RANKED)
        self._run("best", _BEST.format(", ".join(_ROW), best_copies(f"({latest})", "known")))
        self._run("losers", _LOSERS)
        self._run("merged", merged_copies(f"({_TIED})"))
        self._duckdb.execute(_WINNERS)
        for view in (_SESSIONS, _ALL_SESSIONS, _LOG_SESSIONS, _RESPONSES.format(label=self._label)):
            self._duckdb.execute(view)
        self._duckdb.execute("CREATE TEMP VIEW records AS FROM responses")

    def _fill_limits(self) -> None:
        self._duckdb.execute(_NO_LIMITS)

    def _fill_quarter_hours(self) -> None:
        time = quarter_of("time_ns") if self._by_time else "NULL::BIGINT"
        self._run("cells", _CELLS.format(names=", ".join(self._by), time=time))
        columns = (f"{self._label} AS label_id" if name == "label_id" else name for name in names_of_totals())
        self._duckdb.execute(f"CREATE TEMP VIEW quarter_hours AS SELECT {', '.join(columns)} FROM cells")  # noqa: S608 - names of the schema
        self._fill_labels("cells")
        self._duckdb.execute(_STRAYS.format(rows="winners", keys="SELECT session_id FROM cells"))

    def _fill_responses(self) -> None:
        if "cells" not in self._filled:
            self._fill_labels("winners")
            self._duckdb.execute(_STRAYS.format(rows="winners", keys="SELECT session_key FROM winners"))

    def _fill_calls(self) -> None:
        self._read_table("tools")
        self._run("exported_calls", latest_rows("tool_files", tuple(TABLES["tools"])))
        self._run("calls", winning_calls("exported_calls", "known"))
        machine = ", machine_id" if self._by_machine else ""
        number = f"(hash({', '.join(Name._fields)}{machine}) >> 1)::BIGINT"
        self._run("names", f"SELECT DISTINCT {number} AS id, {', '.join(Name._fields)} FROM calls")  # noqa: S608 - names of the schema, numbers, and quoted paths
        self._read_machines(f"SELECT DISTINCT {number} AS id{machine} FROM calls")  # noqa: S608 - names of the schema, numbers, and quoted paths
        self._duckdb.execute(_STRAYS.format(rows="calls", keys="SELECT session_key FROM calls"))
        self._duckdb.execute(_CALLS.format(name=number))

    def _fill_labels(self, table: str) -> None:
        unknown = f"{_quoted(UNKNOWN_NAME)} AS"
        shown = ", ".join(
            f"coalesce({name}, '') AS {name}" if name in self._names else f"{unknown} {name}" for name in Label._fields
        )
        self._run("labels", f"SELECT DISTINCT {self._label} AS id, {shown} FROM {table}")  # noqa: S608 - names of the schema, numbers, and quoted paths
        machine = ", machine_id" if self._by_machine else ""
        self._read_machines(f"SELECT DISTINCT {self._label} AS id{machine} FROM {table}")  # noqa: S608 - names of the schema, numbers, and quoted paths

    def _read_machines(self, labels: str) -> None:
        if self._by_machine:
            self._machine_of.update((label, self._machines.get(one, one)) for label, one in self._all(labels))

    @property
    def _by(self) -> list[str]:
        return [*self._names, *(["machine_id"] if self._by_machine else [])]

    @property
    def _label(self) -> str:
        """The expression of a label's number, the same in all tables."""
        return f"(hash({', '.join(self._by)}) >> 1)::BIGINT"

    def _read_table(self, table: str) -> None:
        """Make a view of a table's files.

        Raises:
            _DamagedError: Some are no exported files.
        """
        listed = [file for file in self._files if file.table == table]
        columns, name = TABLES[table], {"sessions": "session_files", "tools": "tool_files"}.get(table, table)
        if not listed:
            kinds = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            self._duckdb.execute(f"CREATE TABLE {name} ({kinds}, filename VARCHAR, file_row_number BIGINT)")
            return
        paths = ", ".join(_quoted(file.path) for file in listed)
        of_version = self._all(f"SELECT file_name FROM parquet_kv_metadata([{paths}]) WHERE {_OF_VERSION}")  # noqa: S608 - names of the schema, numbers, and quoted paths
        added = ADDED.get(table, frozenset())
        found = self._all(f"SELECT file_name, list(name) FROM parquet_schema([{paths}]) GROUP BY ALL ORDER BY ALL")  # noqa: S608 - as above
        if len(of_version) < len(listed) or any(columns.keys() - added - set(names) for _, names in found):
            raise duckdb.InvalidInputException("a file without our schema")
        alike: dict[frozenset[str], list[str]] = defaultdict(list)
        for path, names in found:
            alike[added - set(names)].append(pattern_of(path))
        parts = (_reading(some, columns, without) for without, some in alike.items())
        self._duckdb.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")

    def _problem_of(self, file: PlaceFile) -> Problem | None:
        """Return what is wrong with a file; None if all of it can be read."""
        path, columns = _quoted(file.path), TABLES[file.table]
        try:
            versions = self._all(f"SELECT value::VARCHAR FROM parquet_kv_metadata({path}) WHERE key = '{_VERSION_KEY}'")  # noqa: S608 - a quoted path
            if versions != [(str(SCHEMA_VERSION),)]:
                kind = "unknown_version" if versions else "unknown_format"
                detail = (
                    f"it has version {versions[0][0]} of the schema" if versions else "sessionlog has not written it"
                )
                return Problem(path=file.shown, kind=kind, detail=detail)
            read = f"read_parquet({path}, hive_partitioning = false)"
            kinds = dict(row[:2] for row in self._all(f"DESCRIBE SELECT * FROM {read}"))  # noqa: S608 - as above
            added = ADDED.get(file.table, frozenset())
            columns = {name: kind for name, kind in columns.items() if name in kinds or name not in added}
            odd = [name for name, kind in columns.items() if kinds.get(name) != kind]
            if odd:
                return Problem(path=file.shown, kind="unknown_format", detail=f"its column {odd[0]} is not as exported")
            self._all(f"SELECT bit_xor(hash({', '.join(columns)})) FROM {read}")  # noqa: S608 - as above
        except duckdb.Error as error:
            return Problem(path=file.shown, kind="unreadable", detail=f"it is damaged: {_first_line(error)}")
        return None

    def _run(self, name: str, select: str) -> None:
        self._duckdb.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {select}")

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._duckdb.execute(sql).fetchall()
        return found


def _titles(names: dict[str, str]) -> dict[str, str]:
    """Return machine's id → its name, with the id where several have one name."""
    several = {name for name, count in Counter(names.values()).items() if count > 1}
    return {machine: f"{name} ({machine})" if name in several else name for machine, name in names.items()}


def _reading(paths: Iterable[str], columns: Mapping[str, str], without: Collection[str]) -> str:
    """Return the statement that reads files which have the same columns: all but those in `without`.

    DuckDB does the same with `union_by_name`, and opens all files to plan each query.
    """
    shown = (f"NULL::{kind} AS {name}" if name in without else name for name, kind in columns.items())
    listed = ", ".join(map(_quoted, paths))
    options = "hive_partitioning = false, filename = true, file_row_number = true"
    return f"SELECT {', '.join([*shown, *_ROW])} FROM read_parquet([{listed}], {options})"  # noqa: S608 - names of the schema, and quoted paths


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
