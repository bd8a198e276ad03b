"""Find: the texts with some words, in the sessions of every agent.

The ledger is brought up to date, then the index beside it; the index finds candidates, and the logs have their texts.
"""

from __future__ import annotations

import sqlite3
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sessionlog.analytics.unreadable import notes_of
from sessionlog.analytics.zones import resolve_zone
from sessionlog.errors import InvalidQuery, LedgerUnusable
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.opening import checked, next_step, open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.schema import GONE
from sessionlog.ledger.trust import read_only
from sessionlog.search.candidates import EVERYTHING, PARTS, Candidate, Scope, find_candidates
from sessionlog.search.current import is_current
from sessionlog.search.query import Query, Texts, storable
from sessionlog.search.segments import COPY, NO_TIME
from sessionlog.search.store import index_path, is_damage, open_index, replace_index
from sessionlog.search.texts import read_texts
from sessionlog.sources.fold_items import Item, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.search.update import Runner

_AT_ONCE = 20  # candidates whose texts are read together
_BUSY = "another sessionlog is reading new logs into the search index: these are the hits without them"
_FILTERS = {"project": "s.project", "source": "s.source"}
_SHORT_ID = 8


class Session(Struct, frozen=True):
    """The session of a hit.

    Attributes:
        source: Its agent.
        id: Its id.
        name: An end of the id that names it alone.
        project: Its folder; "" where that is not known.
        prompt: What it began with.
    """

    source: str
    id: str
    name: str
    project: str
    prompt: str


class Hit(Struct, frozen=True, kw_only=True):
    """A text that matches.

    Attributes:
        session: Its session.
        kind: What it is.
        time_ns: When; None where that is not logged.
        turn: The number of the user's prompt that it belongs to, from 1; 0 before the first.
        tool: The tool, of a call or result.
        path: The log.
        where: `log`, `archive` where the log has been deleted, or `index` where only the index remembers it.
        text: The text; "" with `index`.
        marks: The [start, end) of what was found in it: the first of them.
        item: The item as it was read from the log; None with `index`.
    """

    session: Session
    kind: Kind
    time_ns: int | None
    turn: int
    tool: str
    path: str
    where: str
    text: str
    marks: Sequence[tuple[int, int]]
    item: Item | None


class Found(Struct, frozen=True, kw_only=True):
    """The result of a search.

    Attributes:
        hits: The newest hits.
        total: How many there are.
        is_exact: `total` is exact; otherwise it counts texts with all of the words, of which not all were read.
        seconds: How long it took, without bringing the index up to date.
        notes: Sentences about what went wrong.
        has_logs: There was something to search.
    """

    hits: tuple[Hit, ...]
    total: int
    is_exact: bool
    seconds: float
    notes: tuple[str, ...] = ()
    has_logs: bool = True


class Question(Struct, frozen=True, kw_only=True):
    """What to search for, and where.

    Attributes:
        query: The terms.
        part: One of `PARTS`, or "" for everything.
        kinds: These kinds instead of a part.
        since: A time window, as in reports.
        until: Its end.
        filters: `source` and `project` → patterns, as in reports.
        session: The id of a session, its beginning or end.
        limit: How many hits; None for all.
    """

    query: Query
    part: str = ""
    kinds: tuple[Kind, ...] = ()
    since: str | None = None
    until: str | None = None
    filters: Mapping[str, Sequence[str]] = {}
    session: str | None = None
    limit: int | None = 20


class Place(Struct, frozen=True, kw_only=True):
    """Which logs are searched.

    Attributes:
        ledger: The ledger's file; the index is beside it.
        env: The environment, which gives the folders of agents.
        prices: The prices of the ledger; None for the list's.
        tz: The zone of days.
        now: The present.
        runner: Reads logs for the index; None for one process.
        scanner: Scans logs for the ledger; None for one process.
        progress: Called while logs are read into the ledger, and for the index.
    """

    ledger: str
    env: Mapping[str, str]
    prices: PriceBook | None = None
    tz: str | tzinfo = "local"
    now: datetime | None = None
    runner: Runner | None = None
    scanner: Any = None
    progress: Progress | None = None


def find(question: Question, place: Place, *, wanted: Callable[[Hit], bool] | None = None) -> Found:
    """Return the newest texts that match, and that are `wanted`.

    Raises:
        InvalidQuery: A part or session does not exist.
        InvalidWindow: The time is outside the grammar.
        LedgerUnusable: The ledger or the index cannot be used.
    """
    if question.part and question.part not in PARTS:
        raise InvalidQuery(f"--in {question.part!r} is none of {', '.join(PARTS)}")
    path = index_path(place.ledger)
    try:
        return _find(question, place, wanted)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise LedgerUnusable(f"{path}: {error}") from error
        index, note = replace_index(path, f"damaged ({error})")
        index.close()
    try:
        found = _find(question, place, wanted)
    except sqlite3.DatabaseError as error:
        raise LedgerUnusable(f"{place.ledger}: {error}; {next_step(error)}") from error
    return replace(found, notes=(note, *found.notes))


def _find(question: Question, place: Place, wanted: Callable[[Hit], bool] | None) -> Found:
    with open_up_to_date(place) as (index, notes):
        started = time.perf_counter()
        sessions = _Sessions(index, place, question)
        candidates = find_candidates(index, question.query, sessions.scope)
        hits, missed, done = [], 0, 0
        for hit in _hits(question.query, candidates.items, sessions, place.env):
            done += 1
            if hit is None or (wanted is not None and not wanted(hit)):
                missed += 1
                continue
            hits.append(hit)
            if len(hits) == question.limit:
                break
        else:
            candidates = replace(candidates, total=done, is_exact=True)
        is_all = candidates.is_exact and done == candidates.total
        total, is_exact = (
            candidates.total - missed,
            is_all or (candidates.is_exact and question.query.is_exact and wanted is None),
        )
        seconds = time.perf_counter() - started
        has_logs = bool(hits) or index.execute("SELECT 1 FROM logs LIMIT 1").fetchone() is not None
        return Found(
            hits=tuple(hits), total=total, is_exact=is_exact, seconds=seconds, notes=tuple(notes), has_logs=has_logs
        )


@contextmanager
def open_up_to_date(place: Place) -> Iterator[tuple[sqlite3.Connection, list[str]]]:
    """Yield the index with all that the logs have, the ledger attached, and sentences about what went wrong."""
    notes = _refresh_ledger(place)
    index, note = open_index(index_path(place.ledger))
    notes += [note] if note else []
    try:
        notes += _update(index, place)
        index.execute("ATTACH ? AS ledger", (read_only(place.ledger),))
        index.create_function("lower_case", 1, str.lower, deterministic=True)
        yield index, notes
    finally:
        index.close()


def _update(index: sqlite3.Connection, place: Place) -> list[str]:
    if is_current(index, place.ledger):
        return []
    from sessionlog.ledger.sync import LedgerBusy
    from sessionlog.search.update import run_here, update

    try:
        update(index, place.ledger, runner=place.runner or run_here, progress=place.progress)
    except LedgerBusy:
        return [_BUSY]
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return [_BUSY]
    return []


def _refresh_ledger(place: Place) -> list[str]:
    """Bring the ledger up to date."""
    with open_ledger(place.ledger, place.prices) as book, checked(book.connection, place.ledger):
        refresh(book, place.env, scanner=place.scanner, progress=place.progress)
        return notes_of(book)


class _Sessions:
    """The sessions that are searched, with what the ledger knows of them.

    Attributes:
        scope: Where to search.
    """

    def __init__(self, index: sqlite3.Connection, place: Place, question: Question) -> None:
        self._index = index
        window = None
        if question.since is not None or question.until is not None:
            from sessionlog.analytics.window_grammar import parse_usage_window

            window = parse_usage_window(question.since, until=question.until, now=place.now, tz=place.tz)
        elif place.tz != "local":
            resolve_zone(place.tz)  # an unknown one is an error
        self.scope = Scope(
            kinds=question.kinds or (PARTS[question.part] if question.part else EVERYTHING),
            start_ns=window.start_ns if window else None,
            end_ns=window.end_ns if window else None,
            sessions=self._chosen(question),
        )
        self._known: dict[tuple[str, str], Session] = {}
        self._ids: list[str] = []
        self._ends: dict[int, Counter[str]] = {}

    def _chosen(self, question: Question) -> frozenset[tuple[str, str]] | None:
        filters = {key: patterns for key, patterns in question.filters.items() if patterns}
        if "source" in filters:
            from sessionlog.sources.registry import choose_sources

            choose_sources(filters["source"])
        if not filters and question.session is None:
            return None
        from sessionlog.analytics.conditions import matches

        conditions, parameters = matches(filters, _FILTERS)
        sql = f"SELECT source, session FROM ledger.sessions s WHERE {' AND '.join(['1', *conditions])}"  # noqa: S608 - ours
        chosen = frozenset(self._index.execute(sql, parameters).fetchall())
        if question.session is not None:
            from sessionlog.sources.find import matching

            ids = set(matching(question.session, {session for _, session in chosen}))
            if not ids:
                raise InvalidQuery(f"--session {question.session!r}: no session begins or ends with it")
            chosen = frozenset(one for one in chosen if one[1] in ids)
        return chosen

    def get(self, source: str, session: str) -> Session:
        """Return a session."""
        key = source, session
        if key not in self._known:
            row = self._index.execute(
                "SELECT project, prompt FROM ledger.all_sessions WHERE source = ? AND session = ?", key
            ).fetchone() or ("", "")
            project = "" if row[0] == "unknown" else row[0]
            self._known[key] = Session(source, session, self._name(session), project, row[1])
        return self._known[key]

    def _name(self, session: str) -> str:
        """Return an end of a session's id that no other id has: ids of one day begin alike."""
        if not self._ids:
            self._ids = sorted({one for (one,) in self._index.execute("SELECT session FROM segments").fetchall()})
        for length in range(_SHORT_ID, len(session) - _SHORT_ID, 4):
            name = session[-length:]
            if length not in self._ends:
                self._ends[length] = Counter(one[-length:] for one in self._ids)
            place = bisect_left(self._ids, name)
            begin_so = [one for one in self._ids[place : place + 2] if one.startswith(name) and one != session]
            if self._ends[length][name] == 1 and not begin_so:
                return name
        return session

    def turn(self, candidate: Candidate) -> int:
        """Return the number of the prompt that an item belongs to; those that a fork has copied count."""
        segment, place = candidate.segment
        count = 0
        for number, kinds in self._index.execute(
            "SELECT id, kinds FROM segments WHERE log_id = ? AND session = ? AND id <= ? ORDER BY id",
            (candidate.log, candidate.session, segment),
        ):
            shown = kinds[: place + 1] if number == segment else kinds
            count += shown.count(Kind.PROMPT) + shown.count(Kind.PROMPT | COPY)
        return count


def _hits(
    query: Query, candidates: Iterator[Candidate], sessions: _Sessions, env: Mapping[str, str]
) -> Iterator[Hit | None]:
    """Yield a hit for each candidate, or None for one that is none."""
    texts = Texts()
    while chunk := list(islice(candidates, _AT_ONCE)):
        items = read_texts(chunk, env)
        read = [one for one in chunk if one.number in items]
        found = texts.matching(query, [items[one.number].text for one in read])
        marks = {read[number].number: spans for number, spans in found.items()}
        for one in chunk:
            is_gone = one.missing == GONE
            if one.number in marks:
                yield _hit(one, items[one.number], marks[one.number], sessions, "archive" if is_gone else "log")
            elif is_gone and one.number not in items and query.is_exact:
                yield _hit(one, None, (), sessions, "index")
            else:
                yield None


def _hit(one: Candidate, item: Item | None, marks: Sequence[tuple[int, int]], sessions: _Sessions, where: str) -> Hit:
    step = item.step if item is not None else None
    return Hit(
        session=sessions.get(one.source, one.session), kind=Kind(one.kind),
        time_ns=None if one.time_ns == NO_TIME else one.time_ns, turn=sessions.turn(one),
        tool=getattr(step, "tool", ""), path=path_of(one.path), where=where,
        text="" if item is None else storable(item.text), marks=marks, item=item,
    )  # fmt: skip
