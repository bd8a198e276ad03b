"""Worktrees: whatever folder of a repository was worked in, it is one project."""

import os
from pathlib import Path

import pytest

from sessionlog.analytics.worktrees import main_folder


def repository(folder):
    """A main checkout, with what git keeps in it."""
    (folder / ".git").mkdir(parents=True)
    return folder


def worktree(folder, pointer):
    """A folder whose `.git` is a file with this text."""
    folder.mkdir(parents=True)
    (folder / ".git").write_text(pointer)
    return folder


# --- on disk


@pytest.mark.parametrize("end", ["\n", "", "\r\n"])
def test_a_worktree_is_its_main_checkout(tmp_path, end):
    """Its `.git` is a file that names the repository."""
    main = repository(tmp_path / "api")
    tree = worktree(tmp_path / "elsewhere", f"gitdir: {main}/.git/worktrees/elsewhere{end}")
    assert main_folder(str(tree)) == str(main)


def test_a_folder_in_a_worktree_is_that_folder_in_the_main_checkout(tmp_path):
    """Projects below the top stay apart; the folder itself may be gone."""
    main = repository(tmp_path / "api")
    tree = worktree(tmp_path / "elsewhere", f"gitdir: {main}/.git/worktrees/elsewhere\n")
    assert main_folder(str(tree / "web" / "src")) == str(main / "web" / "src")


def test_a_pointer_may_be_relative(tmp_path):
    """From where the file is, not from where we are."""
    main = repository(tmp_path / "api")
    tree = worktree(tmp_path / "trees" / "one", "gitdir: ../../api/.git/worktrees/one\n")
    assert main_folder(str(tree)) == str(main)
    assert main_folder(str(tree / "web")) == str(main / "web")


def test_a_main_checkout_is_itself(tmp_path):
    """And so are its folders, spelled as they were logged; no repository further up takes them."""
    outer = worktree(tmp_path / "outer", "gitdir: /elsewhere/.git/worktrees/outer\n")
    main = repository(outer / "api")
    for folder in (main, main / "web", f"{main}/"):
        assert main_folder(str(folder)) == str(folder)


@pytest.mark.parametrize(
    "pointer",
    ["gitdir: ../.git/modules/lib\n", "gitdir: /bare.git/worktrees/x\n", "", "\xff\x00", "gitdir: \n", "x" * 100_000],
)
def test_other_pointers_are_followed_nowhere(tmp_path, pointer):
    """A submodule is a project of its own; damage is nothing."""
    tree = worktree(tmp_path / "lib", pointer)
    assert main_folder(str(tree)) == str(tree)


def test_a_pointer_that_is_no_file_is_not_read(tmp_path):
    """A pipe would keep us waiting."""
    os.mkfifo(tmp_path / ".git")
    assert main_folder(str(tmp_path)) == str(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_pointer_that_may_not_be_read_is_nothing(tmp_path):
    """The folder stays what it is."""
    tree = worktree(tmp_path / "x", "gitdir: /api/.git/worktrees/x\n")
    (tree / ".git").chmod(0)
    assert main_folder(str(tree)) == str(tree)


# --- gone


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("/nowhere/api/.claude/worktrees/calm-fox", "/nowhere/api"),
        ("/nowhere/api/.claude/worktrees/calm-fox/web/src", "/nowhere/api/web/src"),
        ("/nowhere/api/.worktrees/topic", "/nowhere/api"),
        ("/nowhere/api/.claude/worktrees/a/.worktrees/b/web", "/nowhere/api/web"),
        ("C:\\src\\api\\.claude\\worktrees\\calm-fox", "C:\\src\\api"),
        ("C:\\src\\api\\.worktrees\\topic\\web", "C:\\src\\api\\web"),
        ("C:/src/api/.claude/worktrees/calm-fox", "C:/src/api"),
        ("\\\\server\\share\\api\\.worktrees\\x", "\\\\server\\share\\api"),
    ],
)
def test_places_where_agents_make_worktrees_are_known(folder, found):
    """They are deleted when the work is done; the log stays."""
    assert main_folder(folder) == found


@pytest.mark.parametrize(
    "folder",
    [
        "unknown", "", "~", "relative/.worktrees/x", "/nowhere/api", "/nowhere/api/.claude/worktrees", "/.worktrees/x", "/nowhere/.worktrees",
        "/nowhere/worktrees/x", "/nowhere/x.worktrees/y", "C:\\src\\api", "/", "/nowhere/line\nbreak",
    ],
)  # fmt: skip
def test_other_folders_are_themselves(folder, tmp_path, monkeypatch):
    """Whatever lies in the folder that we are in."""
    worktree(tmp_path / "here", "gitdir: /api/.git/worktrees/here\n")
    monkeypatch.chdir(tmp_path / "here")
    assert main_folder(folder) == folder


def test_many_levels_are_no_trouble():
    """A hostile project is as deep as it is long."""
    folder = "/nowhere" + "/d" * 1500
    assert main_folder(folder) == folder
    assert main_folder("/nowhere/api" + "/.worktrees/x" * 2000) == "/nowhere/api"
    assert Path("/nowhere").exists() is False
