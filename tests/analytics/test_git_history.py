"""Git history: every commit's fate, whatever was done to it, and a repository that cannot act."""

import subprocess
from pathlib import Path

import pytest

from sessionlog.analytics import git_history
from sessionlog.analytics.git_history import find_repository, read_history
from sessionlog.errors import GitFailed
from tests.analytics.repositories import NOON_S, MadeRepository


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    """A repository with one old commit."""
    return MadeRepository(tmp_path / "home" / "api")


def fates(made: MadeRepository, into: str | None = None) -> dict[int, str]:
    """Seconds after noon → fate."""
    history = read_history(str(made.folder / ".git"), NOON_S, into)
    return {commit.time_s - NOON_S: commit.fate for commit in history.commits}


def test_commits_on_the_default_branch_are_merged(made):
    """With their lines and branch; older ones and merge commits are left out."""
    made.commit(10, "add", a="1\n2\n3\n")
    made.commit(20, "change", a="1\n3\n")
    made.git("switch", "-q", "-c", "side")
    made.commit(30, "on a branch", b="x\n")
    made.git("switch", "-q", "main")
    made.git("merge", "-q", "--no-ff", "side", at=40)
    history = read_history(str(made.folder / ".git"), NOON_S)
    found = [(c.time_s - NOON_S, c.branch, c.fate, c.added, c.removed) for c in history.commits]
    assert found == [(10, "main", "merged", 3, 0), (20, "main", "merged", 0, 1), (30, "side", "merged", 1, 0)]
    assert (history.into, history.others, history.caveats) == ("refs/heads/main", (), ())


def test_an_unmerged_branch_is_open_and_a_deleted_one_lost(made):
    """A tag keeps a commit, too; a stash is no commit."""
    made.git("switch", "-q", "-c", "kept")
    made.commit(10, "kept", a="1\n")
    made.git("switch", "-q", "-c", "gone", "main")
    made.commit(20, "gone", b="1\n")
    made.git("switch", "-q", "-c", "tagged", "main")
    made.commit(30, "tagged", c="1\n")
    made.git("tag", "v1")
    (made.folder / "readme.txt").write_text("stashed\n")
    made.git("stash", "-q", at=40)
    made.git("switch", "-q", "main")
    made.git("branch", "-q", "-D", "gone", "tagged")
    assert fates(made) == {10: "open", 20: "lost", 30: "open"}
    assert fates(made, "kept") == {10: "merged", 20: "lost", 30: "open"}


def test_amending_rebasing_and_cherry_picking_keep_one_commit(made):
    """Versions have one author time; what was replaced is not lost."""
    made.git("switch", "-q", "-c", "work")
    made.commit(10, "first words", a="1\n")
    made.git("commit", "-q", "--amend", "-m", "better words", "--date", f"{NOON_S + 10} +0000", at=15)
    made.git("switch", "-q", "main")
    made.commit(20, "other", b="1\n")
    made.git("switch", "-q", "work")
    made.git("rebase", "-q", "main", at=30, author_at=10)
    assert fates(made) == {10: "open", 20: "merged"}
    made.git("switch", "-q", "main")
    made.git("cherry-pick", "work", at=40, author_at=10)
    assert fates(made) == {10: "merged", 20: "merged"}


def test_a_squashed_branch_is_merged(made):
    """Its commits are found by the change of the whole branch, also after the branch is deleted."""
    made.git("switch", "-q", "-c", "work")
    made.commit(10, "one", a="1\n")
    made.commit(20, "two", a="1\n2\n")
    made.git("switch", "-q", "-c", "rest", "main")
    made.commit(30, "never merged", c="1\n")
    made.git("switch", "-q", "main")
    made.git("merge", "-q", "--squash", "work")
    made.commit(40, "work, squashed")
    made.git("branch", "-q", "-D", "work")
    assert fates(made) == {10: "merged", 20: "merged", 30: "open", 40: "merged"}


def test_a_revert_and_the_revert_of_a_revert(made):
    """A reverted commit counts as reverted until the revert is reverted."""
    made.commit(10, "mistake", a="1\n")
    made.git("revert", "--no-edit", "HEAD", at=20)
    assert fates(made) == {10: "reverted", 20: "merged"}
    made.git("revert", "--no-edit", "HEAD", at=30)
    assert fates(made) == {10: "merged", 20: "reverted", 30: "merged"}


def test_a_chain_of_reverts_ends(made):
    """A message that claims to revert each other commit stops nothing."""
    first = made.commit(10, "a", a="1\n")
    made.commit(20, f"b\n\nThis reverts commit {first[:7]}.\n\nThis reverts commit 0000000.", b="1\n")
    assert fates(made) == {10: "reverted", 20: "merged"}


def test_commits_by_others_are_not_ours(made, tmp_path):
    """What was fetched has neither an entry in the reflog nor the user's address; a clone of one's own work has."""
    made.commit(10, "ours", a="1\n")
    made.commit(20, "theirs", email="bob@example.org", b="1\n")
    clone = tmp_path / "home" / "clone"
    subprocess.run(["git", "clone", "-q", made.folder, clone], check=True, capture_output=True)
    subprocess.run(["git", "config", "user.email", "ada@example.org"], cwd=clone, check=True)
    history = read_history(str(clone / ".git"), NOON_S)
    assert [commit.time_s - NOON_S for commit in history.commits] == [10]
    assert history.others == (NOON_S + 20,)
    assert history.into == "refs/remotes/origin/main"
    assert fates(made) == {10: "merged", 20: "merged"}, "made here, under whatever name"


def test_a_worktree_belongs_to_its_repository(made, tmp_path):
    """Both folders have one repository, and the worktree's commits are found."""
    tree = tmp_path / "home" / "tree"
    made.git("worktree", "add", "-q", "-b", "side", str(tree))
    (tree / "x.txt").write_text("1\n")
    made.git("-C", str(tree), "add", "x.txt")
    made.git("-C", str(tree), "commit", "-q", "-m", "there", at=10)
    assert find_repository(str(tree)) == find_repository(str(made.folder)) == str(made.folder.resolve() / ".git")
    assert fates(made) == {10: "open"}


def test_what_is_no_repository_has_none(tmp_path):
    """Also a folder that is gone."""
    assert find_repository(str(tmp_path)) is None
    assert find_repository(str(tmp_path / "gone")) is None


def test_a_repository_without_a_default_branch_says_so(made):
    """Nothing is merged then, and a wrong name is an error with the name."""
    made.git("branch", "-q", "-m", "main", "unusual")
    made.commit(10, "a", a="1\n")
    history = read_history(str(made.folder / ".git"), NOON_S)
    assert [commit.fate for commit in history.commits] == ["open"]
    assert history.caveats == ("has no main, master or trunk: name the branch with --into",)
    assert fates(made, "unusual") == {10: "merged"}
    with pytest.raises(GitFailed, match="there is no branch 'main'"):
        fates(made, "main")


def test_no_program_of_the_repository_runs(made, tmp_path):
    """Hooks, monitors, external diffs, text conversions, signature checks and remote helpers stay still."""
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    (made.folder / ".gitattributes").write_text("*.txt diff=evil filter=evil\n")
    made.commit(10, "a", a="1\n")
    for name in (
        "core.fsmonitor", "diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean",
        "filter.evil.smudge", "gpg.program", "core.pager", "core.sshCommand", "core.editor", "credential.helper",
        "core.askPass", "uploadpack.packObjectsHook",
    ):  # fmt: skip
        made.git("config", name, str(trap))
    made.git("config", "log.showSignature", "true")
    made.git("config", "core.hooksPath", str(tmp_path))
    assert fates(made) == {10: "merged"}
    assert not (tmp_path / "sprung").exists()


def test_a_missing_git_is_one_sentence(made, monkeypatch):
    """And so is one that takes too long."""
    monkeypatch.setenv("PATH", str(made.folder))
    with pytest.raises(GitFailed, match="git is not installed, or not on PATH"):
        find_repository(str(made.folder))


def test_a_git_that_hangs_is_stopped(made, monkeypatch, tmp_path):
    """After the time that a command may take."""
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(git_history, "_TIMEOUT_S", 0.1)
    with pytest.raises(GitFailed, match="git rev-parse took more than 0 s"):
        find_repository(str(made.folder))
