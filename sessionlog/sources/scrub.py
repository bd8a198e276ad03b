"""Scrub: find the secrets in logs of all agents, and write copies of the logs without them.

Logs are searched as bytes, line by line, so that damaged and unknown rows are searched, too; databases value by value.
Sidecars of logs are searched, too. The originals are only read.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cache, partial
from io import BufferedReader
from typing import Any, BinaryIO, cast

from sessionlog import files
from sessionlog.errors import InvalidSettings, LogNotReadable, MissingExtra
from sessionlog.events.redact import redact_line
from sessionlog.events.secrets import find_spans
from sessionlog.fast_dataclasses import dataclass, field
from sessionlog.reader.database import open_database
from sessionlog.reader.unpack import open_unpacked
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources
from sessionlog.sources.spread import Spread, in_shares, spread_files

_MAX_KEPT = 1000
_PIECE = 4 << 20
_OVERLAP = 1 << 16
_DATABASE = b"SQLite format 3\0"
_PACKED = (".gz", ".zst")
_TEMPORARY = re.compile(r"\.(.+)\.[a-z0-9_]{8}", re.DOTALL)
"""The name that `files.write_temporary` gives to what becomes a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The kind and place of a secret; never the secret itself.

    Attributes:
        rule: The id of the rule in `events/secrets/rules.py`.
        line: The line, counted from 1; 0 in a database.
        offset: Bytes before it in its line; in a database, in its value.
        place: The table, column and row in a database; empty elsewhere.
    """

    rule: str
    line: int
    offset: int
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScrub:
    """The secrets found in one file.

    Attributes:
        path: The file.
        source: Id of the log's source; empty if none is known.
        findings: The first thousand.
        counts: Rule → number of all findings.
        problem: Why the file could not be read or copied whole; empty if it was.
        copy: Where the scrubbed copy is; empty if none was asked for.
    """

    path: str
    source: str
    findings: tuple[Finding, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    problem: str = ""
    copy: str = ""


def scrub_logs(
    paths: Iterable[str] | None,
    env: Mapping[str, str],
    *,
    copies: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    spread: Spread = in_shares,
) -> Iterator[FileScrub]:
    """Search each file of the logs under `paths`, or of every agent's logs; yield the results.

    With `copies` each file is written to that folder without its secrets, under its path below the files' common
    folder; a packed file is unpacked. `progress` is called with (files done, files in all); `spread` may give the
    files to several processes.

    Raises:
        InvalidSettings: `copies` holds files already, or cannot be made.
    """
    found = list(_files_of(paths, env))
    if copies is not None:
        _make_empty(copies)
    common = os.path.commonpath([os.path.dirname(files.absolute_path(path)) for path, _, _ in found]) if found else ""
    scrub = partial(_scrub, copies=copies, common=common)
    try:
        yield from spread_files([(item, item[0]) for item in found], scrub, spread, progress)
    finally:
        if copies is not None:
            _remove_temporary(copies, {_copy_of(path, copies, common) for path, _, problem in found if not problem})


def _copy_of(path: str, copies: str, common: str) -> str:
    return os.path.join(copies, os.path.relpath(files.absolute_path(path), common))


def _remove_temporary(folder: str, copies: set[str]) -> None:
    """Remove what workers that were ended, by Ctrl-C or the system, have left of copies."""
    wanted = copies | {_unpacked(copy) for copy in copies}
    for place, _, names in os.walk(folder):
        for name in names:
            found = _TEMPORARY.fullmatch(name)
            path = os.path.join(place, name)
            if found is not None and path not in wanted and os.path.join(place, found[1]) in wanted:
                files.remove_file(path)


def _unpacked(copy: str) -> str:
    for suffix in _PACKED:
        copy = copy.removesuffix(suffix)
    return copy


def _scrub(item: tuple[str, str, str], *, copies: str | None, common: str) -> FileScrub:
    path, source, problem = item
    if problem:
        return FileScrub(path=path, source=source, problem=problem)
    copy = "" if copies is None else _copy_of(path, copies, common)
    return scrub_file(path, source=source, copy=copy)


def scrub_file(path: str, *, source: str = "", copy: str = "") -> FileScrub:
    """Search one file, and write `copy` without its secrets."""
    search = _Search()
    problem = ""
    try:
        file, unpacked = open_unpacked(path)
        with file:
            if copy:
                files.make_directories(os.path.dirname(os.path.abspath(copy)))
            is_database = unpacked is None and cast("BufferedReader", file).peek().startswith(_DATABASE)
            if not is_database:
                copy = _unpacked(copy)
                _scrub_lines(file, search, copy)
                problem = "" if unpacked is None else unpacked.failure or ""
        if is_database:
            _scrub_database(path, search, copy)
    except (LogNotReadable, MissingExtra, sqlite3.Error, OSError) as error:
        problem = str(error).removeprefix(f"{path}: ")
        copy = ""
    return FileScrub(
        path=path,
        source=source,
        findings=tuple(search.findings),
        counts=dict(search.counts),
        problem=problem,
        copy=copy,
    )


def _files_of(paths: Iterable[str] | None, env: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (path, source, why it cannot be read), each file once."""
    seen: set[str] = set()
    real_folder = cache(files.real_path)
    for item in discover(env, all_sources()) if paths is None else find_logs(paths, env):
        source, given = (
            (item.source.id, [item.path, *item.source.sidecars(item.path)])
            if isinstance(item, Log)
            else ("", [item.path])
        )
        if not isinstance(item, Log) and item.severity == "damage":
            yield item.path, "", item.detail
            continue
        for path in given:
            for inside in _regular_files(path):
                folder, name = os.path.split(inside)
                real = files.real_path(inside) if os.path.islink(inside) else os.path.join(real_folder(folder), name)
                if real not in seen:
                    seen.add(real)
                    yield inside, source, ""


def _regular_files(path: str) -> Iterator[str]:
    status = files.stat_path(path)
    if status is None or not stat.S_ISDIR(status.st_mode):
        if status is not None:
            yield path
        return
    for folder, names in files.walk_folder(path):
        for name in names:
            inside = os.path.join(folder, name)
            if files.is_file(inside) and not os.path.islink(inside):
                yield inside


def _make_empty(folder: str) -> None:
    if os.path.lexists(folder) and not (os.path.isdir(folder) and not os.listdir(folder)):
        raise InvalidSettings(f"{folder}: holds files already; name a new folder for the scrubbed copies")
    try:
        files.make_directories(os.path.abspath(folder))
    except OSError as error:
        raise InvalidSettings(f"{folder}: {files.reason_of(error)}; name a folder that can be made") from error


class _Search:
    """Collects the findings in one file."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()

    def find(self, data: bytes, line: int, offset: int = 0, place: str = "") -> bool:
        """Search some bytes; return whether they hold a secret."""
        spans = find_spans(data)
        for begin, _, rule in spans:
            self.counts[rule] += 1
            if len(self.findings) < _MAX_KEPT:
                self.findings.append(Finding(rule=rule, line=line, offset=offset + begin, place=place))
        return bool(spans)


def _scrub_lines(file: BinaryIO, search: _Search, copy: str) -> None:
    """Search a file of lines."""
    pieces = (
        redact_line(piece) if search.find(piece, line, offset) else piece for line, offset, piece in _pieces(file)
    )
    if copy:
        files.replace_file(copy, pieces)
    else:
        for _ in pieces:
            pass


def _pieces(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield (line, offset in it, bytes); long lines are split at quotes, which no secret contains."""
    line, offset, rest = 1, 0, b""
    while piece := file.readline(_PIECE):
        piece = rest + piece
        rest = b""
        if piece.endswith(b"\n"):
            yield line, offset, piece
            line, offset = line + 1, 0
            continue
        if len(piece) >= _PIECE:
            cut = max(piece.rfind(b'"', -_OVERLAP), piece.rfind(b" ", -_OVERLAP)) + 1
            piece, rest = (piece[:cut], piece[cut:]) if cut else (piece, b"")
        yield line, offset, piece
        offset += len(piece)
    if rest:
        yield line, offset, rest


def _scrub_database(path: str, search: _Search, copy: str) -> None:
    """Search the texts of all tables, and change them in a copy."""
    changes: list[tuple[str, str, Any, Any]] = []
    with closing(open_database(path)) as connection:
        tables = [
            str(name)
            for (name, sql) in connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
            if not str(sql).upper().startswith("CREATE VIRTUAL")
        ]
        for table in tables:
            cursor = connection.execute(f"SELECT * FROM {_quoted(table)}")  # noqa: S608 - quoted
            columns = [str(column[0]) for column in cursor.description]
            for number, row in enumerate(cursor, 1):
                for column, value in zip(columns, row, strict=True):
                    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
                    if isinstance(data, bytes) and search.find(data, 0, 0, f"{table}.{column}, row {number}") and copy:
                        clean = redact_line(data)
                        changes.append(
                            (
                                table,
                                column,
                                value,
                                clean.decode("utf-8", "replace") if isinstance(value, str) else clean,
                            )
                        )
        if copy:
            _write_database(connection, copy, changes)


def _write_database(connection: sqlite3.Connection, copy: str, changes: Iterable[tuple[str, str, Any, Any]]) -> None:
    """Copy a database with changed values; rebuild its search indexes and drop free pages, which hold old values."""
    files.replace_file(copy, ())  # private before it holds anything
    with closing(sqlite3.connect(copy)) as written:
        connection.backup(written)
        written.execute("PRAGMA journal_mode = DELETE")
        triggers = written.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            written.execute(f"DROP TRIGGER {_quoted(name)}")
        for table, column, old, new in changes:
            change = f"UPDATE {_quoted(table)} SET {_quoted(column)} = ? WHERE {_quoted(column)} = ?"  # noqa: S608 - quoted
            written.execute(change, (new, old))
        for (name,) in written.execute(
            "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts%'"
        ).fetchall():
            written.execute(f"INSERT INTO {_quoted(name)}({_quoted(name)}) VALUES ('rebuild')")  # noqa: S608 - quoted
        for _, sql in triggers:
            written.execute(sql)
        written.commit()
        written.execute("VACUUM")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
