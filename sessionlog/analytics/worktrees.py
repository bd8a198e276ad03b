"""Worktrees: map the folders of git worktrees to the main checkout, so that a repository is one project.

In a worktree that still exists, `.git` is a file that names the repository
(https://git-scm.com/docs/gitrepository-layout). A deleted one is recognised by the folders where agents make worktrees.
"""

from __future__ import annotations

import os
import re

from sessionlog import files
from sessionlog.errors import LogNotReadable

_MADE_BY_AGENTS = re.compile(r"(?P<main>.+?)[/\\]\.(?:claude[/\\]worktrees|worktrees)[/\\][^/\\]+(?P<rest>.*)\Z")
_WINDOWS = re.compile(r"[A-Za-z]:[/\\]|\\\\")  # a log may come from Windows
_POINTER = re.compile(rb"gitdir: (.+)[/\\]\.git[/\\]worktrees[/\\][^/\\\r\n]+\s*\Z")


def main_folder(project: str) -> str:
    """Return the folder of the main checkout for a folder in a worktree; other folders as they are."""
    if not (os.path.isabs(project) or _WINDOWS.match(project)):
        return project
    while made := _MADE_BY_AGENTS.match(project):  # a worktree may be inside another one
        project = made["main"] + made["rest"]
    folder = project
    while os.path.isabs(folder):
        main = _main_checkout(os.path.join(folder, ".git"))
        if main is not None:
            return os.path.normpath(os.path.join(folder, main, os.path.relpath(project, folder)))
        parent = os.path.dirname(folder)
        if parent == folder or os.path.isdir(os.path.join(folder, ".git")):
            return project
        folder = parent
    return project


def _main_checkout(path: str) -> str | None:
    """The main checkout that a worktree's `.git` file names, possibly relative to the file's folder."""
    if not os.path.isfile(path):
        return None
    try:
        match = _POINTER.match(files.read_small(path, 4096) or b"")
    except (LogNotReadable, OSError):
        return None
    return os.fsdecode(match.group(1)) if match else None
