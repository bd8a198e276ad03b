"""Git repositories made by hand, with commits at given seconds after noon."""

import os
import subprocess
from pathlib import Path

from tests.ledger.entries import NOON, SECOND

NOON_S = NOON // SECOND
_ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}


class MadeRepository:
    """A repository with a main branch and a first commit, an hour before noon; its user is Ada."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder.parent
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        self.commit(-3600, "begin", readme="hello\n")

    def git(self, *arguments: str, at: int = 0, author_at: int | None = None, **environment: str) -> str:
        """Run git at some seconds after noon, and return its output."""
        dates = {
            "GIT_COMMITTER_DATE": f"{NOON_S + at} +0000",
            "GIT_AUTHOR_DATE": f"{NOON_S + (at if author_at is None else author_at)} +0000",
        }
        run = subprocess.run(
            ["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True,
            env=_ENVIRONMENT | {"HOME": str(self.home)} | (dates if at or author_at else {}) | environment,
        )  # fmt: skip
        return run.stdout.strip()

    def commit(self, at: int, subject: str, *options: str, email: str | None = None, **files: str) -> str:
        """Write files, commit them, and return the commit's name."""
        for name, text in files.items():
            (self.folder / f"{name}.txt").write_text(text)
            self.git("add", f"{name}.txt")
        by = {} if email is None else {"GIT_AUTHOR_EMAIL": email}
        self.git("commit", "-q", "-m", subject, *options, at=at, **by)
        return self.git("rev-parse", "HEAD")
