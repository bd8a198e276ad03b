"""Sessions: a row each, newest first, with the same windows, filters and sums as usage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from sessionlog.analytics.columns import Column, row_data
from sessionlog.analytics.conditions import STATUS
from sessionlog.analytics.question import Question, answer
from sessionlog.analytics.report import Report, SummedRows, cost_footnotes, findings_of
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sums import IN_PROVENANCE, USED, by_provenance, measures, models_by, reader, select, sums
from sessionlog.analytics.usage_row import COST_COLUMNS
from sessionlog.errors import LedgerUnusable, SessionLogError
from sessionlog.events.times import SECOND, format_time
from sessionlog.ledger.book import Book
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import changed_logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self, Unpack

    from sessionlog.analytics.question import Options, Paths


def reason(session: SessionSummary) -> str:
    """Return why a session is not a success, for tables; empty for a success."""
    if session.status == "unfinished":
        return "no end: killed?" if session.counted else session.error or "no end: killed?"
    if session.status in ("success", "running"):
        return ""
    return session.error or session.status.replace("_", " ")


COLUMNS = (
    Column("source", "text"),
    Column("session", "text", "SESSION", 3, style="secondary"),
    Column("path", "text"),
    Column("start", "time", "TIME", get=attrgetter("start_ns"), label="time"),
    Column("last", "time", get=attrgetter("last_ns")),
    Column("status", "text", "STATUS"),
    Column("project", "text", "PROJECT", 4, least=10, style="secondary"),
    Column("harness", "text"),
    Column("route", "text"),
    Column("models", "texts", "MODEL", label="model", least=16),
    Column("duration_ms", "ms", "TOOK", 6, label="duration", shown=lambda s: s.duration_ms or None, style="secondary"),
    Column("prompt", "text", "PROMPT", least=20),
    Column("error", "text", "WHY", 1, shown=reason, least=15),
    Column("requests", "count", "CALLS", 7, label="calls"),
    Column("failed_requests"),
    Column("input_tokens"),
    Column("output_tokens"),
    Column("cache_read_tokens"),
    Column("cache_write_tokens"),
    Column("reasoning_tokens"),
    Column("total_tokens", "count", "TOKENS", 5, label="tokens"),
    *COST_COLUMNS,
    Column("cost_is_partial", "flag"),
    Column("counted", "flag"),
    Column("archived", "flag"),
    Column("parent", "text"),
)
"""The columns of a session, in the order of JSON and CSV."""

TABLE = (
    "start", "status", "duration_ms", "models", "requests", "total_tokens", "cost_usd", "project", "prompt", "error",
    "session",
)  # fmt: skip

_SESSION = {
    **{name: f"s.{name}" for name in (
        "id", "source", "session", "path", "start_ns", "last_ns", "project", "harness", "route", "prompt", "error",
        "counted", "archived", "parent",
    )},
    "status": f"COALESCE(NULLIF({STATUS}, ''), 'unknown')",
    "duration_ms": "COALESCE(s.duration_ms, g.active_ms)",
    **{name: f"g.{name}" for name in USED},
}  # fmt: skip
_NEWEST_FIRST = "s.start_ns IS NULL, s.start_ns DESC, s.source DESC, s.session DESC, s.path DESC"
_LIST = f"""CREATE TEMP TABLE listed_sessions AS
SELECT ROW_NUMBER() OVER (ORDER BY {_NEWEST_FIRST}) AS place, s.id, s.session, s.start_ns, s.parent, s.archived
FROM sessions s WHERE s.id IN (SELECT r.session_id FROM {{tables}} WHERE {{where}})"""  # noqa: S608 - names of the schema
"""All sessions of a selection, with their places in the list."""

_CHOOSE = """INSERT INTO chosen_sessions SELECT id, place FROM listed_sessions
WHERE place <= :kept OR start_ns > :since OR (:is_untimed AND start_ns IS NULL)
OR session IN (SELECT parent FROM listed_sessions WHERE place <= :kept AND parent != '')"""
"""The newest sessions, and the others that a table of them needs: those of the same day, whose sum is in its heading,
and those that they were forked from."""

_LONGEST_DAY = 2 * 86_400 * SECOND
"""No day of any time zone is longer."""

_IS_CHOSEN = "r.session_id IN (SELECT id FROM chosen_sessions)"
_OF_SESSIONS = """FROM ({sums}) AS g JOIN chosen_sessions o ON o.id = g.id JOIN sessions s ON s.id = g.id
ORDER BY o.place"""
_ID = {"id": "r.session_id"}

_SAME = ("source", "path", "status", "project", "harness", "route", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary(SummedRows):
    """One session; numbers are sums over its responses in the window.

    Attributes:
        source: Id of the source.
        session: Its id.
        path: Its log.
        start_ns: The time of its start, None in a log without times.
        last_ns: The time of its last event.
        status: The status of its end, or `running`, `unfinished`.
        project: Its folder.
        harness: The agent program.
        route: The chosen route.
        models: Its models, the one with the most output first.
        duration_ms: Its wall time.
        prompt: The beginning of the first prompt.
        error: Why it failed.
        counted: Whether it counts in usage.
        archived: Whether its logs are deleted and only the ledger has it.
        parent: Id of the session of the same source that it was forked from; empty for none.
    """

    source: str
    session: str
    path: str
    start_ns: int | None
    last_ns: int | None
    status: str
    project: str
    harness: str
    route: str
    models: tuple[str, ...]
    duration_ms: int
    prompt: str
    error: str
    counted: bool
    archived: bool = False
    parent: str = ""

    @property
    def start(self) -> str | None:
        """The time of its start, RFC 3339."""
        return None if self.start_ns is None else format_time(self.start_ns)

    @property
    def last(self) -> str | None:
        """The time of its last event, RFC 3339."""
        return None if self.last_ns is None else format_time(self.last_ns)

    def to_dict(self) -> dict[str, Any]:
        """The session's object in the JSON document."""
        return row_data(COLUMNS, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionList(Report):
    """Sessions, newest first; `Report` documents the other fields.

    Attributes:
        rows: Sessions with a response in the window.
        totals: Tokens and cost of all of them.
        left_out: Of the older sessions that a limit left out those of the last row's day, and those of which a row is
            a fork.
        ids: The ids of all of them, also of those that a limit left out.
    """

    schema = "sessionlog.sessions/2"
    title = "Sessions"
    thing = "session"
    total_row = False
    columns = COLUMNS
    table = TABLE

    rows: tuple[SessionSummary, ...] = ()
    totals: SummedRows = field(default_factory=SummedRows)
    left_out: tuple[SessionSummary, ...] = ()
    ids: tuple[str, ...] = ()

    def limited(self, limit: int | None) -> Self:
        """Return the list with the first rows only; `left_out` keeps the others for the sums of days."""
        kept = len(self.rows) if limit is None else max(0, limit)
        others = self.rows[kept:]
        return replace(
            self, rows=self.rows[:kept], left_out=(*others, *self.left_out), hidden_rows=self.hidden_rows + len(others)
        )

    def footnotes(self) -> Iterator[str]:
        """Yield the meaning of cost marks, also of the sums of days, and which columns the window limits."""
        yield from cost_footnotes(self.priced_from, [self.totals])
        yield from self.window_footnotes()

    def window_footnotes(self) -> Iterator[str]:
        """Yield which columns the window limits."""
        if self.window is not None and self.rows:
            yield "calls, tokens and cost are those of this time; the start and TOOK are the whole session's"


def list_sessions(paths: Paths = None, **options: Unpack[Options]) -> SessionList:
    """List the sessions recorded in logs; options and errors as for `aggregate_usage`, but for groups and `sort`."""
    question = Question(paths=paths, **options)
    selection = question.selection(Selection)

    def fold(book: Book) -> SessionList:
        return fold_sessions(book, selection, limit=question.limit)

    return answer(question, fold, cuts=selection.cuts(), with_calls=False)


def find_sessions(session_id: str, paths: Paths = None, **options: Unpack[Options]) -> Sequence[SessionSummary]:
    """Return the sessions of one id, as `list_sessions` lists them, without making the summaries of all others."""
    question = Question(paths=paths, **options)
    selection = question.selection(Selection)

    def fold(book: Book) -> SessionList:
        return _listed(book, selection, session=session_id)

    return answer(question, fold, cuts=selection.cuts(), with_calls=False).rows


def list_known_sessions(
    ledger: str,
    env: Mapping[str, str],
    use: Callable[[SessionList], None],
    *,
    window: str | None,
    filters: Mapping[str, Sequence[str]],
    tz: str,
) -> bool:
    """Pass the sessions that a ledger has to `use`, without totals, before any look at the logs.

    Return whether they are all there is: False if logs have changed since, or the ledger cannot be used.
    """
    selection = Selection.of(window, until=None, filters=filters, tz=tz, now=None)
    try:
        with open_ledger(ledger, write=False) as book:
            use(_listed(book, selection))
            return changed_logs(book, env) == []
    except Exception as error:
        if isinstance(error, SessionLogError) and not isinstance(error, LedgerUnusable):
            raise
        return False  # a damaged ledger may hold anything


def fold_sessions(book: Book, selection: Selection, *, limit: int | None = None) -> SessionList:
    """Query a book for the sessions of a selection, with at most `limit` rows, the newest."""
    listed, (tables, where, parameters) = _listed(book, selection, limit), selection.sums(listed_only=True)
    [summed] = sums(book.query, dict[str, Any], (*USED, *IN_PROVENANCE), tables, where, parameters)
    provenance = by_provenance({name: summed.pop(name) for name in IN_PROVENANCE})
    [(archived,)] = book.query("SELECT COUNT(*) FROM listed_sessions WHERE archived", {})
    return replace(listed, totals=SummedRows(**summed), provenance=provenance, archived_sessions=archived)


def fold_session(book: Book, selection: Selection, number: int) -> SessionSummary | None:
    """Query a book for the session with a number in it; None if the selection does not have it."""
    return next(iter(_listed(book, selection, id=number).rows), None)


def _listed(book: Book, selection: Selection, limit: int | None = None, **only: str | int) -> SessionList:
    """Query a book for the sessions of a selection without sums over them; `only` those with a value in a column."""
    selection.prepare(book)
    tables, where, parameters = selection.sums(listed_only=True)
    for column in only:
        where = f"{where} AND s.{column} = :{column}"
    parameters |= only
    for table in ("listed_sessions", "chosen_sessions"):
        book.query(f"DROP TABLE IF EXISTS temp.{table}", {})
    book.query(_LIST.format(tables=tables, where=where), parameters)
    ids = tuple(name for (name,) in book.query("SELECT session FROM listed_sessions ORDER BY place", {}))
    kept = len(ids) if limit is None else min(len(ids), max(0, limit))
    book.query("CREATE TEMP TABLE chosen_sessions (id INTEGER PRIMARY KEY, place INTEGER)", {})
    last = book.query("SELECT start_ns FROM listed_sessions WHERE place = :kept", {"kept": kept})
    since = next((start_ns - _LONGEST_DAY for (start_ns,) in last if start_ns is not None), None)
    book.query(_CHOOSE, {"kept": kept, "since": since, "is_untimed": last == [(None,)]})
    rows = _summaries(book, tables, f"{_IS_CHOSEN} AND {where}", parameters)
    return SessionList(
        window=selection.window, rows=tuple(rows[:kept]), left_out=tuple(rows[kept:]), ids=ids,
        hidden_rows=len(ids) - kept, **findings_of(book),
    )  # fmt: skip


def _summaries(book: Book, tables: str, where: str, parameters: dict[str, Any]) -> list[SessionSummary]:
    models = models_by(book, "s.id", tables, where, parameters)
    same: dict[Any, Any] = {}  # many sessions have the same names: keep each once
    summed = select(measures((*USED, "active_ms")), f"FROM {tables} WHERE {where}", by=_ID)
    read = reader(_SESSION)

    def summary(row: tuple[Any, ...]) -> SessionSummary:
        values = read(row)
        for name in _SAME:
            values[name] = same.setdefault(values[name], values[name])
        values |= {"counted": bool(values["counted"]), "archived": bool(values["archived"])}
        return SessionSummary(models=models.pop(values.pop("id"), ()), **values)

    return book.query(select(_SESSION, _OF_SESSIONS.format(sums=summed)), parameters, summary)
