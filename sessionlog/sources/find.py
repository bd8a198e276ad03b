"""From what a person types to a log: a path, a session id, or the beginning or end of one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from sessionlog import files
from sessionlog.errors import AmbiguousSession, LogNotReadable, Problem
from sessionlog.reader.walk import walk_logs
from sessionlog.sources.native import session_id_of

_SHORT = 4


def session_logs(paths: Iterable[str]) -> Iterator[str | Problem]:
    """Yield the logs under `paths`, one per session: beside `x.jsonl`, a packed `x.jsonl.gz` is its copy."""
    seen: set[tuple[str, str]] = set()
    for path in walk_logs(paths):
        if not isinstance(path, Problem):
            key = (os.path.dirname(path), session_id_of(path))
            if key in seen:
                continue
            seen.add(key)
        yield path


def resolve_session(target: str, directory: str | None) -> str:
    """Return the path of a log: an existing path first, else the one session whose id begins with `target`.

    Raises:
        LogNotReadable: Nothing matches, or the path is a folder.
        AmbiguousSession: Several sessions match (an id that matches whole wins), or several files have that id.
    """
    if os.path.isdir(target):
        raise LogNotReadable(f"{target} is a folder; name one session of it")
    if files.stat_path(target) is not None:
        return target
    if directory is None or not os.path.isdir(directory):
        raise LogNotReadable(f"{target}: no such file, and no session folder at {directory}")
    found: dict[str, list[str]] = {}
    for path in session_logs([directory]):
        if not isinstance(path, Problem):
            found.setdefault(session_id_of(path), []).append(path)
    matches = [target] if target in found else sorted(i for i in found if i.startswith(target))
    if not matches and len(target) >= _SHORT:  # ids of one day begin alike: their ends tell them apart
        matches = sorted(i for i in found if i.endswith(target))
    if not matches:
        raise LogNotReadable(f"{target}: no such file, and no session in {directory} begins or ends with it")
    candidates = matches if len(matches) > 1 else found[matches[0]]
    if len(candidates) > 1:
        raise AmbiguousSession(target, tuple(candidates))
    return found[matches[0]][0]
