"""check: everything that is wrong with a log, not only the lines that cannot be read.

Damage is what could not be understood: bytes, and the numbers and pins that reports therefore skip. Everything else is
information: `seq` numbers that jump or repeat, clocks that go back, types that this version does not know, permissions
wider than needed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra, Problem, Severity, log_problem
from sessionlog.events.envelope import KNOWN_TYPES, Event
from sessionlog.events.limits import MAX_LINE
from sessionlog.events.times import parse_time
from sessionlog.files.replace import find_stopped
from sessionlog.reader.payload_problems import field_problems, number_problems, override_problem
from sessionlog.reader.repair import is_repairable
from sessionlog.reader.stream import read_events
from sessionlog.reader.walk import walk_logs

_MAX_KEPT = 1000
_MAX_WRITERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """What was found in one log.

    Attributes:
        path: The file.
        events: Events that could be read.
        damaged: How many problems cost data.
        repairable: How many of these a repair can remove.
        damage: The first thousand of these.
        notes: The first thousand other problems.
        counts: Kind → how often, over all problems.
    """

    path: str
    events: int
    damaged: int = 0
    repairable: int = 0
    damage: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)


def check_logs(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    max_line: int = MAX_LINE,
) -> Iterator[FileCheck]:
    """Yield one `FileCheck` per log under `paths`; a file that cannot be read at all is damage of kind `unreadable`."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    for item in walk_logs(os.fspath(path) for path in given):
        if isinstance(item, Problem):
            yield FileCheck(path=item.path, events=0, damaged=1, damage=(item,), counts={item.kind: 1})
        else:
            yield check_log(item, max_line=max_line)


def check_log(path: str | os.PathLike[str], *, max_line: int = MAX_LINE) -> FileCheck:
    """Read one log to its end; return its problems and counts."""
    path = os.fspath(path)
    damage: list[Problem] = []
    notes: list[Problem] = []
    counts: Counter[str] = Counter()
    damaged = repairable = 0
    audit = _Audit(path)
    try:
        for item in read_events(path, max_line=max_line):
            for problem in (item,) if isinstance(item, Problem) else audit.check(item):
                counts[problem.kind] += 1
                damaged += problem.severity == "damage"
                repairable += problem.severity == "damage" and is_repairable(problem)
                kept = damage if problem.severity == "damage" else notes
                if len(kept) < _MAX_KEPT:
                    kept.append(problem)
    except (LogNotReadable, MissingExtra) as error:
        damage.append(log_problem(path, error))
        counts["unreadable"] += 1
        damaged += 1
    for problem in _find_stopped_repair(path):
        damage.append(problem)
        counts[problem.kind] += 1
        damaged, repairable = damaged + 1, repairable + 1
    for problem in _check_mode(path):
        notes.append(problem)
        counts[problem.kind] += 1
    return FileCheck(
        path=path,
        events=audit.events,
        damaged=damaged,
        repairable=repairable,
        damage=tuple(damage),
        notes=tuple(notes),
        counts=dict(counts),
    )


class _Audit:
    """Checks each event, and compares it with the one before it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._last_seq: dict[str, int] = {}
        self._last_ns: int | None = None
        self._unknown: set[str] = set()
        self.events = 0

    def check(self, event: Event) -> list[Problem]:
        self.events += 1
        found: list[Problem] = []
        session, seq, kind = event.session_id, event.seq, event.type
        last = self._last_seq.pop(session, None)
        if last is not None and seq != last + 1:
            found.append(self._note("seq_gap" if seq > last else "seq_repeat", f"seq {seq} after {last}"))
        self._last_seq[session] = seq
        if len(self._last_seq) > _MAX_WRITERS:
            del self._last_seq[next(iter(self._last_seq))]  # the writer whose last event is the oldest
        found += [self._note("bad_number", detail, "damage") for detail in number_problems(event)]
        found += [self._note("unknown_field", detail) for detail in field_problems(event)]
        if kind in ("override", "rejected_override") and (problem := override_problem(event)):
            found.append(self._note("bad_payload", problem, "damage"))
        now = parse_time(event.ts)
        if now is not None:
            if self._last_ns is not None and now < self._last_ns:
                detail = f"ts goes back by {(self._last_ns - now) / 1e9:.3f} s at seq {seq}"
                found.append(self._note("clock_back", detail))
            self._last_ns = now
        if kind not in KNOWN_TYPES and kind not in self._unknown and len(self._unknown) < _MAX_KEPT:
            self._unknown.add(kind)
            found.append(self._note("unknown_type", f"type {kind[:60]!r} is passed through"))
        return found

    def _note(self, kind: str, detail: str, severity: Severity = "info") -> Problem:
        return Problem(path=self._path, line=0, offset=0, kind=kind, detail=detail, severity=severity)


def _find_stopped_repair(path: str) -> Iterator[Problem]:
    is_link = not files.is_url(path) and os.path.islink(path)
    link = find_stopped(files.real_path(path) if is_link else path)
    if link is not None:
        detail = f"a repair was stopped before it had copied the last lines from {link}; the next repair does it"
        yield Problem(path=path, line=0, offset=0, kind="stopped_repair", detail=detail)


def _check_mode(path: str) -> Iterator[Problem]:
    status = files.stat_path(path)
    if status is not None and status.st_mode & 0o077:
        detail = _wide_mode(status.st_mode & 0o777)
        yield Problem(path=path, line=0, offset=0, kind="wide_mode", detail=detail, severity="info")


@cache  # one text for all logs, of which there may be very many
def _wide_mode(mode: int) -> str:
    others = "write" if mode & 0o022 else "read" if mode & 0o044 else "run"
    return f"mode {mode:04o} lets others {others} it; ours are 0600"
