"""Export to parquet: what the ledger knows as immutable files, for one total of many machines.

Each export writes files of new and changed rows, then one manifest that lists them with their digests. Readers read
the files of manifests, so that nothing of an export that was killed is read. A file is never changed: a row that has
changed is written again with a higher revision, one that the ledger has no more as a tombstone. Costs stay as they were
exported while the row itself does. Only names and numbers are written, never prompts, answers or errors.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from sessionlog._version import __version__
from sessionlog.analytics.question import Question, check_source_names
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tools import CallSelection
from sessionlog.engine.scanner import scanner
from sessionlog.errors import InvalidQuery, LedgerUnusable, MissingExtra, NotExported, Problem
from sessionlog.export.destination import Destination, open_destination
from sessionlog.export.ledger_rows import LedgerRow, LedgerRows
from sessionlog.export.position import position_path
from sessionlog.export.project_names import ProjectNames
from sessionlog.export.revisions import PAGE, Revisions, Written
from sessionlog.fast_dataclasses import dataclass
from sessionlog.ledger.ask import refresh
from sessionlog.ledger.machine import machine_id, machine_secret
from sessionlog.ledger.parquet_schema import SCHEMA_VERSION, TABLES
from sessionlog.ledger.store import open_ledger
from sessionlog.places import state_home, user_home

if TYPE_CHECKING:
    from sessionlog.analytics.question import Options
    from sessionlog.export.parquet_files import ParquetEncoder
    from sessionlog.ledger.book import Book

Progress = Callable[[int, int], None]

MANIFEST = "sessionlog.export.manifest/1"
KEY_VARIABLE = "SESSIONLOG_REDACT_KEY"
"""The variable that has the key of hashed names, for machines whose projects are to be grouped together."""

NO_DATE = "__HIVE_DEFAULT_PARTITION__"
"""The date of what has no time, as Hive, Spark and DuckDB write null."""

_MOST_ROWS = 50_000  # of a file, which is in memory as a whole, about 2 MB; DuckDB needs 100 MB for them
_NAMED = 5
"""Problems that the JSON document names."""

_OF_REQUESTS = frozenset({"provider", "model"})
"""Filters that tool calls do not have."""

_STANDING = ("counts", "replaced")
_COSTS = ("estimated_nano_usd", "saved_nano_usd", "price_list")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedParquet:
    """What an export has written.

    Attributes:
        destination: Where to, without a password.
        machine_id: The id of this machine's ledger.
        dry_run: Nothing was written: these are the numbers of what would be.
        usage: Rows of the table `usage`, first and later revisions.
        sessions: Rows of `sessions`.
        tools: Rows of `tools`.
        deleted: Tombstones, in all tables.
        unchanged: Rows of all tables that the destination has already.
        files: Files, without the manifest.
        bytes: Their size.
        manifest: The name of the manifest; empty if nothing was written.
        problem_count: Problems of the logs.
        problems: The first of them.
        notes: Sentences about the ledger.
    """

    destination: str
    machine_id: str
    dry_run: bool
    usage: int
    sessions: int
    tools: int
    deleted: int
    unchanged: int
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
    redact_projects: bool = False,
    dry_run: bool = False,
    sent: Progress | None = None,
    **options: Unpack[Options],
) -> ExportedParquet:
    """Write what is new in a ledger's file to a folder, or to a URL of a file system that fsspec knows.

    Args:
        destination: A folder, or a URL such as `s3://bucket/team`. It may have the exports of other machines.
        redact_projects: Write hashes of projects and branches, with the key `$SESSIONLOG_REDACT_KEY`, else with one of
            this machine alone.
        dry_run: Count what would be written, and write nothing.
        sent: Called with (tables done, tables in all) after each table.
        options: See `Question`; `ledger` is needed. Filters choose responses by the copy that counts, with all copies
            of these; tool calls have no provider and no model: filters of these leave them out.

    Raises:
        MissingExtra: The extra `parquet`, or for a URL `remote`, is not installed.
        NotExported: The ledger cannot be used, the destination cannot be read or written, or what it has is damaged.
        InvalidQuery: A filter or source is unknown, or the export would not be of a ledger's file.
        InvalidWindow: The window is outside the grammar.
    """
    try:
        from sessionlog.export.parquet_files import ParquetEncoder
    except ImportError as error:
        raise MissingExtra("export to parquet needs: pip install 'sessionlog[parquet]'") from error
    question = Question(**options)
    if question.ledger is None or question.paths is not None or question.live:
        raise InvalidQuery("an export to parquet is of the ledger's file, with the records of deleted logs")
    requests = question.selection(Selection)
    has_calls = _OF_REQUESTS.isdisjoint(question.filters or {})
    calls = question.selection(CallSelection) if has_calls else None
    check_source_names(question.filters)
    env = os.environ if question.env is None else question.env
    target = open_destination(destination)
    try:
        book = _up_to_date(question, env)
        try:
            secret = machine_secret(book)
            key = env.get(KEY_VARIABLE, "").encode() or secret if redact_projects else None
            machine = machine_id(secret)
            state = position_path(state_home(env), f"{machine} {target.place}")
            with book.reading(), Revisions(state) as revisions, ParquetEncoder() as encoder:
                names = ProjectNames(home=user_home(env), key=key)
                rows = LedgerRows(book, requests, calls, names, secret)
                run = _Run(target, machine, revisions, encoder, is_dry=dry_run)
                return run.write(book, rows, sent)
        finally:
            book.close()
    except LedgerUnusable as error:
        raise NotExported(str(error)) from error
    except sqlite3.Error as error:
        raise NotExported(f"{os.fspath(question.ledger)}: {error}; `sessionlog ledger verify` shows more") from error


def _up_to_date(question: Question, env: Mapping[str, str]) -> Book:
    """Open the ledger, and read what is new in the logs."""
    assert question.ledger is not None, "checked by the caller"
    book = open_ledger(os.fspath(question.ledger), question.price_book())
    try:
        refresh(book, env, scanner=scanner(question.executor, question.jobs), progress=question.progress)
    except BaseException:
        book.close()
        raise
    return book


class _Run:
    """One export: writes files, and counts what they hold."""

    def __init__(
        self, target: Destination, machine: str, revisions: Revisions, encoder: ParquetEncoder, *, is_dry: bool
    ) -> None:
        self._target, self._machine, self._revisions, self._encoder = target, machine, revisions, encoder
        self._is_dry = is_dry
        self._counts = dict.fromkeys((*TABLES, "deleted", "unchanged"), 0)
        self._files: list[dict[str, Any]] = []
        self._begun: tuple[str, int | None] = "", None

    def write(self, book: Book, rows: LedgerRows, sent: Progress | None) -> ExportedParquet:
        """Write all tables and the manifest, and return what was written."""
        self._read_manifests()
        for done, table in enumerate(TABLES, start=1):
            self._write_table(table, rows.read(table))
            if sent is not None:
                sent(done, len(TABLES))
        manifest = self._write_manifest() if self._files and not self._is_dry else ""
        return ExportedParquet(
            destination=self._target.place,
            machine_id=self._machine,
            dry_run=self._is_dry,
            files=len(self._files),
            bytes=sum(file["bytes"] for file in self._files),
            manifest=manifest,
            problem_count=book.problem_count,
            problems=tuple(book.problems),
            notes=tuple(book.notes),
            **self._counts,
        )

    def _write_table(self, table: str, rows: Iterator[LedgerRow]) -> None:
        while page := list(islice(rows, PAGE)):
            changed = self._revisions.changes(table, page)
            self._counts["unchanged"] += sum(row.is_selected for row in page) - len(changed)
            self._counts[table] += len(changed)
            for row, after in changed:
                self._add(table, row.day, after, {**row.values, **row.standing, **json.loads(after.costs)})
        for stone in self._revisions.tombstones(table):
            self._counts["deleted"] += 1
            self._add(table, stone.day, stone, {})
        self._end_file()

    def _add(self, table: str, day: int | None, row: Written, values: Mapping[str, Any]) -> None:
        if self._begun != (table, day) or self._encoder.count >= _MOST_ROWS:
            self._end_file()
            self._begun = table, day
        self._encoder.add(
            {"machine_id": self._machine, "record": row.id, "revision": row.revision, "deleted": row.deleted,
             "state": row.state, **values}
        )  # fmt: skip

    def _end_file(self) -> None:
        """Write the rows that wait as a file, named for its content: a second try after a kill gives the same one."""
        if not self._encoder.count:
            return
        table, day = self._begun
        count, data = self._encoder.count, self._encoder.encode(table)
        digest = sha256(data).hexdigest()
        path = f"{table}/v={SCHEMA_VERSION}/date={_date(day)}/machine={self._machine}/{digest[:32]}.parquet"
        if not self._is_dry:
            self._target.write(path, data)
        self._files.append(
            {"path": path, "table": table, "rows": count, "bytes": len(data), "sha256": digest,
             "schema": SCHEMA_VERSION}
        )  # fmt: skip

    def _write_manifest(self) -> str:
        now = datetime.now(UTC)
        document = {
            "schema": MANIFEST, "machine_id": self._machine, "written": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "sessionlog": __version__, "files": self._files,
        }  # fmt: skip
        data = json.dumps(document, indent=1).encode()
        name = f"{now:%Y-%m-%dT%H-%M-%SZ}-{sha256(data).hexdigest()[:16]}.json"
        self._target.write(f"{self._folder}/{name}", data)
        self._revisions.add_manifest(name)
        self._revisions.commit()
        return f"{self._folder}/{name}"

    @property
    def _folder(self) -> str:
        return f"manifest/v={SCHEMA_VERSION}/machine={self._machine}"

    def _read_manifests(self) -> None:
        """Note what the destination has by manifests that are not known: of an export that was killed, for example."""
        names = [name for name in self._target.names(self._folder) if name.endswith(".json") and name[0] != "."]
        for name in self._revisions.unknown_manifests(names):
            for file in self._files_of(f"{self._folder}/{name}"):
                self._revisions.add(file["table"], self._rows_of(file["path"], file))
            self._revisions.add_manifest(name)

    def _files_of(self, name: str) -> list[dict[str, Any]]:
        """Return the files that a manifest lists.

        Raises:
            NotExported: It is damaged, or of a newer version.
        """
        try:
            document = json.loads(self._target.read(name))
            found = [file for file in document["files"] if file["table"] in TABLES and file["sha256"] and file["path"]]
            if document["schema"] == MANIFEST and len(found) == len(document["files"]):
                return found
        except (ValueError, KeyError, TypeError):
            pass
        what = f"{self._target.place}/{name} is damaged, or of a newer sessionlog"
        raise NotExported(f"{what}; without it, what it lists is written again")

    def _rows_of(self, name: str, file: Mapping[str, Any]) -> Iterator[Written]:
        """Yield the rows of a file that the destination has.

        Raises:
            NotExported: It is not the file that the manifest lists.
        """
        data = self._target.read(name)
        if sha256(data).hexdigest() != file["sha256"]:
            raise NotExported(f"{self._target.place}/{name} is damaged: its digest is not that of the manifest")
        day = _day_of(name)
        standing, costs = (
            [column for column in some if column in TABLES[file["table"]]] for some in (_STANDING, _COSTS)
        )
        columns = ", ".join(("record", "revision", "deleted", "state", *standing, *costs))
        for row in self._encoder.decode(data, columns):
            (record, revision, deleted, state), values = row[:4], dict(zip((*standing, *costs), row[4:], strict=True))
            yield Written.of(
                record, revision, day, state, {name: values[name] for name in standing},
                {name: values[name] for name in costs}, deleted=deleted,
            )  # fmt: skip


def _date(day: int | None) -> str:
    """Return the date of a day since 1970, as it stands in paths."""
    return NO_DATE if day is None else (date(1970, 1, 1) + timedelta(days=day)).isoformat()


def _day_of(path: str) -> int | None:
    """Return the day in the path of a file."""
    [text] = [part.removeprefix("date=") for part in path.split("/") if part.startswith("date=")]
    return None if text == NO_DATE else (date.fromisoformat(text) - date(1970, 1, 1)).days
