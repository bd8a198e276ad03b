"""Sync: bring the ledger up to date with the logs that exist.

An unchanged log costs one stat. A log that has grown is read from where the last scan ended; after any other change it
is read from the start; the rows of a log that is gone are kept, and it is marked as missing. The rows of a scan and its
offset are inserted in one transaction, and only if no other process has read that log meanwhile (compare-and-swap by
`stamp`).
"""

from __future__ import annotations

import marshal
import os
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sessionlog.errors import Problem
from sessionlog.ledger.checksums import write_checksums
from sessionlog.ledger.columns import File, insert
from sessionlog.ledger.identity import Identity, is_same, path_of, stored_path
from sessionlog.ledger.missing import Known, Missing
from sessionlog.ledger.problems import problems_of, problems_text
from sessionlog.ledger.scanning import SMALL_LOG, Job, Scanned, collector_off, head_of, identify_log, scan_job, tail_of
from sessionlog.ledger.schema import ELSEWHERE, GONE, HERE, UNREADABLE
from sessionlog.ledger.statements import select_rows
from sessionlog.ledger.trust import is_unreconciled
from sessionlog.ledger.writer import Writer
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Log, Resume, Source
from sessionlog.sources.record import Problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.ledger.book import Book

Progress = Callable[[int, int], None]
"""Called with (files done, files in all) during a scan."""

Scanner = Callable[[Sequence[Job], Mapping[str, Source], PriceBook], Iterator[Scanned]]
"""Scans jobs and prices their responses, in this process or in others, in any order."""

BATCH = 1 << 30
"""Bytes of logs after which their rows are committed, so that an interrupted first sync is not lost."""

_TOGETHER = 4 << 20  # bytes of logs between two runs of the garbage collector

_LONG = frozenset({"source", "head", "print", "prefix", "named", "checksum"})
_KNOWN = f"SELECT {', '.join(f'NULL AS {name}' if name in _LONG else name for name in File._fields)} FROM files"  # noqa: S608 - names of the schema
"""The columns that show whether a log has changed; the long ones are read later, for changed logs only."""
_INSERT = insert("files", File._fields)


class LedgerBusy(Exception):
    """Another process is writing to the ledger: use it without the newest logs."""


@contextmanager
def without_waiting(connection: sqlite3.Connection) -> Iterator[None]:
    """Do not wait for locks inside the block.

    Raises:
        LedgerBusy: Another process holds the lock.
    """
    [(wait,)] = connection.execute("PRAGMA busy_timeout")
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" not in str(error) and "busy" not in str(error):
            raise
        raise LedgerBusy from error
    finally:
        connection.execute(f"PRAGMA busy_timeout = {wait}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The result of a sync.

    Attributes:
        files: Logs that exist.
        read: Logs that were read, wholly or in part.
        missing: Logs that are gone since the last sync.
        failed: Logs that could not be read, or are out of reach.
    """

    files: int
    read: int
    missing: int
    failed: int = 0


def scan_here(jobs: Sequence[Job], sources: Mapping[str, Source], prices: PriceBook) -> Iterator[Scanned]:
    """Scan one log after the other; the garbage collector runs once for some of them."""
    for some in _batches(jobs):
        with collector_off():
            for job in some:
                yield scan_job(job, prices, sources.get(job.source))


def _batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    some, size = list[Job](), 0
    for job in jobs:
        some.append(job)
        size += job.size + SMALL_LOG
        if size > _TOGETHER:
            yield some
            some, size = [], 0
    if some:
        yield some


def sync(
    book: Book,
    listed: Iterable[Log | Problem],
    *,
    scanner: Scanner = scan_here,
    progress: Progress | None = None,
    places: Sequence[str] | None = (os.sep,),
) -> Synced:
    """Bring a ledger up to date with these logs.

    Args:
        book: The ledger.
        listed: All logs that exist, and problems of listing. Best a generator, so that logs are listed after the
            ledger's rows were read: then rows that another process inserts meanwhile are not taken for missing logs.
        scanner: The function that scans jobs.
        progress: Called after every log.
        places: The places that were searched: a known log there that does not exist is `GONE`, any other one that is
            not listed is `ELSEWHERE`. None: logs that are not listed keep their state.
    """
    if places is None:
        listed = list(listed)
        stored = [(stored_path(item.path),) for item in listed]
        rows: Iterable[Any] = (
            row for path in stored for row in select_rows(book.connection, File, "files r WHERE path = ?", path)
        )
    else:
        rows = map(File._make, book.connection.execute(_KNOWN))
    known = _Known(rows)
    plan = _Plan(book, known)
    for item in listed:
        plan.add(item)
    lost, failed = ({}, 0) if places is None else _lost(book, known, plan, places)
    total = len(plan.seen) + plan.unlisted
    done = total - len(plan.jobs)
    if progress is not None and not plan.jobs and total:
        progress(total, total)
    if not (plan.jobs or lost or plan.back or is_unreconciled(book.connection)):
        return Synced(files=len(plan.seen), read=0, missing=0, failed=failed)
    inserter = _Inserter(book, known, plan)
    inserter.begin(lost)
    try:
        for scanned in scanner(plan.jobs, plan.sources, book.prices):
            inserter.insert(scanned)
            done += 1
            if progress is not None:
                progress(done, total)
        inserter.commit(is_last=True)
    except BaseException:
        inserter.roll_back()
        raise
    gone = sum(why == GONE for why in lost.values())
    return Synced(files=len(plan.seen), read=len(plan.jobs), missing=gone, failed=failed + inserter.failed)


class _Plan:
    """Which logs have to be read, and from which offset.

    Attributes:
        seen: Paths of all logs.
        sources: Their sources by id.
        jobs: The logs to read.
        back: Ids of unchanged logs that were missing.
        unlisted: Number of places and files that could not be listed or recognised.
        unreadable: Those that could not be listed.
    """

    def __init__(self, book: Book, known: Mapping[str, File]) -> None:
        self._book, self._known = book, known
        self._is_kept = any(file for _, _, file in book.connection.execute("PRAGMA database_list"))
        self.seen: set[str] = set()
        self.sources: dict[str, Source] = {}
        self.jobs: list[Job] = []
        self.back: list[int] = []
        self.unlisted = 0
        self.unreadable: list[str] = []

    def add(self, item: Log | Problem) -> None:
        """Compare a log with its row, or note a problem of listing."""
        if isinstance(item, Problem):
            self.unlisted += 1
            if item.severity == "info":
                self._book.unrecognised += 1
                return
            self._book.note(Problems(count=1, first=(item,)))
            if item.kind == "unreadable":
                self.unreadable.append(item.path)
            return
        self.seen.add(item.path)
        self.sources[item.source.id] = item.source
        identity = identify_log(item.source, item.path)
        row = self._known.get(item.path)
        if row is not None and identity is not None and is_current(row, item.source.parser_version, identity):
            if row.missing:
                self.back.append(row.id)
            return
        if row is not None:
            row = next(select_rows(self._book.connection, File, "files r WHERE id = ?", (row.id,)), None)
        resume = None if row is None or identity is None else self._resume(row, item, identity)
        self.jobs.append(
            Job(
                number=len(self.jobs),
                source=item.source.id,
                path=item.path,
                size=0 if identity is None else identity[2] - (resume.offset if resume is not None else 0),
                resume=resume,
                prefix="" if row is None else row.prefix,
                again=self._is_kept,
            )
        )

    def _resume(self, row: File, log: Log, identity: Identity) -> Resume | None:
        """Where a scan may be resumed: in the same file, if it has grown and all its problems are stored."""
        offset = row.offset
        old = _identity_of(row)
        same = old[:2] == identity[:2] and old[5] == identity[5] and (row.source, row.parser) == (
            log.source.id,
            log.source.parser_version,
        )  # fmt: skip
        grown = identity[2] > old[2] or (identity[2:5] == old[2:5] and not row.settled)
        if not (offset and same and grown) or row.missing == UNREADABLE:
            return None
        named = problems_of(row.named)
        if len(named) != row.problems or any(problem.kind == "bad_compression" for problem in named):
            return None  # damage of a packed log affects all rows behind it
        [*state] = self._book.connection.execute("SELECT state FROM resumes WHERE file_id = ?", (row.id,))
        return Resume(offset=offset, line=row.line, state=state[0][0]) if state else None


class _Known(Mapping[str, File]):
    """Path → row of each known log; rows are packed and without the path, because there may be very many."""

    def __init__(self, rows: Iterable[File]) -> None:
        self._packed = {path_of(row.path): marshal.dumps(tuple(row._replace(path=None))) for row in rows}

    def __getitem__(self, path: str) -> File:
        return File._make(marshal.loads(self._packed[path]))._replace(path=stored_path(path))  # noqa: S302 - packed here

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def is_current(row: File, parser: int, identity: Identity) -> bool:
    """Whether a log is unchanged since it was read, and was read by the present version of its parser."""
    return bool(
        row.settled and row.parser == parser and row.missing != UNREADABLE and is_same(_identity_of(row), identity)
    )


def _lost(book: Book, known: Mapping[str, File], plan: _Plan, places: Sequence[str]) -> tuple[dict[int, int], int]:
    """Return id → new value of `missing` for known logs that are not listed, and how many logs are out of reach.

    The places of these become problems of the book.
    """
    missing = Missing(places, plan.seen, plan.unreadable)
    lost = {}
    for path in known:
        if path not in plan.seen:
            row = known[path]
            log = Known(path, row.id, row.missing, row.device)
            why = missing.why(log)
            if log.missing != why:
                lost[log.file_id] = why
    for problem in missing.problems:
        book.note(Problems(count=1, first=(problem,)))
    return lost, missing.unreadable


class _Inserter:
    """Inserts the results of scans, in transactions of many logs."""

    def __init__(self, book: Book, known: Mapping[str, File], plan: _Plan) -> None:
        self._book, self._known, self._plan = book, known, plan
        self._writer: Writer | None = None
        self._paused: Writer | None = None
        self._bytes = 0
        self._is_marked = False  # whether `missing` changed for any log
        self.failed = 0
        self._new = array("q")  # numbers of the jobs whose logs are new, or were replaced

    def begin(self, lost: Mapping[int, int]) -> None:
        """Start writing, or raise `LedgerBusy` at once; mark the logs that are gone and those that are back."""
        with without_waiting(self._book.connection):
            writer = self._open()
        update = "UPDATE files SET missing = ?, stamp = stamp + 1 WHERE id = ? AND stamp = ?"
        changes = {**lost, **dict.fromkeys(self._plan.back, HERE)}
        changed = [row for row in self._known.values() if row.id in changes] if changes else []
        stamps = {row.id: row.stamp for row in changed}
        missing = {row.id: row.missing for row in changed}
        self._book.connection.executemany(update, [(why, one, stamps[one]) for one, why in changes.items()])
        for file_id, why in changes.items():
            if ELSEWHERE in {why, missing[file_id]}:
                writer.move(file_id, counts=why != ELSEWHERE)
        writer.touch(changes)
        self._is_marked = bool(changes)

    def _open(self) -> Writer:
        if self._writer is None:
            self._book.connection.execute("BEGIN IMMEDIATE")
            if self._book.meta("prices") not in {None, self._book.prices.fingerprint}:
                self._book.connection.execute("ROLLBACK")
                raise LedgerBusy  # another process has changed all prices, and a ledger has one price list
            if self._paused is None:
                self._writer = Writer(self._book.connection, self._book.prices)
            else:
                self._writer, self._paused = self._paused, None
                self._writer.resume()
        return self._writer

    def insert(self, scanned: Scanned) -> None:
        """Insert the result of a job, unless another process has read that log meanwhile."""
        job = self._plan.jobs[scanned.number]
        writer = self._open()
        before = self._known.get(job.path)
        found = select_rows(self._book.connection, File, "files r WHERE path = ?", (stored_path(job.path),))
        row = next(found, None)
        if (None if row is None else row.stamp) != (None if before is None else before.stamp):
            return
        if scanned.rows.failed:
            self._unreadable(row, scanned, writer)
            return
        values = _file_values(job, scanned, self._plan.sources[job.source].parser_version, row)
        file_id = values.id
        if row is None:
            file_id = int(self._book.connection.execute(_INSERT, values).lastrowid or 0)
        else:
            self._book.connection.execute(_INSERT, values)
        if row is None or _is_another(row, scanned, job.path):
            self._new.append(job.number)
        if row is not None and row.missing == ELSEWHERE:
            writer.move(file_id, counts=True)
        with collector_off():
            writer.insert(file_id, scanned.rows, from_start=scanned.from_start)
        if row is not None and row.missing:
            self._is_marked = True
            writer.touch([file_id])
        self._keep_state(file_id, scanned)
        self._bytes += job.size
        if self._bytes > BATCH:
            if writer.is_first and self._book.meta("synced") is None:
                self._pause(writer)
            else:
                self.commit()

    def _pause(self, writer: Writer) -> None:
        """Commit a batch of the first sync unreconciled: copies, totals and indexes are made once, at its end."""
        writer.pause()
        self._book.commit()
        self._paused, self._writer, self._bytes = writer, None, 0

    def _keep_state(self, file_id: int, scanned: Scanned) -> None:
        resume = scanned.rows.resume
        if resume is not None and scanned.prefix and isinstance(resume.state, bytes):
            self._book.connection.execute("INSERT OR REPLACE INTO resumes VALUES (?, ?)", (file_id, resume.state))

    def _unreadable(self, row: File | None, scanned: Scanned, writer: Writer) -> None:
        """Mark a log that cannot be read now: its rows stay, the report names it, and the next sync tries again."""
        self.failed += 1
        self._book.note(scanned.rows.problems)
        if row is not None and row.missing != UNREADABLE:
            self._book.connection.execute(
                "UPDATE files SET missing = ?, stamp = stamp + 1 WHERE id = ?", (UNREADABLE, row.id)
            )
            if row.missing == ELSEWHERE:
                writer.move(row.id, counts=True)
            writer.touch([row.id])
            self._is_marked = True

    def commit(self, *, is_last: bool = False) -> None:
        """Commit the batch, and drop the rows of logs that were only renamed; `is_last` ends the sync."""
        if self._paused is not None:
            self._open()
        if self._writer is not None:
            for file_id in self._moved():
                self._writer.drop(file_id)
                self._book.connection.execute("DELETE FROM files WHERE id = ?", (file_id,))
            self._writer.reconcile()
            if self._is_marked:
                write_checksums(self._book.connection)
            if is_last:
                self._book.set_meta("synced", str(time.time_ns()))
            self._book.commit()
            self._writer, self._bytes, self._new = None, 0, array("q")

    def _moved(self) -> list[int]:
        """Ids of logs that are gone and whose bytes begin a new log: it was renamed, moved, packed or unpacked."""
        if not self._new:
            return []
        sql = f"SELECT id, source, head, print, offset, size FROM files WHERE missing = {GONE} AND head <> ''"  # noqa: S608 - a number
        missing = self._book.connection.execute(sql).fetchall()
        counts = {int(head.partition(":")[0]) for _, _, head, *_ in missing}
        begun: dict[tuple[str, str], list[str]] = {}
        for job in map(self._plan.jobs.__getitem__, self._new if missing else ()):
            for count in filter(None, counts):
                begun.setdefault((job.source, head_of(job.path, count)), []).append(job.path)
        return [
            file_id
            for file_id, source, head, tail, offset, size in missing
            if tail and any(tail_of(path, offset or size) == tail for path in begun.get((source, head), ()))
        ]

    def roll_back(self) -> None:
        """Discard the batch; the next sync reads its logs again."""
        if self._writer is not None:
            self._writer = None
            if self._book.connection.in_transaction:
                self._book.connection.execute("ROLLBACK")


def _is_another(row: File, scanned: Scanned, path: str) -> bool:
    """Whether a known path now has another log; a log that only grew is the same, even if it was read whole."""
    known: str = row.head
    if not scanned.from_start or known == scanned.head:
        return False
    same = scanned.identity is not None and scanned.identity[:2] == (row.device, row.inode)
    count = int(known.partition(":")[0] or 0)
    return not (same and count and head_of(path, count) == known)


def _file_values(job: Job, scanned: Scanned, parser: int, row: File | None) -> File:
    resume, problems = scanned.rows.resume, scanned.rows.problems
    if not scanned.from_start and row is not None and job.resume is not None:
        before = [one for one in problems_of(row.named) if one.offset < job.resume.offset]
        problems = Problems(count=problems.count + len(before), first=(*before, *problems.first))
    device, inode, size, mtime_ns, ctime_ns, beside = scanned.identity or (0, 0, 0, 0, 0, "")
    return File(
        id=None if row is None else row.id,
        path=stored_path(job.path),
        source=job.source,
        parser=parser,
        device=device,
        inode=inode,
        size=size,
        mtime_ns=mtime_ns,
        ctime_ns=ctime_ns,
        beside=beside,
        settled=scanned.settled and scanned.identity is not None,
        offset=scanned.offset,
        line=0 if resume is None else resume.line,
        head=scanned.head,
        print=scanned.print,
        prefix=scanned.prefix,
        missing=HERE,
        stamp=1 if row is None else row.stamp + 1,
        problems=problems.count,
        named=problems_text(problems),
    )


def _identity_of(row: File) -> Identity:
    """Return the identity that a log had when it was read."""
    return row.device, row.inode, row.size, row.mtime_ns, row.ctime_ns, row.beside
