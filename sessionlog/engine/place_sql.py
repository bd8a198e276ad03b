"""PlaceSQL: runs the SQL of reports, which is written for the ledger's SQLite, on DuckDB tables with the same names.

Reports keep to what both databases accept; the few words that differ are translated here. DuckDB has no functions in
Python without NumPy: a function is called once for each argument that it may get, and becomes a lookup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import duckdb

from sessionlog.ledger.schema import QUARTER_NS

_PAGE = 8192
_MOST = (2**63 - 1) // QUARTER_NS * QUARTER_NS - QUARTER_NS
_WORDS = (
    (re.compile(r"\bSUM\("), "saturating_sum("),
    (re.compile(r"\bINTEGER\b"), "BIGINT"),
    (re.compile(r"\bCROSS JOIN\b"), "JOIN"),
    (re.compile(r"\bchar\("), "chr("),
    (re.compile(r"(?<![:\w]):([a-z]\w*)"), r"$\1"),
)
"""What SQLite has → what DuckDB has."""
_GLOB = re.compile(r"\bGLOB \$(\w+)")
_PARAMETER = re.compile(r"\$(\w+)")
_CALL = re.compile(r"\b(\w+)\((?:r\.(time_ns|label_id|name_id)\))?")
_KINDS = {"": "text", "time_ns": "time", "label_id": "label", "name_id": "label"}

_SETTINGS = (
    "SET parquet_metadata_cache = true",  # each file is opened by every query
    "SET default_null_order = 'nulls_first_on_asc_last_on_desc'",  # as SQLite
)


def clamped_sum(expression: str) -> str:
    """Return the expression of a sum, clamped to 64 bits, which also costs a tenth of DuckDB's larger integers."""
    limits = f"greatest(least(sum({expression}), {2**63 - 1}), -{2**63 - 1})::BIGINT"
    return f"CASE WHEN sum({expression}) IS NOT NULL THEN {limits} END"  # both functions ignore nulls


def quarter_of(time: str) -> str:
    """Return the expression of a time's quarter hour; rounding down a hostile time must not overflow 64 bits."""
    clamped = f"(CASE WHEN {time} < -{_MOST} THEN -{_MOST} ELSE {time} END)"
    return f"({clamped} - (({clamped} % {QUARTER_NS}) + {QUARTER_NS}) % {QUARTER_NS})"


class PlaceSQL:
    """Runs a report's SQL on DuckDB.

    Args:
        connection: DuckDB's connection, with tables or views that have the ledger's names and columns.
        domain: Returns, for `time`, `label` or `text` and a query's SQL, the statement of all arguments that a function
            may get in it. A function of time must have one value in a quarter hour, and gets its start.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, domain: Callable[[str, str], str]) -> None:
        self._duckdb = connection
        self._domain = domain
        self._functions: dict[str, Callable[[Any], Any]] = {}
        self._text_functions: set[str] = set()
        for setting in _SETTINGS:
            connection.execute(setting)
        connection.execute(f"CREATE TEMP MACRO saturating_sum(x) AS {clamped_sum('x')}")

    def define(self, name: str, function: Callable[[Any], Any]) -> None:
        """Register a function of one argument: a text, the time of what is summed, or the number of its label."""
        self._functions[name] = function

    def query(
        self, sql: str, parameters: Mapping[str, Any], make: Callable[[tuple[Any, ...]], Any] = tuple
    ) -> list[Any]:
        """Run one statement of a report, and return what `make` makes of each row."""
        for pattern, word in _WORDS:
            sql = pattern.sub(word, sql)
        patterns = set(_GLOB.findall(sql))
        sql = _GLOB.sub(r"~ $\1", sql)
        called: dict[str, set[str]] = {"text": set(), "time": set(), "label": set()}
        for name, column in _CALL.findall(sql):
            if name in self._functions:
                called[_KINDS[column]].add(name)
        for kind, names in called.items():
            if names:
                self._make_lookups(kind, sorted(names), self._domain(kind, sql))
        values = {
            name: _regular_expression(parameters[name]) if name in patterns else parameters[name]
            for name in set(_PARAMETER.findall(sql))
        }
        cursor = self._duckdb.execute(sql, values or None)
        found: list[Any] = []
        while rows := cursor.fetchmany(_PAGE):  # so that many rows are not in memory twice
            found += map(make, rows)
        return found

    def _make_lookups(self, kind: str, names: list[str], domain: str) -> None:
        """Make tables of the values of functions, and macros that look them up."""
        arguments = {argument for (argument,) in self._duckdb.execute(domain).fetchall()}
        if kind == "text":  # one function may get what another has returned
            arguments |= {self._functions[name](argument) for name in names for argument in arguments}
        for name in names:
            values = list(map(self._functions[name], arguments))
            types = "VARCHAR" if kind == "text" else "BIGINT", "BIGINT" if _has_number(values) else "VARCHAR"
            self._duckdb.execute(f"CREATE OR REPLACE TEMP TABLE of_{name} (argument {types[0]}, value {types[1]})")
            self._duckdb.execute(f"INSERT INTO of_{name} SELECT unnest($1), unnest($2)", [list(arguments), values])
            key = quarter_of("x") if kind == "time" else "x"
            found = f"(SELECT value FROM of_{name} WHERE argument IS NOT DISTINCT FROM {key})"  # noqa: S608 - as above
            if kind == "text":
                found = f"COALESCE({found}, error('no value of {name}: ' || x))"
            self._duckdb.execute(f"CREATE OR REPLACE TEMP MACRO {name}(x) AS {found}")


def _has_number(values: list[Any]) -> bool:
    return any(isinstance(value, int) for value in values)


def _regular_expression(pattern: str) -> str:
    """Return a pattern of SQLite's GLOB as a regular expression of DuckDB."""
    return rf"\A(?s:{''.join(_parts(pattern))})\z"


def _parts(pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        char, at = pattern[at], at + 1
        if char == "*":
            yield ".*"
        elif char == "?":
            yield "."
        elif char != "[":
            yield _escaped(char)
        else:
            is_inverted = pattern.startswith("^", at)
            at += is_inverted
            end = pattern.find("]", at + 1)  # a bracket that comes first is one of the characters
            if end < 0:
                yield _NOTHING
                return
            ranges = "".join(_ranges(pattern[at:end]))
            yield f"[{'^' * is_inverted}{ranges}]" if ranges else "." if is_inverted else _NOTHING
            at = end + 1


_NOTHING = r"[^\x{0}-\x{10FFFF}]"


def _ranges(characters: str) -> Iterator[str]:
    """Yield the ranges of a set of GLOB; one whose end is before its start has no characters."""
    at = 0
    while at < len(characters):
        first = last = characters[at]
        if characters[at + 1 : at + 2] == "-" and at + 2 < len(characters):
            last = characters[at + 2]
            at += 2
        at += 1
        if first <= last:
            yield f"{_escaped(first)}-{_escaped(last)}"


def _escaped(char: str) -> str:
    return rf"\x{{{ord(char):X}}}"
