"""Scanning one log for the book: where a scan may go on, what it gave, and how the log is known again.

A scan goes on from where the last one ended only if the log has grown since, is the same file, and has the same bytes
before that place; anything doubtful is read from the start.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import BinaryIO, Self
from zlib import crc32

from msgspec import Struct

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.hashes import hash_bytes
from sessionlog.ledger.identity import SETTLED_NS, Identity, identify
from sessionlog.ledger.rows import LogRows, to_rows
from sessionlog.pricing.book import PriceBook
from sessionlog.reader.unpack import Unpacked, open_unpacked
from sessionlog.sources.protocol import Log, LogScan, Resume, Source
from sessionlog.sources.record import Problems
from sessionlog.sources.registry import OURS, all_sources, load_source

PRINT = 4096
"""Bytes at the beginning, and as many before the end of what was read, by which a log is known."""

SMALL_LOG = 64 << 10
"""Bytes up to which a log that has grown is read whole again: that costs less than keeping where to go on."""

GROWS_NS = 86_400 * 10**9
"""Nanoseconds since the last write after which a log hardly ever grows: a checksum of it is not worth its time."""

_SUMMED_WHOLE = 16 << 20
_BLOCKS = 64
_PACKED = (".gz", ".zst")
_FAILED = "source_failed"


class Job(Struct, frozen=True, kw_only=True):
    """A log that has to be scanned.

    Attributes:
        number: Tells the jobs of a sync apart.
        source: Id of its source.
        path: The log.
        size: Bytes to read, about.
        resume: Where a scan may go on.
        prefix: What the bytes before that place must be, as `Ends.prefix` returns it.
        again: The log will be looked at again, and has to be known then.
    """

    number: int
    source: str
    path: str
    size: int
    resume: Resume | None = None
    prefix: str = ""
    again: bool = True


class Scanned(Struct, frozen=True, kw_only=True):
    """What became of a job.

    Attributes:
        number: The job's.
        rows: What the scan gave.
        anew: The log was read from its start.
        identity: What it looked like before it was read; None if it was gone.
        settled: It had not been written to for a while.
        head: What its first bytes were.
        print: What the last bytes before `rows.resume.offset` were, or before the end of a log that is always read
            whole.
        prefix: What all bytes before `rows.resume.offset` were; "" where the next scan is to begin at the start.
    """

    number: int
    rows: LogRows
    anew: bool
    identity: Identity | None
    settled: bool
    head: str = ""
    print: str = ""
    prefix: str = ""


def scan_job(job: Job, prices: PriceBook, source: Source | None = None, *, folder: str | None = None) -> Scanned:
    """Scan a log; whatever is wrong with it is a problem of the result. `folder`: see `to_rows`."""
    source = source or source_of(job.source)
    identity = identify(job.path, source.sidecars(job.path))
    settled = identity is not None and time.time_ns() - identity[3] > SETTLED_NS
    # Opened before the scan: were the log replaced meanwhile, its ends would not fit it any more.
    with Ends(job.path if job.again or job.resume is not None else "") as ends, _collector_off():
        head = ends.head(PRINT)
        resume = job.resume if job.resume is not None and _is_as_it_was(job, job.resume, ends) else None
        scan, failed = scan_or_explain(Log(source=source, path=job.path), resume)
        if failed and resume is not None and scan.problems.first[0].kind == _FAILED:  # its state may be damaged
            resume = None
            scan, failed = scan_or_explain(Log(source=source, path=job.path))
        rows = to_rows(scan, prices, failed=failed, folder=folder)
        end = identity[2] if scan.resume is None and identity is not None else 0
        tail = ends.before(scan.resume.offset if scan.resume is not None else end)
        may_grow = job.again and identity is not None and time.time_ns() - identity[3] < GROWS_NS
        prefix = ends.prefix(scan.resume.offset) if scan.resume is not None and may_grow else ""
    return Scanned(
        number=job.number,
        rows=rows,
        anew=resume is None or scan.full_rescan,
        identity=identity,
        settled=settled,
        head=hash_bytes(head) if head is not None and job.again else "",
        print=tail if job.again else "",
        prefix=prefix,
    )


@contextmanager
def _collector_off() -> Iterator[None]:
    """A scan makes many objects and no circles: looking for these again and again takes a fifth of its time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def source_of(source_id: str) -> Source:
    """Return a source by its id; ours without looking for those of other packages."""
    if source_id in OURS:
        return load_source(source_id)
    return next(source for source in all_sources() if source.id == source_id)


def scan_or_explain(log: Log, resume: Resume | None = None) -> tuple[LogScan, bool]:
    """Scan one log of many: one that cannot be opened, or that its source fails on, is a problem among the others.

    The second value is whether it was not read.
    """
    try:
        return log.source.scan(log.path, resume), False
    except (LogNotReadable, MissingExtra) as error:
        return _explained(log, "unreadable", str(error).removeprefix(f"{log.path}: ")), True
    except Exception as error:  # noqa: BLE001 - a source's mistake must not cost the reports of all others
        return _explained(log, _FAILED, f"{log.source.id}: {type(error).__name__}: {error}"), True


def _explained(log: Log, kind: str, detail: str) -> LogScan:
    problem = Problem(path=log.path, line=0, offset=0, kind=kind, detail=detail)
    return LogScan(problems=Problems(count=1, first=(problem,)))


def _is_as_it_was(job: Job, resume: Resume, ends: Ends) -> bool:
    """Whether a log's bytes before the place where a scan would go on are the same."""
    return bool(job.prefix) and ends.prefix(resume.offset) == job.prefix


class Ends:
    """The first bytes of a log, unpacked, and those before an offset; an open file until it is left."""

    def __init__(self, path: str) -> None:
        """Open a log; one that cannot be opened has no ends."""
        self._file: BinaryIO | Unpacked | None = None
        self._is_packed = path.endswith(_PACKED)
        self._summed = 0, 0  # (offset, checksum of the bytes before it)
        try:
            if self._is_packed:
                buffered, self._file = open_unpacked(path)
                if isinstance(buffered, BufferedReader):
                    buffered.detach()  # its buffer would unpack a megabyte for 4 KiB
            elif path:
                self._file = files.open_log(path, buffer=0)
        except (LogNotReadable, MissingExtra, OSError):
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def head(self, count: int) -> bytes | None:
        """Return the first bytes; None if they cannot be read. To be called first: what is packed is read once."""
        return self._read(0, count)

    def before(self, offset: int, *, unpack: bool = False) -> str:
        """Return a hash of the bytes before an offset; empty if they cannot be read, or there are none.

        With `unpack` also of a packed log, if it is called first; else that is empty.
        """
        if offset <= 0 or (self._is_packed and not unpack):
            return ""
        data = self._read(max(0, offset - PRINT), min(PRINT, offset))
        return "" if data is None else hash_bytes(data)

    def prefix(self, offset: int) -> str:
        """Return a checksum of the bytes before an offset: of all up to 16 MiB, else of 64 blocks spread over them.

        Empty for what is packed or cannot be read, and for so little that it is sooner read again. A CRC finds what was
        changed by accident five times as fast as a hash; who can write as the user can change the ledger, too.
        """
        if offset < SMALL_LOG or self._is_packed:
            return ""
        begun, checksum = self._summed if self._summed[0] <= offset else (0, 0)
        pieces = [(start, min(files.BUFFER, offset - start)) for start in range(begun, offset, files.BUFFER)]
        if offset > _SUMMED_WHOLE:
            checksum, pieces = 0, [((offset - PRINT) * number // (_BLOCKS - 1), PRINT) for number in range(_BLOCKS)]
        for start, count in pieces:
            piece = self._read(start, count)
            if piece is None or len(piece) < count:
                return ""
            checksum = crc32(piece, checksum)
        if offset <= _SUMMED_WHOLE:
            self._summed = offset, checksum  # what was appended only adds to it
        return f"{offset}:{checksum:08x}"

    def _read(self, start: int, count: int) -> bytes | None:
        if self._file is None:
            return None
        try:
            if self._is_packed:
                while start and (piece := self._file.read(min(start, files.BUFFER))):
                    start -= len(piece)
            else:
                self._file.seek(start)
            pieces = []
            while count and (piece := self._file.read(count)):
                pieces.append(piece)
                count -= len(piece)
            return b"".join(pieces)
        except OSError:
            return None


def head_of(path: str, count: int) -> str:
    """Return a hash of a log's first bytes, unpacked; empty if they cannot be read."""
    with Ends(path) as ends:
        head = ends.head(count)
    return "" if head is None else hash_bytes(head)


def tail_of(path: str, offset: int) -> str:
    """Return a hash of a log's bytes before an offset, unpacked; empty if they cannot be read."""
    with Ends(path) as ends:
        return ends.before(offset, unpack=True)
