"""What must be true of a log, whatever happened to its writers. Every check returns findings: sentences, best none.

`{acknowledged} ⊆ {read} ⊆ {emitted}`, nothing twice, the order of each writer kept, and every byte of the file either
in an event or named by a problem.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.reader.stream import read_events


class Log(NamedTuple):
    """A log as the reader sees it."""

    content: bytes
    events: tuple[Event, ...]
    problems: tuple[Problem, ...]

    def of_type(self, type_: str) -> list[Event]:
        """The events of one type, in file order."""
        return [event for event in self.events if event.type == type_]


def read_log(path: Path | str) -> Log:
    """Read a log to its end with the reader that users have."""
    events: list[Event] = []
    problems: list[Problem] = []
    for item in read_events(str(path)):
        (events if isinstance(item, Event) else problems).append(item)
    return Log(Path(path).read_bytes(), tuple(events), tuple(problems))


def check_bytes(log: Log) -> list[str]:
    """Each line is blank, or one event, or inside what a problem names: nothing is glued and nothing unexplained."""
    raws = {event.raw for event in log.events}
    spans = sorted((problem.offset, problem.offset + problem.length) for problem in log.problems if problem.length)
    findings, offset = [], 0
    for line in log.content.split(b"\n"):
        if line and line not in raws and not _covered(spans, offset, offset + len(line)):
            findings.append(f"byte {offset}: neither an event nor named by a problem: {line[:60]!r} … {line[-60:]!r}")
        offset += len(line) + 1
    first = log.events[0] if log.events else None
    if first and (first.type != "session.start" or not isinstance(first.data, dict) or first.data.get("v") != 1):
        findings.append(f"the log begins with {first.type}, not with a session.start of version 1")
    return findings


def _covered(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    index = bisect_right(spans, (start, 1 << 62)) - 1
    return index >= 0 and end <= spans[index][1]


def check_whole(log: Log) -> list[str]:
    """Nothing is damaged and the last line is finished."""
    findings = [f"damage: {problem}" for problem in log.problems if problem.length or problem.severity == "damage"]
    if log.content and not log.content.endswith(b"\n"):
        findings.append(f"the file ends in {log.content[-40:]!r}, not in a newline")
    return findings + check_bytes(log)


def check_recorded(log: Log, emitted: Sequence[int], acknowledged: Iterable[int], key: str = "n") -> list[str]:
    """Acknowledged events are in the log, nothing else is, nothing twice, in the order of emission."""
    read = [event.data[key] for event in log.events if isinstance(event.data, dict) and key in event.data]
    found = set(read)
    findings = [f"acknowledged event {n} is not in the log" for n in acknowledged if n not in found]
    findings += [f"event {n} was never emitted" for n in found.difference(emitted)]
    if read != sorted(found):
        findings.append(f"events repeat or are out of order: {read}")
    return findings


def check_health(health, acknowledged: int, emitted: int) -> list[str]:
    """The account adds up: written + dropped + deferred = emitted, drops have causes, and what was answered is true."""
    findings = []
    if health.written + health.dropped + health.deferred != health.emitted:
        findings.append(f"the account does not add up: {health}")
    if sum(health.dropped_by.values()) != health.dropped:
        findings.append(f"drops without a cause: {health}")
    if (health.written, health.emitted) != (acknowledged, emitted):
        findings.append(f"{acknowledged} of {emitted} were acknowledged, but health says {health}")
    return findings


def check_gaps(log: Log, dropped: int) -> list[str]:
    """The log tells of everything that was lost."""
    told = sum(event.data["events"] for event in log.of_type("log.gap"))
    return [] if told == dropped else [f"{dropped} events were dropped, the log tells of {told}"]
