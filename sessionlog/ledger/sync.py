"""Sync: bring the ledger up to date with the logs that exist.

An unchanged log costs one stat. A log that has grown is read from where the last scan ended; after any other change it
is read from the start; the rows of a log that is gone are kept, and it is marked as missing (see `plan`). A scan finds
what is in a log (see `scanning`); its rows are made here and inserted, or by a worker that hands them over in a file
(see `handover`). The rows of a scan and its offset enter in one transaction, and only if no other process has read that
log meanwhile (compare-and-swap by `stamp`).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sessionlog.errors import Problem
from sessionlog.ledger.columns import File, insert
from sessionlog.ledger.handover import MOST_ATTACHED, HandedOver, HandOver
from sessionlog.ledger.identity import is_same, stored_path
from sessionlog.ledger.plan import Plan, identity_of
from sessionlog.ledger.problems import problems_of, problems_text
from sessionlog.ledger.scanning import Job, Scanned, head_of, scan_job, tail_of
from sessionlog.ledger.schema import ELSEWHERE, GONE, HERE, UNREADABLE
from sessionlog.ledger.statements import select_rows
from sessionlog.ledger.trust import is_unreconciled
from sessionlog.ledger.writer import Writer
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Log, Source
from sessionlog.sources.record import Problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.ledger.book import Book

Progress = Callable[[int, int], None]
"""Called with (files done, files in all) during a scan."""

Scanner = Callable[[Sequence[Job], Mapping[str, Source], PriceBook], Iterator[HandOver]]
"""Scans jobs, in this process or in others, in any order."""

BATCH = 1 << 30
"""Bytes of logs after which their rows are committed, so that an interrupted first sync is not lost."""

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


def scan_here(jobs: Sequence[Job], sources: Mapping[str, Source], prices: PriceBook) -> Iterator[HandOver]:  # noqa: ARG001 - a `Scanner`
    """Scan one log after the other in this process."""
    return (HandOver(logs=[scan_job(job, sources.get(job.source))]) for job in jobs)


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
    plan = Plan(book, listed, places)
    total = len(plan.seen) + plan.unlisted
    done = total - len(plan.jobs)
    if progress is not None and not plan.jobs and total:
        progress(total, total)
    if not (plan.jobs or plan.missing or is_unreconciled(book.connection)):
        return Synced(files=len(plan.seen), read=0, missing=0, failed=plan.failed)
    inserter = _Inserter(book, plan)
    try:
        inserter.begin()
        for handed_over in scanner(plan.jobs, plan.sources, book.prices):
            for _ in inserter.insert(handed_over):
                done += 1
                if progress is not None:
                    progress(done, total)
        inserter.commit(is_last=True)
    finally:
        inserter.close()
    gone = sum(why == GONE for why in plan.missing.values())
    return Synced(files=len(plan.seen), read=len(plan.jobs), missing=gone, failed=plan.failed + inserter.failed)


class _Inserter:
    """Inserts the results of scans, in transactions of many logs.

    Attributes:
        failed: How many logs could not be read.
    """

    def __init__(self, book: Book, plan: Plan) -> None:
        self._book, self._plan, self._connection = book, plan, book.connection
        self._writer: Writer
        self._handed = HandedOver(book.connection)
        self._bytes = 0
        self._new: list[Job] = []  # whose logs are new, or were replaced
        self.failed = 0

    def begin(self) -> None:
        """Start writing, or raise `LedgerBusy` at once; mark the logs that are gone and those that are back."""
        with without_waiting(self._connection):
            self._begin()
        self._writer = Writer(self._connection, self._book.prices)
        for row in self._plan.known.values() if self._plan.missing else ():
            if row.id in self._plan.missing:
                self._mark(row, self._plan.missing[row.id])

    def _mark(self, row: File, missing: int) -> None:
        """Set whether a log is missing, unless another process has read it meanwhile."""
        sql = "UPDATE files SET missing = ?, stamp = stamp + 1 WHERE id = ? AND stamp = ?"
        self._connection.execute(sql, (missing, row.id, row.stamp))
        if ELSEWHERE in {missing, row.missing}:
            self._writer.move(row.id, counts=missing != ELSEWHERE)
        self._writer.touch([row.id])

    def _begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        if self._book.meta("prices") not in {None, self._book.prices.fingerprint}:
            raise LedgerBusy  # another process has changed all prices, and a ledger has one price list

    def insert(self, handed_over: HandOver) -> Iterator[None]:
        """Insert the results of some jobs, and yield after each."""
        if not self._connection.in_transaction:
            self._begin()
            self._writer.resume()
        handed = self._handed if handed_over.file or handed_over.data else None
        if handed is not None:
            handed.attach(handed_over, self._writer.ids)
        for scanned in handed_over.logs:
            self._insert(scanned, handed)
            yield
        if self._bytes > BATCH or len(self._handed) == MOST_ATTACHED:
            self.commit()

    def _insert(self, scanned: Scanned, handed: HandedOver | None) -> None:
        """Insert the result of a job, unless another process has read that log meanwhile."""
        job = self._plan.jobs[scanned.number]
        self._bytes += job.size
        before = self._plan.known.get(job.path)
        row = next(select_rows(self._connection, File, "files r WHERE path = ?", (stored_path(job.path),)), None)
        if (None if row is None else row.stamp) != (None if before is None else before.stamp):
            return
        if scanned.failed:  # its rows stay, the report names it, and the next sync tries again
            self.failed += 1
            self._book.note(scanned.scan.problems)
            if row is not None and row.missing != UNREADABLE:
                self._mark(row, UNREADABLE)
            return
        if row is not None and row.missing:
            self._mark(row, HERE)
        values = _file_values(job, scanned, self._plan.sources[job.source].parser_version, row)
        file_id = self._connection.execute(_INSERT, values).lastrowid or 0
        if row is None or _is_another(row, scanned, job.path):
            self._new.append(job)
        self._writer.insert(file_id, scanned, handed, was_rewritten=_was_rewritten(row, scanned, values))
        resume = scanned.scan.resume
        if resume is not None and scanned.prefix and isinstance(resume.state, bytes):
            self._connection.execute("INSERT OR REPLACE INTO resumes VALUES (?, ?)", (file_id, resume.state))

    def commit(self, *, is_last: bool = False) -> None:
        """Commit the batch, and drop the rows of logs that were only renamed; `is_last` ends the sync.

        In a first sync copies, totals and indexes are made once, at its end.
        """
        if not self._connection.in_transaction:
            self._begin()
            self._writer.resume()
        if self._writer.is_first and not is_last and self._book.meta("synced") is None:
            self._writer.pause()
        else:
            for file_id in self._moved():
                self._writer.drop(file_id)
                self._connection.execute("DELETE FROM files WHERE id = ?", (file_id,))
            self._writer.reconcile()
            self._new = []
        if is_last:
            self._book.set_meta("synced", str(time.time_ns()))
        self._book.commit()
        self._handed.detach()
        self._bytes = 0

    def _moved(self) -> list[int]:
        """Ids of logs that are gone and whose bytes begin a new log: it was renamed, moved, packed or unpacked."""
        sql = f"SELECT id, source, head, print, offset, size FROM files WHERE missing = {GONE} AND head <> ''"  # noqa: S608 - a number
        missing = self._connection.execute(sql).fetchall() if self._new else []
        counts = {int(head.partition(":")[0]) for _, _, head, *_ in missing}
        begun: dict[tuple[str, str], list[str]] = {}
        for job in self._new if missing else ():
            for count in filter(None, counts):
                begun.setdefault((job.source, head_of(job.path, count)), []).append(job.path)
        return [
            file_id
            for file_id, source, head, tail, offset, size in missing
            if tail and any(tail_of(path, offset or size) == tail for path in begun.get((source, head), ()))
        ]

    def close(self) -> None:
        """Discard what was not committed: the next sync reads its logs again."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._handed.detach()


def _was_rewritten(row: File | None, scanned: Scanned, values: File) -> bool:
    """Whether a log has changed since it was read by the same parser."""
    if row is None or scanned.identity is None or (row.source, row.parser) != (values.source, values.parser):
        return False
    return not is_same(identity_of(row), scanned.identity)


def _is_another(row: File, scanned: Scanned, path: str) -> bool:
    """Whether a known path now has another log; a log that only grew is the same, even if it was read whole."""
    known: str = row.head
    if not scanned.from_start or known == scanned.head:
        return False
    same = scanned.identity is not None and scanned.identity[:2] == (row.device, row.inode)
    count = int(known.partition(":")[0] or 0)
    return not (same and count and head_of(path, count) == known)


def _file_values(job: Job, scanned: Scanned, parser: int, row: File | None) -> File:
    resume, problems = scanned.scan.resume, scanned.scan.problems
    if not scanned.from_start and row is not None and job.resume is not None:
        before = [one for one in problems_of(row.named) if one.offset < job.resume.offset]
        problems = Problems(count=problems.count + len(before), first=(*before, *problems.first))
    return File(
        None if row is None else row.id,
        stored_path(job.path),
        job.source,
        parser,
        *(scanned.identity or (0, 0, 0, 0, 0, "")),
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
