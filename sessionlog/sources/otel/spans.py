"""Spans: OpenTelemetry's, from whichever JSON they were exported to, in one shape.

Two questions are answered here and nowhere else. Where does an object end? On its line; or, printed over many lines as
consoles do, at the first line that closes in the first column. And what is a field called? Names are compared without
case and underscores, so that `traceId`, `trace_id` and `TraceID` are one; attributes are a table whether they were
typed (`{"key", "value": {"intValue": "5"}}`), Go's (`{"Key", "Value": {"Type", "Value"}}`) or plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from sessionlog.errors import Problem
from sessionlog.events.times import SECOND, epoch_ns, parse_time
from sessionlog.reader.rows import MAX_LINE, Row, Rows
from sessionlog.reader.stream import is_young
from sessionlog.sources.record import read_name

Json = Mapping[str, Any]

_NEEDLES = (b'"gen_ai.', b'"llm.', b"\\u00")
_BEGINNINGS = (b"{", b"\xef\xbb\xbf{")
_BATCH = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"resource_?[Ss]pans"\s*:')
_LONGEST = 1000  # lines of an object that is printed for people
_LOG_FIELDS = frozenset({"body", "severitynumber", "severitytext"})
_PADDING = b"\x00\r\n "
_SECONDS = 9_000_000_000  # later ones do not fit 64 bits of nanoseconds
_LATEST_NS = 2**63 - 1
_ERRORS = (2, "2", "ERROR", "STATUS_CODE_ERROR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span.

    Attributes:
        trace: The trace's id.
        id: The span's id, unique in its trace.
        parent: The id of the span around it; empty for the outermost.
        name: Its name.
        start_ns: Its start; None when it has none.
        end_ns: Its end, or its start.
        attributes: Its attributes, untyped.
        resource: Those of the process that made it.
        events: (name, attributes) of its events, in order.
        failed: Its status is an error.
        message: What the status says of it.
    """

    trace: str
    id: str
    parent: str = ""
    name: str = ""
    start_ns: int | None = None
    end_ns: int | None = None
    attributes: Json = field(default_factory=dict)
    resource: Json = field(default_factory=dict)
    events: tuple[tuple[str, Json], ...] = ()
    failed: bool = False
    message: str = ""


def read_spans(path: str) -> Iterator[tuple[Span, int] | Problem]:
    """Yield the spans of a file that may be about a model, each with its line, and what cannot be read.

    Raises:
        LogNotReadable: There is no such file, or it may not be read.
        MissingExtra: A .zst file without a decoder.
    """
    with Rows(path) as rows:
        for item in _objects(rows, path):
            if isinstance(item, Problem):
                yield item
            else:
                for span in spans_of(item):
                    yield span, rows.line


def _objects(rows: Rows, path: str) -> Iterator[Row | Problem]:
    """Yield the objects of a file, whether they are on one line each or on many."""
    pieces: list[bytes] = []
    size = 0
    for line in rows.lines():
        if isinstance(line, Problem):
            yield line
            continue
        begins, closes = line.startswith(_BEGINNINGS), line.startswith(b"}")
        if pieces and begins:
            yield _torn(rows, path, size, "not_json")
            pieces, size = [], 0
        if (begins and not _is_whole(line)) or (pieces and size <= MAX_LINE):
            pieces.append(line)
            size += len(line)
        if pieces and closes:
            yield from _decode(rows, b"".join(pieces))
            pieces, size = [], 0
        elif not pieces:
            yield from _decode(rows, line)
    tails: list[bytes] = []

    def keep(tail: bytes) -> bool:
        tails.append(tail)
        return False

    for problem in rows.last(keep):
        pieces = []
        yield problem
    if tails and _is_whole(tails[0]) and (not pieces or tails[0].startswith(b"}")):
        yield from _decode(rows, b"".join([*pieces, *tails]))
    elif pieces:
        yield _torn(rows, path, size, "torn_tail")


def _is_whole(line: bytes) -> bool:
    """Whether an object that begins on this line may end on it."""
    return line.rstrip(_PADDING).endswith(b"}")


def _decode(rows: Rows, text: bytes) -> Iterator[Row | Problem]:
    """Decode what may be about a model: most spans of a program are not."""
    if any(needle in text for needle in _NEEDLES) or not _is_whole(text):
        yield from rows.decode(text)


def _torn(rows: Rows, path: str, size: int, kind: str) -> Problem:
    young = kind == "torn_tail" and is_young(path)
    return Problem(
        path=path, line=rows.line, offset=rows.offset - size, kind=kind, detail=f"unfinished object, {size} bytes",
        length=size, severity="info" if young else "damage",
    )  # fmt: skip


def spans_of(row: Any) -> Iterator[Span]:
    """Yield the spans of one exported object: those of a batch, or the one that it is."""
    batch = _plain(row)
    groups = batch.get("resourcespans")
    if not isinstance(groups, list):
        span = _span(row, batch.get("resource"))
        if span is not None:
            yield span
        return
    for group in map(_plain, groups):
        scopes = group.get("scopespans") or group.get("instrumentationlibraryspans")
        for scope in map(_plain, scopes if isinstance(scopes, list) else []):
            spans = scope.get("spans")
            for one in spans if isinstance(spans, list) else []:
                span = _span(one, group.get("resource"))
                if span is not None:
                    yield span


def _span(row: Any, resource: Any) -> Span | None:
    """Read one span; None for what is none, such as a log record or a metric."""
    fields = _plain(row)
    context = _plain(fields.get("context") or fields.get("spancontext"))
    trace = _id(fields.get("traceid") or context.get("traceid"))
    span_id = _id(fields.get("spanid") or context.get("spanid") or fields.get("id"))
    if not trace or not span_id or "attributes" not in fields or not _LOG_FIELDS.isdisjoint(fields):
        return None
    start_ns = read_instant(fields.get("starttimeunixnano") or fields.get("starttime") or fields.get("timestamp"))
    end_ns = read_instant(fields.get("endtimeunixnano") or fields.get("endtime"))
    took = fields.get("duration")  # of consoles in JavaScript: microseconds
    if end_ns is None and start_ns is not None and isinstance(took, int | float) and 0 <= took < 1e15:
        end_ns = min(start_ns + int(took * 1_000), _LATEST_NS)
    status = _plain(fields.get("status"))
    code = status.get("code", status.get("statuscode"))
    events = fields.get("events")
    return Span(
        trace=trace,
        id=span_id,
        parent=_id(fields.get("parentspanid") or fields.get("parentid") or _plain(fields.get("parent")).get("spanid")),
        name=read_name(fields.get("name")) or "",
        start_ns=start_ns,
        end_ns=start_ns if end_ns is None else end_ns,
        attributes=read_attributes(fields.get("attributes")),
        resource=read_attributes(_plain(resource).get("attributes", resource)),
        events=tuple(
            (read_name(event.get("name")) or "", read_attributes(event.get("attributes")))
            for event in map(_plain, events if isinstance(events, list) else [])
        ),
        failed=(code.upper() if isinstance(code, str) else code) in _ERRORS,
        message=read_name(status.get("message") or status.get("description")) or "",
    )


def _plain(value: Any) -> dict[str, Any]:
    """An object's fields by names without case and underscores; none for what is no object."""
    if not isinstance(value, dict):
        return {}
    return {key.replace("_", "").lower(): item for key, item in value.items()}


def _id(value: Any) -> str:
    name = (read_name(value) or "").lower().removeprefix("0x")
    return name if name.strip("0") else ""


def read_attributes(value: Any) -> dict[str, Any]:
    """Return a table of attributes, however they were written."""
    if isinstance(value, dict):
        return value
    pairs: Iterable[dict[str, Any]] = map(_plain, value if isinstance(value, list) else [])
    return {pair["key"]: _value(pair.get("value")) for pair in pairs if isinstance(pair.get("key"), str)}


def _value(value: Any) -> Any:
    """Untype a value."""
    fields = _plain(value)
    if "type" in fields and "value" in fields:
        return fields["value"]
    for kind, item in fields.items():
        if kind == "arrayvalue":
            values = _plain(item).get("values")
            return [_value(one) for one in values] if isinstance(values, list) else []
        if kind == "kvlistvalue":
            return read_attributes(_plain(item).get("values"))
        if kind.endswith("value"):
            return item
    return None if isinstance(value, dict) else value


def read_instant(value: Any) -> int | None:
    """Return nanoseconds since 1970 for RFC 3339, `[s, ns]`, or a number in a unit that its magnitude tells."""
    if isinstance(value, list):
        parts = [part for part in value if type(part) is int]
        fits = len(parts) == len(value) == 2 and 0 <= parts[0] < _SECONDS and 0 <= parts[1] < SECOND
        return parts[0] * SECOND + parts[1] if fits else None
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit() and len(value) < 20):
            return parse_time(value)
        value = int(value)
    return epoch_ns(value)


def holds_spans(_: str, head: bytes) -> bool:
    """Whether a file that begins with these bytes was written by an exporter of spans about models.

    A batch is known by its first key, even where its line goes on beyond `head`; single spans must be about a model.
    """
    if _BATCH.match(head):
        return True
    pieces: list[bytes] = []
    for line in head.split(b"\n"):
        begins = line.startswith(_BEGINNINGS)
        pieces = [line] if begins else [*pieces[-_LONGEST:], line]
        if line.startswith(b"}") or (begins and _is_whole(line)):
            try:
                row = orjson.loads(b"\n".join(pieces).strip(b"\xef\xbb\xbf\x00"))
            except ValueError:
                continue
            if any(key.startswith("gen_ai.") for span in spans_of(row) for key in span.attributes):
                return True
    return False
