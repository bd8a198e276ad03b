"""Extract: read the items of one log, or those that were appended to it, in the form in which an index stores them.

Workers do this; whoever owns the index only inserts.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sessionlog.files.batch_file import BatchFile
from sessionlog.ledger.identity import STABLE_AFTER_NS, Identity
from sessionlog.ledger.scanning import Ends, identify_log
from sessionlog.search.query import storable
from sessionlog.search.segments import COPY, NO_TIME
from sessionlog.search.texts import own_session
from sessionlog.sources.fold_items import Item, ItemFold, ItemState
from sessionlog.sources.protocol import Resume, Source
from sessionlog.sources.registry import source_of

_BATCH = 8 << 20  # characters of texts that are in memory at once
_SMALL = 256 << 10  # characters that are returned without a temporary file

_decode = msgspec.msgpack.Decoder(tuple[ItemState, bytes]).decode


class Job(Struct, frozen=True, kw_only=True):
    """A log to read.

    Attributes:
        path: The log.
        source: Id of its source.
        size: Bytes to read, about.
        stamp: The version of what the index knows of it; None for nothing.
        resume: Where an earlier reading ended; None to read it from the start.
        prefix: A checksum of all bytes before that offset.
    """

    path: str
    source: str
    size: int
    stamp: int | None = None
    resume: Resume | None = None
    prefix: str = ""


class Batch(Struct, frozen=True, array_like=True):
    """Items of one session in the order of the log, as packed arrays, and their texts.

    Attributes:
        session: The session.
        is_tail: They are of an unfinished last row, which the next reading reads again.
        kinds: Of each item a byte.
        times: Nanoseconds since 1970 UTC, or `NO_TIME`.
        places: Offsets in the log.
        digests: Hashes of kind and text.
        texts: The texts.
    """

    session: str
    is_tail: bool
    kinds: bytes
    times: bytes
    places: bytes
    digests: bytes
    texts: list[str]


class Extracted(Struct, frozen=True, kw_only=True):
    """The result of a job.

    Attributes:
        job: The job.
        from_start: The log was read from its start: the batches replace all that is known of it.
        identity: The log's identity before it was read; None if it is gone.
        settled: It had not been written to for a while.
        batches: The items, each batch as a tuple of the fields of `Batch`.
        resume: Where the next reading continues.
        prefix: As in `Job`.
        failed: The log could not be read: what is known of it stays.
    """

    job: Job
    from_start: bool
    identity: Identity | None
    settled: bool
    batches: list[tuple[Any, ...]] | BatchFile
    resume: Resume | None
    prefix: str
    failed: bool


def extract(job: Job, folder: str | None = None) -> Extracted:
    """Read a log; large results are in a file in `folder`."""
    source = source_of(job.source)
    identity = identify_log(source, job.path)
    settled = identity is not None and time.time_ns() - identity[3] > STABLE_AFTER_NS
    with Ends(job.path) as ends:
        resume = job.resume
        if resume is not None and not (job.prefix and ends.prefix(resume.offset) == job.prefix):
            resume = None
        collector, ended, failed = _Collector(folder), None, False
        try:
            ended = _collect(source, job.path, resume, collector)
        except Exception:  # noqa: BLE001 - a bug in a source must not break the search of all others
            failed = True
        if failed and resume is not None:  # its state may be damaged
            return extract(replace(job, resume=None), folder)
        prefix = "" if ended is None else ends.prefix(ended.offset)
    return Extracted(
        job=job, from_start=resume is None, identity=identity, settled=settled, batches=collector.finish(),
        resume=ended, prefix=prefix, failed=failed or identity is None,
    )  # fmt: skip


def _collect(source: Source, path: str, resume: Resume | None, collector: _Collector) -> Resume | None:
    """Collect the items of a log; return where the next reading continues."""
    begun, ended = None, None
    state = ItemState(own_session(source, path))
    if resume is not None:
        state, kept = _decode(resume.state)
        begun = Resume(offset=resume.offset, line=resume.line, state=kept)
    fold = ItemFold(state)
    for one in source.read_steps(path, begun):
        if isinstance(one, Resume):
            collector.add(fold.end())
            ended = Resume(
                offset=one.offset, line=one.line, state=msgspec.msgpack.encode((fold.state, one.state))
            )  # fmt: skip
            collector.is_tail = True
        else:
            collector.add(fold.take(*one))
    collector.add(fold.end())
    return ended


class _Collector:
    """Collects items into batches.

    Attributes:
        is_tail: The next items are of an unfinished last row.
    """

    def __init__(self, folder: str | None) -> None:
        self.is_tail = False
        self._folder = folder
        self._batches: list[tuple[Any, ...]] | BatchFile = []
        self._open: dict[tuple[str, bool], list[Item]] = {}
        self._size = 0

    def add(self, items: Iterator[Item]) -> None:
        """Add items."""
        for item in items:
            self._open.setdefault((item.session, self.is_tail), []).append(item)
            self._size += len(item.text)
            if self._size > _BATCH:
                self._flush(to_file=True)

    def finish(self) -> list[tuple[Any, ...]] | BatchFile:
        """Return all batches."""
        self._flush(to_file=self._size > _SMALL and self._folder is not None)
        return self._batches

    def _flush(self, *, to_file: bool) -> None:
        begun, self._open, self._size = self._open, {}, 0
        batches = [_packed(session, items, is_tail=is_tail) for (session, is_tail), items in begun.items()]
        if to_file and isinstance(self._batches, list):
            spool = BatchFile(self._folder)
            for batch in self._batches:
                spool.add(batch)
            self._batches = spool
        for batch in batches:
            self._batches.append(batch) if isinstance(self._batches, list) else self._batches.add(batch)


def _packed(session: str, items: list[Item], *, is_tail: bool) -> tuple[Any, ...]:
    texts = [item.text for item in items]
    return (
        storable(session),
        is_tail,
        bytes(item.kind | (COPY if item.is_copy else 0) for item in items),
        array("q", [NO_TIME if item.time is None else item.time for item in items]).tobytes(),
        array("q", [item.place for item in items]).tobytes(),
        array("q", [item.digest for item in items]).tobytes(),
        list(map(storable, texts)),
    )
