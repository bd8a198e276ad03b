"""Ledger rows: responses, tool calls and sessions of a ledger as rows for export, all copies included.

Another machine must be able to decide again which copy counts, so each copy has its key, family and rank, and `counts`
is what this ledger has decided. A response without a key gets one from its log's path below the home folder and its
number there: the same in a restored backup. A row that is made from a request on the wire (see `ledger.wire`) has a
key of its own, made from that request's, and the rows it was made of are `replaced`: their keys count nowhere.

The id of a row is a hash, with the machine's secret, of what does not change while its log grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tools import CallSelection
from sessionlog.export.project_names import ProjectNames
from sessionlog.fast_dataclasses import dataclass
from sessionlog.hashes import blake2b, hash_with
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.parquet_schema import SESSIONS, TOOLS, USAGE
from sessionlog.ledger.schema import ELSEWHERE, LABEL
from sessionlog.ledger.wire_sums import NUMBER_OF_SUM, OF_SUMS

_DAY_NS = 86_400 * 1_000_000_000
_ANYWHERE = blake2b(digest_size=8)

_REPLACED = "(r.chosen AND (s.absorbed OR NOT r.counts) OR COALESCE(m.chosen AND NOT m.counts, 0))"
_FROM_LOGS = f"""
SELECT 'row', r.n, f.path, f.source, r.family, r.key, r.counts AND NOT s.absorbed OR COALESCE(m.counts, 0),
    {_REPLACED}, {{columns}}, {{chosen}}
FROM responses r JOIN labels l ON l.id = r.label_id JOIN all_sessions s ON s.id = r.session_id
    JOIN files f ON f.id = r.file_id LEFT JOIN responses m ON m.file_id = r.file_id AND m.n = -1 - r.n
WHERE r.n >= 0 AND f.missing <> {ELSEWHERE} AND s.counted
"""  # noqa: S608 - names of the schema
"""Rows of logs; `m` is the row that was merged from this one's place and another copy's counts."""
_FROM_WIRE = """
SELECT 'wire', o.n, f.path, f.source, o.family, o.key, 1, 0, {columns}, {chosen}
FROM wire_matches x JOIN responses r ON r.file_id = x.made_file AND r.n = x.made_n
    JOIN responses o ON o.file_id = x.file_id AND o.n = x.n JOIN files f ON f.id = o.file_id
    JOIN labels l ON l.id = r.label_id JOIN all_sessions s ON s.id = r.session_id
WHERE s.counted
"""
_FROM_SUMS = f"""
SELECT 'sum', o.n, f.path, f.source, o.family, o.key, 1, 0, {{columns}}, {{chosen}}
FROM responses r JOIN responses o ON o.file_id = r.file_id AND o.n = {NUMBER_OF_SUM} JOIN files f ON f.id = o.file_id
    JOIN labels l ON l.id = r.label_id JOIN all_sessions s ON s.id = r.session_id
WHERE r.n <= {OF_SUMS} AND s.counted
"""  # noqa: S608 - names of the schema
_COLUMNS = (
    "s.source", "s.session", "s.place", "r.copy_rank", "r.superseded_by", "r.time_ns", "r.requests", "r.failed",
    "r.input", "r.output", "r.cache_read", "r.cache_write", "r.cache_write_1h", "r.reasoning", "r.cost_nano",
    "r.estimate_nano", "r.saved_nano", "r.priced", "r.latency_ms", "r.active_ms", *(f"l.{name}" for name in LABEL),
)  # fmt: skip
_SELECTED = """(r.key IN (SELECT r.key FROM {tables} WHERE r.key IS NOT NULL AND {where})
    OR (r.file_id, r.n) IN (SELECT r.file_id, r.n FROM {tables} WHERE {where}) {others})"""
_COUNTING = "records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id"
_COUNTING_CALLS = "tools r JOIN sessions s ON s.id = r.session_id"
_CALLS = f"""
SELECT f.path, r.n, s.source, s.session, s.place, r.key, r.superseded_by, r.counts, r.time_ns, r.finished, r.failed,
    r.duration_ms, r.output_bytes, t.tool, t.server, t.agent, t.project, {{chosen}}
FROM calls r JOIN names t ON t.id = r.name_id JOIN all_sessions s ON s.id = r.session_id
    JOIN files f ON f.id = r.file_id
WHERE f.missing <> {ELSEWHERE} ORDER BY r.time_ns, f.path, r.n
"""  # noqa: S608 - names of the schema
_SESSIONS = """
SELECT source, session, place, parent, start_ns, last_ns, end_status, project, harness, duration_ms, turns, counted,
    absorbed, {chosen}
FROM all_sessions s WHERE NOT elsewhere ORDER BY COALESCE(start_ns, last_ns), source, session, place
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """A row of the ledger, on its way into a table of the export.

    Attributes:
        id: 64 bits, the same in every export of this machine.
        day: Days since 1970 UTC of its time; None without a time.
        is_selected: Whether the export's filters have selected it.
        values: Column → value: what a log has of it.
        standing: Column → value: what the ledger has decided about it.
        costs: Column → value: what the price list has given for it.
    """

    id: int
    day: int | None
    is_selected: bool
    values: dict[str, Any]
    standing: dict[str, Any]
    costs: dict[str, Any]

    @property
    def state(self) -> int:
        """A hash of what a log has of it."""
        return hash_with(_ANYWHERE, repr(tuple(self.values.values())))


class LedgerRows:
    """The rows of a ledger for each table, in the order of their times.

    Args:
        book: The ledger, in a transaction.
        requests: The selection of responses, which also selects the sessions that have any of these.
        calls: The selection of tool calls; None for no calls.
        names: How projects are named.
        secret: The machine's secret.
    """

    def __init__(
        self, book: Book, requests: Selection, calls: CallSelection | None, names: ProjectNames, secret: bytes
    ) -> None:
        self._book, self._requests, self._calls, self._names = book, requests, calls, names
        self._ids = blake2b(key=secret, digest_size=8)
        self._price_list = book.priced_from
        requests.prepare(book)

    def read(self, table: str) -> Iterator[LedgerRow]:
        """Yield the rows of a table."""
        match table:
            case "usage":
                return self._usage()
            case "sessions":
                return self._sessions()
            case _:
                return self._tools()

    def _usage(self) -> Iterator[LedgerRow]:
        where, parameters = self._requests.where()
        chosen = "1"
        if _is_narrow(self._requests):
            chosen = _SELECTED.format(tables=_COUNTING, where=where, others=f"OR {{replaced}} AND {where}")
        parts = [
            sql.format(columns=", ".join(_COLUMNS), chosen=chosen.format(replaced=replaced))
            for sql, replaced in (
                (_FROM_LOGS, _REPLACED),
                (_FROM_WIRE, "0"),
                (_FROM_SUMS, "0"),
            )
        ]
        order = 9 + _COLUMNS.index("r.time_ns")
        sql = f"{' UNION ALL '.join(parts)} ORDER BY {order}, 1, 3, 2"
        return map(self._response, self._book.connection.execute(sql, parameters))

    def _response(self, row: tuple[Any, ...]) -> LedgerRow:
        kind, n, path, path_source, family, key, counts, replaced, *found, is_selected = row
        source, session, place, copy_rank, superseded_by, time_ns, requests, failed, *numbers = found[:-11]
        *tokens, recorded, estimate, saved, priced, latency_ms, active_ms = numbers
        label = dict(zip(LABEL, found[-11:], strict=True))
        path = path_of(path)
        if key is None:
            family = key = hash_with(_ANYWHERE, f"row\0{path_source}\0{self._names.path(path)}\0{n}")
        if kind != "row":
            family = key = hash_with(_ANYWHERE, f"{kind}\0{key}")
        label["branch"] = self._names.branch(label["branch"], label["project"])
        label["project"] = self._names.project(label["project"])
        values = (
            *self._session_names(source, session, place), family, key, copy_rank, _lines(superseded_by), time_ns,
            requests, bool(failed), *tokens, recorded, bool(priced), latency_ms, active_ms, *label.values(),
        )  # fmt: skip
        costs = {"estimated_nano_usd": estimate, "saved_nano_usd": saved, "price_list": None}
        if estimate is not None or saved is not None:
            costs["price_list"] = self._price_list
        return LedgerRow(
            id=hash_with(self._ids, f"usage\0{kind}\0{path}\0{n}"),
            day=_day(time_ns),
            is_selected=bool(is_selected),
            values=dict(zip(_USAGE_VALUES, values, strict=True)),
            standing={"counts": bool(counts), "replaced": bool(replaced)},
            costs=costs,
        )

    def _tools(self) -> Iterator[LedgerRow]:
        chosen, parameters = "0", dict[str, Any]()
        if self._calls is not None:
            chosen = "1"
            if _is_narrow(self._calls):
                where, parameters = self._calls.where()
                chosen = _SELECTED.format(tables=_COUNTING_CALLS, where=where, others="")
        return map(self._call, self._book.connection.execute(_CALLS.format(chosen=chosen), parameters))

    def _call(self, row: tuple[Any, ...]) -> LedgerRow:
        (path, n, source, session, place, key, superseded_by, counts, time_ns, finished, failed, *more) = row
        *numbers, tool, server, agent, project, is_selected = more
        values = (
            *self._session_names(source, session, place), key, _lines(superseded_by), time_ns, bool(finished),
            bool(failed), *numbers, tool, server, agent, self._names.project(project),
        )  # fmt: skip
        return LedgerRow(
            id=hash_with(self._ids, f"tools\0{path_of(path)}\0{n}"),
            day=_day(time_ns),
            is_selected=bool(is_selected),
            values=dict(zip(_TOOL_VALUES, values, strict=True)),
            standing={"counts": bool(counts)},
            costs={},
        )

    def _sessions(self) -> Iterator[LedgerRow]:
        chosen, parameters = "1", dict[str, Any]()
        if _is_narrow(self._requests):
            where, parameters = self._requests.where()
            chosen = f"s.id IN (SELECT r.session_id FROM {_COUNTING} WHERE {where})"  # noqa: S608 - a closed list; values are bound
        return map(self._session, self._book.connection.execute(_SESSIONS.format(chosen=chosen), parameters))

    def _session(self, row: tuple[Any, ...]) -> LedgerRow:
        source, session, place, parent, start_ns, last_ns, status, project, harness, *numbers = row
        duration_ms, turns, counted, absorbed, is_selected = numbers
        values = (
            *self._session_names(source, session, place), parent, start_ns, last_ns, status,
            self._names.project(project), harness, duration_ms, turns, bool(counted), bool(absorbed),
        )  # fmt: skip
        return LedgerRow(
            id=hash_with(self._ids, f"sessions\0{source}\0{session}\0{place}"),
            day=_day(last_ns if start_ns is None else start_ns),
            is_selected=bool(is_selected),
            values=dict(zip(_SESSION_VALUES, values, strict=True)),
            standing={},
            costs={},
        )

    def _session_names(self, source: str, session: str, place: str) -> tuple[str, str, int]:
        """Return the columns that name a session."""
        whole = f"session\0{source}\0{session}\0{self._names.path(place) if place else ''}"
        return source, session, hash_with(_ANYWHERE, whole)


def _is_narrow(selection: Selection) -> bool:
    """Whether a selection has a filter or a time."""
    return bool(selection.filters) or selection.window is not None


def _lines(text: str | None) -> list[str] | None:
    return text.split("\n") if text else None


def _day(time_ns: int | None) -> int | None:
    return None if time_ns is None else time_ns // _DAY_NS


_GIVEN = ("machine_id", "record", "revision", "deleted", "state", "counts", "replaced")
_COSTS = ("estimated_nano_usd", "saved_nano_usd", "price_list")
_USAGE_VALUES, _SESSION_VALUES, _TOOL_VALUES = (
    tuple(name for name in table if name not in _GIVEN + _COSTS) for table in (USAGE, SESSIONS, TOOLS)
)
"""The columns of each table that have what a log has."""
