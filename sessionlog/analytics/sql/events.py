"""Run a user's SQL query on the events of logs, by DuckDB.

The logs are the truth: for each query processes read their events, and of these only the columns that the query uses,
into a private temporary database. That is then opened read-only, without access to other files or extensions, and with
its configuration locked; only SELECT and EXPLAIN of one are allowed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb

from sessionlog import files
from sessionlog.analytics.sql.event_logs import ChosenLogs, EventSelection, choose_logs
from sessionlog.analytics.sql.event_relations import RELATIONS
from sessionlog.analytics.sql.result_stream import read_batch, unique_names
from sessionlog.engine.shares import map_shares
from sessionlog.engine.workers import usable_cores
from sessionlog.errors import InvalidQuery, Problem
from sessionlog.transcript.event_files import EventFile, Wanted, write_rows
from sessionlog.transcript.event_rows import COLUMNS

_MEMORY = "192MB"
_SPILL = "20GB"
_LEAST_OBJECT = 1 << 24  # DuckDB's own limit of a JSON line
_NAMED = 5
_KEPT_OPTIMIZERS = frozenset({"unused_columns", "cte_inlining"})
_FETCHED = 256
_PLAIN = frozenset({
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "UHUGEINT", "FLOAT", "DOUBLE", "VARCHAR", "JSON", "BLOB",
})  # fmt: skip
_PLAN = ("plan",)
_TIME = "strftime({} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDatabase:
    """A temporary database of the events that a query needs.

    Attributes:
        path: Its file.
        is_read: The query reads events at all.
        logs: Logs that were read.
        left_out: Logs that were not: the ledger knows that they are outside the window.
        problem_count: Problems of the logs.
        problems: The first of them.
        notes: Sentences about the ledger.
    """

    path: str
    is_read: bool
    logs: int = 0
    left_out: int = 0
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


@contextmanager
def load_events(sql: str, selection: EventSelection) -> Iterator[EventDatabase]:
    """Yield a database with the events that a query needs; it is deleted afterwards.

    Raises:
        InvalidQuery: The query is not valid or not allowed, or a pattern of sources matches none.
    """
    columns = used_columns(sql)
    folder = files.temporary_directory("sessionlog-events-")
    try:
        chosen = choose_logs(selection) if columns is not None else ChosenLogs(parts=(), sizes=(), problems=())
        path = os.path.join(folder, "events.duckdb")
        with _refused():
            count, problems = _load(path, folder, chosen, columns or (), selection)
        yield EventDatabase(
            path=path,
            is_read=columns is not None,
            logs=len(chosen.parts),
            left_out=chosen.left_out,
            problem_count=count + len(chosen.problems),
            problems=(*chosen.problems, *problems)[:_NAMED],
            notes=chosen.notes,
        )
    finally:
        files.remove_directory(folder)


def used_columns(sql: str) -> tuple[str, ...] | None:
    """Return the columns of `events` that a query uses, directly or by a view; None if it does not read the events.

    The query is bound to empty tables, and DuckDB's own plan names the columns that it scans.

    Raises:
        InvalidQuery: It is not one SELECT, or DuckDB cannot bind it.
    """
    with _refused(), duckdb.connect(config={**_CLOSED, "threads": "1"}) as connection:
        statement = _the_statement(connection, sql)
        _create(connection)
        names = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        disabled = ",".join(name for name in names if name not in _KEPT_OPTIMIZERS)
        connection.execute(f"SET disabled_optimizers = '{disabled}'")
        connection.execute("SET enable_external_access = false")
        if statement.type == duckdb.StatementType.EXPLAIN:
            return tuple(COLUMNS)
        plan = connection.execute(f"EXPLAIN (FORMAT json) {_stripped(sql)}").fetchall()
    scans = [scan for _, text in plan for root in json.loads(text) for scan in _scans(root)]
    if not scans:
        return None
    used = {name for scan in scans for name in _projections(scan)}
    return tuple(name for name in COLUMNS if name in used or (name == "time_ns" and "time" in used))


def _scans(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the facts about each scan of the table in a plan."""
    facts = node.get("extra_info") or {}
    if str(facts.get("Table", "")).split(".")[-1] == "events":
        yield facts
    for child in node.get("children", ()):
        yield from _scans(child)


def _projections(scan: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a scan; all of them if the plan has an unknown form."""
    given = scan.get("Projections")
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or any(name and name not in COLUMNS for name in names) or "Filters" in scan:
        return tuple(COLUMNS)
    return tuple(names)


_Config = dict[str, str | bool | int | float | list[str]]
_CLOSED: Mapping[str, str] = {
    "memory_limit": _MEMORY, "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
    "python_enable_replacements": "false", "max_temp_directory_size": _SPILL,
}  # fmt: skip


def _the_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    """Return the query as DuckDB's statement.

    Raises:
        InvalidQuery: It is something else than one SELECT or EXPLAIN.
    """
    sql.encode()  # DuckDB raises no error of its own for what is no UTF-8
    statements = connection.extract_statements(sql)
    if not statements:
        raise InvalidQuery("there is no question in it; begin with SELECT or WITH")
    if len(statements) > 1:
        raise InvalidQuery("it is more than one statement; give one SELECT")
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise InvalidQuery("only reading is allowed: one SELECT, WITH or EXPLAIN")
    return statements[0]


def _stripped(sql: str) -> str:
    return sql.strip().rstrip(";").strip()


def _create(connection: duckdb.DuckDBPyConnection) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE events ({columns})")
    for view in RELATIONS:
        if view.tables:
            selected = ", ".join(f"{column.sql} AS {column.name}" for column in view.columns)
            connection.execute(f"CREATE VIEW {view.name} AS SELECT {selected} FROM {view.tables}")  # noqa: S608 - constants


def _load(
    path: str, folder: str, chosen: ChosenLogs, columns: tuple[str, ...], selection: EventSelection
) -> tuple[int, list[Problem]]:
    """Make the database; return the number of problems and the first of them."""
    count, problems, done = 0, list[Problem](), 0
    window = selection.window
    wanted = Wanted(
        columns=columns,
        start_ns=window.start_ns if window is not None else None,
        end_ns=window.end_ns if window is not None else None,
        projects=tuple(pattern.lower() for pattern in selection.projects),
    )
    written = map_shares(
        chosen.parts, chosen.sizes, partial(write_rows, wanted=wanted, folder=folder), jobs=selection.jobs
    )
    connection: duckdb.DuckDBPyConnection | None = None
    try:
        for logs, result in written:
            connection = connection or _new_database(path, folder)  # only now: workers are forked without its threads
            for file in result.files:
                _insert(connection, file, columns)
            count += result.problem_count
            problems += result.problems[: _NAMED - len(problems)]
            done += logs
            if selection.progress is not None:
                selection.progress(done, len(chosen.parts))
        connection = connection or _new_database(path, folder)
    finally:
        if connection is not None:
            connection.close()
    return count, problems


def _new_database(path: str, folder: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        path, config={**_CLOSED, "threads": "1", "temp_directory": os.path.join(folder, "spill")}
    )
    connection.execute("SET preserve_insertion_order = false")
    _create(connection)
    return connection


def _insert(connection: duckdb.DuckDBPyConnection, file: EventFile, columns: tuple[str, ...]) -> None:
    read = [name for name in columns if name != "time"]
    if not read:
        connection.execute("INSERT INTO events (source) SELECT NULL FROM range(?)", [file.rows])  # for count(*)
    else:
        types = ", ".join(f"{name}: '{COLUMNS[name]}'" for name in read)
        selected = ", ".join(read)
        connection.execute(
            f"INSERT INTO events ({selected}{', time' if 'time' in columns else ''}) "  # noqa: S608 - our own names and paths
            f"SELECT {selected}{', make_timestamptz(time_ns // 1000)' if 'time' in columns else ''} "
            f"FROM read_json({_quoted(file.path)}, columns = {{{types}}}, format = 'newline_delimited', "
            f"maximum_object_size = {max(_LEAST_OBJECT, 2 * file.longest)})"
        )
    files.remove_file(file.path)


class EventQuery:
    """A query of loaded events, for a `ResultStream`."""

    def __init__(self, path: str, sql: str, *, zone: str = "UTC") -> None:
        """Begin.

        Args:
            path: The file of an `EventDatabase`.
            sql: One SELECT or EXPLAIN.
            zone: The IANA name of the time zone of days in SQL; results have times in UTC.
        """
        self._path, self._sql, self._zone = path, sql, zone
        self._connection: duckdb.DuckDBPyConnection | None = None

    def results(self, is_cancelled: Callable[[], bool]) -> Iterator[Any]:
        """Yield True once the file is open, the column names, then batches of rows, empty at the end."""
        spill = os.path.join(os.path.dirname(self._path), "spill")
        config: _Config = {**_CLOSED, "threads": str(usable_cores()), "temp_directory": spill}
        with duckdb.connect(self._path, read_only=True, config=config) as connection:
            self._connection = connection
            connection.execute(f"SET TimeZone = {_quoted(self._zone)}")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield True
            cursor, names = _select(connection, self._sql)
            yield unique_names(names)
            rows = _fetched(cursor) if names != _PLAN else iter([(line,) for line in _plan(cursor)])
            while not is_cancelled():
                yield read_batch(rows)

    def cancel(self) -> None:
        """Interrupt DuckDB."""
        if self._connection is not None:
            with suppress(duckdb.ConnectionException):  # its thread may be closing it
                self._connection.interrupt()

    def refusal(self, error: BaseException) -> BaseException:
        """Return the error for the caller: InvalidQuery for what DuckDB refuses."""
        return InvalidQuery(_reason(error)) if isinstance(error, duckdb.Error | UnicodeEncodeError) else error


def _select(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[duckdb.DuckDBPyConnection, tuple[str, ...]]:
    """Run a query, and return its cursor and names; values have Python's plain types, times are in UTC."""
    statement, sql = _the_statement(connection, sql), _stripped(sql)
    if statement.type == duckdb.StatementType.EXPLAIN:
        return connection.execute(statement), _PLAN
    described = connection.execute(f"DESCRIBE {sql}").fetchall()
    names = tuple(row[0] for row in described)
    aliases = [f"c{index}" for index in range(len(names))]
    values = ", ".join(map(_value, aliases, (str(row[1]) for row in described)))
    wrapped = f"SELECT {values} FROM ({sql}\n) AS answer({', '.join(aliases)})"  # noqa: S608 - the user's own query
    return connection.execute(wrapped), names


def _value(column: str, kind: str) -> str:
    if kind in _PLAIN:
        return column
    if kind == "TIMESTAMP WITH TIME ZONE":
        return _TIME.format(column)
    if kind.startswith("DECIMAL("):
        return f"{column}::DOUBLE" if not kind.endswith(",0)") else f"{column}::HUGEINT"
    if kind.endswith("]") or kind.startswith(("STRUCT(", "MAP(", "UNION(")):
        return f"to_json({column})::VARCHAR"
    return f"{column}::VARCHAR"


def _fetched(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := cursor.fetchmany(_FETCHED):
        yield from rows


def _plan(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the lines of a plan."""
    return [line for row in cursor.fetchall() for line in str(row[-1]).splitlines()]


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, UnicodeEncodeError) as error:
        raise InvalidQuery(_reason(error)) from error


def _reason(error: BaseException) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it is no text that DuckDB understands"
    if isinstance(error, duckdb.OutOfMemoryException):
        return f"it needs more than {_MEMORY} of memory; sort or group less"
    return str(error).partition("\n\nLINE ")[0].strip().replace("\n", "; ")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
