"""Advice: what sessions paid for without need, each finding with its tokens, its price, and one thing to do.

The findings of single sessions (`context.findings`) are added up by kind and subject; the logs of the costliest
sessions are read for them. With a window that has a start, the same findings in the time of the same length before
stand beside them. A finding belongs to the time at which its request was answered. Shares are of the cost of the
sessions that were read, in the same time, so that times with different amounts of work compare.

There is no finding that a model is too large for its work: no log shows what a smaller one would have done.
"""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sessionlog import files
from sessionlog.analytics.columns import Column, counted
from sessionlog.analytics.copied_responses import copied_responses
from sessionlog.analytics.question import Question, answer
from sessionlog.analytics.report import Report, SummedRows, add_up, cost_footnotes, findings_of
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sums import USED, Costs, sums, usd
from sessionlog.analytics.usage_row import COST_COLUMNS
from sessionlog.analytics.window import UsageWindow
from sessionlog.archive.find import find_entry, open_session
from sessionlog.archive.manifest import archive_folder
from sessionlog.context.cache_misses import Copied
from sessionlog.context.findings import Finding, SessionFindings, find_in_session
from sessionlog.engine.workers import map_tasks
from sessionlog.errors import AmbiguousSession, InvalidQuery, LogNotReadable, MissingExtra
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Env, Log
from sessionlog.sources.registry import load_source
from sessionlog.transcript.damage import Damage
from sessionlog.transcript.inherited import read_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from sessionlog.analytics.question import Options, Paths

BY = ("kind", "subject")
SESSIONS_READ = 200
"""Sessions whose logs are read by default."""

_EVIDENCE = 3
_GONE = "gone"

ADVICE: Mapping[str, tuple[str, str]] = {
    "repeated_result": (
        "the same result was still in the context; put what is read again and again into the agent's instructions",
        "replay {session}",
    ),
    "large_result": (
        "10k tokens and more, which every later request carries; make the tool print less, or use a sub-agent",
        "context {session} --request {request}",
    ),
    "compaction": (
        "the history was compacted, and what stayed was paid for as new; begin a new session with each new task",
        "context {session} --cache",
    ),
    "loop": (
        "the same call failed in the same way three times and more in a row; `sessionlog guard` stops that",
        "replay {session}",
    ),
    "failed_request": (
        "failed after it had used tokens, so its work was paid for and lost; run less at once, or send less",
        "replay {session}",
    ),
    "unused_tools": (
        "every request sent these tool definitions, and no session called them; remove them from the agent's settings",
        "context {session} --full",
    ),
}  # fmt: skip
"""Kind → what it is and one thing to do, and the command that shows an occurrence."""

MISS_ADVICE: Mapping[str, str] = {
    "another model": "each model has a cache of its own; change the model between sessions",
    "other tools": "the cache begins with the tools; connect MCP servers before the first prompt",
    "another system prompt": "keep what changes (dates, states) out of the system prompt",
    "an edited message": "what follows an edited message is new for the cache; add messages at the end",
    "a pause": "the cache had expired; after a pause begin a new session, or compact before it",
    "dropped by the provider": "nothing had changed and the cache was young; nothing to do on this side",
    "cause not in the log": "the log holds no prompts; `sessionlog run` records some, and then names the cause",
}
"""Cause of a cache miss → what it is and one thing to do."""

COLUMNS = (
    Column("sessions", "count", "SESSIONS", 5),
    Column("count", "count", "TIMES", 2, label="times"),
    Column("tokens", "count", "TOKENS", 3, label="tokens"),
    *COST_COLUMNS,
    Column("share", "ratio", "SHARE", 4, label="share of cost"),
    Column("before_count"),
    Column("before_tokens"),
    Column("before_cost_usd", "before_usd", "BEFORE", 1, label="cost before"),
    Column("before_share", "ratio", "SHARE THEN", 6, label="share before"),
    Column("evidence", "texts"),
    Column("advice", "text"),
    Column("command", "text"),
)  # fmt: skip
"""The columns after the group keys, in the order of JSON, CSV and tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRow(Costs):
    """The occurrences of a finding.

    Attributes:
        keys: Its kind and subject.
        sessions: Sessions that have it in the window.
        count: Occurrences in the window.
        tokens: The tokens that were paid for; a token counts once for each request that sent it.
        known_nano: Recorded cost.
        estimated_nano: Estimated cost.
        cost_is_partial: Whether a part has neither.
        read_nano: The cost of all sessions that were read, in the window.
        before_count: Occurrences in the time before; None without such a time. So in the other fields.
        before_tokens: The tokens there.
        before_nano: The cost there.
        before_estimated_nano: The part of it that is estimated.
        before_read_nano: The cost of all sessions that were read, there.
        places: Session and request of the costliest occurrences.
    """

    keys: Mapping[str, str]
    sessions: int
    count: int
    tokens: int
    known_nano: int | None
    estimated_nano: int | None
    cost_is_partial: bool
    read_nano: int
    before_count: int | None
    before_tokens: int | None
    before_nano: int | None
    before_estimated_nano: int | None
    before_read_nano: int | None
    places: tuple[tuple[str, int], ...]

    @property
    def share(self) -> float | None:
        """Its cost ÷ the cost of the sessions that were read, in the window."""
        return _ratio(self.cost_nano, self.read_nano)

    @property
    def before_cost_usd(self) -> float | None:
        """The cost in the time before, in US dollars."""
        return usd(self.before_nano)

    @property
    def before_share(self) -> float | None:
        """The share in the time before."""
        return _ratio(self.before_nano, self.before_read_nano)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The costliest occurrences, `SESSION#REQUEST`."""
        return tuple(f"{session}#{request}" for session, request in self.places)

    @property
    def advice(self) -> str:
        """What it is, and one thing to do."""
        kind, subject = self.keys["kind"], self.keys["subject"]
        return MISS_ADVICE[subject] if kind == "cache_miss" else ADVICE[kind][0]

    @property
    def command(self) -> str:
        """The command that shows the costliest occurrence."""
        session, request = self.places[0]
        command = "context {session} --cache" if self.keys["kind"] == "cache_miss" else ADVICE[self.keys["kind"]][1]
        return f"sessionlog {command.format(session=shlex.quote(session), request=request)}"


class NoTotals:
    """Findings overlap: they do not add up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceReport(Report):
    """Findings, the costliest first; `Report` documents the other fields.

    Attributes:
        rows: One for each kind and subject.
        found: Findings in the window; other rows are of the time before alone.
        sessions_read: Sessions of the window whose logs were read.
        before_sessions_read: Those of the time before; None without such a time.
        sessions_left_out: Sessions of both times that a limit left out.
        read_nano: The cost of those that were read, in the window.
        read_is_estimated: Whether a part of it is estimated.
        left_out_nano: The cost of the others, in both times.
        left_out_is_estimated: Whether a part of it is estimated.
    """

    schema = "sessionlog.advise/1"
    title = "Advice"
    thing = "finding"
    columns = COLUMNS
    total_row = False

    group_by: tuple[str, ...] = BY
    rows: tuple[AdviceRow, ...] = ()
    totals: NoTotals = field(default_factory=NoTotals)
    found: int = 0
    sessions_read: int = 0
    before_sessions_read: int | None = None
    sessions_left_out: int = 0
    read_nano: int = 0
    read_is_estimated: bool = False
    left_out_nano: int = 0
    left_out_is_estimated: bool = False

    @property
    def summary(self) -> str:
        """How many findings the window has, and in how many of its sessions they were looked for."""
        cost = f", {_usd(self.read_nano, self.read_is_estimated)}" if self.read_nano else ""
        return f"{counted(self.found, self.thing)} in {counted(self.sessions_read, 'session')}{cost}"

    @property
    def why_empty(self) -> str:
        """That the sessions that were read have no finding."""
        if not self.sessions_read:
            return ""
        return f"nothing in {counted(self.sessions_read, 'session')} was paid for without need, as far as the logs show"

    @property
    def extra(self) -> Mapping[str, Any]:
        """What was read, and what was not."""
        return {
            "sessions_read": self.sessions_read, "before_sessions_read": self.before_sessions_read,
            "sessions_left_out": self.sessions_left_out, "cost_read_usd": usd(self.read_nano),
            "cost_left_out_usd": usd(self.left_out_nano),
        }  # fmt: skip

    def footnotes(self) -> Iterator[str]:
        """Yield what the kinds are and what to do, and what the numbers leave out."""
        costliest = {row.advice: row for row in reversed(self.rows)}
        for row in self.rows:
            if costliest[row.advice] is row:
                name = row.keys["subject"] if row.keys["kind"] == "cache_miss" else row.keys["kind"]
                yield f"{name}: {row.advice} (`{row.command}`)"
        others = self.read_is_estimated, self.left_out_is_estimated, *(row.before_estimated_nano for row in self.rows)
        yield from cost_footnotes(self.priced_from, self.rows, is_estimated=any(others))
        if self.rows:
            yield "findings overlap: one request may have several, so they do not add up"
        if any(row.before_count is not None for row in self.rows):
            yield "before: the time of the same length before this one, priced in the same way"
        if self.sessions_left_out:
            left = counted(self.sessions_left_out, "session")
            cost = _usd(self.left_out_nano, self.left_out_is_estimated)
            yield f"{left} of {cost} not read: --limit-sessions reads more"


def report_advice(paths: Paths = None, *, sessions: int = SESSIONS_READ, **options: Unpack[Options]) -> AdviceReport:
    """Report what sessions paid for without need, the costliest finding first.

    Args:
        paths: Files or folders; native sessions and the logs of every agent when None.
        sessions: How many sessions are read at most, the costliest.
        options: See `Question`; filters choose sessions, of which the whole main conversation is read. Findings are
            chosen by their own time.

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A filter or sort column is unknown.
    """
    question = Question(paths=paths, **options)
    if question.by is not None:
        raise InvalidQuery("findings have no other groups than kind and subject")
    selection, sessions = question.selection(Selection), max(0, sessions)
    AdviceReport().sorted_by(question.sort)  # report a wrong column before reading
    chosen, report = answer(question, lambda book: _choose(book, selection, sessions))
    env = os.environ if question.env is None else question.env
    read, notes = _read(chosen, question, env)
    rows, now = _rows(read, selection), [one.now for one in read if one.now is not None]
    report = replace(
        report, rows=rows, found=sum(row.count > 0 for row in rows), sessions_read=len(now),
        before_sessions_read=None if time_before(selection) is None else sum(one.before is not None for one in read),
        read_nano=sum(one.cost_nano or 0 for one in now), read_is_estimated=any(one.estimated_nano for one in now),
        notes=(*report.notes, *notes),
    )  # fmt: skip
    return report.sorted_by(question.sort).limited(question.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A session to be read: where it is, its use in the window and in the time before, and what it copied."""

    source: str
    session: str
    path: str
    size: int = 0
    now: SummedRows | None = None
    before: SummedRows | None = None
    copied: frozenset[Copied] = frozenset()


def _choose(book: Book, selection: Selection, most: int) -> tuple[list[_Session], AdviceReport]:
    """Return the costliest sessions of the window and of the time before, and a report without rows."""
    found: dict[tuple[str, str, str], _Session] = {}
    for window, is_before in ((selection.window, False), (time_before(selection), True)):
        if is_before and window is None:
            continue
        for key, used in _uses(book, replace(selection, window=window)):
            one = found.get(key) or _Session(source=key[0], session=key[1], path=key[2])
            found[key] = replace(one, before=used) if is_before else replace(one, now=used)
    ordered = sorted(found.values(), key=_costliest_session_first)
    left_out, copied = ordered[most:], copied_responses(book)
    chosen = [
        replace(one, copied=copied.get((one.source, one.session, one.path), one.copied)) for one in ordered[:most]
    ]
    report = AdviceReport(
        window=selection.window, sessions_left_out=len(left_out),
        left_out_nano=sum(_both(one).cost_nano or 0 for one in left_out),
        left_out_is_estimated=any(_both(one).estimated_nano for one in left_out), **findings_of(book),
    )  # fmt: skip
    return chosen, report


def _both(one: _Session) -> SummedRows:
    """Return what a session used in the window and in the time before."""
    return add_up(SummedRows, (used for used in (one.now, one.before) if used is not None))


def _costliest_session_first(one: _Session) -> tuple[Any, ...]:
    both = _both(one)
    return -(both.cost_nano or 0), -both.prompt_tokens, one.path, one.session


def _uses(book: Book, selection: Selection) -> list[tuple[tuple[str, str, str], SummedRows]]:
    """Return (source, session, path) and what was used, of each session."""
    selection.prepare(book)

    def use(keys: Mapping[str, str], **used: Any) -> tuple[tuple[str, str, str], SummedRows]:
        return (keys["source"], keys["session"], keys["path"]), SummedRows(**used)

    by = {name: f"s.{name}" for name in ("id", "source", "session", "path")}
    return sums(book.query, use, USED, *selection.sums(listed_only=True), by=by)


def time_before(selection: Selection) -> UsageWindow | None:
    """Return the time of the same length before the window; None for a window without a start."""
    window = selection.window
    if window is None or window.start_ns is None:
        return None
    end_ns = selection.now_ns if window.end_ns is None else window.end_ns
    length = end_ns - window.start_ns
    if length <= 0:
        return None
    return UsageWindow(start_ns=window.start_ns - length, end_ns=window.start_ns, zone=window.zone)


def _read(
    chosen: Sequence[_Session], question: Question, env: Env
) -> tuple[dict[_Session, SessionFindings], list[str]]:
    """Read the sessions, in several processes if that pays; return their findings, and sentences on what is missing."""
    tasks = [replace(one, size=_size(one.path)) for one in chosen]
    read: dict[_Session, SessionFindings] = {}
    notes: list[str] = []
    prices = question.price_book()
    work = partial(read_findings, prices=prices, env=dict(env))
    done = map_tasks(work, tasks, _weight, executor=question.executor, jobs=question.jobs)
    for number, (task, (found, trouble)) in enumerate(done, start=1):
        if trouble:
            notes.append(trouble)
        else:
            read[replace(task, size=0)] = found
        if question.progress is not None:
            question.progress(number, len(tasks))
    gone = notes.count(_GONE)
    others = sorted(note for note in notes if note != _GONE)
    return read, [*others, *([f"{counted(gone, 'session')} without a log: not read"] if gone else [])]


def _size(path: str) -> int:
    found = files.stat_path(path)
    return 0 if found is None else found.st_size


def _weight(task: _Session) -> int:
    return task.size


def read_findings(task: _Session, *, prices: PriceBook, env: Env) -> tuple[SessionFindings, str]:
    """Return a session's findings, and a sentence if its log cannot be read; this runs in a worker."""
    try:
        if files.stat_path(task.path) is not None:
            return _find(Log(source=load_source(task.source), path=task.path), task, prices), ""
        if find_entry(task.path, archive_folder(env)) is None:
            return SessionFindings(), _GONE
        with open_session(task.path, None, env) as (log, _, _):
            return _find(log, task, prices), ""
    except (LogNotReadable, MissingExtra, AmbiguousSession, OSError) as error:
        return SessionFindings(), str(error)


def _find(log: Log, task: _Session, prices: PriceBook) -> SessionFindings:
    return find_in_session(Damage().events(read_session(log, task.session)), task.source, prices.price, task.copied)


def _rows(read: Mapping[_Session, SessionFindings], selection: Selection) -> tuple[AdviceRow, ...]:
    called = {name for found in read.values() for name in found.called}
    now: dict[tuple[str, str], list[tuple[str, Finding]]] = defaultdict(list)
    then: dict[tuple[str, str], list[tuple[str, Finding]]] = defaultdict(list)
    window, before = selection.window, time_before(selection)
    for one, found in read.items():
        for finding in found.findings:
            if finding.kind == "unused_tools" and finding.subject in called:
                continue
            key = (finding.kind, finding.subject)
            if window is None or (finding.time_ns is not None and window.contains(finding.time_ns)):
                now[key].append((one.session, finding))
            elif before is not None and finding.time_ns is not None and before.contains(finding.time_ns):
                then[key].append((one.session, finding))
    costs = (
        sum(one.now.cost_nano or 0 for one in read if one.now),
        sum(one.before.cost_nano or 0 for one in read if one.before),
    )
    rows = (
        _row(key, now.get(key, []), None if before is None else then.get(key, []), *costs)
        for key in dict.fromkeys((*now, *then))
    )
    return tuple(sorted(rows, key=_costliest_first))


def _row(
    key: tuple[str, str],
    now: Sequence[tuple[str, Finding]],
    then: Sequence[tuple[str, Finding]] | None,
    read_nano: int,
    before_read_nano: int,
) -> AdviceRow:
    costliest = sorted(now or then or (), key=lambda pair: (-(_nano(pair[1]) or 0), -pair[1].tokens, pair[0]))
    found = [finding for _, finding in now]
    return AdviceRow(
        keys=dict(zip(BY, key, strict=True)), sessions=len({session for session, _ in now}), count=len(now),
        tokens=sum(one.tokens for one in found), known_nano=_sum(one.known_nano for one in found) if found else 0,
        estimated_nano=_sum(one.estimated_nano for one in found),
        cost_is_partial=any(_nano(one) is None for one in found), read_nano=read_nano,
        before_count=None if then is None else len(then),
        before_tokens=None if then is None else sum(one.tokens for _, one in then),
        before_nano=(None if then is None else 0) if not then else _sum(_nano(one) for _, one in then),
        before_estimated_nano=_sum(one.estimated_nano for _, one in then or ()),
        before_read_nano=None if then is None else before_read_nano,
        places=tuple((session, finding.request) for session, finding in costliest[:_EVIDENCE]),
    )  # fmt: skip


def _costliest_first(row: AdviceRow) -> tuple[Any, ...]:
    """Sort key: by cost; what has gone since the time before comes last."""
    cost = row.cost_nano
    return not row.count, cost is None, -(cost or 0), -(row.before_nano or 0), -row.tokens, *row.keys.values()


def _nano(finding: Finding) -> int | None:
    if finding.known_nano is None and finding.estimated_nano is None:
        return None
    return (finding.known_nano or 0) + (finding.estimated_nano or 0)


def _usd(nano: int, is_estimated: bool) -> str:
    return f"{'~' if is_estimated else ''}${usd(nano):,.2f}"


def _sum(values: Iterator[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _ratio(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None
