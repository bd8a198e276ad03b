"""Project names: folders and branches as they leave the machine, in clear or as hashes with a key.

A hash is made of the folder below the user's home, so that `~/src/api` of two users with one key has one name. Branches
are hashed together with their project: `main` would be found by how often it occurs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sessionlog.events.names import UNKNOWN
from sessionlog.hashes import blake2b

_LONGEST_KEY = 64  # bytes that BLAKE2b takes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectNames:
    """How folders are named in an export.

    Attributes:
        home: The user's home folder.
        key: The key of hashes; None to leave names as they are.
    """

    home: str
    key: bytes | None = None

    def project(self, folder: str) -> str:
        """Return the name of a working folder."""
        return folder if self.key is None or folder in ("", UNKNOWN) else self._hash("project", self.below_home(folder))

    def branch(self, branch: str, folder: str) -> str:
        """Return the name of a branch of a project."""
        if self.key is None or branch in ("", UNKNOWN):
            return branch
        return self._hash("branch", f"{self.below_home(folder)}\0{branch}")

    def path(self, path: str) -> str:
        """Return a path for use in a hash: the same for users whose homes differ, and not to be guessed with a key."""
        short = self.below_home(path)
        return short if self.key is None else self._hash("path", short)

    def below_home(self, path: str) -> str:
        """Return a path with `~` in place of the home folder."""
        return "~" + path[len(self.home) :] if path == self.home or path.startswith(self.home + os.sep) else path

    def _hash(self, kind: str, text: str) -> str:
        key = blake2b(self.key or b"", digest_size=_LONGEST_KEY).digest()
        named = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
        return f"{kind}-{blake2b(named, key=key, digest_size=8).hexdigest()}"
