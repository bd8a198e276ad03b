"""Worktrees: one repository may be checked out in many folders, and its work is one project.

A folder that still exists is asked: in a worktree `.git` is a file that names the repository
(https://git-scm.com/docs/gitrepository-layout). One that is gone is known by the places where agents make worktrees.
"""

from __future__ import annotations

import os
import re

from sessionlog import files
from sessionlog.errors import LogNotReadable

_MADE_BY_AGENTS = re.compile(r"(?P<main>.+?)[/\\]\.(?:claude[/\\]worktrees|worktrees)[/\\][^/\\]+(?P<rest>.*)\Z")
_POINTER = re.compile(rb"gitdir: (.+)[/\\]\.git[/\\]worktrees[/\\][^/\\\r\n]+\s*\Z")


def main_folder(project: str) -> str:
    """Return the folder of the main checkout for a folder in a worktree, any other folder as it is."""
    if not os.path.isabs(project):
        return project
    made = _MADE_BY_AGENTS.match(project)
    if made is not None:
        return made["main"] + made["rest"]
    folder = project
    while True:
        main = _pointed_at(os.path.join(folder, ".git"))
        if main is not None:
            return os.path.normpath(os.path.join(main, os.path.relpath(project, folder)))
        parent = os.path.dirname(folder)
        if parent == folder or os.path.isdir(os.path.join(folder, ".git")):
            return project
        folder = parent


def _pointed_at(path: str) -> str | None:
    """The repository that a worktree's `.git` file names."""
    if not os.path.isfile(path):
        return None
    try:
        match = _POINTER.match(files.read_small(path, 4096) or b"")
    except (LogNotReadable, OSError):
        return None
    return os.fsdecode(match.group(1)) if match else None
