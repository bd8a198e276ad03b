"""Two lanes through a native log: line by line, and by blocks of lines. Both give a session the same.

A scan is mostly proving that lines are of no interest: deltas and progress are most of the lines, requests most of the
bytes. A line is passed over undecoded when it begins with the canonical head of such a type, ends as an object does,
and no second event is glued into it by a torn write (which would otherwise vanish, and so would the news of it).

The block lane proves this for many lines at once, with positions in a block instead of lines of their own: a search
jumps from request to request, one regular expression reads the stamps of a run of lines, and a count shows that nothing
is glued into any of them. Whatever is not proved goes the other way, line by line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, BinaryIO

import orjson

from sessionlog.errors import Problem
from sessionlog.events.decode import decode_line
from sessionlog.events.envelope import Event
from sessionlog.reader.search import find
from sessionlog.reader.stream import EventStream
from sessionlog.sources.native_session import SessionScan, time_of

BLOCK = 1 << 18
"""Bytes read at once: little enough to stay in the cache of a processor core."""

_INTEREST = rb"session\.|llm\.response|tool\.call|rejected_override"
_PASSED = re.compile(
    rb'\{"session_id": ?"[^"\\]*", ?"seq": ?\d+, ?"type": ?"((?!'
    + _INTEREST
    + rb')[a-z_.]+)", ?"ts": ?"([0-9T:.\-+Z]+)",'
)
_CALL, _TOOL = b'"llm.re', b'"tool.call"'  # requests and responses; not in a text, where the quote is escaped
_ANOTHER = b'"session_id"'  # inside a text its quotes are escaped
_WHOLE = (b"}\n", b"}\r\n")
_SPACED = b'{"session_id": '
_BRACE, _RETURN = b"}\r"

_MODEL_FIRST = re.compile(
    rb'\{"session_id":"[^"\\]*","seq":\d+,"type":"llm\.request","ts":"[^"\\]*","data":\{"model":"([^"\\]+)",'
)
_DATA_FIRST = re.compile(
    rb'\{"session_id": ?"[^"\\]*", ?"seq": ?\d+, ?"type": ?"llm\.request", ?"ts": ?"[^"\\]*", ?"data": ?\{'
)
_MODEL_LAST = re.compile(
    rb', ?"model": ?"([^"\\]+)"(?:, ?"(?!model")[a-z_]++": ?(?:"[^"\\]*+"|[\d.eE+-]++|true|false|null))*+\}\}[\r\n]*+\Z'
)
_ASKED = b'{"type":"llm.request","data":{"model":%b}}'
_LAST = 400  # bytes in which the short fields behind the messages fit


class _Spelling:
    """One way to spell the head of a line: compact, or with the spaces of `json.dumps`."""

    def __init__(self, gap: bytes) -> None:
        head = rb'\{"session_id":~"[^"\\\n]*+",~"seq":~'.replace(b"~", gap)
        stamp = rb"[\dT:.-]{17}[0-5][\d.]++"  # what is a time among these sorts as it, in UTC and without leap seconds
        passed = rb"llm\.delta|progress|(?!llm\.request|" + _INTEREST + rb")[a-z_.]++"
        fields = rb'"type":~"(?:%b)",~"ts":~"%b",'.replace(b"~", gap)
        whole_end = rb"\n(?:(?<=\}\n)|(?<=\}\r\n))"
        data = rb'~"data":~(?=\{)'.replace(b"~", gap)
        sequence = rb"\d++," + gap
        self.run = re.compile(
            head + sequence + fields % (passed, b"(" + stamp + b")Z") + rb"[^\n]*+" + whole_end + rb"|[^\n]*+\n"
        )
        self.asked = re.compile(head + sequence + fields % (rb"llm\.request", rb"([0-9T:.\-+Z]+)"))
        self.wanted = re.compile(
            head
            + rb"(?:0|[1-9]\d{0,17}),"
            + gap
            + fields % (rb"tool\.call|(llm\.response)", b"(" + stamp + b"Z)")
            + data
        )


@cache
def _spelling(*, spaced: bool) -> _Spelling:
    return _Spelling(b" " if spaced else b"")


class Lines:
    """Feeds a `SessionScan` with a log's lines, one by one."""

    def __init__(self, session: SessionScan) -> None:
        self._session = session
        asked = b"" if session.asked is None else _ASKED % json.dumps(session.asked).encode()
        self._request = (asked, 0, len(asked))  # the last llm.request: a line within bytes
        session.request_model = self._request_model

    def passes_over(self, line: bytes) -> bool:
        """Account for a line that is surely of no interest, without decoding it."""
        match = _PASSED.match(line)
        if match is None or not line.endswith(_WHOLE) or line.find(_ANOTHER, match.end()) >= 0:
            return False
        type_, stamp = match.groups()
        if type_ == b"llm.request":
            self.ask(line, 0, len(line), stamp)
        else:
            self._session.touch(time_of(stamp))
        return True

    def ask(self, data: bytes, start: int, end: int, stamp: bytes) -> None:
        """Account for an llm.request that need not be decoded: the line data[start:end]."""
        time_ns = time_of(stamp)
        self._session.touch(time_ns, "llm.request")
        self._session.turns.look(data, start, end, time_ns)
        self._request = data, start, end
        if self._session.wants_prompt:
            self._session.take_request(decode_line(data[start:end])[0])

    def take(self, item: Event | Problem) -> None:
        """Take what a line was found to hold."""
        if isinstance(item, Problem):
            self._session.findings.note(item)
            return
        if item.type == "llm.request":
            raw = item.raw or b""
            self._request = raw, 0, len(raw)
            self._session.touch(item.time_ns, item.type)
            self._session.turns.take([item])
            self._session.take_request([item])
            return
        self._session.take(item)

    def _request_model(self) -> str | None:
        """The model of the last llm.request, looked for only when a response does not name what was asked for."""
        data, start, end = self._request
        found = _model_behind(data, start, end) or _MODEL_FIRST.match(data, start, end)
        if found is not None:
            return found.group(1).decode("utf-8", "replace")
        line = data[start:end]
        if b'"model"' not in line:
            return None
        for event in decode_line(line)[0]:
            model = event.data.get("model") if isinstance(event.data, Mapping) else None
            if isinstance(model, str) and model:
                return model
        return None


def _model_behind(data: bytes, start: int, end: int) -> re.Match[bytes] | None:
    r"""Find the model among the short fields that end the line.

    Read from its end, the line is out of any text there, and what the first of the last two braces closes is `data`: if
    it were a field behind it, `data` would have been closed before by a brace, a comma and a key.
    """
    found = _MODEL_LAST.search(data, max(start, end - _LAST), end)
    head = _DATA_FIRST.match(data, start, end) if found is not None else None
    if head is None:
        return None
    another = b'}, "' if data.startswith(_SPACED, start) else b'},"'
    return found if find(data, another, head.end(), end) < 0 else None


class Blocks:
    """Reads a whole log by blocks into a `SessionScan`."""

    def __init__(self, stream: EventStream, session: SessionScan, lines: Lines, *, block: int = BLOCK) -> None:
        self._stream = stream
        self._session = session
        self._lines = lines
        self._block = min(block, stream.max_line)  # a line within a block is never too long

    def read(self, file: BinaryIO) -> None:
        """Read `file` to its end; an unfinished last line is left with the stream."""
        stream, held = self._stream, 0
        parts: list[bytes] = []
        while block := file.read1(self._block):  # type: ignore[attr-defined] # what open_unpacked gives is buffered
            start = 0
            if parts or stream.skipping:
                start = block.find(b"\n") + 1
                parts.append(block[:start] if start else block)
                held += len(parts[-1])
                if start or held > stream.max_line:
                    self._straddling(b"".join(parts), whole=start > 0)
                    parts, held = [], 0
                if not start:
                    continue
            end = block.rfind(b"\n", start) + 1
            if end:
                self._take(block, start, end)
            parts = [block[max(start, end) :]] if max(start, end) < len(block) else []
            held = len(parts[0]) if parts else 0
        if parts:
            self._items(b"".join(parts))

    def _straddling(self, line: bytes, *, whole: bool) -> None:
        """A line from more than one block, or a piece of an over-long one."""
        if whole and not self._stream.skipping and len(line) <= self._stream.max_line + 1:
            self._take(line, 0, len(line))
        else:
            self._items(line)

    def _items(self, piece: bytes) -> None:
        for item in self._stream.take(piece):
            self._lines.take(item)

    def _plainly(self, data: bytes, pos: int, end: int) -> None:
        """Take lines one by one."""
        while pos < end:
            next_ = data.find(b"\n", pos, end) + 1
            self._items(data[pos:next_])
            pos = next_

    def _take(self, data: bytes, pos: int, end: int) -> None:
        """Take the lines of data[pos:end]."""
        stream = self._stream
        spelling = _spelling(spaced=data.startswith(_SPACED, pos))
        hits = _Hits(data, end)
        while pos < end:
            if stream.between:
                pos = self._wanted(data, pos, end, spelling)
                line = hits.line_of_interest(pos) if pos < end else pos
                if line > pos:
                    pos = self._run(data, pos, line, spelling, hits)
                    continue
            stop = data.find(b"\n", pos, end) + 1 or end
            self._line(data, pos, stop, spelling)
            pos = stop

    def _run(self, data: bytes, pos: int, end: int, spelling: _Spelling, hits: _Hits) -> int:
        """Take lines of which none is expected to be of interest; returns where it stopped."""
        stamps = spelling.run.findall(data, pos, end)  # an empty one for every other line
        if b"" in stamps or data.count(_ANOTHER, pos, end) != len(stamps):
            if not hits.tools:
                hits.tools = True
                return pos
            self._plainly(data, pos, end)
        else:
            self._session.pass_by(stamps)
            self._stream.pass_by(len(stamps), end - pos)
        return end

    def _line(self, data: bytes, pos: int, end: int, spelling: _Spelling) -> None:
        """Take one line; most of those that come here are requests."""
        head = spelling.asked.match(data, pos, end) if self._stream.between else None
        if head is None or not data.endswith(_WHOLE, pos, end) or find(data, _ANOTHER, head.end(), end) >= 0:
            self._plainly(data, pos, end)
            return
        self._lines.ask(data, pos, end, head.group(1))
        self._stream.pass_by(1, end - pos)

    def _wanted(self, data: bytes, pos: int, end: int, spelling: _Spelling) -> int:
        """Take responses and tool calls by their payloads alone; returns where the first other line begins."""
        match, session = spelling.wanted.match, self._session
        begun, count = pos, 0
        while (head := match(data, pos, end)) is not None:
            stop = data.find(b"\n", head.end(), end) + 1
            brace = stop - (2 if data[stop - 2] != _RETURN else 3)
            kind, stamp = head.groups()
            try:
                if data[brace] != _BRACE:
                    break
                payload: dict[str, Any] = orjson.loads(data[head.end() : brace])
            except ValueError:
                break
            time_ns = time_of(stamp)
            if kind is None:
                session.take_tool(time_ns, payload)
            elif not session.take_response(time_ns, payload):
                break
            count += 1
            pos = stop
        self._stream.pass_by(count, pos - begun)
        return pos


class _Hits:
    """Where the next needles stand in a block: each byte is searched once for each, whatever the log.

    Attributes:
        tools: Tool calls are looked for, too: only in a block that has them where they are not expected.
    """

    def __init__(self, data: bytes, end: int) -> None:
        self._data = data
        self._end = end
        self._call = self._tool = -1
        self.tools = False

    def line_of_interest(self, pos: int) -> int:
        """Return where the next line begins that may be of interest, the end if there is none; a line begins at pos."""
        data, end = self._data, self._end
        if self._call < pos:
            hit = find(data, _CALL, pos, end)
            self._call = hit if hit >= 0 else end
        stop = self._call
        if self.tools:
            if self._tool < pos:
                hit = find(data, _TOOL, pos, stop)
                self._tool = hit if hit >= 0 else stop
            stop = min(stop, self._tool)
        return stop if stop == end else data.rfind(b"\n", pos, stop) + 1 or pos
