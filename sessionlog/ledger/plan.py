"""Plan: which logs a sync has to read, and from which offset, found by comparing them with their rows in the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from sessionlog.errors import Problem
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import File
from sessionlog.ledger.identity import Identity, has_lost_database, is_same, path_of, stored_path
from sessionlog.ledger.missing import Known, Missing
from sessionlog.ledger.problems import problems_of
from sessionlog.ledger.scanning import Job, identify_log
from sessionlog.ledger.schema import HERE, UNREADABLE
from sessionlog.ledger.statements import select_rows
from sessionlog.sources.protocol import Log, Resume, Source
from sessionlog.sources.record import Problems

_LONG = frozenset({"source", "head", "print", "prefix", "named"})
_SHORT = f"SELECT {', '.join(f'NULL AS {name}' if name in _LONG else name for name in File._fields)} FROM files"  # noqa: S608 - names of the schema
"""The columns that show whether a log has changed; the long ones are read later, for changed logs only."""


class Plan:
    """What a sync has to do.

    Attributes:
        known: The rows of logs before the sync, without their long columns.
        seen: Paths of all logs that exist.
        sources: Their sources by id.
        jobs: The logs to read.
        missing: Id → new value of `missing`, for logs that are gone or back.
        failed: Number of logs that are out of reach.
        unlisted: Number of places and files that could not be listed or recognised.
    """

    def __init__(self, book: Book, listed: Iterable[Log | Problem], places: Sequence[str] | None = (os.sep,)) -> None:
        """Compare all logs with their rows; the arguments are those of `sync`."""
        self._book = book
        self._is_kept = any(file for _, _, file in book.connection.execute("PRAGMA database_list"))
        self._unreadable: list[str] = []
        self.seen: set[str] = set()
        self.sources: dict[str, Source] = {}
        self.jobs: list[Job] = []
        self.missing: dict[int, int] = {}
        self.failed = self.unlisted = 0
        if places is None:
            listed = list(listed)
        self.known = _known_logs(book, None if places is not None else [item.path for item in listed])
        for item in listed:
            if isinstance(item, Problem):
                self._add_problem(item)
            else:
                self._add_log(item)
        if places is not None:
            self._find_missing(places)

    def _add_problem(self, problem: Problem) -> None:
        self.unlisted += 1
        if problem.severity == "info":
            self._book.unrecognised += 1
            return
        self._book.note(Problems(count=1, first=(problem,)))
        if problem.kind == "unreadable":
            self._unreadable.append(problem.path)

    def _add_log(self, log: Log) -> None:
        self.seen.add(log.path)
        self.sources[log.source.id] = log.source
        identity = identify_log(log.source, log.path)
        row = self.known.get(log.path)
        if row is not None and identity is not None and _is_current(row, log.source.parser_version, identity):
            if row.missing:
                self.missing[row.id] = HERE
            return
        if row is not None:
            row = next(select_rows(self._book.connection, File, "files r WHERE id = ?", (row.id,)), None)
        resume = None if row is None or identity is None else self._resume(row, log, identity)
        self.jobs.append(
            Job(
                number=len(self.jobs),
                source=log.source.id,
                path=log.path,
                size=0 if identity is None else identity[2] - (resume.offset if resume is not None else 0),
                resume=resume,
                prefix="" if row is None else row.prefix,
                again=self._is_kept,
            )
        )

    def _resume(self, row: File, log: Log, identity: Identity) -> Resume | None:
        """Where a scan may be resumed: in the same file, if it has grown and all its problems are stored."""
        old, source = identity_of(row), log.source
        is_same_log = old[:2] == identity[:2] and old[5] == identity[5]
        is_same_parser = (row.source, row.parser) == (source.id, source.parser_version)
        has_grown = identity[2] > old[2] or (identity[2:5] == old[2:5] and not row.settled)
        if not (row.offset and is_same_log and is_same_parser and has_grown) or row.missing == UNREADABLE:
            return None
        named = problems_of(row.named)
        if len(named) != row.problems or any(problem.kind == "bad_compression" for problem in named):
            return None  # damage of a packed log affects all rows behind it
        [*state] = self._book.connection.execute("SELECT state FROM resumes WHERE file_id = ?", (row.id,))
        return Resume(offset=row.offset, line=row.line, state=state[0][0]) if state else None

    def _find_missing(self, places: Sequence[str]) -> None:
        """Note the known logs that are not listed; the places of those out of reach become problems of the book."""
        missing = Missing(places, self.seen, self._unreadable)
        for path, row in self.known.items():
            if path not in self.seen:
                why = missing.why(Known(path, row.id, row.missing, row.device))
                if row.missing != why:
                    self.missing[row.id] = why
        for problem in missing.problems:
            self._book.note(Problems(count=1, first=(problem,)))
        self.failed = missing.unreadable


def _known_logs(book: Book, paths: Iterable[str] | None) -> dict[str, File]:
    """Return path → row of all known logs, or of those at some paths."""
    rows: Iterable[File]
    if paths is None:
        rows = map(File._make, book.connection.execute(_SHORT))
    else:
        stored = map(stored_path, paths)
        rows = (row for path in stored for row in select_rows(book.connection, File, "files r WHERE path = ?", (path,)))
    return {path_of(row.path): row for row in rows}


def _is_current(row: File, parser: int, identity: Identity) -> bool:
    """Whether a log is unchanged since it was read, and was read by the present version of its parser."""
    before = identity_of(row)
    is_read = row.settled and row.parser == parser and row.missing != UNREADABLE
    return bool(is_read and (is_same(before, identity) or has_lost_database(before, identity)))


def identity_of(row: File) -> Identity:
    """Return the identity that a log had when it was read."""
    return row.device, row.inode, row.size, row.mtime_ns, row.ctime_ns, row.beside
