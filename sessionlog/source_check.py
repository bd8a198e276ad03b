"""The conformance check of sources: what `testing.check_source` does."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payload_json import payload
from sessionlog.events.payloads import LLMResponse, SessionEnd
from sessionlog.events.tokens import TokenUsage
from sessionlog.ledger.book import Book
from sessionlog.ledger.schema import FROM
from sessionlog.pricing.book import PriceBook
from sessionlog.reader.unpack import open_unpacked
from sessionlog.sources.protocol import HEAD, LogScan, Resume, Source

_NAMED = 5
_COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning", "cache_write_1h")
_SUMS = ", ".join(f"SUM(r.{name})" for name in _COUNTS)
_RECORDS = f"""SELECT s.session, l.provider, l.model, l.agent, l.project, l.quality, r.time_ns, r.requests, r.failed,
    {", ".join(f"r.{name}" for name in _COUNTS)}, r.cost_nano, r.active_ms FROM {FROM}
    ORDER BY r.key, 1, 2, 3, 7, 10, 11, r.active_ms"""  # noqa: S608 - names of the schema
_SESSIONS = """SELECT session, start_ns, last_ns, end_status, project, prompt, error, parent, turns, last_turn_ns
    FROM sessions ORDER BY 1"""
_TOOLS = """SELECT s.session, t.tool, t.server, t.agent, t.time_ns, t.finished, t.failed, t.duration_ms, t.output_bytes
    FROM tools t JOIN sessions s ON s.id = t.session_id ORDER BY 1, 5, 2, 9"""


class SourceCheck:
    """One source, tried on one folder of logs."""

    def __init__(self, source: Source, folder: str, *, cuts: int, damages: int) -> None:
        self._source = source
        self._folder = folder
        self._cuts = cuts
        self._damages = damages
        self._prices = PriceBook.load()
        self._found = 0

    def run(self) -> int:
        """Try every log of the folder; return their number.

        Raises:
            AssertionError: A promise is broken, or there is nothing to prove it by: no log, or no session in any.
        """
        copy = files.temporary_directory("sessionlog-check-")
        try:
            home = shutil.copytree(self._folder, os.path.join(copy, "home"))
            assert list(self._source.locate({"HOME": home})) is not None
            logs = list(self._source.list_logs(home))
            unlisted = [item for item in logs if isinstance(item, Problem)]
            assert not unlisted, f"{unlisted[0]}: not listed"
            assert logs, f"{self._folder}: none of its files is listed as a log: {_some(_files_in(self._folder))}"
            for log in logs:
                assert isinstance(log, str)
                self._try(log)
            looked_at = _some([os.path.relpath(str(log), home) for log in logs])
            assert self._found, f"{self._folder}: no session and no damage is found in {looked_at}"
            return len(logs)
        finally:
            files.remove_directory(copy)

    def _try(self, log: str) -> None:
        whole = self._source.scan(log, None)
        self._found += len(whole.sessions) + whole.problems.count
        self._agrees(log, whole)
        if os.path.isdir(log):
            return
        with open_unpacked(log)[0] as file:
            head = file.read(HEAD)
        assert self._source.recognises(log, head), f"{log}: listed, but not recognised"
        content = _content(log)
        try:
            if not log.endswith((".gz", ".zst")):
                self._resumes(log, content, whole)
            self._survives(log, content)
        finally:
            _write(log, content)

    def _agrees(self, log: str, whole: LogScan) -> None:
        """Scan and events agree on every token, and on every request where the log tells of single ones."""
        told: Counter[str] = Counter()
        keys: set[str] = set()
        names = list(self._source.name_sessions(log))
        for session_id in names if len(names) > 1 else [None]:
            told.update(_told(self._source.read(log, session_id), keys))
        beside = [self._source.scan(other, None) for other in self._source.subagent_logs(log)]
        sql = f"SELECT SUM(r.requests), {_SUMS}, SUM(l.granularity = 'session' AND r.requests) FROM {FROM}"  # noqa: S608 - names of the schema
        [(*counts, sums)] = self._book(whole, *beside).query(sql, {})
        counted = Counter({name: n or 0 for name, n in zip(("requests", *_COUNTS), counts, strict=True)})
        if sums:
            counted["requests"] = told["requests"] = 0
        assert counted == told, f"{log}: scan and events differ: {_difference(counted, told)} (scan, events)"

    def _resumes(self, log: str, content: bytes, whole: LogScan) -> None:
        """A scan of the beginning and one of the rest give what one pass gives, and so do many of a log that grows."""
        expected = _dump(self._book(whole))
        begun: list[LogScan] = []
        for cut in self._places(content):
            one = self._scan_until(log, content[:cut], None)
            if one is None or one.resume is None:
                continue
            rest = self._scan_until(log, content, one.resume)
            assert rest is not None
            _same(f"{log}: cut at byte {cut} and resumed", self._book(one, rest), expected)
            more = self._scan_until(log, content[:cut], begun[-1].resume) if begun else one
            if more is not None and more.resume is not None:
                begun.append(more)
        if begun:
            rest = self._scan_until(log, content, begun[-1].resume)
            assert rest is not None
            _same(f"{log}: cut {len(begun)} times and resumed", self._book(*begun, rest), expected)

    def _scan_until(self, log: str, content: bytes, resume: Resume | None) -> LogScan | None:
        """Scan the log as it was when it said this; None if it cannot be read: a piece of a database is none."""
        _write(log, content)
        try:
            scan = self._source.scan(log, resume and _stored(resume))
        except LogNotReadable:
            if resume is not None:
                raise
            return None
        where = scan.resume and scan.resume.offset
        assert (where or 0) <= len(content), f"{log}: cut at {len(content)}, it would resume at {where}"
        return scan

    def _places(self, content: bytes) -> Iterator[int]:
        step = max(1, len(content) // self._cuts)
        ends = [place for place, byte in enumerate(content) if byte == 10][: self._cuts]
        yield from sorted({*range(0, len(content), step), *(end + by for end in ends for by in (0, 1, 2))})

    def _survives(self, log: str, content: bytes) -> None:
        """Damage never raises."""
        chance = random.Random(len(content))  # noqa: S311 - the same damage each time
        for _ in range(self._damages):
            _write(log, _damaged(content, chance))
            try:
                with open_unpacked(log)[0] as file:
                    self._source.recognises(log, file.read(HEAD))
                self._source.scan(log, None)
                for session_id in [*self._source.name_sessions(log), None]:
                    for _item in self._source.read(log, session_id):
                        pass
            except (LogNotReadable, MissingExtra):
                continue
            except Exception as error:
                raise AssertionError(f"{log}: damage raised {error!r}; content: {_content(log)[:2000]!r}") from error

    def _book(self, *scans: LogScan) -> Book:
        book = Book(self._prices)
        for scan in scans:
            book.take(scan)
        return book


def _told(events: Iterable[Event | Problem], keys: set[str]) -> Counter[str]:
    """Sum up a session's events: its responses, and what an end reports beyond those of its run."""
    told: Counter[str] = Counter()
    run, rest = TokenUsage(), TokenUsage()
    is_ended = False
    for event in events:
        value = payload(event) if isinstance(event, Event) else None
        if isinstance(value, LLMResponse):
            if is_ended:
                told.update(_counts(rest))
                run, rest, is_ended = TokenUsage(), TokenUsage(), False
            run += value.usage or TokenUsage()
            if _is_counted(value, keys):
                told.update({"requests": 1, **_counts(value.usage)})
        elif isinstance(value, SessionEnd):  # a second end of a run replaces the first
            rest, is_ended = (value.tokens or TokenUsage()).beyond(run), True
    told.update(_counts(rest))
    return told


def _files_in(folder: str) -> list[str]:
    return sorted(os.path.relpath(os.path.join(at, one), folder) for at, _, names in os.walk(folder) for one in names)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more if names else "there are none"


def _stored(resume: Resume) -> Resume:
    """What is left of it when it has been stored."""
    assert isinstance(resume.state, bytes), f"the state of a resume is bytes, not {type(resume.state).__name__}"
    return resume


def _is_counted(response: LLMResponse, keys: set[str]) -> bool:
    """An answer that tells neither tokens nor an error is speech of which no more is known; copies count once."""
    key = response.extra.get("key")
    if response.usage is None and not response.error and not response.extra.get("quality"):
        return False
    if key is None:
        return True
    new = key not in keys
    keys.add(key)
    return new


def _counts(usage: TokenUsage | None) -> dict[str, int]:
    return {name: getattr(usage, name, 0) for name in _COUNTS}


def _dump(book: Book) -> tuple[list[tuple[Any, ...]], ...]:
    return tuple(book.query(sql, {}) for sql in (_RECORDS, _SESSIONS, _TOOLS))


def _same(story: str, book: Book, expected: tuple[list[tuple[Any, ...]], ...]) -> None:
    for what, one, other in zip(("records", "sessions", "tools"), _dump(book), expected, strict=True):
        odd = [row for row in (*one, *other) if row not in one or row not in other]
        assert one == other, f"{story}, the {what} differ: {odd[:4]}"


def _difference(one: Counter[str], other: Counter[str]) -> dict[str, tuple[int, int]]:
    return {name: (one[name], other[name]) for name in {*one, *other} if one[name] != other[name]}


def _damaged(content: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(damaged) + 1)
        match chance.randrange(4):
            case 0:
                del damaged[place : place + chance.randint(1, 40)]
            case 1:
                damaged[place:place] = chance.choice((b"\x00", b"\xff", b'"', b"{", b"}", b"\n", b"null", b"-1", b"[]"))
            case 2:
                damaged[place : place + 1] = bytes([chance.randrange(256)])
            case _:
                del damaged[place:]
    return bytes(damaged)


def _content(path: str) -> bytes:
    with files.open_log(path) as file:
        return file.read()


def _write(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
