"""Update: bring a search index up to date with the logs that its ledger knows.

The ledger finds the logs and sees which have changed; the index compares itself with the ledger's table of files in one
query. An unchanged log costs nothing, a grown one is read from where the last reading ended. A log that is read again
keeps the numbers of the items that it still has. The items of a log and how far it was read are committed together, and
only if no other process has read that log meanwhile.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from sessionlog.ledger.identity import path_of, stored_path
from sessionlog.ledger.schema import HERE
from sessionlog.ledger.sync import LedgerBusy, Progress, without_waiting
from sessionlog.ledger.trust import read_only
from sessionlog.search.current import ITEMS_VERSION, is_current, state_of
from sessionlog.search.extract import Batch, Extracted, Job, extract
from sessionlog.search.segments import item_numbers, numbers_of
from sessionlog.search.store import FORGET_CHECKSUMS, WORDS, store_checksums
from sessionlog.sources.protocol import Resume

Runner = Callable[[Sequence[Job]], Iterator[Extracted]]
"""Reads logs, in this process or in others, in any order."""

BATCH = 64 << 20
"""Bytes of logs after which their items are committed."""

_MANY = 200_000
"""Numbers without an item that a smaller index may have."""

_FIELDS = (
    "path", "source", "parser", "device", "inode", "size", "mtime_ns", "ctime_ns", "beside", "settled", "missing",
    "offset", "line", "prefix", "state", "stamp",
)  # fmt: skip
_IDENTITY = ("device", "inode", "size", "mtime_ns", "ctime_ns", "beside")
_SAME = " AND ".join(f"l.{name} = f.{name}" for name in _IDENTITY)
_CHANGED = f"""
SELECT f.path, f.source, f.size, l.id, l.stamp, l.offset, l.line, l.prefix, l.state,
    l.parser = f.parser * 1000 + {ITEMS_VERSION} AND l.device = f.device AND l.inode = f.inode AND l.size <= f.size
FROM ledger.files f LEFT JOIN logs l ON l.path = f.path
WHERE f.missing = {HERE}
    AND (l.id IS NULL OR l.parser <> f.parser * 1000 + {ITEMS_VERSION} OR NOT l.settled OR NOT ({_SAME}))
"""  # noqa: S608 - names of the schema
_PLACE = "SELECT l.id, f.missing FROM logs l JOIN ledger.files f ON f.path = l.path WHERE f.missing <> l.missing"
_FORGOTTEN = "SELECT id FROM logs WHERE path NOT IN (SELECT path FROM ledger.files)"
_SEGMENT = """INSERT INTO segments (log_id, session, is_tail, count, first, last, first_ns, last_ns, numbers, kinds,
    times, places, digests) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

Known = dict[tuple[str, int, int, int], list[int]]
"""(session, kind, time, digest) of an item → its numbers."""


def run_here(jobs: Sequence[Job]) -> Iterator[Extracted]:
    """Read one log after the other."""
    return map(extract, jobs)


def update(
    connection: sqlite3.Connection, ledger: str, *, runner: Runner = run_here, progress: Progress | None = None
) -> int:
    """Bring an index up to date with the ledger at a path; return how many logs were read.

    Raises:
        LedgerBusy: Another process is writing to the index.
        sqlite3.DatabaseError: The index or the ledger is damaged.
    """
    if is_current(connection, ledger):
        return 0
    state = state_of(ledger)
    connection.execute("ATTACH ? AS ledger", (read_only(ledger),))
    try:
        plan = connection.execute(_CHANGED).fetchall()
        moved = connection.execute(_PLACE).fetchall()
        forgotten = connection.execute(_FORGOTTEN).fetchall()
        parsers = dict(connection.execute("SELECT source, max(parser) FROM ledger.files GROUP BY source").fetchall())
    finally:
        connection.execute("DETACH ledger")
    if not (plan or moved or forgotten):
        if state is not None:
            with suppress(LedgerBusy), without_waiting(connection):  # else the next search compares again
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('ledger', ?)", (state,))
        return 0
    writer = _Writer(connection, parsers)
    try:
        with without_waiting(connection):
            writer.begin()
        connection.executemany(
            "UPDATE logs SET missing = ?, stamp = stamp + 1 WHERE id = ?", [(b, a) for a, b in moved]
        )
        for (log_id,) in forgotten:
            writer.forget(log_id)
        jobs = [_job(row) for row in plan]
        for done, extracted in enumerate(runner(jobs) if jobs else (), 1):
            writer.insert(extracted)
            if progress is not None:
                progress(done, len(jobs))
        writer.compact()
        writer.commit()
        with suppress(LedgerBusy), without_waiting(connection):  # another process stores them
            store_checksums(connection)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return len(jobs)


def _job(row: tuple[Any, ...]) -> Job:
    path, source, size, _, stamp, offset, line, prefix, state, grown = row
    resume = Resume(offset=offset, line=line, state=state) if grown and offset and prefix else None
    left = size - (offset if resume is not None else 0)
    return Job(path=path_of(path), source=source, size=max(0, left), stamp=stamp, resume=resume, prefix=prefix or "")


class _Writer:
    """Inserts the items of logs in transactions of many logs."""

    def __init__(self, connection: sqlite3.Connection, parsers: dict[str, int]) -> None:
        self._connection, self._parsers = connection, parsers
        self._bytes = 0
        self._next = self._dead = 0

    def begin(self) -> None:
        """Begin a transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        meta = dict(self._connection.execute("SELECT name, value FROM meta").fetchall())
        self._next, self._dead = meta.get("next", 1), meta.get("dead", 0)

    def commit(self) -> None:
        """End it."""
        values = [("next", self._next), ("dead", self._dead)]
        self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)
        self._connection.execute(FORGET_CHECKSUMS)
        self._connection.execute("COMMIT")
        self._bytes = 0

    def forget(self, log_id: int) -> None:
        """Delete a log and its items."""
        self._dead += sum(map(len, self._take_out(log_id, only_tail=False).values()))
        self._connection.execute("DELETE FROM logs WHERE id = ?", (log_id,))

    def insert(self, extracted: Extracted) -> None:
        """Insert the items of a log, unless another process has read it meanwhile, or it cannot be read now."""
        job, path = extracted.job, stored_path(extracted.job.path)
        row = self._connection.execute("SELECT id, stamp FROM logs WHERE path = ?", (path,)).fetchone()
        if (None if row is None else row[1]) != job.stamp or extracted.failed:
            for _ in extracted.batches:
                pass  # reading a spooled result deletes its file
            return
        log_id = self._write_log(None if row is None else row[0], extracted)
        known = self._take_out(log_id, only_tail=not extracted.from_start) if row is not None else {}
        for fields in extracted.batches:
            self._add(log_id, Batch(*fields), known)
        self._dead += sum(map(len, known.values()))
        self._bytes += job.size
        if self._bytes > BATCH:
            self.commit()
            self.begin()

    def _write_log(self, log_id: int | None, extracted: Extracted) -> int:
        job, resume = extracted.job, extracted.resume or Resume(offset=0)
        parser = self._parsers.get(job.source, 0) * 1000 + ITEMS_VERSION
        values = (
            log_id, stored_path(job.path), job.source, parser, *(extracted.identity or ()), extracted.settled, HERE,
            resume.offset, resume.line, extracted.prefix, resume.state, (job.stamp or 0) + 1,
        )  # fmt: skip
        marks = ", ".join("?" * len(values))
        sql = f"INSERT OR REPLACE INTO logs (id, {', '.join(_FIELDS)}) VALUES ({marks})"  # noqa: S608 - names of the schema
        return int(self._connection.execute(sql, values).lastrowid or 0)

    def _take_out(self, log_id: int, *, only_tail: bool) -> Known:
        """Delete the segments of a log, or those of its unfinished last row; return their items."""
        known: Known = {}
        sql = f"FROM segments WHERE log_id = ? {'AND is_tail' if only_tail else ''}"
        for segment, session, first, last, numbers, kinds, times, packed in self._connection.execute(
            f"SELECT id, session, first, last, numbers, kinds, times, digests {sql} ORDER BY id",
            (log_id,),
        ).fetchall():
            digests = numbers_of(packed)
            items = zip(kinds, numbers_of(times), digests, strict=True)
            for number, (kind, time, digest) in zip(item_numbers(first, last, numbers), items, strict=True):
                known.setdefault((session, kind, time, digest), []).append(number)
            rows = ((digest, segment) for digest in digests)
            self._connection.executemany("DELETE FROM digests WHERE digest = ? AND segment = ?", rows)
        self._connection.execute(f"DELETE {sql}", (log_id,))
        for numbers in known.values():
            numbers.reverse()
        return known

    def _add(self, log_id: int, batch: Batch, known: Known) -> None:
        """Insert a segment; items that are known keep their numbers, and their words are in the index already."""
        if not batch.kinds:
            return
        times, digests = numbers_of(batch.times), numbers_of(batch.digests)
        numbers, new = array("q"), []
        for kind, time, digest, text in zip(batch.kinds, times, digests, batch.texts, strict=True):
            old = known.get((batch.session, kind, time, digest))
            if old:
                numbers.append(old.pop())
            else:
                numbers.append(self._next)
                new.append((self._next, text))
                self._next += 1
        self._connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", new)
        first, last = min(numbers), max(numbers)
        is_range = len(new) == len(numbers)
        values = (
            log_id, batch.session, batch.is_tail, len(numbers), first, last, min(times), max(times),
            None if is_range else numbers.tobytes(), batch.kinds, batch.times, batch.places, batch.digests,
        )  # fmt: skip
        segment = self._connection.execute(_SEGMENT, values).lastrowid
        rows = [(digest, segment) for digest in sorted(set(digests))]
        self._connection.executemany("INSERT INTO digests VALUES (?, ?)", rows)

    def compact(self) -> None:
        """Make the index of words anew from its own words, without those of items that no longer exist, if many are."""
        [(live,)] = self._connection.execute("SELECT ifnull(sum(count), 0) FROM segments")
        if self._dead < max(_MANY, live):
            return
        execute = self._connection.execute
        execute("CREATE TEMP TABLE live (number INTEGER PRIMARY KEY)")
        for first, last, numbers in execute("SELECT first, last, numbers FROM segments").fetchall():
            rows = ((number,) for number in item_numbers(first, last, numbers))
            self._connection.executemany("INSERT INTO live VALUES (?)", rows)
        execute("CREATE VIRTUAL TABLE temp.pairs USING fts5vocab(main, words, instance)")
        execute(WORDS.replace("TABLE words", "TABLE compacted"))
        execute(
            "INSERT INTO compacted (rowid, text) SELECT doc, group_concat(term, ' ') FROM temp.pairs"
            " WHERE doc IN (SELECT number FROM live) GROUP BY doc ORDER BY doc"
        )
        execute("DROP TABLE temp.pairs")
        execute("DROP TABLE words")
        execute("ALTER TABLE compacted RENAME TO words")
        execute("DROP TABLE temp.live")
        self._dead = 0
