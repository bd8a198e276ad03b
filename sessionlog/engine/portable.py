"""Portable rows: what scans return and what copies are decided on, as plain columns that an engine can move.

A worker scans logs and gives their rows; copies meet by their hash on another worker, which decides with the ledger's
own rule (see `ledger.copies`) which of them count. No id of a ledger is in these rows: a session and a label stand as
JSON texts, a log as its rank in the order of paths, by which ties of copies are broken. Numbers are within 64 bits.

This module needs no engine, and on a worker nothing beyond Python, msgspec and orjson.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from itertools import chain
from typing import Any

from msgspec import Struct, msgpack, structs

from sessionlog import files
from sessionlog.errors import Problem
from sessionlog.ledger.columns import Call, Column, Label, Name, Response, Row, columns_of
from sessionlog.ledger.copies import Names, label_of, merged_row, superseding_sessions, winners, winning_call
from sessionlog.ledger.identity import Identity
from sessionlog.ledger.interned_ids import SessionName
from sessionlog.ledger.problems import problems_of, problems_text
from sessionlog.ledger.rows import LogRows, SessionRows
from sessionlog.ledger.scanning import Job, Scanned, scan_job
from sessionlog.ledger.storable import within_64_bits
from sessionlog.ledger.writer import with_own_family
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import Limit, Problems

_TEXT = frozenset({"session_id", "label_id", "name_id", "superseded_by"})
_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TEXT": "STRING"}
_KEPT = 8192  # parsed names that are kept in memory

Scan = tuple[str | None, Sequence[Row], Sequence[Row]]
"""A header, and rows; the rows of a large log come in several, of which the first has the header."""


def _rows_type(row: type[Row]) -> str:
    types = {one.name: "STRING" if one.name in _TEXT else _TYPES[one.type] for one in columns_of(row)}
    return f"ARRAY<STRUCT<{', '.join(f'{name}: {kind}' for name, kind in types.items())}>>"


RESPONSES, CALLS = _rows_type(Response), _rows_type(Call)
SCANS = f"ARRAY<STRUCT<header: STRING, responses: {RESPONSES}, calls: {CALLS}>>"
"""The types of rows, and of what `scan_tasks` returns, in SQL."""


class Task(Struct, frozen=True, kw_only=True, array_like=True):
    """A log that a worker has to scan.

    Attributes:
        rank: Its place in the order of all logs' paths.
        source: Id of its source.
        path: Its path, as bytes.
        size: Estimated bytes to read.
    """

    rank: int
    source: str
    path: bytes
    size: int


class SessionSpan(Struct, frozen=True, kw_only=True, array_like=True):
    """The time that one log has of a session.

    Attributes:
        name: (source, session id, place).
        start_ns: Its first event.
        last_ns: Its last event.
        on_wire: It was recorded on the wire.
    """

    name: tuple[str, str, str]
    start_ns: int | None
    last_ns: int | None
    on_wire: bool


class Header(Struct, frozen=True, kw_only=True):
    """What a scan has beside its rows.

    Attributes:
        scanned: The scan, with the facts of sessions and without responses and calls.
        spans: The times of its sessions.
        superseding: The sessions that have rows of it, too, as `source:session`.
    """

    scanned: Scanned
    spans: tuple[SessionSpan, ...]
    superseding: frozenset[str]


def encode_tasks(tasks: Iterable[tuple[int, Job]]) -> bytes:
    """Return logs to scan, with their ranks, as bytes for `scan_tasks`."""
    return msgpack.encode(
        [Task(rank=rank, source=job.source, path=os.fsencode(job.path), size=job.size) for rank, job in tasks]
    )


def scan_tasks(tasks: bytes, prices: PriceBook, *, with_calls: bool = True) -> list[Scan]:
    """Scan logs and price their responses; any error becomes a problem of its log. This runs in a worker."""
    return list(chain.from_iterable(_scan(task, prices, with_calls) for task in msgpack.decode(tasks, type=list[Task])))


def _scan(task: Task, prices: PriceBook, with_calls: bool) -> Iterator[Scan]:
    path = os.fsdecode(task.path)
    job = Job(number=task.rank, source=task.source, path=path, size=task.size, again=False)
    try:
        with _opened(path):
            yield from scans_of(task.rank, scan_job(job, prices), with_calls=with_calls)
    except Exception as error:  # noqa: BLE001 - a log that cannot be read must not fail the job
        problem = Problem(path=path, kind="source_failed", detail=f"{task.source}: {type(error).__name__}: {error}")
        rows = LogRows(problems=Problems(count=1, first=(problem,)), failed=True)
        scanned = Scanned(number=task.rank, rows=rows, from_start=True, identity=None, settled=False)
        yield _header(task.rank, scanned, (), frozenset()), [], []


def _opened(path: str) -> AbstractContextManager[object]:
    """Open a remote log, which the driver has listed, for this worker; its store's credentials are the worker's."""
    if not files.is_url(path):
        return nullcontext()
    from sessionlog.files.remote import opened

    return opened([path])


def scans_of(rank: int, scanned: Scanned, *, with_calls: bool = True) -> list[Scan]:
    """Return the rows of a scan and its header, as an engine moves them."""
    found: list[tuple[Sequence[Row], Sequence[Row]]] = []
    sessions: list[SessionRows] = []
    superseding: set[str] = set()
    n = m = 0
    for batch in scanned.rows.batches():
        labels, names = list(map(json.dumps, batch.labels)), list(map(json.dumps, batch.names))
        responses: list[Response] = []
        calls: list[Call] = []
        for session in batch.sessions:
            name = json.dumps(session.name)
            if session.facts:
                sessions.append(SessionRows(name=session.name, facts=session.facts, responses=[], calls=[]))
            for row in session.responses:
                ids: dict[str, Any] = {"session_id": name, "label_id": labels[row.label_id]}  # texts for numbers
                plain = Response._make(_plain(row._replace(file_id=rank, n=n, **ids)))
                responses.append(with_own_family(plain, rank, n))
                n += 1
            for call in session.calls if with_calls else ():
                ids = {"session_id": name, "name_id": names[call.name_id]}
                calls.append(Call._make(_plain(call._replace(file_id=rank, n=m, **ids))))
                m += 1
        superseding.update((superseding_sessions([*responses, *calls]) or "").split("\n"))
        found.append((responses, calls))
    superseding.discard("")
    head = structs.replace(scanned, rows=structs.replace(scanned.rows, sessions=tuple(sessions), spool=None))
    header = _header(rank, head, map(_span, sessions), superseding)
    [first, *rest] = found or [([], [])]
    return [(header, *first), *((None, *more) for more in rest)]


def _plain(row: Response | Call) -> Row:
    """Return a row with numbers of the types of its columns, within 64 bits."""
    columns = zip(columns_of(Response if isinstance(row, Response) else Call), row, strict=True)
    return within_64_bits(tuple(_value(one, value) for one, value in columns))


def _value(column: Column, value: Any) -> Any:
    if value is None or column.name in _TEXT:
        return value
    return _finite(value) if column.type == "REAL" else int(value)


def _finite(number: float) -> float | None:
    """Return a float; None for NaN, which a ledger cannot hold either."""
    return float(number) if number == number else None  # noqa: PLR0124 - only NaN differs from itself


def _span(session: SessionRows) -> SessionSpan:
    facts = json.loads(session.facts)
    is_on_wire = facts["on_wire_of"] is not None
    return SessionSpan(name=session.name, start_ns=facts["start_ns"], last_ns=facts["last_ns"], on_wire=is_on_wire)


def _header(rank: int, scanned: Scanned, spans: Iterable[SessionSpan], superseding: Collection[str]) -> str:
    rows = scanned.rows
    document = {
        "rank": rank, "source": rows.source, "failed": rows.failed, "identity": scanned.identity,
        "settled": scanned.settled, "problems": [rows.problems.count, problems_text(rows.problems)],
        "limits": list(map(structs.asdict, rows.limits)),
        "sessions": [(one.name, one.facts) for one in rows.sessions],
        "spans": list(map(structs.astuple, spans)), "superseding": sorted(superseding),
    }  # fmt: skip
    return json.dumps(document)  # ASCII, with escapes for what is no valid text


def read_header(text: str, jobs: Mapping[int, Job]) -> Header:
    """Return a header; `jobs` are those of all logs by their ranks."""
    document = json.loads(text)
    count, named = document["problems"]
    sessions = [
        SessionRows(name=_session_name(name), facts=facts, responses=[], calls=[])
        for name, facts in document["sessions"]
    ]
    number = jobs[document["rank"]].number
    rows = LogRows(
        source=document["source"],
        sessions=tuple(sessions),
        problems=Problems(count=count, first=tuple(problems_of(named))),
        limits=tuple(Limit(**limit) for limit in document["limits"]),
        failed=document["failed"],
    )
    identity: Identity | None = tuple(document["identity"]) if document["identity"] else None
    return Header(
        scanned=Scanned(
            number=number, rows=rows, from_start=True, identity=identity, settled=document["settled"]
        ),
        spans=tuple(
            SessionSpan(name=_session_name(name), start_ns=start, last_ns=last, on_wire=on_wire)
            for name, start, last, on_wire in document["spans"]
        ),
        superseding=frozenset(document["superseding"]),
    )  # fmt: skip


def _session_name(parts: Sequence[str]) -> SessionName:
    source, session, place = parts
    return source, session, place


def winning_responses(copies: Sequence[Row] | None, known: Collection[str]) -> list[Row] | None:
    """Return the responses that count of all copies of one family; None for None. This runs in a worker."""
    if copies is None:
        return None
    return [
        winner.place if winner.counts is winner.place else merged_row(winner, json.dumps(label_of(winner, _NAMES)))  # type: ignore[arg-type] # as in _NAMES
        for winner in winners(list(map(Response._make, copies)), _NAMES, known)
    ]


def winning_calls(copies: Sequence[Row] | None, known: Collection[str]) -> list[Row] | None:
    """Return the tool call that counts of all copies of one; None for None. This runs in a worker."""
    if copies is None:
        return None
    best = winning_call(list(map(Call._make, copies)), _NAMES, known)
    return [] if best is None else [best]


@lru_cache(_KEPT)
def parse_label(text: str) -> Label:
    """Return the label in a JSON text."""
    return Label._make(json.loads(text))


@lru_cache(_KEPT)
def parse_name(text: str) -> Name:
    """Return a tool's names in a JSON text."""
    return Name._make(json.loads(text))


@lru_cache(_KEPT)
def parse_session(text: str) -> SessionName:
    """Return (source, id, place) of a session in a JSON text."""
    return _session_name(json.loads(text))


_NAMES = Names(
    label=parse_label,
    call=parse_name,
    path=lambda rank: rank.to_bytes(8, "big"),
    session=lambda text: parse_session(text)[1],
)
"""Look-ups in rows whose ids are texts and ranks."""
