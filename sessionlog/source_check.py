"""The conformance check of sources; `sessionlog.testing` exports `check_source`.

A message of an assertion here is whole, so pytest adds nothing to it: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sysconfig
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeVar

from sessionlog import files
from sessionlog.analytics.sums import read_rows
from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payload_json import payload
from sessionlog.events.payloads import LLMResponse, SessionEnd
from sessionlog.events.tokens import TokenUsage
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import Response, names_of
from sessionlog.ledger.schema import FROM
from sessionlog.pricing.book import PriceBook
from sessionlog.reader.unpack import open_unpacked
from sessionlog.sources.names import OURS
from sessionlog.sources.protocol import HEAD, LogScan, Resume, Source

T = TypeVar("T")

_NAMED = 5
_SHOWN = 300  # characters of a row in a message
_SWAPS = 4  # for each damage
_DEPTH = 6  # of the values in a row that are swapped
_NEAR = 50  # rows of a long log that are kept before and behind a row with a swapped value
_FIRST_TIME_NS = 1_420_070_400_000_000_000  # 2015: no agent is older
_SWAPPED = (b"null", b"true", b"-1", b"1e30", b'""', b"[]", b"{}")
_PACKAGE = os.path.dirname(os.path.abspath(files.__file__))
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_COUNTS = names_of(Response, "tokens")
_SUMS = {
    **{name: f"COALESCE(SUM(r.{name}), 0)" for name in ("requests", *_COUNTS)},
    "of_sessions": "SUM(l.granularity = 'session' AND r.requests)",
}
_SESSION = ("start_ns", "last_ns", "end_status", "project", "prompt", "error", "parent", "turns", "last_turn_ns")
_READ = {
    "records": (
        {
            "session": "s.session",
            **{name: f"l.{name}" for name in ("provider", "model", "agent", "project", "quality")},
            **{name: f"r.{name}" for name in ("time_ns", "requests", "failed", *_COUNTS, "cost_nano", "active_ms")},
        },
        f"FROM {FROM} ORDER BY r.key, s.session, l.provider, l.model, r.time_ns, r.input, r.output, r.active_ms",
    ),
    "sessions": (
        {"session": "s.session", **{name: f"s.{name}" for name in _SESSION}},
        "FROM sessions s ORDER BY s.session",
    ),
    "tools": (
        {
            "session": "s.session",
            **{name: f"t.{name}" for name in ("tool", "server", "agent", "time_ns", "finished", "failed")},
            **{name: f"t.{name}" for name in ("duration_ms", "output_bytes")},
        },
        "FROM tools t JOIN sessions s ON s.id = t.session_id ORDER BY s.session, t.time_ns, t.tool, t.output_bytes",
    ),
}
"""What is compared of two books: its columns, and where they are from."""

_OTHERS = {
    "native": '{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-10T10:00:00Z","data":{"v":1}}',
    "claude-code": '{"parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"s","version":"2.1.31","type":"user",'
    '"message":{"role":"user","content":"hi"},"uuid":"u","timestamp":"2026-11-10T10:00:00.000Z"}',
    "codex": '{"timestamp":"2026-11-10T10:00:00.000Z","type":"session_meta","payload":{"id":"s","cwd":"/w",'
    '"originator":"codex_cli_rs","cli_version":"0.98.0","model_provider":"openai"}}',
    "gemini": '{"sessionId":"s","projectHash":"abc","startTime":"2026-05-17T11:07:00.000Z",'
    '"lastUpdated":"2026-05-17T11:07:00.000Z","kind":"main"}',
    "pi": '{"type":"session","version":3,"id":"s","timestamp":"2026-11-10T10:00:00.000Z","cwd":"/w"}',
    "qwen-code": '{"uuid":"u","parentUuid":null,"sessionId":"s","timestamp":"2026-05-17T11:07:01.000Z","type":"user",'
    '"cwd":"/w","version":"0.8.1","message":{"role":"user","parts":[{"text":"hi"}]}}',
    "kimi": '{"type":"metadata","protocol_version":"1.3"}',
    "droid": '{"type":"session_start","id":"s","title":"hi","owner":"unknown","version":2,"cwd":"/w","hostId":"h"}',
    "grok": '{"timestamp":1794304800,"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
    '"user_message_chunk","content":{"type":"text","text":"hi"}},"_meta":{"agentTimestampMs":1794304800000}}}',
    "copilot": '{"type":"session.start","data":{"sessionId":"s","version":1,"producer":"copilot-agent",'
    '"copilotVersion":"1.0.102"},"id":"e0","timestamp":"2026-11-10T10:00:00.000Z","parentId":null}',
}
"""A first row of each agent's logs; a source must not recognise another agent's."""


def check_source(source: Source, folder: str | os.PathLike[str], *, cuts: int = 200, damages: int = 100) -> int:
    """Check a source on the logs in `folder`; return how many logs there are.

    Checked on a copy: its logs are listed and recognised; a scan and the events agree on every token; a scan of a log's
    beginning and then of the rest gives the same as one pass, wherever the log is cut; neither damage nor a value of a
    wrong type raises; in logs without damage, times lie after 2014 and tool calls have keys; logs of other agents are
    not claimed.

    Args:
        source: The source.
        folder: Logs as the agent leaves them, sub-folders included.
        cuts: How many cuts of a log are tried at most, besides those around the ends of its lines.
        damages: How many damaged copies of each log are read, and four times as many with one value of a wrong type.

    Raises:
        AssertionError: A check failed; the message names the log and the check, and for an exception of the source also
            the row and the line of the source's code.
        LogNotReadable: A log that is listed cannot be opened.
        MissingExtra: A packed log without a decoder.
    """
    return SourceCheck(source, os.fspath(folder), cuts=cuts, damages=damages).run()


class SourceCheck:
    """Checks one source on one folder of logs."""

    def __init__(self, source: Source, folder: str, *, cuts: int, damages: int) -> None:
        self._source = source
        self._folder = folder
        self._cuts = cuts
        self._damages = damages
        self._prices = PriceBook.load()
        self._home = ""
        self._found = 0
        self._problems = 0
        self._times: list[int | None] = []

    def run(self) -> int:
        """Check every log of the folder; return their number.

        Raises:
            AssertionError: A promise of the protocol is broken, or the folder has no log, or none with a session.
            LogNotReadable: A log that is listed cannot be opened.
            MissingExtra: A packed log without a decoder.
        """
        copy = files.temporary_directory("sessionlog-check-")
        try:
            self._home = home = str(shutil.copytree(self._folder, os.path.join(copy, "home")))
            assert self._call("`locate`", lambda: list(self._source.locate({"HOME": home}))) is not None
            logs = self._call("`list_logs`", lambda: list(self._source.list_logs(home)))
            unlisted = [item for item in logs if isinstance(item, Problem)]
            assert not unlisted, f"{unlisted[0]}: not listed"
            assert logs, f"{self._folder}: none of its files is listed as a log: {_some(_files_in(self._folder))}"
            for log in logs:
                assert isinstance(log, str)
                self._check(log)
            names = _some([self._name(str(log)) for log in logs])
            assert self._found, f"{self._folder}: no session and no damage is found in {names}"
            is_timeless = self._times and not self._problems and all(time is None for time in self._times)
            assert not is_timeless, f"{self._folder}: no record has a time, in {names}: read it by `read_time`"
            self._claims_no_other(os.path.join(copy, "others", os.path.basename(str(logs[0]))))
            return len(logs)
        finally:
            files.remove_directory(copy)

    def _name(self, log: str) -> str:
        return os.path.relpath(log, self._home)

    def _check(self, log: str) -> None:
        whole = self._call("a scan", lambda: self._source.scan(log, None), log)
        self._found += len(whole.sessions) + whole.problems.count
        self._problems += whole.problems.count
        if not whole.problems.count:
            self._is_plausible(log, whole)
        self._agrees(log, whole)
        if os.path.isdir(log):
            return
        assert self._recognises(log), f"{self._name(log)}: listed, but not recognised"
        content = _content(log)
        try:
            if not log.endswith((".gz", ".zst")):
                self._resumes(log, content, whole)
            self._survives_swaps(log, content)
            self._survives(log, content)
        finally:
            _write(log, content)

    def _is_plausible(self, log: str, whole: LogScan) -> None:
        """Check that times are plausible and calls have keys, for a log without damage."""
        for session in whole.sessions:
            times = [record.time_ns for record in session.records if record.requests]
            self._times += [one.time_ns for one in session.records if one.requests and one.granularity == "request"]
            for time_ns in (*times, session.start_ns, *(tool.time_ns for tool in session.tools)):
                is_time = time_ns is None or (isinstance(time_ns, int) and time_ns >= _FIRST_TIME_NS)
                assert is_time, (
                    f"{self._name(log)}: a time lies before 2015 or is none: {time_ns!r}; times are nanoseconds since "
                    f"1970, as `read_time` returns them"
                )
            unnamed = [tool for tool in session.tools if not tool.key]
            assert not unnamed, (
                f"{self._name(log)}: a `ToolCall` of {unnamed[0].tool!r} has an empty key: its result cannot be found, "
                f"and all calls without a key are one"
            )

    def _claims_no_other(self, path: str) -> None:
        """Check that no first row of another agent's log is recognised."""
        if self._source.id in OURS:
            return  # some built-in sources share a format; other tests check all of them on each other's logs
        os.makedirs(os.path.dirname(path))
        for agent, row in _OTHERS.items():
            _write(path, row.encode() + b"\n")
            is_claimed = self._call(f"`recognises` on a log of {agent}", lambda: self._recognises(path))
            assert not is_claimed, f"it also claims a log of {agent}: `is_row` is true for {row}"

    def _recognises(self, log: str) -> bool:
        with open_unpacked(log)[0] as file:
            head = file.read(HEAD)
        return self._call("`recognises`", lambda: self._source.recognises(log, head), log)

    def _call(self, story: str, function: Callable[[], T], log: str = "") -> T:
        """Return what a function of the source returns; any error that it may not raise is a broken promise."""
        try:
            return function()
        except (LogNotReadable, MissingExtra):
            raise
        except Exception as error:
            raise AssertionError(self._broken(story, error, log)) from error

    def _broken(self, story: str, error: Exception, log: str) -> str:
        """Return a message with the log and its row, the error, and the line of the source that raised it."""
        what = repr(error).replace(self._home + os.sep, "")
        where, row = _frame_of(error), self._row_of(log, error) if log and os.path.isfile(log) else ""
        place = f"{self._name(log)}{row and ':'}{row.partition(':')[0]}: " if log else ""
        message = f"{place}{story} raised {what}{_hint(error)}{where and f', at {where}'}"
        return message + (f"; the row: {row.partition(':')[2]}" if row else "")

    def _row_of(self, log: str, error: Exception) -> str:
        """Return number and text of the row that causes the error: the last one of the shortest prefix that fails."""
        content = _content(log)
        lines = content.splitlines(keepends=True)

        def fails(count: int) -> bool:
            _write(log, b"".join(lines[:count]))
            try:
                self._read_all(log)
            except Exception as other:  # noqa: BLE001 - any error is to be compared
                return type(other) is type(error)
            return False

        if log.endswith((".gz", ".zst")) or b"\x00" in content[:HEAD] or not fails(len(lines)):
            _write(log, content)
            return ""
        good, bad = 0, len(lines)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if fails(middle) else (middle, bad)
        _write(log, content)
        return f"{bad}:{_cut(lines[bad - 1])}"

    def _read_all(self, log: str) -> None:
        """Call all functions of the source that read a log."""
        with open_unpacked(log)[0] as file:
            self._source.recognises(log, file.read(HEAD))
        self._source.scan(log, None)
        for session_id in [*self._source.name_sessions(log), None]:
            for _item in self._source.read(log, session_id):
                pass

    def _agrees(self, log: str, whole: LogScan) -> None:
        """Check that scan and events agree on all tokens, and on requests where the log has single ones."""
        read: Counter[str] = Counter()
        keys: set[str] = set()
        names = self._call("`name_sessions`", lambda: list(self._source.name_sessions(log)), log)
        for session_id in names if len(names) > 1 else [None]:
            read.update(self._call("`read`", lambda one=session_id: _sum_up(self._source.read(log, one), keys), log))  # type: ignore[misc]
        others = self._call("`subagent_logs`", lambda: list(self._source.subagent_logs(log)), log)
        beside = [self._call("a scan", lambda one=other: self._source.scan(one, None), other) for other in others]  # type: ignore[misc]
        [sums] = read_rows(self._book(log, whole, *beside).query, dict[str, int], _SUMS, f"FROM {FROM}", {})
        of_sessions, counted = sums.pop("of_sessions"), Counter(sums)
        if of_sessions:
            counted["requests"] = read["requests"] = 0
        assert counted == read, (
            f"{self._name(log)}: scan and events differ: {_difference(counted, read)} (scan, events)"
        )

    def _resumes(self, log: str, content: bytes, whole: LogScan) -> None:
        """Check that scans of the beginning and of the rest, or of a log that grows, give what one pass gives."""
        expected = _dump(self._book(log, whole))
        begun: list[LogScan] = []
        for cut in self._places(content):
            one = self._scan_until(log, content[:cut], None)
            if one is None or one.resume is None:
                continue
            rest = self._scan_until(log, content, one.resume)
            assert rest is not None
            _same(f"{self._name(log)}: cut at byte {cut} and resumed", self._book(log, one, rest), expected)
            more = self._scan_until(log, content[:cut], begun[-1].resume) if begun else one
            if more is not None and more.resume is not None:
                begun.append(more)
        if begun:
            rest = self._scan_until(log, content, begun[-1].resume)
            assert rest is not None
            _same(f"{self._name(log)}: cut {len(begun)} times and resumed", self._book(log, *begun, rest), expected)

    def _scan_until(self, log: str, content: bytes, resume: Resume | None) -> LogScan | None:
        """Scan the log with only this content; None if it cannot be read, as a part of a database."""
        _write(log, content)
        try:
            stored = resume and _stored(resume)
            story = "a scan that was resumed" if resume else f"a scan of the first {len(content)} bytes"
            scan = self._call(story, lambda: self._source.scan(log, stored), log)
        except LogNotReadable:
            if resume is not None:
                raise
            return None
        where = scan.resume and scan.resume.offset
        assert (where or 0) <= len(content), f"{self._name(log)}: cut at {len(content)}, it would resume at {where}"
        return scan

    def _places(self, content: bytes) -> Iterator[int]:
        step = max(1, len(content) // self._cuts)
        ends = [place for place, byte in enumerate(content) if byte == 10]
        count = min(len(ends), self._cuts)
        ends = [ends[(2 * n + 1) * len(ends) // (2 * count)] for n in range(count)]  # spread over the log
        yield from sorted({*range(0, len(content), step), *(end + by for end in ends for by in (0, 1, 2))})

    def _survives_swaps(self, log: str, content: bytes) -> None:
        """Check that a value of a wrong type never raises, in any field."""
        lines = content.splitlines(keepends=True)
        rows: dict[tuple[str | int, ...], list[int]] = {}
        for number, line in enumerate(lines):
            for path in _paths(_object(line)):
                rows.setdefault(path, []).append(number)
        chance = random.Random(len(content))  # noqa: S311 - the same swaps each time
        swaps = [(path, value) for path in rows for value in _SWAPPED]
        chance.shuffle(swaps)
        most = len(_SWAPPED) * sum(map(len, rows.values()))
        for path, value in islice(cycle(swaps), min(most, _SWAPS * self._damages)):  # every field before any twice
            number = chance.choice(rows[path])
            row = _with(_object(lines[number]), path, json.loads(value))
            left_out = max(0, number - 2 * _NEAR) * [b"\n"]  # a long log is shortened, and its lines keep their numbers
            before = lines[: min(_NEAR, number)] + left_out + lines[max(_NEAR, number - _NEAR) : number]
            new = json.dumps(row, separators=(",", ":")).encode() + b"\n"
            _write(log, b"".join((*before, new, *lines[number + 1 : number + 1 + _NEAR])))
            self._survives_one(log, f"a row with `{'.'.join(map(str, path))}` = {value.decode()}")

    def _survives(self, log: str, content: bytes) -> None:
        """Check that damage never raises."""
        chance = random.Random(len(content))  # noqa: S311 - the same damage each time
        for _ in range(self._damages):
            _write(log, _damaged(content, chance))
            self._survives_one(log, "damage")

    def _survives_one(self, log: str, story: str) -> None:
        try:
            self._call(story, lambda: self._read_all(log), log)
        except (LogNotReadable, MissingExtra):
            return

    def _book(self, log: str, *scans: LogScan) -> Book:
        book = Book(self._prices)
        for scan in scans:
            self._call("inserting the result of a scan", lambda one=scan: book.add_scan(one), log)  # type: ignore[misc]
        return book


def _sum_up(events: Iterable[Event | Problem], keys: set[str]) -> Counter[str]:
    """Sum up a session's events: its responses, and what an end reports beyond those of its run."""
    total: Counter[str] = Counter()
    run, rest = TokenUsage(), TokenUsage()
    is_ended = False
    for event in events:
        value = payload(event) if isinstance(event, Event) else None
        if isinstance(value, LLMResponse):
            if is_ended:
                total.update(_counts(rest))
                run, rest, is_ended = TokenUsage(), TokenUsage(), False
            run += value.usage or TokenUsage()
            if _is_counted(value, keys):
                total.update({"requests": 1, **_counts(value.usage)})
        elif isinstance(value, SessionEnd):  # a second end of a run replaces the first
            rest, is_ended = (value.tokens or TokenUsage()).beyond(run), True
    total.update(_counts(rest))
    return total


def _files_in(folder: str) -> list[str]:
    return sorted(os.path.relpath(os.path.join(at, one), folder) for at, _, names in os.walk(folder) for one in names)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more if names else "there are none"


def _stored(resume: Resume) -> Resume:
    """The value as it is after being stored, which only bytes survive."""
    assert isinstance(resume.state, bytes), f"the state of a resume is bytes, not {type(resume.state).__name__}"
    return resume


def _is_counted(response: LLMResponse, keys: set[str]) -> bool:
    """Whether a response counts as a request: it has tokens or an error, and is not a copy of one in `keys`."""
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


def _dump(book: Book) -> dict[str, list[dict[str, Any]]]:
    return {
        what: read_rows(book.query, dict[str, Any], columns, source, {}) for what, (columns, source) in _READ.items()
    }


def _same(story: str, book: Book, expected: Mapping[str, list[dict[str, Any]]]) -> None:
    for what, one in _dump(book).items():
        assert one == expected[what], (
            f"{story}, the {what} differ: {_odd(one, expected[what])}; is something remembered outside `state`?"
        )


def _odd(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> str:
    """Name the first field that differs, with both values."""
    if len(one) != len(other):
        lost = [row for row in other if row not in one] or [row for row in one if row not in other]
        named = {name: value for name, value in (lost or other or one)[0].items() if value}
        return f"{len(one)}, and {len(other)} when it is read at once; the first of them: {named}"
    row, whole = next(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])
    field = next(name for name in row if row[name] != whole[name])
    return f"`{field}` is {row[field]!r}, and {whole[field]!r} when it is read at once (session {whole['session']})"


def _frame_of(error: Exception) -> str:
    """Return `file.py:line (function)` of the source's own code, as deep as it was reached; "" for none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    return f"{os.path.basename(own[-1].filename)}:{own[-1].lineno} ({own[-1].name})" if own else ""


def _is_own(path: str) -> bool:
    """Whether a file belongs to a source, not to the kit or to Python."""
    if path.startswith(os.path.join(_PACKAGE, "")):
        folder, *names = os.path.relpath(path, _PACKAGE).split(os.sep)
        return folder == "sources" and bool(names) and names[0].removesuffix(".py").replace("_", "-") in OURS
    return not path.startswith("<frozen") and (not path.startswith(_STANDARD_LIBRARY) or "site-packages" in path)


def _hint(error: Exception) -> str:
    """Explain an error that a wrong step causes in the kit."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].name not in {"_feed", "_steps_of", "_scan"}:
        return ""
    if isinstance(error, KeyError) and isinstance(error.args[0], type):
        return f" (`steps` yields a {error.args[0].__name__}, which is no step)"
    return " (`steps` has to yield steps, and returned something else)" if isinstance(error, TypeError) else ""


def _object(line: bytes) -> dict[str, Any]:
    """Decode a row; an empty object for anything but a JSON object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of the values in a JSON value; of each list only the first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        if len(path) < _DEPTH:
            yield from _paths(item, (*path, key))


def _with(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """Return a copy of a JSON value with a new value at a path."""
    if not path:
        return new
    changed = value.copy()
    changed[path[0]] = _with(value[path[0]], path[1:], new)
    return changed


def _cut(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


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
