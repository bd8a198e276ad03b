"""Rows: what a scan of a log found, priced, as rows of the ledger's tables.

The tables are the ledger's own, or those of a file that is handed over to it (see `handover`). Rows are made one by
one as they are inserted, because a large log's records are decoded one by one. Truth values become integers, which
sqlite3 binds four times as fast. A response has two hashes that are the same on every machine: of its family, which all
its copies share, and of its key within that.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from operator import attrgetter

from sessionlog.events.names import UNKNOWN
from sessionlog.hashes import blake2b, hash_name, hash_with
from sessionlog.ledger.columns import Call, Facts, Label, Name, Response, names_of
from sessionlog.ledger.costs import PricedLabels
from sessionlog.ledger.histogram import LOWEST
from sessionlog.ledger.interned_ids import InternedIds, SessionName
from sessionlog.ledger.sessions import facts_text
from sessionlog.ledger.statements import insert_rows
from sessionlog.ledger.storable import storable
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import Record, ScannedSession

_label_of = attrgetter(*Label._fields)
_recorded_of = attrgetter(*names_of(Response, "record"))
_ANY_SOURCE = blake2b(digest_size=8)
_WIDTH = math.log(1.02)


class RowWriter:
    """Inserts the rows of scans into the tables of a connection, in the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection, ids: InternedIds, prices: PriceBook) -> None:
        self._connection, self._ids = connection, ids
        self._labels = PricedLabels(prices)
        self._label_ids: list[int] = []  # of each of these labels

    def insert(
        self,
        sessions: Sequence[ScannedSession],
        file_id: int,
        *,
        n: int = 0,
        n_of_calls: int = 0,
        resumed: bool = False,
    ) -> list[int]:
        """Insert a log's sessions with their responses and calls; return the ids of the sessions.

        Args:
            sessions: The sessions.
            file_id: The id of the log.
            n: The number of the log's next response.
            n_of_calls: The number of its next call.
            resumed: The log has earlier rows, and these facts include its earlier ones.
        """
        ids = [self._ids.session_id(name_of(session)) for session in sessions]
        if resumed:
            self._connection.executemany(
                "DELETE FROM log_sessions WHERE file_id = ? AND session_id = ?", [(file_id, one) for one in ids]
            )
        for number, (session_id, session) in enumerate(zip(ids, sessions, strict=True)):
            facts = Facts(file_id=file_id, session_id=session_id, n=number, facts=facts_text(session))
            insert_rows(self._connection, "log_sessions", Facts, [facts])
            insert_rows(self._connection, "responses", Response, self._responses(session, file_id, session_id, n))
            insert_rows(self._connection, "calls", Call, self._calls(session, file_id, session_id, n_of_calls))
            n += len(session.records)
            n_of_calls += len(session.tools)
        return ids

    def _responses(self, session: ScannedSession, file_id: int, session_id: int, first: int) -> Iterator[Response]:
        seed = blake2b(session.source.encode(), digest_size=8)
        known: dict[tuple[str, ...], tuple[int, int]] = {}
        for n, r in enumerate(session.records, first):
            names = _label_of(r)
            found = known.get(names)
            if found is None:
                found = known[names] = self._label(r, names, session)
            label, label_id = found
            family = key = None
            if r.key:
                key = family = hash_with(seed, r.family or r.key)
                if r.family and r.family != r.key:
                    key = hash_with(seed, f"{r.family}\0{r.key}")
            usage, latency, failed = r.usage, r.latency_ms, r.failed
            cost, estimate, saved, extra = self._labels.cost(
                label, usage, r.time_ns, r.cost_nano, r.extra_nano, r.requests, r.searches, failed=failed,
                priced=r.priced,
            )  # fmt: skip
            yield Response(  # by position: by name it takes three times as long
                file_id, n, session_id, label_id, family, key, int(r.copy_rank),
                (r.superseded_by and storable(r.superseded_by)) or None, 1, r.time_ns, r.requests, +failed,
                usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cache_write_1h, usage.reasoning,
                r.cost_nano, cost, estimate, saved, +r.priced,
                None if latency is None or failed else bucket_of(latency),
                hash_with(_ANY_SOURCE, r.response_id) if r.response_id else None, +r.summed, 1,
                r.extra_nano, extra, *_recorded_of(r),
            )  # fmt: skip

    def _label(self, r: Record, names: tuple[str, ...], session: ScannedSession) -> tuple[int, int]:
        """Return the numbers of a record's label among the priced ones, and in the table."""
        label = Label._make(names)._replace(
            response_model=r.response_model or UNKNOWN, project=r.project or session.project
        )
        number = self._labels.number(label)
        if number == len(self._label_ids):
            self._label_ids.append(self._ids.label_id(Label._make(map(storable, label))))
        return number, self._label_ids[number]

    def _calls(self, session: ScannedSession, file_id: int, session_id: int, first: int) -> Iterator[Call]:
        seed, own = blake2b(session.source.encode(), digest_size=8), session.project
        ids: dict[Name, int] = {}
        for n, call in enumerate(session.tools, first):
            name = Name(tool=call.tool, server=call.server, agent=call.agent, project=call.project or own)
            name_id = ids.get(name)
            if name_id is None:
                name_id = ids[name] = self._ids.name_id(Name._make(map(storable, name)))
            took = call.duration_ms
            yield Call(
                file_id, n, session_id, name_id, hash_with(seed, call.key),
                (call.superseded_by and storable(call.superseded_by)) or None, 1, call.time_ns, +call.finished,
                +call.failed, took, None if took is None else bucket_of(took), call.output_bytes,
            )  # fmt: skip


def name_of(session: ScannedSession) -> SessionName:
    """Return (source, id, place) of a session, as they are stored."""
    return storable(session.source), storable(session.session_id), storable(session.place)


def bucket_of(ms: float) -> int | None:
    """Return the bucket of a latency in milliseconds (see `histogram`); None for a negative or infinite one."""
    if 0 < ms < math.inf:
        return max(LOWEST, math.floor(math.log(ms) / _WIDTH))
    return LOWEST if ms == 0 else None


def own_family(file_id: int, n: int) -> int:
    """Return the family, and the key, that `set_own_families` gives to a row; it is another one in each ledger."""
    return hash_name(f"{file_id}.{n}", b"")


def set_own_families(connection: sqlite3.Connection, file_id: int, n: int) -> None:
    """Give a log's superseded responses without a family, from `n` on, one of their own, by which copies are found."""
    sql = """SELECT n FROM responses WHERE file_id = ? AND n >= ? AND superseded_by IS NOT NULL AND family IS NULL"""
    rows = [(own_family(file_id, number), file_id, number) for (number,) in connection.execute(sql, (file_id, n))]
    connection.executemany("UPDATE responses SET family = ?1, key = ?1 WHERE file_id = ?2 AND n = ?3", rows)
