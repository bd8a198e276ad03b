"""Scanning: scan one log for the ledger, from the start or from where the last scan ended.

A scan is resumed only if the log has grown since, is the same file, and has the same bytes before that offset;
otherwise it is read from the start.
"""

from __future__ import annotations

import os
import time
from io import BufferedReader
from typing import BinaryIO, Self
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra, log_problem
from sessionlog.hashes import hash_bytes
from sessionlog.ledger.identity import STABLE_AFTER_NS, Identity, identify, is_versioned
from sessionlog.reader.unpack import Unpacked, open_unpacked
from sessionlog.sources.protocol import Log, LogScan, Resume, Source
from sessionlog.sources.record import Problems
from sessionlog.sources.registry import source_of

PRINT = 4096
"""Bytes at the start, and as many before the offset of the last scan, whose hashes identify a log."""

SMALL_LOG = 64 << 10
"""Bytes up to which a log that has grown is read whole again: that costs less than storing the state of a scan."""

GROWS_NS = 86_400 * 10**9
"""Nanoseconds since the last write after which a log hardly ever grows: a checksum of it would be wasted time."""

_SUMMED_WHOLE = 16 << 20
_BLOCKS = 64
_REMOTE_WHOLE, _REMOTE_BLOCKS = 256 << 10, 16  # each block that is not in memory is a request
_PACKED = (".gz", ".zst")


class Job(Struct, frozen=True, kw_only=True):
    """A log that has to be scanned.

    Attributes:
        number: Identifies the job within a sync.
        source: Id of its source.
        path: The log.
        size: Estimated bytes to read.
        resume: Where a scan may be resumed.
        prefix: The checksum of the bytes before that offset, as `Ends.prefix` returns it.
        again: A later sync will check the log again, so its hashes are needed.
    """

    number: int
    source: str
    path: str
    size: int
    resume: Resume | None = None
    prefix: str = ""
    again: bool = True


class Scanned(Struct, frozen=True, kw_only=True):
    """The result of a job.

    Attributes:
        number: The job's.
        scan: The scan; without sessions if their rows are handed over (see `handover`).
        source: The source of its sessions; "" if it has none.
        failed: The log could not be read at all: its earlier rows stay.
        from_start: The log was read from its start.
        identity: Its identity before it was read; None if it was gone.
        settled: It had not been written to for a while.
        head: A hash of its first bytes.
        offset: Up to where the log was read, unpacked: `scan.resume.offset`, or the end of a log that is always read
            whole; 0 where it has no bytes of its own.
        print: A hash of the last bytes before `offset`.
        prefix: A checksum of all bytes before `scan.resume.offset`; "" where the next scan begins at the start.
    """

    number: int
    scan: LogScan
    source: str = ""
    failed: bool = False
    from_start: bool = True
    identity: Identity | None = None
    settled: bool = False
    head: str = ""
    offset: int = 0
    print: str = ""
    prefix: str = ""


def scan_job(job: Job, source: Source | None = None) -> Scanned:
    """Scan a log; any error becomes a problem of the result."""
    source = source or source_of(job.source)
    identity = identify_log(source, job.path)
    settled = identity is not None and (is_versioned(identity[0]) or time.time_ns() - identity[3] > STABLE_AFTER_NS)
    # Opened before the scan: if the log is replaced meanwhile, the hashes are still those of the file that was there.
    with Ends(job.path if job.again or job.resume is not None else "") as ends:
        head = ends.head(PRINT)
        resume = job.resume if job.resume is not None and _is_prefix_unchanged(job, job.resume, ends) else None
        scan, failed = scan_or_explain(Log(source=source, path=job.path), resume)
        if failed and resume is not None and scan.problems.first[0].kind == "source_failed":  # its state may be damaged
            resume = None
            scan, failed = scan_or_explain(Log(source=source, path=job.path))
        offset, tail = ends.tail(scan.resume.offset if scan.resume is not None else None)
        may_grow = job.again and identity is not None and time.time_ns() - identity[3] < GROWS_NS
        prefix = ends.prefix(scan.resume.offset) if scan.resume is not None and may_grow else ""
        if scan.resume is not None and not prefix:  # no scan goes on from its state, which a worker would have to send
            scan = replace(scan, resume=replace(scan.resume, state=b""))
    return Scanned(
        number=job.number,
        scan=scan,
        source=scan.sessions[0].source if scan.sessions else "",
        failed=failed,
        from_start=resume is None or scan.full_rescan,
        identity=identity,
        settled=settled,
        head=hash_bytes(head) if head is not None and job.again else "",
        offset=offset,
        print=tail if job.again else "",
        prefix=prefix,
    )


def identify_log(source: Source, path: str) -> Identity | None:
    """Return the identity of a log; None if it is gone, or its source cannot name its sidecars now."""
    try:
        return identify(path, source.sidecars(path))
    except Exception:  # noqa: BLE001 - a folder that cannot be listed, or a bug in a source: the scan names it
        return None


def scan_or_explain(log: Log, resume: Resume | None = None) -> tuple[LogScan, bool]:
    """Scan one log; return (scan, False), or (a scan with one problem, True) if opening it or its source fails."""
    try:
        return log.source.scan(log.path, resume), False
    except Exception as error:  # noqa: BLE001 - a bug in a source must not break the reports of all others
        return LogScan(problems=Problems(count=1, first=(log_problem(log.path, error, log.source.id),))), True


def _is_prefix_unchanged(job: Job, resume: Resume, ends: Ends) -> bool:
    """Whether a log's bytes before the offset of `resume` are the same as at the last scan."""
    return bool(job.prefix) and ends.prefix(resume.offset) == job.prefix


class Ends:
    """Hashes of a log's first bytes, unpacked, and of those before an offset; a context that holds the log open."""

    def __init__(self, path: str) -> None:
        """Open a log; of one that cannot be opened all hashes are empty."""
        self._file: BinaryIO | Unpacked | None = None
        self._is_packed = path.endswith(_PACKED)
        self._whole, self._blocks = _SUMMED_WHOLE, _BLOCKS
        if files.is_url(path):
            self._whole, self._blocks = _REMOTE_WHOLE, _REMOTE_BLOCKS
        self._summed = 0, 0  # (offset, checksum of the bytes before it)
        self._head = b""
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
        """Return the first bytes; None if they cannot be read. Call it first: a packed log is read only once."""
        head = self._read(0, count)
        self._head = head or b""
        return head

    def tail(self, offset: int | None) -> tuple[int, str]:
        """Return an offset, None for the log's end, and a hash of the bytes before it.

        The hash is empty if not all of them are there and can be read. Of a packed log this has to be the last call.
        """
        if self._is_packed:
            end, data = self._unpack(offset)
        else:
            end = self._size() if offset is None else offset
            start = max(0, end - PRINT)
            known = end <= len(self._head)  # all of a small log
            data = self._head[start:end] if known else self._read(start, end - start) or b""
        is_whole = data and offset in {None, end} and len(data) == min(end, PRINT)
        return end, hash_bytes(data) if is_whole else ""

    def _unpack(self, offset: int | None) -> tuple[int, bytes]:
        """Unpack a log up to an offset, or to its end; return how far that is, and the last bytes before."""
        end, data = len(self._head), self._head
        if offset is not None and offset <= end:
            return offset, data[max(0, offset - PRINT) : offset]
        while piece := self._read(0, files.BUFFER if offset is None else min(offset - end, files.BUFFER)):
            end, data = end + len(piece), (data + piece)[-PRINT:]
        return end, data

    def _size(self) -> int:
        if self._file is None:
            return 0
        try:
            return self._file.seek(0, os.SEEK_END)
        except OSError:
            return 0

    def prefix(self, offset: int) -> str:
        """Return a checksum of the bytes before an offset: of all up to 16 MiB, else of 64 blocks spread over them.

        Of a remote object, of all up to 256 KiB, else of 16 blocks: each is a request.

        Empty for a log that is packed, unreadable, or so small that reading it again is faster. A CRC is five times as
        fast as a hash and finds accidental changes; an attacker who can change the log could change the ledger, too.
        """
        if offset < SMALL_LOG or self._is_packed:
            return ""
        begun, checksum = self._summed if self._summed[0] <= offset else (0, 0)
        pieces = [(start, min(files.BUFFER, offset - start)) for start in range(begun, offset, files.BUFFER)]
        if offset > self._whole:
            last = self._blocks - 1
            checksum, pieces = 0, [((offset - PRINT) * number // last, PRINT) for number in range(self._blocks)]
        for start, count in pieces:
            piece = self._read(start, count)
            if piece is None or len(piece) < count:
                return ""
            checksum = crc32(piece, checksum)
        if offset <= self._whole:
            self._summed = offset, checksum  # what was appended only adds to it
        return f"{offset}:{checksum:08x}"

    def _read(self, start: int, count: int) -> bytes | None:
        if self._file is None:
            return None
        try:
            if not self._is_packed:  # it is read on from where the last reading ended
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
        return ends.tail(offset)[1]
