"""Scrub: find the secrets in logs of all agents, and write copies of the logs without them.

Logs are searched as bytes, in pieces, so that damaged and unknown rows are searched, too; databases value by value.
Sidecars of logs are searched, too, and both of a log and its packed twin. The originals are only read.

A secret may lie anywhere in a line of any length, or in several lines. So the pieces overlap, whatever their lines, and
each cut lies in the middle of what two pieces have in common: a secret is whole in one of them.

A copy gets its name when it is complete and clean. Until then a file of lines is a temporary one that only ever holds
what has been searched, and a database, which SQLite copies whole before its values are replaced, is a file without a
name: whatever stops this process, nothing is left of it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from io import BufferedReader
from typing import BinaryIO, cast

from sessionlog import files
from sessionlog.errors import InvalidSettings, LogNotReadable, MissingExtra
from sessionlog.events.redact import redact_line, replace_spans
from sessionlog.events.secrets import find_spans
from sessionlog.events.secrets.long_words import Span
from sessionlog.reader.database import open_database
from sessionlog.reader.unpack import open_unpacked
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources
from sessionlog.sources.spread import Spread, in_shares, spread_files

_MAX_KEPT = 1000
_PIECE = 1 << 20
_OVERLAP = 1 << 16
"""Bytes that two pieces have in common; half of it is more than any secret and what it is recognised by."""
_DATABASE = b"SQLite format 3\0"
_PACKED = (".gz", ".zst")
_NO_WAL = {18: b"\1\1", 24: b"\xff\xff\xff\xff"}
"""In a database's header: its kind of log, and its count of changes, so that SQLite reads the header again."""
_INDEX = re.compile(r"CREATE VIRTUAL TABLE\b.*?\bUSING\s+fts[345]\b", re.IGNORECASE | re.DOTALL)
"""A search index, which holds the words of the texts."""
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
    names = {} if copies is None else _copies_of([path for path, _, problem in found if not problem], copies)
    try:
        yield from spread_files(
            [((*item, names.get(item[0], "")), item[0]) for item in found], _scrub, spread, progress
        )
    finally:
        if copies is not None:
            _remove_temporary(copies, set(names.values()))


def _copies_of(paths: Sequence[str], folder: str) -> dict[str, str]:
    """Return file → its copy: unpacked, unless another file has that name: `x.jsonl.gz` is `x.gz.jsonl` beside it."""
    if not paths:
        return {}
    common = os.path.commonpath([os.path.dirname(files.absolute_path(path)) for path in paths])
    copies = {path: os.path.join(folder, os.path.relpath(files.absolute_path(path), common)) for path in paths}
    taken = set(copies.values())
    for path, copy in copies.items():
        name = plain = _unpacked(copy)
        while name in taken and plain != copy:
            stem, suffix = os.path.splitext(name)
            name = f"{stem}{copy.removeprefix(plain)}{suffix}"
        copies[path] = name
        taken.add(name)
    return copies


def _remove_temporary(folder: str, wanted: set[str]) -> None:
    """Remove what workers that were ended, by Ctrl-C or the system, have left of copies."""
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


def _scrub(item: tuple[str, str, str, str]) -> FileScrub:
    path, source, problem, copy = item
    if problem:
        return FileScrub(path=path, source=source, problem=problem)
    return scrub_file(path, source=source, copy=copy)


def scrub_file(path: str, *, source: str = "", copy: str = "") -> FileScrub:
    """Search one file, and write `copy`, unpacked, without its secrets."""
    search = _Search()
    problem = ""
    try:
        file, unpacked = open_unpacked(path)
        with file:
            if copy:
                files.make_directories(os.path.dirname(os.path.abspath(copy)))
            is_database = unpacked is None and cast("BufferedReader", file).peek().startswith(_DATABASE)
            if not is_database:
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
        twins = (f"{_unpacked(item.path)}{suffix}" for suffix in ("", *_PACKED))
        for path in (*given, *twins):
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

    def add(self, rule: str, line: int, offset: int, place: str = "") -> None:
        """Count a secret, and keep its place."""
        self.counts[rule] += 1
        if len(self.findings) < _MAX_KEPT:
            self.findings.append(Finding(rule=rule, line=line, offset=offset, place=place))


def _scrub_lines(file: BinaryIO, search: _Search, copy: str) -> None:
    """Search a file of lines."""
    pieces = _clean_pieces(file, search)
    if copy:
        files.replace_file(copy, pieces)
    else:
        for _ in pieces:
            pass


def _clean_pieces(file: BinaryIO, search: _Search) -> Iterator[bytes]:
    """Yield the file's bytes without the secrets, and add these to `search`."""
    line, begin_of_line = 1, 0  # counted from the piece's begin
    for piece, spans in _pieces(file):
        done = 0
        for begin, _, rule in (*spans, (len(piece), 0, "")):
            if lines := piece.count(b"\n", done, begin):
                line += lines
                begin_of_line = piece.rfind(b"\n", done, begin) + 1
            if rule:
                search.add(rule, line, begin - begin_of_line)
            done = begin
        yield replace_spans(piece, spans)
        begin_of_line -= len(piece)


def _pieces(file: BinaryIO) -> Iterator[tuple[bytes, list[Span]]]:
    """Yield (bytes, the secrets in them): pieces of the file, whatever its lines."""
    text, done = b"", 0  # `done` bytes were yielded already; what follows is recognised by them, too
    while more := file.read(_PIECE):
        text += more
        spans = [(max(begin, done), end, rule) for begin, end, rule in find_spans(text) if end > done]
        cut = max(done, len(text) - _OVERLAP // 2)
        cut = next((min(begin, cut) for begin, end, _ in spans if end > cut), cut)  # it may go on behind the cut
        if len(text) - cut > _PIECE:  # no secret is that long
            cut = len(text) - _OVERLAP // 2
        if cut > done:
            inside = [(begin - done, min(end, cut) - done, rule) for begin, end, rule in spans if begin < cut]
            yield text[done:cut], inside
        start = max(0, cut - _OVERLAP // 2)
        text, done = text[start:], cut - start
    if done < len(text):
        spans = [(max(begin, done) - done, end - done, rule) for begin, end, rule in find_spans(text) if end > done]
        yield text[done:], spans


def _scrub_database(path: str, search: _Search, copy: str) -> None:
    """Search the texts of all tables, and replace them in a copy."""
    with closing(open_database(path)) as connection:
        found = _search_tables(connection, search)
        if copy:
            _write_database(connection, copy, found)


def _search_tables(connection: sqlite3.Connection, search: _Search) -> list[tuple[str, str]]:
    """Return the (table, column)s that hold secrets; the schema's own table is searched, too."""
    found: dict[tuple[str, str], None] = {}
    tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    for table in ("sqlite_master", *(str(name) for name, sql in tables if not _is_virtual(sql))):
        cursor = connection.execute(f"SELECT * FROM {_quoted(table)}")  # noqa: S608 - quoted
        columns = [str(column[0]) for column in cursor.description]
        for number, row in enumerate(cursor, 1):
            for column, value in zip(columns, row, strict=True):
                data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
                for begin, _, rule in find_spans(data) if isinstance(data, bytes) else ():
                    search.add(rule, 0, begin, f"{table}.{column}, row {number}")
                    found[table, column] = None
    return list(found)


def _is_virtual(sql: object) -> bool:
    return str(sql).upper().startswith("CREATE VIRTUAL")


def _write_database(connection: sqlite3.Connection, copy: str, found: Iterable[tuple[str, str]]) -> None:
    """Copy a database without the secrets in these columns: whole and clean, or not at all.

    Raises:
        LogNotReadable: A secret cannot be replaced, such as one of two in a column of unique values.
    """
    file, path = files.open_temporary(os.path.dirname(os.path.abspath(copy)))
    try:
        with file, closing(sqlite3.connect(path)) as written:
            written.execute("PRAGMA journal_mode = OFF")  # what fails is thrown away; a journal would hold the secrets
            files.remove_file(path)  # before it holds anything
            connection.backup(written)
            _without_wal(file)
            _replace_values(written, found)
            written.text_factory = connection.text_factory
            left = _Search()
            _search_tables(written, left)
            if left.counts:
                place = left.findings[0].place
                raise LogNotReadable(f"not copied: the secret in {place} is not a value that can be replaced")
            file.seek(0)
            files.replace_file(copy, iter(partial(file.read, _PIECE), b""))
    except sqlite3.Error as error:
        detail = f"a secret in it cannot be replaced ({error}); change it in the program that wrote it"
        raise LogNotReadable(f"not copied: {detail}") from error
    finally:
        files.remove_file(path)


def _without_wal(file: BinaryIO) -> None:
    """Let a database have no write-ahead log: SQLite cannot make the log of a file without a name."""
    for at, value in _NO_WAL.items():
        file.seek(at)
        file.write(value)
    file.flush()


def _replace_values(written: sqlite3.Connection, found: Iterable[tuple[str, str]]) -> None:
    """Replace the secrets in some columns; make search indexes anew and drop free pages, which hold old values."""
    written.execute("PRAGMA ignore_check_constraints = ON")
    written.create_function("redacted", 2, _redacted)
    is_utf8 = written.execute("PRAGMA encoding").fetchone()[0] == "UTF-8"
    triggers = written.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        written.execute(f"DROP TRIGGER {_quoted(name)}")
    for table, column in found:
        if column not in _own_columns(written, table):
            continue  # computed from others
        name = _quoted(column)
        value = f"CAST({name} AS BLOB)" if is_utf8 else name  # invalid UTF-8 comes as it is
        clean = f"COALESCE(redacted({value}, typeof({name})), {name})"
        written.execute(f"UPDATE {_quoted(table)} SET {name} = {clean}")  # noqa: S608 - quoted
    for name, sql in written.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
        if _INDEX.match(str(sql)) is not None:
            _rebuild_index(written, str(name))
    for _, sql in triggers:
        written.execute(sql)
    written.commit()
    written.execute("VACUUM")


def _rebuild_index(written: sqlite3.Connection, name: str) -> None:
    """Make a search index anew.

    Raises:
        LogNotReadable: That is not possible, such as without the texts.
    """
    try:
        written.execute(f"INSERT INTO {_quoted(name)}({_quoted(name)}) VALUES ('rebuild')")  # noqa: S608 - quoted
    except sqlite3.Error as error:
        detail = f"the words in the search index {name} are not searched, and it cannot be made anew ({error})"
        raise LogNotReadable(f"not copied: {detail}; drop it in a copy of your own") from error


def _redacted(value: str | bytes, kind: str) -> str | bytes | None:
    """Return a text or a blob of a database without its secrets; None for other values, and where there are none."""
    if kind not in ("text", "blob"):
        return None
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    clean = redact_line(data)
    if clean is data:
        return None
    return clean.decode("utf-8", "replace") if kind == "text" else clean


def _own_columns(written: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns of a table that are not generated."""
    rows = written.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    return {str(name) for _, name, _, _, _, _, hidden in rows if hidden == 0}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
