"""Ledger rows: responses, tool calls and sessions of a ledger as rows for export, all copies included.

Another machine must be able to decide again which copy counts, so each copy has its key, family and rank, and `counts`
is what this ledger has decided. A response without a key gets one from its log's path below the home folder and its
number there: the same in a restored backup. Of a request on the wire and the row of it in a log (see `ledger.wire`) the
one that does not count is `replaced`: its key counts nowhere.

The id of a row is a hash, with the machine's secret, of what does not change while its log grows. Rows are read in the
order of logs, of all sessions or of some.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tools import CallSelection
from sessionlog.export.project_names import ProjectNames
from sessionlog.hashes import blake2b, hash_with
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.parquet_schema import EXPORTED, NAMES
from sessionlog.ledger.rows import own_family
from sessionlog.ledger.schema import ELSEWHERE, NOTHING_LEFT
from sessionlog.ledger.statements import choose

_DAY_NS = 86_400 * 1_000_000_000
_FIRST_DAY = date(1970, 1, 1).toordinal()
_ANYWHERE = blake2b(digest_size=8)
_MOST_KEPT = 8192  # names of sessions and logs that are in memory at once

_REPLACED = "(r.chosen AND NOT r.counts OR COALESCE(m.chosen AND NOT m.counts, 0))"
_RESPONSES = f"""
SELECT {{is_selected}}, {{columns}}, r.counts OR COALESCE(m.counts, 0), {_REPLACED}, r.n, r.file_id, r.family, r.key
FROM {{logs}} responses r {{on}} JOIN all_sessions s ON s.id = r.session_id JOIN labels l ON l.id = r.label_id
    JOIN files f ON f.id = r.file_id LEFT JOIN responses m ON m.file_id = r.file_id AND m.n = -1 - r.n
WHERE r.n >= 0 AND f.missing <> {ELSEWHERE} AND s.counted AND r.session_id {{chosen}}
"""  # noqa: S608 - names of the schema
"""`m` is the row that was merged from this one's place and another copy's counts."""
_COLUMNS = (
    "COALESCE(s.home, r.session_id)", "r.label_id", "r.superseded_by", "r.estimate_nano", "r.saved_nano", "r.copy_rank",
    "r.time_ns", "r.requests", "r.failed <> 0", "r.input", "r.output", "r.cache_read", "r.cache_write",
    "r.cache_write_1h", "r.reasoning", "r.cost_nano", "r.priced <> 0", "r.latency_ms", "r.active_ms",
    *(f"r.{name}" for name in EXPORTED),
)  # fmt: skip
_SELECTED = """(r.key IN (SELECT r.key FROM {tables} WHERE r.key IS NOT NULL AND {where})
    OR (r.file_id, r.n) IN (SELECT r.file_id, r.n FROM {tables} WHERE {where}) {others})"""
_COUNTING = "records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id"
_COUNTING_CALLS = "tools r JOIN sessions s ON s.id = r.session_id"
_CALLS = f"""
SELECT {{is_selected}}, r.session_id, r.name_id, r.superseded_by, r.counts, r.file_id, r.n, r.key, r.time_ns,
    r.finished <> 0, r.failed <> 0, r.duration_ms, r.output_bytes
FROM {{logs}} calls r {{on}} JOIN all_sessions s ON s.id = r.session_id JOIN files f ON f.id = r.file_id
WHERE f.missing <> {ELSEWHERE} AND r.session_id {{chosen}}
"""  # noqa: S608 - names of the schema
_SESSIONS = f"""
SELECT {{is_selected}}, s.id, s.parent, s.end_status, s.project, s.harness, s.start_ns, s.last_ns, s.duration_ms,
    s.turns, s.counted <> 0, s.home IS NOT NULL OR {NOTHING_LEFT}, s.part <> 0, main.start_ns, main.last_ns
FROM all_sessions s LEFT JOIN (
    SELECT t.session_id, MIN(t.facts ->> '$.start_ns') AS start_ns, MAX(t.facts ->> '$.last_ns') AS last_ns
    FROM log_sessions t LEFT JOIN files f ON f.id = t.file_id
    WHERE NOT t.facts ->> '$.part' AND COALESCE(f.missing, 0) <> {ELSEWHERE} AND t.session_id {{chosen}}
    GROUP BY t.session_id
) AS main ON main.session_id = s.id WHERE NOT s.elsewhere AND s.id {{chosen}}
"""  # noqa: S608 - names of the schema
"""Sessions with the times of their main logs, which decide on the end of a session that is on several machines."""
_LOGS_OF = "(SELECT DISTINCT file_id FROM log_sessions WHERE session_id {}) t CROSS JOIN"


class LedgerRow(NamedTuple):
    """A row of the ledger, on its way into a table of the export.

    Attributes:
        id: 64 bits, the same in every export of this machine.
        month: Months since the year 0 of its time, in UTC; None without a time.
        session: The ledger's number of its session.
        is_selected: Whether the export's filters have selected it.
        state: A hash of what a log has of it.
        names: The number of each group of names, in the order of `NAMES`, without the price list.
        values: All other columns that the log has, in the order of the table.
        standing: What the ledger has decided: `counts`, and of responses `replaced`.
        costs: What the price list has given: estimate, saving.
    """

    id: int
    month: int | None
    session: int
    is_selected: bool
    state: int
    names: tuple[int | None, ...]
    values: tuple[Any, ...]
    standing: tuple[bool, ...]
    costs: tuple[int | None, ...]


AddNames = Callable[[str, str, Sequence[Any]], int]
"""Takes a table, a group of names and these; returns the number by which rows refer to them."""


class LedgerRows:
    """The rows of a ledger for each table.

    Args:
        book: The ledger, in a transaction.
        requests: The selection of responses, which also selects the sessions that have any of these.
        calls: The selection of tool calls; None for no calls.
        project_names: How projects are named.
        secret: The machine's secret.
        add_names: Where names go.
    """

    def __init__(
        self,
        book: Book,
        requests: Selection,
        calls: CallSelection | None,
        project_names: ProjectNames,
        secret: bytes,
        add_names: AddNames,
    ) -> None:
        self._book, self._requests, self._calls, self._projects = book, requests, calls, project_names
        self._secret = secret
        self._add_names = add_names
        self._attributions: dict[int, tuple[str, ...] | None] = {}
        requests.prepare(book)

    def count(self, sessions: Collection[int] | None) -> int:
        """Return about how many rows `read` yields for all tables; 0 for some sessions, which are few."""
        if sessions is not None:
            return 0
        tables = ("responses", "calls", "all_sessions")
        counts = (self._book.connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables)  # noqa: S608 - names of the schema
        return sum(counts)

    def read(self, table: str, sessions: Collection[int] | None) -> Iterator[LedgerRow]:
        """Yield the rows of a table: those of these sessions, or all."""
        chosen = choose(self._book.connection, sessions)
        logs, on = "", ""
        if sessions is not None:
            logs, on = _LOGS_OF.format(chosen), "ON r.file_id = t.file_id"
        parts = {"logs": logs, "on": on, "chosen": chosen}
        match table:
            case "usage":
                return self._usage(parts)
            case "sessions":
                return self._sessions(parts)
            case _:
                return self._tools(parts)

    def _usage(self, parts: dict[str, str]) -> Iterator[LedgerRow]:
        where, parameters = self._requests.where()
        is_selected = "1"
        if _is_narrow(self._requests):
            others = f"OR {_REPLACED} AND {where}"
            is_selected = _SELECTED.format(tables=_COUNTING, where=where, others=others)
        session = self._names("usage", "session", self._session_names)
        label = self._names("usage", "label", self._label)
        superseding = self._names("usage", "superseding", _lines)
        attribution = self._names("usage", "attribution", lambda names: [name or None for name in names])
        logs = _Logs(self._book, "usage\0row", self._secret, self._projects)
        sql = _RESPONSES.format(is_selected=is_selected, columns=", ".join(_COLUMNS), **parts)
        for row in self._book.connection.execute(sql, parameters):
            selected, session_id, label_id, superseded_by, estimate, saved, *rest = row
            *values, counts, is_replaced, n, file_id, family, key = rest
            log = logs.of(file_id)
            if key is None or key == own_family(file_id, n):
                family = key = hash_with(log.unkeyed, str(n))
            names = (session(session_id), label(label_id), superseding(superseded_by or None))
            charged = attribution(self._attribution(label_id))
            values = [family, key, *values]
            first = len(values) - len(EXPORTED)
            known = values if any(values[first:]) else values[:first]  # others keep the state of older exports
            yield LedgerRow(
                hash_with(log.ids, str(n)), _month(values[3]), session_id, bool(selected),
                _state((*names, charged) if charged[1] else names, known),
                (names[0][0], names[1][0], names[2][0], charged[0]), tuple(values),
                (bool(counts), bool(is_replaced)),
                (estimate, saved),
            )  # fmt: skip

    def _tools(self, parts: dict[str, str]) -> Iterator[LedgerRow]:
        is_selected, parameters = "0", dict[str, Any]()
        if self._calls is not None:
            is_selected = "1"
            if _is_narrow(self._calls):
                where, parameters = self._calls.where(listed_only=True)
                is_selected = _SELECTED.format(tables=_COUNTING_CALLS, where=where, others="")
        session = self._names("tools", "session", self._session_names)
        name = self._names("tools", "call", self._call)
        superseding = self._names("tools", "superseding", _lines)
        logs = _Logs(self._book, "tools", self._secret, self._projects)
        found = self._book.connection.execute(_CALLS.format(is_selected=is_selected, **parts), parameters)
        for selected, session_id, name_id, superseded_by, counts, file_id, n, *values in found:
            names = (session(session_id), name(name_id), superseding(superseded_by or None))
            log = logs.of(file_id)
            yield LedgerRow(
                hash_with(log.ids, str(n)), _month(values[1]), session_id, bool(selected),
                _state(names, values), (names[0][0], names[1][0], names[2][0]), tuple(values), (bool(counts),), (),
            )  # fmt: skip

    def _sessions(self, parts: dict[str, str]) -> Iterator[LedgerRow]:
        is_selected, parameters = "1", dict[str, Any]()
        if _is_narrow(self._requests):
            where, parameters = self._requests.where()
            is_selected = f"s.id IN (SELECT r.session_id FROM {_COUNTING} WHERE {where})"  # noqa: S608 - a closed list; values are bound
        session, facts = (
            self._names("sessions", "session", self._session_names),
            self._names("sessions", "facts", tuple),
        )
        ids = blake2b(b"sessions\0", key=self._secret, digest_size=8)
        sql = _SESSIONS.format(is_selected=is_selected, chosen=parts["chosen"])
        for selected, session_id, parent, status, project, harness, *values in self._book.connection.execute(
            sql, parameters
        ):
            names = (session(session_id), facts((parent, status, self._projects.project(project), harness)))
            start_ns, last_ns = values[:2]
            yield LedgerRow(
                hash_with(ids, "\0".join(self._session_name(session_id))),
                _month(last_ns if start_ns is None else start_ns), session_id, bool(selected), _state(names, values),
                (names[0][0], names[1][0]), tuple(values), (), (),
            )  # fmt: skip

    def _session_name(self, number: int) -> tuple[str, str, str]:
        sql = "SELECT source, session, place FROM all_sessions WHERE id = ?"
        source, session, place = self._book.connection.execute(sql, (number,)).fetchone()
        return source, session, place

    def _session_names(self, number: int) -> tuple[str, str, int]:
        """Return the columns that name a session."""
        source, session, place = self._session_name(number)
        whole = f"session\0{source}\0{session}\0{self._projects.path(place) if place else ''}"
        return source, session, hash_with(_ANYWHERE, whole)

    def _label(self, number: int) -> tuple[str, ...]:
        columns = NAMES["usage"]["label"]
        sql = f"SELECT {', '.join(columns)} FROM labels WHERE id = ?"  # noqa: S608 - names of the schema
        found = self._book.connection.execute(sql, (number,)).fetchone()
        label = dict(zip(columns, found, strict=True))
        label["branch"] = self._projects.branch(label["branch"], label["project"])
        label["project"] = self._projects.project(label["project"])
        return tuple(label.values())

    def _attribution(self, label: int) -> tuple[str, ...] | None:
        """Return the names of a label that older exports do not have; None for none: such rows keep their state."""
        if label not in self._attributions:
            if len(self._attributions) > _MOST_KEPT:
                self._attributions.clear()
            sql = f"SELECT {', '.join(NAMES['usage']['attribution'])} FROM labels WHERE id = ?"  # noqa: S608 - names of the schema
            found = self._book.connection.execute(sql, (label,)).fetchone()
            self._attributions[label] = tuple(found) if any(found) else None
        return self._attributions[label]

    def _call(self, number: int) -> tuple[str, str, str, str]:
        sql = "SELECT tool, server, agent, project FROM names WHERE id = ?"
        tool, server, agent, project = self._book.connection.execute(sql, (number,)).fetchone()
        return tool, server, agent, self._projects.project(project)

    def _names(self, table: str, group: str, make: Callable[[Any], Sequence[Any]]) -> _Numbers:
        return _Numbers(make, lambda values: self._add_names(table, group, values))


class _Numbers:
    """Numbers of names that many rows have in common, each with a hash of these names.

    Args:
        make: Takes what the ledger has in place of the names; returns them.
        add: Takes names, returns their number.
    """

    def __init__(self, make: Callable[[Any], Sequence[Any]], add: Callable[[Sequence[Any]], int]) -> None:
        self._make, self._add = make, add
        self._known: dict[Any, tuple[int | None, bytes]] = {None: (None, b"")}

    def __call__(self, key: Any) -> tuple[int | None, bytes]:
        known = self._known.get(key)
        if known is None:
            if len(self._known) > _MOST_KEPT:
                self._known = {None: (None, b"")}
            values = self._make(key)
            known = self._known[key] = self._add(values), blake2b(orjson.dumps(values), digest_size=8).digest()
        return known


class _Log(NamedTuple):
    """What rows of a log are hashed with.

    Attributes:
        ids: For the ids of rows.
        unkeyed: For the keys of responses that have none.
    """

    ids: blake2b
    unkeyed: blake2b


class _Logs:
    """Logs by their number; rows come in the order of logs, so only the last one is kept."""

    def __init__(self, book: Book, kind: str, secret: bytes, projects: ProjectNames) -> None:
        self._book, self._kind, self._secret, self._projects = book, kind, secret, projects
        self._last: tuple[int, _Log] | None = None

    def of(self, number: int) -> _Log:
        """Return what rows of a log are hashed with."""
        if self._last is None or self._last[0] != number:
            sql = "SELECT path, source FROM files WHERE id = ?"
            path, source = self._book.connection.execute(sql, (number,)).fetchone()
            path = path_of(path)
            ids = blake2b(_bytes(f"{self._kind}\0{path}\0"), key=self._secret, digest_size=8)
            unkeyed = blake2b(_bytes(f"row\0{source}\0{self._projects.path(path)}\0"), digest_size=8)
            self._last = number, _Log(ids, unkeyed)
        return self._last[1]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _state(names: Sequence[tuple[int | None, bytes]], values: Sequence[Any]) -> int:
    """Return a hash of what a log has of a row."""
    hashed = blake2b(orjson.dumps(values), digest_size=8)
    for _, digest in names:
        hashed.update(digest or b"-")
    return int.from_bytes(hashed.digest(), "little", signed=True)


def _is_narrow(selection: Selection) -> bool:
    """Whether a selection has a filter or a time."""
    return bool(selection.filters) or selection.window is not None


def _lines(text: str) -> tuple[list[str]]:
    return (text.split("\n"),)


def _month(time_ns: int | None) -> int | None:
    return None if time_ns is None else _month_of_day(time_ns // _DAY_NS)


@lru_cache(1024)
def _month_of_day(day: int) -> int:
    """Return the month of a day since 1970, counted from the year 0."""
    found = date.fromordinal(_FIRST_DAY + day)
    return found.year * 12 + found.month - 1
