"""PlaceBook: what machines have exported to a place, as a ledger in memory that every report can query.

DuckDB reads the files, chooses what counts of all machines' copies (see `ledger.winners_sql`), and sums it to what the
ledger's schema has: sessions, labels and quarter hours. Single responses and calls are many, so a table of these is
filled when a query first needs it, and only as far as it does.

Almost all responses have no copies. So those that may have one are found first, by family, and only these go through
the rule, with its window functions; the others count as they are.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

import duckdb

from sessionlog import files
from sessionlog.engine.place import Place, PlaceFile, open_place
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.names import UNKNOWN as UNKNOWN_NAME
from sessionlog.ledger.book import make_tables, open_in_memory
from sessionlog.ledger.histogram import LOWEST
from sessionlog.ledger.parquet_schema import ADDED, SCHEMA_VERSION, TABLES
from sessionlog.ledger.quarter_hours import TOTAL, UNKNOWN
from sessionlog.ledger.reading import MOST_NAMED, ReadBook
from sessionlog.ledger.schema import CALL, LABEL, LETTER, NAME, QUARTER_NS, RESPONSE, SESSION, insert
from sessionlog.ledger.statements import write
from sessionlog.ledger.winners_sql import RESPONSE as WINNING_RESPONSE
from sessionlog.ledger.winners_sql import (
    known_sessions,
    latest_rows,
    merged_sessions,
    winning_calls,
    winning_responses,
)

_T = TypeVar("_T")

_MEMORY, _MOST_THREADS = "256MB", 4  # each thread needs some 50 MB
_PAGE = 8192  # rows that are in memory at once
_SINGLE, _GROUPED = 1, 2
"""Values of `file_id`: single responses, and responses without a price that are summed."""

_NAMED_LISTS = 2
_VERSION_KEY = "sessionlog_schema"
_OF_VERSION = f"key = '{_VERSION_KEY}' AND value = '{SCHEMA_VERSION}'"

_CONTESTED = """
SELECT family FROM usage WHERE family IS NOT NULL GROUP BY family
HAVING count(*) > 1 OR bool_or(replaced OR superseded_by IS NOT NULL OR record IN (FROM revised))
"""
"""Families of which a row may not count."""
_COPIES = "SELECT * FROM usage WHERE family IN (FROM contested) OR deleted"
_RESPONSES_VIEW = f"""
CREATE TEMP VIEW responses AS SELECT {", ".join(WINNING_RESPONSE)} FROM usage
WHERE family IS NOT NULL AND family NOT IN (FROM contested)
UNION ALL SELECT {", ".join(WINNING_RESPONSE)} FROM chosen
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
_NO_PRICE = "(priced AND recorded_nano_usd IS NULL AND estimated_nano_usd IS NULL)"
_MEASURED = "(latency_ms >= 0 AND latency_ms < 'infinity'::DOUBLE)"
_TIMED = f"({_MEASURED} AND NOT failed)"


def _bucket(milliseconds: str, measured: str) -> str:
    """Return the expression of a latency's bucket, as `ledger.rows.bucket_of` computes it."""
    floor = f"greatest({LOWEST}, floor(ln({milliseconds}) / {math.log(1.02)!r}))"
    return f"CASE WHEN {measured} THEN CASE WHEN {milliseconds} > 0 THEN {floor} ELSE {LOWEST} END::INTEGER END"


_MOST = (2**63 - 1) // QUARTER_NS * QUARTER_NS - QUARTER_NS
_TIME = f"(CASE WHEN time_ns < -{_MOST} THEN -{_MOST} ELSE time_ns END)"  # rounding down must not overflow 64 bits
_QUARTER = f"{_TIME} - (({_TIME} % {QUARTER_NS}) + {QUARTER_NS}) % {QUARTER_NS}"
_HAS_TOKENS = "(input_tokens > 0 OR output_tokens > 0 OR cache_read_tokens > 0 OR cache_write_tokens > 0)"


def _sum(expression: str) -> str:
    """Return the expression of a sum, clamped to 64 bits, which also costs a tenth of DuckDB's larger integers."""
    limits = f"greatest(least(sum({expression}), {2**63 - 1}), -{2**63 - 1})::BIGINT"
    return f"CASE WHEN sum({expression}) IS NOT NULL THEN {limits} END"  # both functions ignore nulls


_CELLS = f"""
SELECT session_key, {{names}}, {{time}} AS quarter_ns, min(time_ns), max(time_ns), {_sum("requests")},
    {_sum("failed::INTEGER")}, {_sum("input_tokens")}, {_sum("output_tokens")}, {_sum("cache_read_tokens")},
    {_sum("cache_write_tokens")}, {_sum("reasoning_tokens")}, {_sum("recorded_nano_usd")},
    {_sum("estimated_nano_usd")}, max({_NO_PRICE}::INTEGER), {_sum(f"CASE WHEN {_NO_PRICE} THEN requests ELSE 0 END")},
    {_sum(f"CASE WHEN {_TIMED} THEN output_tokens ELSE 0 END")},
    {_sum(f"CASE WHEN {_TIMED} THEN least(trunc(latency_ms * 1000 + 0.5), 9e18)::BIGINT ELSE 0 END")},
    {_sum("active_ms")}, string_agg(chr({_bucket("latency_ms", _TIMED)} + {LETTER}), ''), {_sum("saved_nano_usd")},
    max(price_list) AS price_list, bool_or({_NO_PRICE} AND {_HAS_TOKENS}) AS has_unpriced,
    bool_or({_NO_PRICE} AND NOT {_HAS_TOKENS}) AS has_empty
FROM responses GROUP BY ALL
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
"""Sums of records as `ledger.quarter_hours` has them, and what else a report needs of the records in them."""
_OF_CELLS = ("price_list", "has_unpriced", "has_empty")
_RESPONSES = f"""
SELECT {_SINGLE}, row_number() OVER () + {{count}}, session_key, {{label}}, NULL, NULL, 0, NULL, 1, time_ns, requests,
    failed::INTEGER, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens,
    reasoning_tokens, recorded_nano_usd, recorded_nano_usd, estimated_nano_usd, saved_nano_usd, priced::INTEGER,
    latency_ms, {_bucket("latency_ms", _TIMED)}, active_ms, NULL, 0, 1
FROM single
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
_WITHOUT_PRICE = f"""
SELECT {_GROUPED}, row_number() OVER () + {{count}}, session_key, {{label}}, NULL, NULL, 0, NULL, 1, time_ns, 0, 0,
    has_tokens::INTEGER, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1, NULL, NULL, 0, NULL, 0, 1
FROM grouped
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
_SESSIONS = f"""
INSERT INTO all_sessions ({", ".join(SESSION)}) VALUES (?1, ?2, ?3, ?1, '', ?4, 0, ?5, ?6, ?7, ?8, ?9, '{UNKNOWN_NAME}',
    ?10, '', '', '{{}}', ?11, NULL, ?12, 0, 0, NULL, ?13)
"""  # noqa: S608 - names of the schema, numbers, and quoted paths
"""Inserts what `merged_sessions` has; a session's key is its place, too, as several may have one id."""
_STRAYS = """
SELECT session_key, min(source), min(session), '', min(time_ns), max(time_ns), NULL, min(project), 'unknown', NULL,
    NULL, true, false
FROM {rows} WHERE session_key IN ({keys} EXCEPT SELECT session_key FROM sessions) GROUP BY session_key
"""
"""Sessions whose own row is not there, because its file is damaged for example."""
_CALLS = f"""
SELECT {_SINGLE}, row_number() OVER (), session_key, {{name}}, key, NULL, 1, time_ns, finished::INTEGER,
    failed::INTEGER, duration_ms, {_bucket("duration_ms", _MEASURED.replace("latency_ms", "duration_ms"))}, output_bytes
FROM calls
"""  # noqa: S608 - names of the schema, numbers, and quoted paths


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
    fold: Callable[[ReadBook], _T],
    *,
    now_ns: int,
    labels: Collection[str] = LABEL,
    by_time: bool = True,
    by_machine: bool = True,
) -> _T:
    """Return what `fold` returns for a book of what machines have exported.

    Args:
        paths: The places; the same machine may be in several of them.
        fold: Makes a report.
        now_ns: The present.
        labels: The names of `LABEL` that its queries need; all others are `unknown`.
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


class PlaceBook(ReadBook):
    """A ledger in memory with what places have.

    Args:
        places: The places.
        labels: As in `ask_places`.
        by_time: As in `ask_places`.
        by_machine: As in `ask_places`.
    """

    def __init__(
        self,
        places: Sequence[Place],
        labels: Collection[str] = LABEL,
        *,
        by_time: bool = True,
        by_machine: bool = True,
    ) -> None:
        super().__init__(open_in_memory())
        make_tables(self.connection)
        self.notes = [note for place in places for note in place.notes]
        self._found = [problem for place in places for problem in place.problems]
        self._files = [file for place in places for file in place.files]
        self._machines = _titles({machine: name for place in places for machine, name in place.names.items()})
        self._machine_of: dict[int, str] = {}
        self._names = [name for name in LABEL if name in labels]
        self._by_time, self._by_machine = by_time, by_machine
        self._filled: set[Any] = set()
        self._price_lists: set[Any] = set()
        self._scratch = files.temporary_directory("sessionlog-place-")
        self._duckdb = duckdb.connect(
            config={
                "threads": str(min(_MOST_THREADS, os.cpu_count() or 1)), "memory_limit": _MEMORY,
                "temp_directory": self._scratch, "preserve_insertion_order": "false",
                "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
            }
        )  # fmt: skip
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
        lists = sorted(self._price_lists - {None}, reverse=True)
        named = ", ".join(lists[:_NAMED_LISTS])
        return f"{named} and {len(lists) - _NAMED_LISTS} older" if len(lists) > _NAMED_LISTS else named

    def machine_of(self, label_id: int) -> str:
        """Return the name of the machine whose records or calls have a label or name."""
        return self._machine_of.get(label_id, UNKNOWN_NAME)

    def query(
        self, sql: str, parameters: dict[str, Any], make: Callable[[tuple[Any, ...]], Any] | None = None
    ) -> list[Any]:
        """Run one query, as in `ReadBook`, after filling the tables that it reads."""
        self._fill("sessions", self._fill_sessions)
        if "quarter_hours" in sql:
            self._fill("quarter_hours", self._fill_quarter_hours)
        if "tools r" in sql:
            self._fill("tools", self._fill_calls)
        if "records r" in sql:
            self._fill("records", lambda: self._fill_responses("true"))
        elif "first_quarter" in parameters:
            for quarter in {parameters["first_quarter"], parameters["last_quarter"]}:
                inside = f"time_ns >= {quarter} AND time_ns < {quarter}::HUGEINT + {QUARTER_NS}"
                self._fill(quarter, partial(self._fill_responses, inside))
        elif UNKNOWN in sql:
            window = parameters.get("start_ns"), parameters.get("end_ns")
            self._fill(window, partial(self._fill_groups, *window))
        return super().query(sql, parameters, make)

    def close(self) -> None:
        """Close both databases, and delete what they had on disk."""
        self._duckdb.close()
        files.remove_directory(self._scratch)
        super().close()

    def _fill(self, what: Any, fill: Callable[[], None]) -> None:
        """Fill a table once.

        Raises:
            _DamagedError: Files are damaged.
            LogNotReadable: DuckDB failed for another reason.
        """
        if what in self._filled:
            return
        self._filled.add(what)
        try:
            fill()
        except duckdb.Error as error:
            problems = {file.path: problem for file in self._files if (problem := self._problem_of(file)) is not None}
            if problems:
                raise _DamagedError(problems) from error
            raise LogNotReadable(f"DuckDB cannot read the exported files: {_first_line(error)}") from error

    def _fill_sessions(self) -> None:
        """Choose which responses count, and insert the sessions of all machines."""
        for table in ("usage", "sessions"):
            self._read_table(table)
        self._run("revised", "SELECT DISTINCT record FROM usage WHERE revision > 1 OR deleted")
        self._run("contested", _CONTESTED)
        self._run("latest_sessions", latest_rows("exported_sessions", tuple(TABLES["sessions"])))
        self._run("copies", latest_rows(f"({_COPIES})", tuple(TABLES["usage"])))
        self._run("known", known_sessions("latest_sessions"))
        self._run("chosen", winning_responses("copies", "known"))
        self._duckdb.execute(_RESPONSES_VIEW)
        self._run("sessions", merged_sessions("latest_sessions"))
        self._insert(_SESSIONS, "FROM sessions ORDER BY session_key")

    def _fill_quarter_hours(self) -> None:
        time = _QUARTER if self._by_time else "NULL::BIGINT"
        self._run("cells", _CELLS.format(names=", ".join(self._by), time=time))
        self._price_lists.update(name for (name,) in self._all("SELECT DISTINCT price_list FROM cells"))
        self._fill_labels("cells")
        self._fill_strays("responses", "SELECT session_key FROM cells")
        others = ", ".join(["session_key", *self._by, *_OF_CELLS])
        self._insert(
            insert("quarter_hours", TOTAL),
            f"SELECT session_key, {self._label}, * EXCLUDE ({others}) FROM cells ORDER BY session_key",  # noqa: S608 - names of the schema, numbers, and quoted paths
        )

    def _fill_responses(self, where: str) -> None:
        """Insert single responses, and for those of a cut quarter hour what names their sessions."""
        self._run("single", f"SELECT * FROM responses WHERE {where}")  # noqa: S608 - names of the schema, numbers, and quoted paths
        self._price_lists.update(name for (name,) in self._all("SELECT DISTINCT price_list FROM single"))
        self._fill_labels("single")
        self._fill_strays("responses", "SELECT session_key FROM single")
        self._insert(insert("responses", RESPONSE), _RESPONSES.format(label=self._label, count=self._count()))
        self._insert(
            "INSERT OR IGNORE INTO log_sessions VALUES (?, ?, ?, ?)",
            f"SELECT DISTINCT {_SINGLE}, session_key, 0, '' FROM single",  # noqa: S608 - names of the schema, numbers, and quoted paths
        )

    def _fill_groups(self, start_ns: int | None, end_ns: int | None) -> None:
        """Insert the responses without a price in a window as groups: a report only names their models."""
        names = ", ".join(self._by)
        bounds = [f"time_ns >= {start_ns}"] * (start_ns is not None) + [f"time_ns < {end_ns}"] * (end_ns is not None)
        if bounds:
            where = " AND ".join([_NO_PRICE, *bounds])
            columns = f"session_key, {names}, min(time_ns) AS time_ns, {_HAS_TOKENS} AS has_tokens"
            rows = f"SELECT {columns} FROM responses WHERE {where} GROUP BY ALL"  # noqa: S608 - names of the schema, numbers, and quoted paths
        else:
            cells = f"SELECT DISTINCT session_key, {names}, NULL AS time_ns, {{}} AS has_tokens FROM cells WHERE {{}}"  # noqa: S608 - names of the schema, numbers, and quoted paths
            rows = f"{cells.format('true', 'has_unpriced')} UNION ALL {cells.format('false', 'has_empty')}"
        self._run("grouped", rows)
        self._fill_labels("grouped")
        self._insert(insert("responses", RESPONSE), _WITHOUT_PRICE.format(label=self._label, count=self._count()))

    def _fill_calls(self) -> None:
        self._read_table("tools")
        self._run("exported_calls", latest_rows("tools", tuple(TABLES["tools"])))
        self._run("calls", winning_calls("exported_calls", "known"))
        machine = ", machine_id" if self._by_machine else ""
        number = f"(hash({', '.join(NAME)}{machine}) >> 1)::BIGINT"
        self._insert(insert("names", ("id", *NAME)), f"SELECT DISTINCT {number}, {', '.join(NAME)} FROM calls")  # noqa: S608 - names of the schema, numbers, and quoted paths
        self._read_machines(f"SELECT DISTINCT {number} AS id{machine} FROM calls")  # noqa: S608 - names of the schema, numbers, and quoted paths
        self._fill_strays("calls", "SELECT session_key FROM calls")
        self._insert(insert("calls", CALL), _CALLS.format(name=number))

    def _fill_labels(self, table: str) -> None:
        shown = (f"coalesce({name}, '')" if name in self._names else f"'{UNKNOWN_NAME}'" for name in LABEL)
        self._insert(
            insert("labels", ("id", *LABEL)),
            f"SELECT DISTINCT {self._label}, {', '.join(shown)} FROM {table}",  # noqa: S608 - names of the schema, numbers, and quoted paths
        )
        machine = ", machine_id" if self._by_machine else ""
        self._read_machines(f"SELECT DISTINCT {self._label} AS id{machine} FROM {table}")  # noqa: S608 - names of the schema, numbers, and quoted paths

    def _read_machines(self, labels: str) -> None:
        if self._by_machine:
            self._machine_of.update((label, self._machines.get(one, one)) for label, one in self._all(labels))

    def _fill_strays(self, rows: str, keys: str) -> None:
        """Insert sessions whose own row is missing."""
        self._insert(_SESSIONS, _STRAYS.format(rows=rows, keys=keys))

    @property
    def _by(self) -> list[str]:
        return [*self._names, *(["machine_id"] if self._by_machine else [])]

    @property
    def _label(self) -> str:
        """The expression of a label's number, the same in all tables."""
        return f"(hash({', '.join(self._by)}) >> 1)::BIGINT"

    def _count(self) -> int:
        [(count,)] = super().query("SELECT COUNT(*) FROM responses", {})
        return int(count)

    def _read_table(self, table: str) -> None:
        """Make a view of a table's files.

        Raises:
            _DamagedError: Some are no exported files.
        """
        listed = [file for file in self._files if file.table == table]
        columns, name = TABLES[table], "exported_sessions" if table == "sessions" else table
        if not listed:
            kinds = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            self._duckdb.execute(f"CREATE TABLE {name} ({kinds})")
            return
        paths = ", ".join(_quoted(file.path) for file in listed)
        of_version = self._all(f"SELECT file_name FROM parquet_kv_metadata([{paths}]) WHERE {_OF_VERSION}")  # noqa: S608 - names of the schema, numbers, and quoted paths
        added = ADDED.get(table, frozenset())
        quoted = ", ".join(map(_quoted, columns.keys() - added))
        [(known,)] = self._all(f"SELECT count(*) FROM parquet_schema([{paths}]) WHERE name IN ({quoted})")  # noqa: S608 - names of the schema, numbers, and quoted paths
        if len(of_version) < len(listed) or known < len(listed) * len(columns.keys() - added):
            raise duckdb.InvalidInputException("a file without our schema")
        read = f"read_parquet([{paths}], hive_partitioning = false)"
        if added:
            nulls = ", ".join(f"NULL::{columns[name]} AS {name}" for name in columns if name in added)
            files_with_null = f"read_parquet([{paths}], hive_partitioning = false, union_by_name = true)"
            read = f"(SELECT {nulls} WHERE false UNION ALL BY NAME SELECT * FROM {files_with_null})"  # noqa: S608 - names of the schema, and quoted paths
        self._duckdb.execute(f"CREATE VIEW {name} AS SELECT {', '.join(columns)} FROM {read}")  # noqa: S608 - as above

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

    def _insert(self, statement: str, select: str) -> None:
        """Insert the rows of a query by DuckDB into the ledger."""
        cursor = self._duckdb.execute(select)
        self.connection.execute("BEGIN")
        while rows := cursor.fetchmany(_PAGE):
            write(self.connection, statement, rows)
        self.connection.execute("COMMIT")


def _titles(names: dict[str, str]) -> dict[str, str]:
    """Return machine's id → its name, with the id where several have one name."""
    several = {name for name, count in Counter(names.values()).items() if count > 1}
    return {machine: f"{name} ({machine})" if name in several else name for machine, name in names.items()}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
