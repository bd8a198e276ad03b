"""Find the log that a user names by a path, a session id, or the beginning or end of one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from sessionlog import files
from sessionlog.errors import AmbiguousSession, LogNotReadable, MissingExtra, Problem
from sessionlog.sources.discover import discover, recognise, recognise_folder
from sessionlog.sources.native import holds_events, list_logs, session_id_of
from sessionlog.sources.protocol import Env, Log
from sessionlog.sources.registry import all_sources, load_source

_SHORT = 4
_SOME = 5


def resolve_log(target: str, directory: str | None, env: Env) -> tuple[Log, str | None]:
    """Return the log that a path or an id names, and the session in it; native sessions come first.

    Raises:
        LogNotReadable: Nothing matches, or the path is a folder or no agent's log.
        AmbiguousSession: Several sessions match.
    """
    is_folder = files.is_directory(target)
    folder = recognise_folder(target) if is_folder else None
    if folder is not None:
        return folder, None
    if not is_folder and files.stat_path(target) is not None:
        return log_at(target), None
    try:
        return Log(source=load_source("native"), path=resolve_session(target, directory)), None
    except AmbiguousSession as error:  # sessions of other agents may match, too
        raise AmbiguousSession(target, tuple(sorted({*error.candidates, *_elsewhere(target, env)}))) from error
    except LogNotReadable as error:
        if is_folder:
            raise
        found = _elsewhere(target, env)
        if not found:
            raise LogNotReadable(f"{error}, nor one of another agent") from error
    matches = matching(target, found)
    if len(matches) > 1:
        raise AmbiguousSession(target, tuple(matches))
    return found[matches[0]], matches[0]


def name_of_session(log: Log, session: str | None = None) -> str:
    """Return `session`, or if it is None the log's first session; "" for a log without any."""
    return session or next(iter(log.source.name_sessions(log.path)), "")


def log_at(path: str) -> Log:
    """Return a file as a log of the source that recognises it.

    Raises:
        LogNotReadable: No source recognises it, or it is a database that another program has locked.
    """
    log = recognise(path)
    if isinstance(log, Problem):
        if log.kind == "unreadable":
            raise LogNotReadable(f"{path}: {log.detail}")
        if holds_events(path):
            return Log(source=load_source("native"), path=path)
        raise LogNotReadable(f"{path}: {log.detail}; `sessionlog sources` lists those that are known")
    return log


def _elsewhere(target: str, env: Env) -> dict[str, Log]:
    """Return matching sessions of other agents with their logs; of several logs of one session the first."""
    named: dict[str, Log] = {}
    for item in discover(env, [source for source in all_sources() if source.id != "native"]):
        if isinstance(item, Log):
            with suppress(LogNotReadable, MissingExtra):
                for session_id in item.source.name_sessions(item.path):
                    named.setdefault(session_id, item)
    return {session_id: named[session_id] for session_id in matching(target, named)}


def matching(target: str, ids: Iterable[str]) -> list[str]:
    """Return the ids that a text matches: whole, at the beginning, or at the end, since ids of one day begin alike."""
    known = list(ids)
    if target in known:
        return [target]
    matches = sorted(i for i in known if i.startswith(target))
    whole = set(matches)  # the ids of sub-agents begin with their session's
    matches = [i for i in matches if "/" not in i or i.partition("/")[0] not in whole]
    if not matches and len(target) >= _SHORT:
        matches = sorted(i for i in known if i.endswith(target))
    return matches


def resolve_session(target: str, directory: str | None) -> str:
    """Return the path of a log: an existing path first, else the one session whose id begins with `target`.

    Raises:
        LogNotReadable: Nothing matches, or the path is a folder.
        AmbiguousSession: Several sessions match (an id that matches whole wins), or several files have that id.
    """
    if files.is_directory(target):
        raise LogNotReadable(f"{target} is a folder; name one session of it{_some(target)}")
    if files.stat_path(target) is not None:
        return target
    if directory is None or not files.is_directory(directory):
        raise LogNotReadable(f"{target}: no such file, and no session folder at {directory}")
    found: dict[str, list[str]] = {}
    for path in list_logs(directory):
        if not isinstance(path, Problem):
            found.setdefault(session_id_of(path), []).append(path)
    matches = matching(target, found)
    if not matches:
        raise LogNotReadable(f"{target}: no such file, and no session in {directory} begins or ends with it")
    candidates = matches if len(matches) > 1 else found[matches[0]]
    if len(candidates) > 1:
        raise AmbiguousSession(target, tuple(candidates))
    return found[matches[0]][0]


def _some(folder: str) -> str:
    """Return a hint with some logs of a folder."""
    paths = sorted(path for path in list_logs(folder) if not isinstance(path, Problem))
    more = f" and {len(paths) - _SOME:,} more" if len(paths) > _SOME else ""
    return f": {', '.join(paths[:_SOME])}{more}" if paths else "; no session of ours is in it"
