"""Yield: what sessions committed to the git repositories of this machine, what became of it, and what it cost.

A log rarely names the commits that its session made, and never what became of them. So a commit belongs to the session
that had an answer in its repository last before it, at most ten minutes earlier. Where several had one in that time,
those on the commit's branch come first. Sub-agents belong to their session.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sessionlog.analytics.columns import Column, counted
from sessionlog.analytics.git_history import Commit, History, find_repository, read_history
from sessionlog.analytics.question import Question, answer_sorted
from sessionlog.analytics.report import Report, SummedRows, add_up, cost_footnotes, findings_of, values_of
from sessionlog.analytics.row_order import by_cost
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sums import USED, sums
from sessionlog.analytics.usage_row import COST_COLUMNS
from sessionlog.analytics.worktrees import main_folder
from sessionlog.errors import GitFailed, InvalidQuery
from sessionlog.events.times import SECOND
from sessionlog.ledger.book import Book
from sessionlog.ledger.schema import FROM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from sessionlog.analytics.question import Options, Paths

WITHIN_S = 600
"""Seconds after an answer in which a commit is the session's; after as many a session is no longer running."""

BY = ("repository", "branch", "source", "session")
DEFAULT_BY = ("repository", "branch", "session")

_FATES = ("merged", "reverted", "open", "lost")
_UNKNOWN = "unknown"

_KEYS = {"source": "s.source", "session": "s.session", "project": "l.project", "branch": "l.branch"}

_TIMES = f"SELECT r.time_ns, {', '.join(_KEYS.values())} FROM {FROM} WHERE r.time_ns IS NOT NULL AND {{where}}"  # noqa: S608 - names of the schema

COLUMNS = (
    Column("requests"),
    Column("total_tokens", "count", "TOKENS", 7, label="tokens"),
    Column("commits", "count", "COMMITS"),
    Column("merged_commits", "count", "MERGED", style="success", label="merged"),
    Column("reverted_commits", "count", "REVERTED", 4, style="failed", label="reverted"),
    Column("open_commits", "count", "OPEN", 3, style="unfinished", label="open"),
    Column("lost_commits", "count", "LOST", 2, style="failed", label="lost"),
    Column("lines_added", "count", "+LINES", 5, label="lines added"),
    Column("lines_removed", "count", "-LINES", 6, label="lines removed"),
    *COST_COLUMNS,
    Column(
        "cost_per_merged_commit", "usd", "PER MERGED", 1, label="cost per merged commit",
        note="all cost of the row, also of what came to nothing, by its merged commits",
    ),
)  # fmt: skip
"""The columns after the group keys, in the order of JSON, CSV and tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YieldRow(SummedRows):
    """The usage and commits of sessions.

    Attributes:
        keys: Group key → value; empty for totals.
        commits: Commits by its sessions, without merge commits; each is one of the next four.
        merged_commits: In the default branch: as they are, rebased, or squashed.
        reverted_commits: Merged, and reverted later.
        open_commits: On a branch or tag that is not merged.
        lost_commits: On none: only in the reflog.
        lines_added: Lines added by the commits.
        lines_removed: Lines removed by the commits.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    commits: int = 0
    merged_commits: int = 0
    reverted_commits: int = 0
    open_commits: int = 0
    lost_commits: int = 0
    lines_added: int = 0
    lines_removed: int = 0

    @property
    def cost_per_merged_commit(self) -> float | None:
        """US dollars; None without merged commits or known cost."""
        return None if self.cost_usd is None or not self.merged_commits else self.cost_usd / self.merged_commits


@dataclass(frozen=True, slots=True, kw_only=True)
class YieldReport(Report):
    """Sessions in git repositories with their commits, the costliest first; `Report` documents the other fields.

    Attributes:
        rows: A row per group.
        totals: Of all rows.
        left_out: Cost of sessions in no repository of this machine, and how many projects those are; None without any.
        ambiguous: Commits before which several sessions had answers.
        others: Commits by others near an answer, which are not counted.
    """

    schema = "sessionlog.yield/1"
    title = "Yield"
    columns = COLUMNS

    rows: tuple[YieldRow, ...] = ()
    totals: YieldRow = field(default_factory=YieldRow)
    left_out: tuple[SummedRows, int] | None = None
    ambiguous: int = 0
    others: int = 0
    priced_from: str = ""

    @property
    def summary(self) -> str:
        """The number of commits, and what became of them: narrow tables have no room for all of it."""
        counts = ((fate, getattr(self.totals, f"{fate}_commits")) for fate in _FATES)
        fates = [f"{count:,} {fate}" for fate, count in counts if count or fate == "merged"]
        return counted(self.totals.commits, "commit") + (f": {', '.join(fates)}" if self.totals.commits else "")

    @property
    def why_empty(self) -> str:
        """That no session was in a repository of this machine."""
        if self.left_out is None:
            return ""
        projects = self.left_out[1]
        have = "has none, or its folder is" if projects == 1 else "have none, or their folders are"
        return (
            f"no session{' of this time' if self.window else ''} ran in a git repository of this machine: "
            f"{counted(projects, 'project')} {have} gone; `sessionlog usage --by project` shows what ran where"
        )

    @property
    def extra(self) -> Mapping[str, Any]:
        """What the rows leave out or cannot know."""
        sums, projects = self.left_out or (SummedRows(), 0)
        return {
            "projects_without_repository": projects, "cost_without_repository_usd": sums.cost_usd,
            "ambiguous_commits": self.ambiguous, "commits_by_others": self.others,
        }  # fmt: skip

    def footnotes(self) -> Iterator[str]:
        """Yield the meaning of the marks, and what the rows leave out."""
        yield from cost_footnotes(self.priced_from, [*self.rows, self.totals])
        if self.totals.commits:
            yield "a commit belongs to the session with the last answer before it, at most 10 minutes earlier"
        if self.totals.open_commits or self.totals.lost_commits:
            yield "open: on a branch that is not merged; lost: on no branch, only in the reflog, which forgets"
        if self.ambiguous:
            yield f"{counted(self.ambiguous, 'commit')} could also be of another session at that time"
        if self.others:
            yield f"{counted(self.others, 'commit')} by others at these times: not counted"
        if self.left_out is not None:
            sums, projects = self.left_out
            cost = "" if sums.cost_usd is None else f", ${sums.cost_usd:,.2f}"
            yield f"{counted(projects, 'project')} in no git repository of this machine{cost}: left out"


def report_yield(paths: Paths = None, *, into: str | None = None, **options: Unpack[Options]) -> YieldReport:
    """Report what sessions committed, the costliest first.

    Args:
        paths: Files or folders; native sessions and the logs of every agent when None.
        into: The branch that work is merged into; the default branch of each repository when None.
        options: See `Question`; group keys are those of `BY`. The window chooses answers, and the commits after them.

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A group key, filter or sort column is unknown.
        GitFailed: Git is not installed.
    """
    question = Question(paths=paths, **options)
    by = tuple(DEFAULT_BY if question.by is None else question.by)
    unknown = [key for key in by if key not in BY]
    if unknown or len(set(by)) != len(by):
        raise InvalidQuery(f"cannot group commits by {', '.join(unknown or by)!r}; group by {', '.join(BY)}")
    selection = replace(question, by=None).selection(Selection)
    return answer_sorted(question, YieldReport(group_by=by), lambda book: fold_yield(book, selection, by, into))


def fold_yield(book: Book, selection: Selection, by: Sequence[str], into: str | None = None) -> YieldReport:
    """Query a book, and the git repositories of its projects."""
    works = _works(book, selection)
    notes: list[str] = []
    repository_of = _Repositories(notes)
    by_repository: dict[str, list[_Work]] = defaultdict(list)
    elsewhere = []
    for work in works:
        repository = repository_of(work.project)
        if repository is None:
            elsewhere.append(work)
        else:
            by_repository[repository].append(work)
    ambiguous = others = 0
    rows: dict[tuple[str, ...], list[YieldRow]] = defaultdict(list)
    for repository, its_works in by_repository.items():
        commits, unclear, foreign = _commits(repository, its_works, into, notes)
        ambiguous, others = ambiguous + unclear, others + foreign
        for work in its_works:
            keys = work.keys(_main_folder_of(repository))
            rows[tuple(keys[key] for key in by)].append(_row(work, commits.get(id(work), ())))
    summed = (replace(add_up(YieldRow, group), keys=dict(zip(by, key, strict=True))) for key, group in rows.items())
    return YieldReport(
        window=selection.window, group_by=tuple(by), rows=tuple(sorted(summed, key=by_cost(by, ()))),
        totals=add_up(YieldRow, [row for group in rows.values() for row in group]),
        left_out=_left_out(elsewhere) if elsewhere else None,
        ambiguous=ambiguous, others=others, **_with_notes(findings_of(book), notes),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The usage of one session on one branch in one folder, with the sorted times of its answers in seconds."""

    source: str
    session: str
    project: str
    branch: str
    usage: SummedRows
    times: array[int]

    def keys(self, repository: str) -> Mapping[str, str]:
        return {"repository": repository, "branch": self.branch, "source": self.source, "session": self.session}


class _Repositories:
    """Finds the repository of a project's folder, each once; what git refuses becomes a note."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.known: dict[str, str | None] = {}

    def __call__(self, project: str) -> str | None:
        if project not in self.known:
            self.known[project] = self._find(project)
        return self.known[project]

    def _find(self, project: str) -> str | None:
        if not os.path.isabs(project):
            return None
        try:
            return find_repository(project) or find_repository(main_folder(project))  # a worktree may be gone
        except GitFailed as error:
            if "not installed" in str(error):
                raise
            self.notes.append(f"{project}: {error}")
            return None


def _works(book: Book, selection: Selection) -> list[_Work]:
    selection.prepare(book)
    times: dict[tuple[str, ...], array[int]] = defaultdict(lambda: array("q"))

    def add_time(row: tuple[Any, ...]) -> None:
        times[row[1:]].append(row[0] // SECOND)

    where, parameters = selection.where()
    book.query(_TIMES.format(where=where), parameters, add_time)

    def work(keys: Mapping[str, str], **used: Any) -> _Work:
        own = times.get(tuple(keys.values()), ())
        return _Work(usage=SummedRows(**used), times=array("q", sorted(own)), **keys)

    return sums(book.query, work, USED, *selection.sums(), by=_KEYS)


def _commits(
    repository: str, works: Sequence[_Work], into: str | None, notes: list[str]
) -> tuple[Mapping[int, Sequence[Commit]], int, int]:
    """Return the commits of each work by its `id`, how many are ambiguous, and how many are by others."""
    first = min((work.times[0] for work in works if work.times), default=None)
    if first is None:
        return {}, 0, 0
    try:
        history: History = read_history(repository, first, into)
    except GitFailed as error:
        notes.append(str(error))
        return {}, 0, 0
    notes += [f"{_main_folder_of(repository)}: {caveat}" for caveat in history.caveats]
    found: dict[int, list[Commit]] = defaultdict(list)
    ambiguous = 0
    for commit in history.commits:
        near = [] if commit.is_copy else _near(works, commit.time_s)
        if near:
            _, work = min(near, key=lambda pair: (pair[1].branch != commit.branch, pair[0]))
            found[id(work)].append(commit)
            ambiguous += len({(other.source, other.session) for _, other in near}) > 1
    return found, ambiguous, sum(bool(_near(works, time_s)) for time_s in history.others)


def _near(works: Sequence[_Work], time_s: int) -> list[tuple[int, _Work]]:
    """Return the works with an answer shortly before a time, and by how many seconds."""
    found = []
    for work in works:
        position = bisect_right(work.times, time_s)
        if position and time_s - work.times[position - 1] <= WITHIN_S:
            found.append((time_s - work.times[position - 1], work))
    return found


def _row(work: _Work, commits: Sequence[Commit]) -> YieldRow:
    fates = {f"{fate}_commits": sum(commit.fate == fate for commit in commits) for fate in _FATES}
    counts = {
        "commits": len(commits), "lines_added": sum(commit.added for commit in commits),
        "lines_removed": sum(commit.removed for commit in commits),
    }  # fmt: skip
    return YieldRow(**values_of(work.usage) | fates | counts)


def _left_out(works: Sequence[_Work]) -> tuple[SummedRows, int]:
    """What works in no repository used, and how many projects they are of."""
    return add_up(SummedRows, (work.usage for work in works)), len({work.project for work in works})


def _main_folder_of(repository: str) -> str:
    folder, name = os.path.split(repository)
    return folder if name == ".git" else repository


def _with_notes(findings: dict[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    return findings | {"notes": (*findings["notes"], *notes)}
