"""Export to parquet: what the ledger knows as immutable files, for one total of many machines.

Each export writes files of new and changed rows, then a manifest of all files that hold: nothing of an export that was
killed is read. A file is never changed: a row that has changed is written again with a higher revision, one that the
ledger has no more as a tombstone; many small files are merged into one. Costs stay as they were exported while the row
itself does. Only names and numbers are written, never prompts, answers or errors.

A watermark spares most of the work: it is the number of the ledger's last change that an export has seen, so that the
next one reads only sessions that have changed since. It is of use for the same choice of rows, or a narrower one.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

from sessionlog import files
from sessionlog.analytics.question import Question, check_source_names, log_paths
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tools import CallSelection
from sessionlog.engine.place_manifest import File
from sessionlog.engine.scanner import scanner
from sessionlog.errors import InvalidQuery, LedgerUnusable, MissingExtra, NotExported, Problem
from sessionlog.export.destination import Destination, open_destination
from sessionlog.export.ledger_rows import AddNames, LedgerRows
from sessionlog.export.machine import Machine, name_of, open_machine
from sessionlog.export.manifests import Manifest
from sessionlog.export.project_names import ProjectNames
from sessionlog.hashes import blake2b, digest_of
from sessionlog.ledger.ask import load_book
from sessionlog.ledger.changes import (
    changed_since,
    exported_until,
    has_earlier_rows,
    last_change,
    note_earlier_rows,
    note_exported,
    note_manifests,
)
from sessionlog.ledger.machine import copy_path, machine_secret, secret_without_ledger
from sessionlog.ledger.opening import next_step, open_ledger
from sessionlog.ledger.parquet_schema import TABLES
from sessionlog.ledger.refreshing import refresh
from sessionlog.places import state_home, user_home

if TYPE_CHECKING:
    from sessionlog.analytics.question import Options, Paths
    from sessionlog.export.parquet_run import ParquetRun
    from sessionlog.ledger.book import Book

Progress = Callable[[int, int], None]

KEY_VARIABLE = "SESSIONLOG_REDACT_KEY"
"""The variable that has the key of hashed names, for machines whose projects are to be grouped together."""

_NAMED = 5
"""Problems that the JSON document names."""

_OF_REQUESTS = frozenset({"provider", "model"})
"""Filters that tool calls do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedParquet:
    """What an export has written.

    Attributes:
        destination: Where to, without a password.
        machine_id: The id of this machine's ledger, or of its logs without a ledger.
        machine_name: Its name for people; None if it is not written.
        dry_run: Nothing was written: these are the numbers of what would be.
        usage: Rows of the table `usage`, first and later revisions.
        sessions: Rows of `sessions`.
        tools: Rows of `tools`.
        deleted: Tombstones, in all tables.
        unchanged: Rows of all tables that the destination had before, and which stay as they are.
        merged: Files that were replaced by merged ones.
        files: New files, without the manifest and merged ones.
        bytes: Their size.
        manifest: The name of the manifest; empty if nothing was written.
        problem_count: Problems of the logs.
        problems: The first of them.
        notes: Sentences about the ledger, and about files that could not be merged or removed.
    """

    destination: str
    machine_id: str
    machine_name: str | None
    dry_run: bool
    usage: int
    sessions: int
    tools: int
    deleted: int
    unchanged: int
    merged: int
    files: int
    bytes: int
    manifest: str
    problem_count: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to write, written before or not."""
        return not (self.usage or self.sessions or self.tools or self.deleted or self.unchanged)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in ("problem_count", "problems")}
        problems = {"count": self.problem_count, "first": [str(problem) for problem in self.problems[:_NAMED]]}
        return {"schema": "sessionlog.export.parquet/1", **fields, "problems": problems}


def export_parquet(
    destination: str,
    *,
    paths: Paths = None,
    machine_name: str | None = None,
    redact_projects: bool = False,
    compact: bool = False,
    dry_run: bool = False,
    sent: Progress | None = None,
    **options: Unpack[Options],
) -> ExportedParquet:
    """Write what is new in a ledger's file to a folder, or to a URL of a file system that fsspec knows.

    Args:
        destination: A folder, or a URL such as `s3://bucket/team`. It may have the exports of other machines.
        paths: Files and folders of logs to export without a ledger, as a machine of their own; what was exported of
            others before stays. None for the ledger.
        machine_name: The machine's name for people; by default the host's, with `redact_projects` none.
        redact_projects: Write hashes of projects and branches, with the key `$SESSIONLOG_REDACT_KEY`, else with one of
            this machine alone.
        compact: Merge this machine's files now, into one for each table and month; otherwise from 25 of them on.
        dry_run: Count what would be written, and write nothing.
        sent: Called with (rows compared, rows in all).
        options: See `Question`; without `paths`, `ledger` is needed. Filters choose responses by the copy that counts,
            with all copies of these; tool calls have no provider and no model: filters of these leave them out.

    Raises:
        MissingExtra: The extra `parquet`, or for a URL `remote`, is not installed.
        NotExported: The ledger cannot be used, the destination cannot be read or written, or what it has is damaged.
        InvalidQuery: A filter or source is unknown, or the export would be neither of a ledger's file nor of paths.
        InvalidWindow: The window is outside the grammar.
    """
    if find_spec("duckdb") is None:
        raise MissingExtra("export to parquet needs: pip install 'sessionlog[parquet]'")
    question = Question(paths=paths, **options)
    if question.live or (question.ledger is None and paths is None):
        raise InvalidQuery(
            "an export to parquet is of the ledger's file, with the records of deleted logs, or of --path"
        )
    question.selection(Selection)
    check_source_names(question.filters)
    env = os.environ if question.env is None else question.env
    target = open_destination(destination)
    try:
        with ExitStack() as stack:
            book, secret = _open(question, env)
            stack.callback(book.close)
            ledger = None if question.paths is not None else os.fspath(question.ledger or "")
            machine = stack.enter_context(open_machine(book, ledger, target, secret, env, is_dry=dry_run))
            key = env.get(KEY_VARIABLE, "").encode() or machine.secret if redact_projects else None
            if machine_name is None and not redact_projects:
                machine_name = platform.node() or None
            projects = ProjectNames(home=user_home(env), key=key)
            export = _Export(book, target, machine, question, projects)
            return export.run(machine_name, compact=compact, is_dry=dry_run, sent=sent)
    except NotExported:
        raise
    except LedgerUnusable as error:
        raise NotExported(str(error)) from error
    except sqlite3.Error as error:
        raise NotExported(f"{os.fspath(question.ledger or '')}: {error}; {next_step(error)}") from error
    except OSError as error:
        raise NotExported(f"{state_home(env)}: {files.reason_of(error)}") from error


def _open(question: Question, env: Mapping[str, str]) -> tuple[Book, bytes]:
    """Return the ledger, with what is new in the logs, or the given logs in memory; and the machine's secret."""
    scan = scanner(question.executor, question.jobs)
    if question.paths is not None:
        paths = log_paths(question.paths) or []
        book = load_book(paths, question.price_book(), env=env, scanner=scan, progress=question.progress)
        return book, secret_without_ledger(copy_path(state_home(env), None))
    path = os.fspath(question.ledger or "")
    book = open_ledger(path, question.price_book())
    try:
        refresh(book, env, scanner=scan, progress=question.progress)
        return book, machine_secret(book, copy_path(state_home(env), path))
    except BaseException:
        book.close()
        raise


class _Export:
    """An export for which everything is open."""

    def __init__(
        self,
        book: Book,
        target: Destination,
        machine: Machine,
        question: Question,
        projects: ProjectNames,
    ) -> None:
        self._book, self._target, self._machine, self._question = book, target, machine, question
        self._projects, self._revisions = projects, machine.revisions
        self._requests = question.selection(Selection)

    def run(self, machine_name: str | None, *, compact: bool, is_dry: bool, sent: Progress | None) -> ExportedParquet:
        """Write what is new, then the manifest, then what the next export needs to know."""
        newest = self._machine.newest
        unknown = self._revisions.unknown_files(newest)
        files, known = newest.files, self._revisions.count()
        run: ParquetRun | None = None
        with self._book.reading():
            before, after = self._revisions.watermark, self._watermark()
            is_same, sessions = self._changed(before, after)
            begins_anew = bool(newest.names) and not is_same and self._question.paths is None
            if begins_anew:
                self._revisions.forget_sessions()
            has_earlier = begins_anew or has_earlier_rows(self._book.connection, self._name)
            if unknown:
                sessions = None  # what others have deleted is written again
            if unknown or compact or sessions is None or sessions:
                from sessionlog.export.parquet_files import ParquetEncoder
                from sessionlog.export.parquet_run import ParquetRun

                with ParquetEncoder(self._machine.id) as encoder:
                    run = ParquetRun(self._target, self._machine.id, newest, self._revisions, encoder, is_dry=is_dry)
                    run.read(unknown)
                    known = self._revisions.count()
                    rows = self._rows(encoder.name)
                    run.write_changes(
                        rows,
                        self._book.priced_from,
                        sessions,
                        has_tombstones=is_same,
                        has_earlier=has_earlier,
                        sent=sent,
                    )
                    if not is_dry:
                        run.merge(most_parts=1) if compact else run.merge()
                        files = tuple(run.list_files()) if run.written or run.merged else files
        manifest, notes = newest, [*self._machine.notes, *(run.notes if run else ())]
        if not is_dry:
            if begins_anew:
                note_earlier_rows(self._book.connection, self._name)
            if self._question.paths is None and before != after:
                note_exported(self._book.connection, self._name, before["change"] if before else None, after["change"])
            if files and (files != newest.files or machine_name != newest.machine_name):
                manifest = self._write_manifest(newest, files, machine_name)
            if before != after or manifest != self._revisions.manifest:
                self._revisions.commit(manifest, after)
            try:
                self._machine.manifests.remove_old(datetime.now(UTC))
            except NotExported as error:
                notes.append(f"old files are not removed: {error}")
        notes += self._machine.manifests.notes
        return self._exported(run, known, manifest if manifest != newest else None, machine_name, notes, is_dry=is_dry)

    def _write_manifest(self, newest: Manifest, files: Sequence[File], machine_name: str | None) -> Manifest:
        manifest, data = self._machine.manifests.encode(newest, files, machine_name, datetime.now(UTC))
        if self._question.paths is None:
            note_manifests(self._book.connection, self._name, (*newest.names, *manifest.names))
        self._machine.manifests.write(manifest, data)
        return manifest

    @property
    def _name(self) -> str:
        """The name of the destination in the ledger."""
        return name_of(self._target)

    def _watermark(self) -> dict[str, Any]:
        """Return what this export sees: the ledger's last change, and which of its rows."""
        window, filters = self._requests.window, sorted((key, list(of)) for key, of in self._requests.filters.items())
        columns = [(table, list(columns)) for table, columns in TABLES.items()]
        key = blake2b(self._projects.key or b"", digest_size=16).hexdigest()
        return {
            "change": last_change(self._book.connection),
            "choice": digest_of(repr(filters), repr(columns), key).hex(),
            "start": None if window is None else window.start_ns,
            "end": None if window is None else window.end_ns,
        }

    def _changed(self, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> tuple[bool, list[int] | None]:
        """Return whether this ledger made the last export, and the sessions to read; None for all.

        A ledger that was made anew, or restored from a backup, has lost rows without a deletion: these stay.
        """
        connection = self._book.connection
        until = None if self._question.paths is not None else exported_until(connection, self._name)
        if until is None or (before is not None and before["change"] not in until):
            return False, None
        if before is None or before["choice"] != after["choice"] or not _is_inside(after, before):
            return True, None
        return True, changed_since(connection, before["change"])

    def _rows(self, add_names: AddNames) -> LedgerRows:
        has_calls = _OF_REQUESTS.isdisjoint(self._question.filters or {})
        calls = self._question.selection(CallSelection) if has_calls else None
        return LedgerRows(self._book, self._requests, calls, self._projects, self._machine.secret, add_names)

    def _exported(
        self,
        run: ParquetRun | None,
        known: int,
        manifest: Manifest | None,
        machine_name: str | None,
        notes: Sequence[str],
        *,
        is_dry: bool,
    ) -> ExportedParquet:
        counts = run.counts if run else dict.fromkeys((*TABLES, "deleted"), 0)
        written = run.written if run else []
        return ExportedParquet(
            destination=self._target.place,
            machine_id=self._machine.id,
            machine_name=machine_name,
            dry_run=is_dry,
            unchanged=known - (run.replaced if run else 0),
            merged=run.merged if run else 0,
            files=len(written),
            bytes=sum(file["bytes"] for file in written),
            manifest=self._machine.manifests.path(manifest.names[0]) if manifest else "",
            problem_count=self._book.problem_count,
            problems=tuple(self._book.problems),
            notes=(*self._book.notes, *notes),
            **counts,
        )


def _is_inside(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    """Whether the time of a watermark is within that of another one."""
    starts = outer["start"] is None or (inner["start"] is not None and inner["start"] >= outer["start"])
    return starts and (outer["end"] is None or (inner["end"] is not None and inner["end"] <= outer["end"]))
