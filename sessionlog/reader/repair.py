"""repair: remove damaged bytes from a log after saving them.

The damaged bytes are written to `<name>.quarantine` and synced before the log is rewritten, and the log is replaced as
a whole or not at all. Whole events are kept byte for byte. A stopped repair is finished by the next one.
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
from sessionlog.events.limits import MAX_LINE
from sessionlog.files.replace import LOCKED, finish_replacing, replace_log
from sessionlog.reader.stream import is_young, read_events

_LOSSY = frozenset({"not_json", "not_object", "torn_tail", "nul_bytes", "too_deep", "bad_envelope"})
_PACKED = (".gz", ".zst")
_PIECE = 1 << 20
_NUMBER = re.compile(rb'"seq"\s*:', re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What was done to one log.

    Attributes:
        path: The log.
        quarantine: The file with the damaged bytes; None when nothing was damaged.
        pieces: Damaged pieces removed.
        length: Their bytes.
        recovered: Lines copied from a file that an earlier, stopped repair had replaced; None if no repair was stopped.
    """

    path: str
    quarantine: str | None
    pieces: int
    length: int
    recovered: int | None = None


def is_repairable(problem: Problem) -> bool:
    """Whether `repair_log` would remove this piece from its log."""
    return bool(problem.length) and problem.kind in _LOSSY and not problem.path.endswith(_PACKED)


def repair_log(path: str | os.PathLike[str], *, max_line: int = MAX_LINE) -> Repair:
    """Move the damaged bytes of an uncompressed log to `<path>.quarantine` and rewrite the log without them.

    Lines over the limit are left as they are.

    Raises:
        LogNotReadable: The log is compressed, has no event at all (a file named by mistake), or a writer is in the
            middle of its last line.
        OSError: The quarantine or the new file could not be written, and the log is as it was; or it was replaced, but
            the next repair must copy the lines that were written meanwhile.
    """
    path = os.fspath(path)
    if path.endswith(_PACKED):
        raise LogNotReadable(f"{path}: compressed logs are not repaired; unpack it first")
    target = files.real_path(path)
    try:
        recovered = finish_replacing(target)
        done = _remove_damage(path, target, max_line)
    except BlockingIOError as error:
        raise LogNotReadable(f"{path}: {error.strerror}") from error
    return replace(done, recovered=recovered)


def _remove_damage(path: str, target: str, max_line: int) -> Repair:
    """Remove the damaged pieces from the log `target`, which the caller named `path`."""
    with files.open_log(path) as file:
        if not files.lock(file.fileno()):
            raise BlockingIOError(errno.EAGAIN, LOCKED)
        end = _end(file)
        files.unlock(file.fileno())  # writers continue while the log is read and copied
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
    """Return the offset after the last whole line; the file's size if its last line is not young any more."""
    size = files.stat_open(file).st_size
    return size if not is_young(file.name) else files.end_of_lines(file.fileno(), size)


def _survey(path: str, max_line: int) -> tuple[list[tuple[int, int]], int]:
    """Return (start, end) of the damaged pieces, in order, and how many events of our own format there are."""
    spans: list[tuple[int, int]] = []
    events = 0
    for item in read_events(path, max_line=max_line):
        if not isinstance(item, Problem):
            events += _is_ours(item)
        elif is_repairable(item):
            spans.append((item.offset, item.offset + item.length))
    return spans, events


def _is_ours(event: Event) -> bool:
    """Whether an event is of our format: other agents' rows have a type and a time, too, but no number."""
    return bool(event.session_id) and event.raw is not None and _NUMBER.search(event.raw) is not None


def _quarantined(file: BinaryIO, spans: list[tuple[int, int]]) -> Iterator[bytes]:
    for start, end in spans:
        file.seek(start)
        yield file.read(end - start).rstrip(b"\n") + b"\n"


def _kept(file: BinaryIO, spans: list[tuple[int, int]], end: int) -> Iterator[bytes]:
    """Yield what is between the damaged pieces up to `end`, without lines that become empty."""
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
