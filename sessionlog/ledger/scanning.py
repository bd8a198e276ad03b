"""Scanning one log for the book: where a scan may go on, what it gave, and how the log is known again.

A scan goes on from where the last one ended only if the log has grown since, is the same file, and has the same bytes
at its beginning and before that place; anything doubtful is read from the start.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.ledger.identity import SETTLED_NS, Identity, identify
from sessionlog.ledger.lean import LeanScan, lean
from sessionlog.reader.unpack import open_unpacked
from sessionlog.sources.protocol import Log, LogScan, Resume, Source
from sessionlog.sources.record import Problems
from sessionlog.sources.registry import OURS, all_sources, load_source

PRINT = 4096
"""Bytes at the beginning, and as many before the end of what was read, by which a log is known."""

_PACKED = (".gz", ".zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A log that has to be scanned.

    Attributes:
        number: Tells the jobs of a sync apart.
        source: Id of its source.
        path: The log.
        size: Bytes to read, about.
        resume: Where a scan may go on.
        head: What its first bytes must be for that, as `head_of` says it.
        print: What the bytes before that place must be.
        again: The log will be looked at again, and has to be known then.
    """

    number: int
    source: str
    path: str
    size: int
    resume: Resume | None = None
    head: str = ""
    print: str = ""
    again: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What became of a job.

    Attributes:
        number: The job's.
        scan: What the scan gave.
        anew: The log was read from its start.
        identity: What it looked like before it was read; None if it was gone.
        settled: It had not been written to for a while.
        head: What its first bytes were.
        print: What the bytes before `scan.resume.offset` were, or before the end of a log that is always read whole.
    """

    number: int
    scan: LeanScan
    anew: bool
    identity: Identity | None
    settled: bool
    head: str = ""
    print: str = ""


def scan_job(job: Job, source: Source | None = None) -> Scanned:
    """Scan a log; whatever is wrong with it is a problem of the result."""
    source = source or source_of(job.source)
    identity = identify(job.path, source.beside(job.path))
    settled = identity is not None and time.time_ns() - identity[3] > SETTLED_NS
    head = (
        head_of(job.path, PRINT) if job.again else ""
    )  # before the scan: were the log replaced meanwhile, it would not fit any more
    resume = job.resume if job.resume is not None and _is_as_it_was(job) else None
    scan, failed = scan_or_explain(Log(source=source, path=job.path), resume)
    found = lean(scan, failed=failed)
    return Scanned(
        number=job.number,
        scan=found,
        anew=resume is None or scan.full_rescan,
        identity=identity,
        settled=settled,
        head=head,
        print=_end_of(job.path, scan.resume, identity) if job.again else "",
    )


def _end_of(path: str, resume: Resume | None, identity: Identity | None) -> str:
    if resume is not None:
        return print_of(path, resume.offset)
    return "" if identity is None else print_of(path, identity[2])


def source_of(source_id: str) -> Source:
    """Return a source by its id; ours without looking for those of other packages."""
    if source_id in OURS:
        return load_source(source_id)
    return next(source for source in all_sources() if source.id == source_id)


def scan_or_explain(log: Log, resume: Resume | None = None) -> tuple[LogScan, bool]:
    """Scan one log of many: one that cannot be opened, or that its source fails on, is a problem among the others.

    The second value tells that it was not read.
    """
    try:
        return log.source.scan(log.path, resume), False
    except (LogNotReadable, MissingExtra) as error:
        return _explained(log, "unreadable", str(error).removeprefix(f"{log.path}: ")), True
    except Exception as error:  # noqa: BLE001 - a source's mistake must not cost the reports of all others
        return _explained(log, "source_failed", f"{log.source.id}: {type(error).__name__}: {error}"), True


def _explained(log: Log, kind: str, detail: str) -> LogScan:
    problem = Problem(path=log.path, line=0, offset=0, kind=kind, detail=detail)
    return LogScan(problems=Problems(count=1, first=(problem,)))


def _is_as_it_was(job: Job) -> bool:
    if job.resume is None:
        return False
    count = int(job.head.partition(":")[0] or 0)
    return count > 0 and head_of(job.path, count) == job.head and print_of(job.path, job.resume.offset) == job.print


def print_of(path: str, offset: int) -> str:
    """Return what the bytes before an offset are; empty if they cannot be read, or nothing was read."""
    if offset <= 0 or path.endswith(_PACKED):
        return ""
    try:
        with files.open_log(path) as file:
            file.seek(max(0, offset - PRINT))
            return _hash(file.read(min(PRINT, offset)))
    except (LogNotReadable, OSError):
        return ""


def tail_of(path: str, offset: int) -> str:
    """Return what `print_of` says of a log's bytes unpacked, however it is packed."""
    if not path.endswith(_PACKED):
        return print_of(path, offset)
    try:
        file, _ = open_unpacked(path)
        with file:
            left = max(0, offset - PRINT)
            while left and (piece := file.read(min(left, files.BUFFER))):
                left -= len(piece)
            return _hash(file.read(min(PRINT, offset)))
    except (LogNotReadable, MissingExtra, OSError):
        return ""


def head_of(path: str, count: int) -> str:
    """Return what the first `count` bytes of a log are, unpacked; empty if they cannot be read."""
    try:
        file, _ = open_unpacked(path)
        with file:
            return _hash(file.read(count))
    except (LogNotReadable, MissingExtra, OSError):
        return ""


def _hash(data: bytes) -> str:
    return f"{len(data)}:{blake2b(data, digest_size=12).hexdigest()}"
