"""Portable rows: what scans return and what copies are decided on, as plain columns that an engine can move.

A worker scans logs and gives their rows; copies meet by their hash on another worker, which decides with the ledger's
own rule (see `ledger.copies`) which of them count. No id of a ledger is in these rows: a session and a label stand as
JSON texts, a log as its rank in the order of paths, by which ties of copies are broken. Numbers are within 64 bits.

This module needs no engine, and on a worker nothing beyond Python, msgspec and orjson.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct, msgpack, structs

from sessionlog import files
from sessionlog.errors import Problem
from sessionlog.ledger.columns import Call, Label, Name, Response, Row, columns_of
from sessionlog.ledger.copies import Names, label_of, merged_row, winners, winning_call
from sessionlog.ledger.handover import rows_in_file
from sessionlog.ledger.interned_ids import SessionName
from sessionlog.ledger.problems import problems_of, problems_text
from sessionlog.ledger.rows import name_of, set_own_families
from sessionlog.ledger.scanning import Job, Scanned, scan_job
from sessionlog.ledger.sessions import facts_of
from sessionlog.ledger.statements import select_rows
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit, Problems, ScannedSession

_TEXT = frozenset({"session_id", "label_id", "name_id", "superseded_by"})
_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TEXT": "STRING"}
_KEPT = 8192  # parsed names that are kept in memory
_ROWS = 8192  # responses, and calls, that a large log's scan returns at once

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
    decoded = msgpack.decode(tasks, type=list[Task])
    return [scan for task in decoded for scan in _scan(task, prices, with_calls)]


def _scan(task: Task, prices: PriceBook, with_calls: bool) -> list[Scan]:
    path = os.fsdecode(task.path)
    job = Job(number=task.rank, source=task.source, path=path, size=task.size, again=False)
    try:
        with _opened(path):
            return list(scans_of(scan_job(job), prices, with_calls=with_calls))
    except Exception as error:  # noqa: BLE001 - a log that cannot be read must not fail the job
        problem = Problem(path=path, kind="source_failed", detail=f"{task.source}: {type(error).__name__}: {error}")
        scan = LogScan(problems=Problems(count=1, first=(problem,)))
        return list(scans_of(Scanned(number=task.rank, scan=scan, failed=True), prices))


def _opened(path: str) -> AbstractContextManager[object]:
    """Open a remote log, which the driver has listed, for this worker; its store's credentials are the worker's."""
    if not files.is_url(path):
        return nullcontext()
    from sessionlog.files.remote import opened

    return opened([path])


def scans_of(scanned: Scanned, prices: PriceBook, *, with_calls: bool = True) -> Iterator[Scan]:
    """Yield the rows of a scan and its header, as an engine moves them; the number of the job is the log's rank."""
    rank = scanned.number
    with rows_in_file("", prices) as (connection, rows):
        rows.insert(scanned.scan.sessions, rank)
        set_own_families(connection, rank, 0)
        labels, names, sessions = (
            {number: json.dumps(names) for number, *names in connection.execute(f"SELECT id, {columns} FROM {table}")}  # noqa: S608 - names of the schema
            for table, columns in (
                ("labels", ", ".join(Label._fields)),
                ("names", ", ".join(Name._fields)),
                ("all_sessions", "source, session, place"),
            )
        )
        header: str | None = _header(scanned, connection)
        responses = _with_texts(
            select_rows(connection, Response, "responses r ORDER BY n"), session_id=sessions, label_id=labels
        )
        calls = _with_texts(select_rows(connection, Call, "calls r ORDER BY n"), session_id=sessions, name_id=names)
        while True:
            some, used = list(islice(responses, _ROWS)), list(islice(calls, _ROWS)) if with_calls else []
            if header is None and not (some or used):
                break
            yield header, some, used
            header = None


def _with_texts(rows: Iterable[Response | Call], **texts: Mapping[int, str]) -> Iterator[Row]:
    """Yield rows with texts in place of ids."""
    for one in rows:
        own: dict[str, Any] = {name: known[getattr(one, name)] for name, known in texts.items()}
        yield one._replace(**own)


def _header(scanned: Scanned, connection: sqlite3.Connection) -> str:
    facts = connection.execute("SELECT facts FROM log_sessions ORDER BY n").fetchall()
    superseding = connection.execute("SELECT superseded_by FROM responses UNION SELECT superseded_by FROM calls")
    document = {
        "rank": scanned.number, "source": scanned.source, "failed": scanned.failed, "identity": scanned.identity,
        "settled": scanned.settled, "problems": [scanned.scan.problems.count, problems_text(scanned.scan.problems)],
        "limits": list(map(structs.asdict, scanned.scan.limits)), "facts": [text for (text,) in facts],
        "superseding": sorted({name for (names,) in superseding for name in (names or "").split("\n") if name}),
    }  # fmt: skip
    return json.dumps(document)  # ASCII, with escapes for what is no valid text


def read_header(text: str, jobs: Mapping[int, Job]) -> Header:
    """Return a header; `jobs` are those of all logs by their ranks."""
    document = json.loads(text)
    count, named = document["problems"]
    sessions = tuple(map(facts_of, document["facts"]))
    scan = LogScan(
        sessions=sessions,
        problems=Problems(count=count, first=tuple(problems_of(named))),
        limits=tuple(Limit(**limit) for limit in document["limits"]),
    )
    scanned = Scanned(
        number=jobs[document["rank"]].number,
        scan=scan,
        source=document["source"],
        failed=document["failed"],
        identity=tuple(document["identity"]) if document["identity"] else None,
        settled=document["settled"],
    )
    return Header(
        scanned=scanned, spans=tuple(map(_span, sessions)), superseding=frozenset(document["superseding"])
    )  # fmt: skip


def _span(session: ScannedSession) -> SessionSpan:
    return SessionSpan(
        name=name_of(session),
        start_ns=session.start_ns,
        last_ns=session.last_ns,
        on_wire=session.on_wire_of is not None,
    )


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
