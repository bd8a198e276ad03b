"""Spans and log records of OpenTelemetry, from whichever JSON they were exported to, in one shape.

Two questions are answered here and nowhere else. Where does an object end? On its line; or, printed over many lines as
consoles do, at the first line that closes in the first column. And what is a field called? Names are compared without
case and underscores, so that `traceId`, `trace_id` and `TraceID` are one; attributes are a table whether they were
typed (`{"key", "value": {"intValue": "5"}}`), Go's (`{"Key", "Value": {"Type", "Value"}}`) or plain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
from msgspec import Struct

from sessionlog.events.limits import MAX_LINE
from sessionlog.events.times import SECOND
from sessionlog.reader.rows import Rows
from sessionlog.reader.stream import is_young
from sessionlog.sources.kit import Json, Problem, fingerprint, mapping, name, objects, read_time, text

Place = tuple[str, str]
"""A trace and a span."""

AGENTS = ("claude_code.", "codex.")
"""How the names of log records begin that agents write about themselves; others are passed over."""

_NEEDLES = (b'"gen_ai.', b'"llm.', b'"claude_code.', b'"codex.', b"\\u00")
_BEGINNINGS = (b"{", b"\xef\xbb\xbf{")
_BATCH = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"resource_?([Ss]pans|[Ll]ogs)"\s*:')
_LEVELS = (
    ("resourcespans", "resourcelogs"),
    ("scopespans", "instrumentationlibraryspans", "scopelogs"),
    ("spans", "logrecords"),
)
_LOG_FIELDS = frozenset({"body", "eventname", "severitynumber", "severitytext"})
_PADDING = b"\x00\r\n "
_SECONDS = 9_000_000_000  # later ones do not fit 64 bits of nanoseconds
_LATEST_NS = 2**63 - 1
_ERRORS = (2, "2", "ERROR", "STATUS_CODE_ERROR")


class Span(Struct, kw_only=True):
    """One span, or one log record of an agent.

    Attributes:
        trace: The trace's id; "" for a log record.
        id: The span's id, unique in its trace; of a log record, a fingerprint.
        parent: The id of the span around it; "" for the outermost.
        name: Its name; of a log record, the event's, e.g. `codex.sse_event`.
        side: Whether a client or a server made it, in the words of the exporter.
        start: Its start in nanoseconds; None when it has none.
        end: Its end, or its start.
        attributes: Its attributes, untyped.
        resource: Those of the process that made it.
        events: (name, attributes) of its events, in order.
        error: Why it failed; "" = it has not.
        line: The line that it ends on.
    """

    trace: str = ""
    id: str
    parent: str = ""
    name: str
    side: str = ""
    start: int | None
    end: int | None
    attributes: Json
    resource: Json
    events: list[tuple[str, Json]] = []
    error: str = ""
    line: int = 0

    @property
    def place(self) -> Place:
        """Its trace and id."""
        return self.trace, self.id

    def first(self, *names: str) -> str:
        """Return the first of these attributes that is a name."""
        return next(filter(None, (name(self.attributes, one) for one in names)), "")


def read_spans(path: str) -> Iterator[Span | Problem]:
    """Yield the spans and log records of a file that may be about a model, and problems.

    Raises:
        LogNotReadable: There is no such file, or it may not be read.
        MissingExtra: A .zst file without a decoder.
    """
    with Rows(path) as rows:
        for chunk in _chunks(_lines(rows), lambda: (rows.line, rows.start)):
            if isinstance(chunk, Problem):
                yield chunk
            elif isinstance(chunk, _Torn):
                yield Problem(
                    path=path, line=chunk.line, offset=chunk.offset, length=chunk.size,
                    kind="torn_tail" if chunk.is_last else "not_json", detail=f"unfinished object, {chunk.size} bytes",
                    severity="info" if chunk.is_last and is_young(path) else "damage",
                )  # fmt: skip
            elif any(needle in chunk for needle in _NEEDLES) or not _is_whole(chunk):
                for row in rows.decode(chunk):
                    yield from [row] if isinstance(row, Problem) else spans_of(row, rows.line)


def _lines(rows: Rows) -> Iterator[bytes | Problem]:
    """Yield all lines, the last one too if it is whole."""
    yield from rows.lines()
    tail = rows.tail
    yield from (item for item in rows.last(lambda _: False) if isinstance(item, Problem))
    if _is_whole(tail):
        yield tail


class _Torn(Struct):
    """An object that is printed over many lines and has no end: where it begins, and its bytes."""

    line: int
    offset: int
    size: int
    is_last: bool


def _chunks(
    lines: Iterable[bytes | Problem], place: Callable[[], tuple[int, int]] = lambda: (0, 0)
) -> Iterator[bytes | Problem | _Torn]:
    """Yield the objects of a file, whether they are on one line each or on many; `place` is the present line's."""
    pieces: list[bytes] = []
    size = 0
    begin = 0, 0
    for line in lines:
        if isinstance(line, Problem):
            pieces = []
            yield line
            continue
        begins = line.startswith(_BEGINNINGS)
        if pieces and begins:
            yield _Torn(*begin, size, is_last=False)
            pieces = []
        if not pieces and (not begins or _is_whole(line)):
            yield line
            continue
        if not pieces:
            begin = place()
        size = size + len(line) if pieces else len(line)
        pieces += [line] if size <= MAX_LINE else []
        if line.startswith(b"}"):
            yield b"".join(pieces)
            pieces = []
    if pieces:
        yield _Torn(*begin, size, is_last=True)


def _is_whole(line: bytes) -> bool:
    """Whether an object that begins on this line may end on it."""
    return line.rstrip(_PADDING).endswith(b"}")


def spans_of(row: Any, line: int = 0) -> Iterator[Span]:
    """Yield the spans and agents' log records of one exported object: those of a batch, or the one that it is."""
    batch = _plain(row)
    entries = [(batch, batch.get("resource"))]
    for fields in _LEVELS if any(field in batch for field in _LEVELS[0]) else ():
        entries = [
            (entry, outer.get("resource", resource))
            for outer, resource in entries
            for field in fields
            for entry in _plain_list(outer.get(field))
        ]
    for entry, resource in entries:
        if "attributes" in entry:
            read = _span if _LOG_FIELDS.isdisjoint(entry) else _log_record
            of_process = read_attributes(_plain(resource).get("attributes", resource))
            for span in read(entry, read_attributes(entry["attributes"]), of_process):
                span.line = line
                yield span


def _span(fields: Json, attributes: Json, resource: Json) -> Iterator[Span]:
    """Yield one span; none for what is none, such as a metric."""
    context = _plain(_pick(fields, "context", "spancontext"))
    trace = _id(_pick(fields, "traceid") or context.get("traceid"))
    span_id = _id(_pick(fields, "spanid") or _pick(context, "spanid") or fields.get("id"))
    start = read_instant(_pick(fields, "starttimeunixnano", "starttime", "timestamp"))
    end = read_instant(_pick(fields, "endtimeunixnano", "endtime"))
    took = fields.get("duration")  # of consoles in JavaScript: microseconds
    if end is None and start is not None and isinstance(took, int | float) and 0 <= took < 1e15:
        end = min(start + int(took * 1_000), _LATEST_NS)
    status, side = _plain(fields.get("status")), _pick(fields, "kind", "spankind")
    code = status.get("code", status.get("statuscode"))
    error = name(attributes, "error.type")
    if (code.upper() if isinstance(code, str) else code) in _ERRORS:
        error = name(_pick(status, "message", "description")) or error or "failed"
    if trace and span_id:
        yield Span(
            trace=trace,
            id=span_id,
            parent=_id(_pick(fields, "parentspanid", "parentid") or _plain(fields.get("parent")).get("spanid")),
            name=name(fields, "name"),
            side=str(side) if isinstance(side, int) else name(side),
            start=start,
            end=start if end is None else end,
            attributes=attributes,
            resource=resource,
            events=[
                (name(event, "name"), read_attributes(event.get("attributes")))
                for event in _plain_list(fields.get("events"))
            ],
            error=error,
        )


def _log_record(fields: Json, attributes: Json, resource: Json) -> Iterator[Span]:
    """Yield a log record that an agent wrote about itself, and no other."""
    names = (fields.get("eventname"), _value(fields.get("body")), attributes.get("event.name"))
    event = next((one for one in map(text, names) if one.startswith(AGENTS)), "")
    times = (attributes.get("event.timestamp"), fields.get("timeunixnano"), fields.get("observedtimeunixnano"))
    time = next(filter(None, map(read_instant, times)), None)
    if event:
        known = [(key, value) for key, value in sorted(attributes.items()) if isinstance(value, str | int | float)]
        span_id = fingerprint(event, time, known)
        yield Span(id=span_id, name=name(event), start=time, end=time, attributes=attributes, resource=resource)


def _pick(fields: Json, *names: str) -> Any:
    """Return the first of these fields that is set."""
    return next(filter(None, map(fields.get, names)), None)


def _plain(value: Any) -> Json:
    """An object's fields by names without case and underscores; none for what is no object."""
    return {key.replace("_", "").lower(): item for key, item in mapping(value).items()}


def _plain_list(value: Any) -> list[Json]:
    return [*map(_plain, objects(value))]


def _id(value: Any) -> str:
    known = name(value).lower().removeprefix("0x")
    return known if known.strip("0") else ""


def read_attributes(value: Any) -> Json:
    """Return a table of attributes, however they were written."""
    if isinstance(value, dict):
        return value
    return {pair["key"]: _value(pair.get("value")) for pair in _plain_list(value) if isinstance(pair.get("key"), str)}


def _value(value: Any) -> Any:
    """Untype a value."""
    if not isinstance(value, dict):
        return value
    fields = _plain(value)
    if "type" in fields and "value" in fields:
        return fields["value"]
    kind, item = next((one for one in fields.items() if one[0].endswith("value")), ("", None))
    values = _plain(item).get("values")
    if kind == "arrayvalue":
        return [_value(one) for one in values] if isinstance(values, list) else []
    return read_attributes(values) if kind == "kvlistvalue" else item


def read_instant(value: Any) -> int | None:
    """Return nanoseconds since 1970 for RFC 3339, `[s, ns]`, or a number, whose magnitude shows its unit."""
    match value:
        case [int(seconds), int(rest)] if 0 <= seconds < _SECONDS and 0 <= rest < SECOND:
            return seconds * SECOND + rest
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return read_time(value)


def holds_spans(_: str, head: bytes) -> bool:
    """Whether a file that begins with these bytes has spans about models, or log records of an agent about itself.

    A batch of spans is recognised by its first key, even if its line is longer than `head`; a batch of log records must
    also name an agent, and single spans must be about a model.
    """
    batch = _BATCH.match(head)
    if batch is not None and (batch[1].lower() == b"spans" or any(f'"{one}'.encode() in head for one in AGENTS)):
        return True
    for chunk in _chunks(head.split(b"\n")):
        try:
            row = orjson.loads(chunk.strip(b"\xef\xbb\xbf\x00")) if isinstance(chunk, bytes) else None
        except ValueError:
            continue
        for span in spans_of(row):
            if not span.trace or any(key.startswith("gen_ai.") for key in span.attributes):
                return True
    return False
