"""Entry: what the archive records about one version of one log.

An entry names every file that reading the log needs, with the original's state (so that checking an unchanged log costs
one stat per file) and the hash of what is kept. Its version is a hash of all that: equal contents have equal names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

State = tuple[str, int, int, int]
"""(path, size, mtime_ns, ctime_ns)."""

_WATCHED = ""
"""The hash of a file whose state is recorded, but whose content is not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """One file of a log.

    Attributes:
        path: The original's absolute path.
        size: Its size when it was read.
        mtime_ns: Its time of modification then.
        ctime_ns: Its time of change then; older entries do not have it.
        bytes: Bytes kept: those of a database's snapshot, of redacted settings, or of the file.
        sha256: Their hash; empty if only the file's state is recorded.
        beside: It is a sidecar: kept because reading the log needs it; a change of it does not change the log.
    """

    path: str
    size: int
    mtime_ns: int
    bytes: int = 0
    sha256: str = _WATCHED
    beside: bool = False
    ctime_ns: int = 0

    @property
    def state(self) -> State:
        """What shows whether the original has changed."""
        return self.path, self.size, self.mtime_ns, self.ctime_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One version of one log.

    Attributes:
        source: Id of the source that reads it.
        path: The absolute path of the log: a file or a folder.
        version: A hash of its content.
        sessions: The sessions in it.
        files: All of its files.
        archived: When, RFC 3339.
        packed: Size of the pack in bytes.
        shared: The name of the file that holds its pack and those of other small logs; "" for a file of its own.
        offset: Where its pack begins in that file.
        replaces: Earlier versions that this one begins with; they are no longer kept.
        subagent_logs: The logs of its session's sub-agents, absolute; older entries do not name them.
    """

    source: str
    path: str
    version: str
    sessions: tuple[str, ...]
    files: tuple[KeptFile, ...]
    archived: str
    packed: int = 0
    shared: str = ""
    offset: int = 0
    replaces: tuple[str, ...] = ()
    subagent_logs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The path within the archive of the file that holds its pack."""
        return os.path.join(self.source, f"{self.shared or self.version}.tar.zst")

    @property
    def kept(self) -> tuple[KeptFile, ...]:
        """The files that are kept."""
        return tuple(file for file in self.files if file.sha256 != _WATCHED)

    @property
    def states(self) -> list[State]:
        """What shows whether the log has changed."""
        return [file.state for file in self.files if not file.beside]

    @property
    def bytes(self) -> int:
        """Bytes kept, unpacked."""
        return sum(file.bytes for file in self.kept)

    def to_json(self) -> str:
        """Return the entry on one line."""
        fields: dict[str, Any] = asdict(self)
        if not self.shared:  # an earlier version of this package knows no such files
            del fields["shared"], fields["offset"]
        return json.dumps(fields, ensure_ascii=True, separators=(",", ":"))


def entry_of(text: str | bytes) -> Entry | None:
    """Return the entry that `to_json` wrote; None for anything else."""
    try:
        fields = json.loads(text)
        lists: dict[str, Any] = {name: tuple(fields[name]) for name in ("sessions", "replaces")}
        lists |= {"subagent_logs": tuple(fields.get("subagent_logs", ()))}
        entry = Entry(**{**fields, **lists, "files": tuple(KeptFile(**file) for file in fields["files"])})
        numbers = (entry.packed, entry.offset, *(file.bytes for file in entry.files))
        names = (entry.source, entry.path, entry.version, entry.archived, entry.shared)
        texts = (*names, *(file.path for file in entry.files))
        is_right = all(type(number) is int for number in numbers) and all(isinstance(text, str) for text in texts)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return entry if is_right else None


def version_of(source: str, path: str, kept: Mapping[str, str]) -> str:
    """Name a content: (path → hash) of all kept files."""
    import hashlib

    text = json.dumps([source, path, sorted(kept.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def member_of(path: str) -> str:
    """Return the name of a file inside a pack: its whole path, because sources read the names of folders, too."""
    drive, rest = os.path.splitdrive(path)
    return "/".join(part for part in (drive.replace(":", ""), *rest.split(os.sep)) if part)
