"""repair: take damaged bytes out of a log, after they have been saved.

The order is the promise: the bad bytes go to `<name>.quarantine` and are synced there before the log is rewritten, and
the log is replaced whole or not at all. Whole events are kept byte for byte. A repair that was stopped on its way is
finished by the next one.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.envelope import Event
from sessionlog.files.replace import LOCKED, finish_replacing, replace_log
from sessionlog.reader.stream import MAX_LINE, is_young, read_events

_LOSSY = frozenset({"not_json", "not_object", "torn_tail", "nul_bytes", "too_deep", "bad_envelope"})
_PACKED = (".gz", ".zst")
_PIECE = 1 << 20
_NUMBER = re.compile(rb'"seq"\s*:', re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What was done to one log.

    Attributes:
        path: The log.
        quarantine: Where the bytes went; None when nothing was damaged.
        pieces: Damaged pieces taken out.
        length: Their bytes.
        recovered: Lines taken over from a file that an earlier repair had replaced before it was stopped; None if no
            repair was stopped.
    """

    path: str
    quarantine: str | None
    pieces: int
    length: int
    recovered: int | None = None


def is_repairable(problem: Problem) -> bool:
    """Whether `repair_log` would take this piece out of its log."""
    return bool(problem.length) and problem.kind in _LOSSY and not problem.path.endswith(_PACKED)


def repair_log(path: str | os.PathLike[str], *, max_line: int = MAX_LINE) -> Repair:
    """Move the damaged bytes of an uncompressed log to `<path>.quarantine` and rewrite it without them.

    Lines over the limit and compressed logs are left alone.

    Raises:
        LogNotReadable: The log is compressed, holds no event at all (a file named by mistake), or a writer is in the
            middle of its last line.
        OSError: The quarantine or the new file could not be written, and the log is as it was; or it was replaced, but
            what was written meanwhile must be taken over by the next repair.
    """
    path = os.fspath(path)
    if path.endswith(_PACKED):
        raise LogNotReadable(f"{path}: compressed logs are not repaired; unpack it first")
    target = files.real_path(path)
    try:
        recovered = finish_replacing(target)
        done = _take_out(path, target, max_line)
    except BlockingIOError as error:
        raise LogNotReadable(f"{path}: {error.strerror}") from error
    return replace(done, recovered=recovered)


def _take_out(path: str, target: str, max_line: int) -> Repair:
    """Take the damaged pieces out of the log `target`, which the caller has named `path`."""
    with files.open_log(path) as file:
        if not files.lock(file.fileno()):
            raise BlockingIOError(errno.EAGAIN, LOCKED)
        end = _end(file)
        files.unlock(file.fileno())  # writers go on while the log is looked through and copied
        spans, events = _survey(target, max_line)
        if spans and not events:
            raise LogNotReadable(f"{path}: no event in it, so it is no session log; nothing was changed")
        if spans and is_young(target) and spans[-1][1] >= files.stat_open(file).st_size:
            raise LogNotReadable(f"{path}: its last line may still be in the writing; try again in 2 seconds")
        spans = [span for span in spans if span[1] <= end]
        if not spans:
            return Repair(path=path, quarantine=None, pieces=0, length=0)
        quarantine = f"{path}.quarantine"
        files.append_private(quarantine, _quarantined(file, spans))
        replace_log(target, _kept(file, spans, end), file, end)
    length = sum(after - start for start, after in spans)
    return Repair(path=path, quarantine=quarantine, pieces=len(spans), length=length)


def _end(file: BinaryIO) -> int:
    """Where the last whole line ends, or the file, if its last line is unfinished and old."""
    size = files.stat_open(file).st_size
    return size if not is_young(file.name) else files.end_of_lines(file.fileno(), size)


def _survey(path: str, max_line: int) -> tuple[list[tuple[int, int]], int]:
    """Return (start, end) of the damaged pieces, in order, and how many events of ours there are beside them."""
    spans: list[tuple[int, int]] = []
    events = 0
    for item in read_events(path, max_line=max_line):
        if not isinstance(item, Problem):
            events += _is_ours(item)
        elif is_repairable(item):
            spans.append((item.offset, item.offset + item.length))
    return spans, events


def _is_ours(event: Event) -> bool:
    """Whether only our writers number such an event: other agents' rows have a type and a time, too."""
    return bool(event.session_id) and event.raw is not None and _NUMBER.search(event.raw) is not None


def _quarantined(file: BinaryIO, spans: list[tuple[int, int]]) -> Iterator[bytes]:
    for start, end in spans:
        file.seek(start)
        yield file.read(end - start).rstrip(b"\n") + b"\n"


def _kept(file: BinaryIO, spans: list[tuple[int, int]], end: int) -> Iterator[bytes]:
    """Yield what lies between the damaged pieces up to a place; lines that become empty go with them."""
    position = 0
    ends_line = True
    for start, after in [*spans, (end, -1)]:
        file.seek(position)
        left = start - position
        while left > 0:
            piece = file.read(min(left, _PIECE))
            if not piece:
                break
            left -= len(piece)
            if ends_line and position and piece.startswith(b"\n"):
                piece = piece[1:]  # the newline of a line whose whole content was damaged
            if piece:
                ends_line = piece.endswith(b"\n")
                yield piece
        position = after
    if not ends_line:
        yield b"\n"
