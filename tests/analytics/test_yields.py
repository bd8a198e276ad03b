"""Yield: a made-up repository with known outcomes, and every number of the report."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.yields import DEFAULT_BY, fold_yield, report_yield
from sessionlog.errors import InvalidQuery
from tests.analytics.repositories import MadeRepository
from tests.ledger.entries import NOON, SECOND, book_of, record, session

NOW = datetime(2026, 11, 21, tzinfo=UTC)
USD = 10**9


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    """A repository with one old commit."""
    return MadeRepository(tmp_path / "home" / "api")


def answered(made, branch, *seconds, cost=USD):
    """Records in the repository, at these seconds after noon, of a dollar each."""
    return [
        record(time_ns=NOON + at * SECOND, project=str(made.folder), branch=branch, cost_nano=cost) for at in seconds
    ]


def report(*sessions, by=DEFAULT_BY, window=None, into=None):
    """The report on a book of these sessions."""
    selection = Selection.of(window, until=None, filters=None, tz="UTC", now=NOW)
    return fold_yield(book_of(*sessions), selection, by, into)


def numbers(row):
    """Commits with their fates, and the cost of a merged one."""
    fates = (row.merged_commits, row.reverted_commits, row.open_commits, row.lost_commits)
    return (row.commits, *fates, row.cost_usd, row.cost_per_merged_commit)


def test_every_number_of_a_made_up_repository(made):
    """Two sessions on two branches: one merged and one reverted commit; one open and one lost."""
    made.commit(100, "good", a="1\n2\n")
    made.commit(200, "bad", b="1\n")
    made.git("revert", "--no-edit", "HEAD", at=9000)
    made.git("switch", "-q", "-c", "idea")
    made.commit(5100, "open", c="1\n2\n3\n")
    made.git("switch", "-q", "-c", "dead", "main")
    made.commit(5200, "dead", d="1\n")
    made.git("switch", "-q", "main")
    made.git("branch", "-q", "-D", "dead")
    found = report(
        session("one", *answered(made, "main", 50, 150, 190)),
        session("two", *answered(made, "idea", 5000, 5050), *answered(made, "dead", 5150)),
    )
    rows = {(row.keys["branch"], row.keys["session"]): row for row in found.rows}
    assert {row.keys["repository"] for row in found.rows} == {str(made.folder)}
    assert numbers(rows["main", "one"]) == (2, 1, 1, 0, 0, 3.0, 3.0)
    assert numbers(rows["idea", "two"]) == (1, 0, 0, 1, 0, 2.0, None)
    assert numbers(rows["dead", "two"]) == (1, 0, 0, 0, 1, 1.0, None)
    assert numbers(found.totals) == (4, 1, 1, 1, 1, 6.0, 6.0)
    assert (rows["main", "one"].lines_added, rows["idea", "two"].lines_added) == (3, 3)
    assert (found.ambiguous, found.others, found.left_out, found.notes) == (0, 0, None, ())


def test_a_squash_is_no_work_besides_that_of_its_branch(made):
    """The commits of the branch are merged; the commit that squashes them, a minute later, is only their copy."""
    made.git("switch", "-q", "-c", "idea")
    made.commit(100, "one", a="1\n")
    made.commit(200, "two", a="1\n2\n")
    made.git("switch", "-q", "main")
    made.git("merge", "-q", "--squash", "idea")
    made.commit(260, "idea, squashed")
    [row] = report(session("one", *answered(made, "idea", 50, 190))).rows
    assert numbers(row) == (2, 2, 0, 0, 0, 2.0, 1.0)
    assert row.lines_added == 2


def test_a_commit_belongs_to_the_last_answer_before_it(made):
    """Within ten minutes; a later one is nobody's, and so is one before all answers."""
    made.commit(-10, "before", a="1\n")
    made.commit(600, "just in time", b="1\n")
    made.commit(601, "too late", c="1\n")
    found = report(session("one", *answered(made, "main", 0)))
    assert numbers(found.totals)[:2] == (1, 1)


def test_of_several_sessions_the_branch_decides_then_the_time(made):
    """And the commit is said to be ambiguous."""
    made.git("switch", "-q", "-c", "side")
    made.commit(100, "a", a="1\n")
    made.git("switch", "-q", "main")
    made.commit(200, "b", b="1\n")
    found = report(
        session("near", *answered(made, "unknown", 90, 190)), session("side", *answered(made, "side", 20)),
        by=("session",),
    )  # fmt: skip
    assert {row.keys["session"]: row.commits for row in found.rows} == {"near": 1, "side": 1}
    assert found.ambiguous == 2


def test_groups_and_totals_count_each_commit_once(made):
    """By repository, by source: the same sums."""
    made.commit(100, "a", a="1\n")
    made.commit(200, "b", b="1\n")
    sessions = session("one", *answered(made, "main", 50)), session("two", *answered(made, "other", 150))
    for by in (DEFAULT_BY, ("repository",), ("source",), ("branch", "source")):
        found = report(*sessions, by=by)
        assert sum(row.commits for row in found.rows) == found.totals.commits == 2
        assert found.totals.cost_usd == sum(row.cost_usd for row in found.rows) == 2


def test_the_window_chooses_answers_and_their_commits(made):
    """A commit after an answer outside the window does not count, nor does its cost."""
    made.commit(100, "a", a="1\n")
    made.commit(7300, "b", b="1\n")
    window = "2026-11-20T13:00:00Z..2026-11-20T15:00:00Z"
    found = report(session("one", *answered(made, "main", 50, 7250)), window=window)
    assert numbers(found.totals)[:2] == (1, 1)
    assert found.totals.cost_usd == 1


def test_what_is_in_no_repository_is_left_out_by_name(made, tmp_path):
    """With its cost and the number of projects."""
    (tmp_path / "plain").mkdir()
    plain = record(project=str(tmp_path / "plain"), cost_nano=2 * USD)
    gone = record(project=str(tmp_path / "gone"), cost_nano=3 * USD)
    found = report(session("one", plain, gone, record(project="unknown", cost_nano=USD)))
    assert found.is_empty
    sums, projects = found.left_out
    assert (sums.cost_usd, projects) == (6.0, 3)
    assert list(found.footnotes()) == ["3 projects in no git repository of this machine, $6.00: left out"]
    assert found.to_dict()["cost_without_repository_usd"] == 6.0
    assert found.why_empty.startswith("no session ran in a git repository of this machine: 3 projects have none, or")
    assert report().why_empty == ""  # there are no sessions at all


def test_commits_by_others_are_counted_apart(made):
    """They came by fetching while the session ran."""
    made.commit(100, "theirs", email="bob@example.org", a="1\n")
    (made.folder / ".git" / "logs" / "HEAD").unlink()
    (made.folder / ".git" / "logs" / "refs" / "heads" / "main").unlink()
    found = report(session("one", *answered(made, "main", 50)))
    assert (found.totals.commits, found.others) == (0, 1)
    assert "1 commit by others at these times: not counted" in list(found.footnotes())


def test_a_damaged_repository_costs_only_itself(made, tmp_path):
    """It is a note by name; the sessions stay, without commits."""
    (made.folder / ".git" / "refs" / "heads" / "main").write_text("0" * 39 + "1\n")
    found = report(session("one", *answered(made, "main", 50)))
    assert (found.totals.commits, found.totals.cost_usd) == (0, 1.0)
    assert [note for note in found.notes if str(made.folder) in note]


def test_wrong_groups_and_sorts_are_errors(tmp_path):
    """Before anything is read; and nothing is an empty report."""
    with pytest.raises(InvalidQuery, match="cannot group commits by 'model'; group by repository, branch"):
        report_yield(tmp_path, by=["model"])
    with pytest.raises(InvalidQuery, match="cannot sort by 'colour'"):
        report_yield(tmp_path, sort="colour")
    document = report_yield(tmp_path / "none").to_dict()
    assert (document["schema"], document["rows"], document["totals"]["commits"]) == ("sessionlog.yield/1", [], 0)
