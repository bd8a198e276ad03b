"""Salvage: copy what can be read of a damaged ledger into a new one.

Each log's rows are read from both ends, up to the damage, and inserted as if they came from a scan. Existing logs are
read again afterwards, so this matters for logs that are gone. If a log's row in `files` is lost, its path comes from
the facts of its session; names whose label is lost become `unknown`. If SQLite cannot open the file at all, nothing can
be salvaged, and only a backup helps.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import Call, Label, Name, Response, Row, Session
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.rows import LogRows, SessionRows
from sessionlog.ledger.sessions import facts_of, facts_text
from sessionlog.ledger.tables import migrate
from sessionlog.ledger.trust import is_older
from sessionlog.sources.record import ScannedSession

_LABELS = f"SELECT id, {', '.join(Label._fields)} FROM labels"  # noqa: S608 - names of the schema
_NAMES = f"SELECT id, {', '.join(Name._fields)} FROM names"  # noqa: S608 - as above
_SESSIONS = f"SELECT {', '.join(Session._fields)} FROM all_sessions"  # noqa: S608 - as above
_KEPT = ("NULL" if name == "saved_nano" else name for name in Response._fields)  # older files lack it; it is derived
_RESPONSES = f"SELECT {', '.join(_KEPT)} FROM responses"  # noqa: S608 - as above
_CALLS = f"SELECT {', '.join(Call._fields)} FROM calls"  # noqa: S608 - as above


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """What was copied into the new ledger.

    Attributes:
        files: Logs.
        records: Responses.
        calls: Tool calls.
        lost: Logs with rows that could not be read.
    """

    files: int = 0
    records: int = 0
    calls: int = 0
    lost: int = 0


def salvage(path: str, book: Book) -> Salvaged:
    """Copy all that can be read of a damaged file into an empty ledger; no other process may have the file open."""
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.text_factory = lambda raw: raw.decode("utf-8", "replace")
        with suppress(sqlite3.Error), old:
            if is_older(old):
                old.execute("BEGIN")
                migrate(old)
        with suppress(sqlite3.Error, UnicodeDecodeError):
            for name, value in old.execute("SELECT name, value FROM meta WHERE name = 'machine'"):
                book.set_meta(name, value)  # what was exported by the damaged ledger is this one's
        return _Salvage(old, book).run()


class _Salvage:
    def __init__(self, old: sqlite3.Connection, book: Book) -> None:
        self._old, self._book = old, book
        self._labels = {row[0]: row[1:] for row in self._read(_LABELS, "id")[0]}
        self._names = {row[0]: row[1:] for row in self._read(_NAMES, "id")[0]}
        self._sessions = {
            row[0]: known for row in self._read(_SESSIONS, "id")[0] if (known := _session(row)) is not None
        }

    def run(self) -> Salvaged:
        rows, _ = self._read("SELECT id, path, source FROM files", "id")
        known = {file_id: (path_of(path), str(source)) for file_id, path, source in rows}
        others, _ = self._read("SELECT file_id FROM log_sessions", "file_id")
        files = records = calls = lost = 0
        for file_id in sorted({*known, *(row[0] for row in others if isinstance(row[0], int))}):
            scan, is_whole = self._log(file_id)
            lost += not is_whole
            if not scan.sessions:
                continue
            path, _ = known.get(file_id) or (facts_of(scan.sessions[0].facts).path, "")
            with suppress(sqlite3.Error, ValueError, TypeError):
                self._book.add_rows(path, scan, source=scan.source)
                files += 1
                records += sum(len(session.responses) for session in scan.sessions)
                calls += sum(len(session.calls) for session in scan.sessions)
        self._book.reconcile()
        return Salvaged(files=files, records=records, calls=calls, lost=lost)

    def _log(self, file_id: int) -> tuple[LogRows, bool]:
        """Return the rows of a log that can be read, and whether these are all."""
        facts, has_facts = self._read("SELECT session_id, facts, n FROM log_sessions", "n", file_id)
        rows, has_responses = self._read(_RESPONSES, "n", file_id, "AND n >= 0")
        responses = list(map(Response._make, rows))
        rows, has_calls = self._read(_CALLS, "n", file_id)
        calls = list(map(Call._make, rows))
        found = {session_id: known for session_id, text, _ in facts if (known := _facts(text)) is not None}
        for session_id in ({row.session_id for row in responses} | {row.session_id for row in calls}) - found.keys():
            has_facts, known = False, self._sessions.get(session_id)
            if known is not None:
                found[session_id] = known
        labels, names = _Numbers(self._labels, Label), _Numbers(self._names, Name)
        sessions = tuple(
            SessionRows(
                name=(known.source, known.session_id, known.place),
                facts=facts_text(known),
                responses=[
                    row._replace(label_id=labels.number(row.label_id))
                    for row in responses
                    if row.session_id == session_id
                ],
                calls=[
                    row._replace(name_id=names.number(row.name_id)) for row in calls if row.session_id == session_id
                ],
            )
            for session_id, known in found.items()
        )
        count = sum(len(one.responses) + len(one.calls) for one in sessions)
        is_whole = has_facts and has_responses and has_calls and count == len(responses) + len(calls)
        scan = LogRows(
            source=sessions[0].name[0] if sessions else "",
            sessions=sessions,
            labels=tuple(labels.rows),
            names=tuple(names.rows),
        )
        return scan, is_whole

    def _read(self, sql: str, order: str, file_id: int | None = None, condition: str = "") -> tuple[list[Row], bool]:
        """Return the rows before and behind the damage, and whether there was none."""
        where = "" if file_id is None else f"WHERE file_id = {file_id} {condition}"
        rows: dict[str, Row] = {}
        for direction in ("ASC", "DESC"):
            try:
                for row in self._old.execute(f"{sql} {where} ORDER BY {order} {direction}"):
                    rows[repr(row)] = row
            except (sqlite3.Error, UnicodeDecodeError, OverflowError):
                continue
            return list(rows.values()), direction == "ASC"
        return list(rows.values()), False


class _Numbers:
    """New numbers for the damaged ledger's ids of labels or names."""

    def __init__(self, known: dict[Any, Row], row: type[Label | Name]) -> None:
        self._known, self._row = known, row
        self._numbers: dict[Any, int] = {}
        self.rows: list[Any] = []

    def number(self, old: Any) -> int:
        if old not in self._numbers:
            self._numbers[old] = len(self.rows)
            self.rows.append(self._row._make(self._known.get(old) or [UNKNOWN] * len(self._row._fields)))
        return self._numbers[old]


def _facts(text: Any) -> ScannedSession | None:
    try:
        return facts_of(text)
    except (ValueError, TypeError, KeyError):
        return None


def _session(row: Row) -> ScannedSession | None:
    """The facts of a session from its merged row: they replace those of a log whose own are lost."""
    known = Session._make(row)._asdict()
    fields = {name: known[name] for name in known if name in ScannedSession.__struct_fields__}
    try:
        fields["metadata"] = json.loads(known["metadata"])
        return ScannedSession(session_id=known["session"], status=known["end_status"], **fields)
    except (ValueError, TypeError):
        return None
