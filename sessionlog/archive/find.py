"""Find the log that a user names: a live one first, else one of the archive, unpacked while it is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from msgspec import structs

from sessionlog import files
from sessionlog.archive.entry import Entry, member_of
from sessionlog.archive.manifest import archive_folder, read_manifest
from sessionlog.errors import AmbiguousSession, LogNotReadable, Problem
from sessionlog.events.envelope import Event
from sessionlog.sources.find import matching, resolve_log
from sessionlog.sources.protocol import Env, Log, Source
from sessionlog.sources.registry import all_sources


@contextmanager
def open_session(target: str, directory: str | None, env: Env) -> Iterator[tuple[Log, str | None, Entry | None]]:
    """Yield the log that a path or an id names, its session, and its entry if only the archive has the log.

    A log of the archive is unpacked into a private folder, which is removed when the context ends.

    Args:
        target: A path, or an id, its beginning or its end.
        directory: The folder of sessionlog's own sessions.
        env: The environment, which gives the folders of agents and of the archive.

    Raises:
        LogNotReadable: Nothing matches, or the match cannot be read.
        AmbiguousSession: Several sessions match.
    """
    folder = archive_folder(env)
    found = _find(target, directory, env, folder)
    if not isinstance(found, Entry):
        yield *found, None
        return
    with open_entry(found, folder) as log:
        yield log, _session_of(target, found), found


@contextmanager
def open_entry(entry: Entry, folder: str) -> Iterator[Log]:
    """Yield the log of an entry of the archive in a folder, unpacked into a private folder until the context ends.

    Raises:
        LogNotReadable: It cannot be unpacked.
    """
    from sessionlog.archive.pack import unpack

    place = files.temporary_directory("sessionlog-archive-")
    try:
        unpack(os.path.join(folder, entry.name), entry, place)
        for other in _subagents_of(entry, folder):
            with suppress(LogNotReadable):  # the session's own log can be read without it
                unpack(os.path.join(folder, other.name), other, place)
        path = os.path.join(place, *member_of(entry.path).split("/"))
        yield Log(source=_with_original_paths(_source_of(entry), place), path=path)
    finally:
        files.remove_directory(place)


def _subagents_of(entry: Entry, folder: str) -> Iterator[Entry]:
    """Yield the entries of its sub-agents' logs, which are read with it.

    The entry names them; without that, their session ids begin with its session's id and a `/`.
    """
    prefixes = tuple(f"{session}/" for session in entry.sessions)
    for other in read_manifest(folder).values():
        is_named = other.path in entry.subagent_logs or any(session.startswith(prefixes) for session in other.sessions)
        if other.source == entry.source and is_named:
            yield other


def _find(target: str, directory: str | None, env: Env, folder: str) -> tuple[Log, str | None] | Entry:
    try:
        return resolve_log(target, directory, env)
    except LogNotReadable:
        entry = None if files.stat_path(target) is not None else find_entry(target, folder)
        if entry is None:
            raise
        return entry


def find_entry(target: str, folder: str) -> Entry | None:
    """Return the latest entry of the log that a path or an id names; None where there is none.

    Raises:
        LogNotReadable: Other users can write to the archive.
        AmbiguousSession: Several sessions match.
    """
    if not os.path.isdir(folder):
        return None
    entries = list(read_manifest(folder).values())
    path = files.absolute_path(target)
    for entry in entries:
        if entry.path == path:
            return entry
    named: dict[str, list[Entry]] = {}
    for entry in entries:
        for session_id in entry.sessions:
            named.setdefault(session_id, []).append(entry)
    matches = matching(target, named)
    if len(matches) > 1:
        raise AmbiguousSession(target, tuple(matches))
    return min(named[matches[0]], key=lambda entry: _distance(entry, matches[0])) if matches else None


def _distance(entry: Entry, session_id: str) -> tuple[bool, int, str]:
    """Sort key by which a session's own log precedes its sub-agents', which lie deeper, and a store of all sessions."""
    return session_id not in entry.path, entry.path.count(os.sep), entry.path


def _session_of(target: str, entry: Entry) -> str | None:
    """The session that `target` names; None, the log's first one, where it is a path."""
    return None if files.absolute_path(target) == entry.path else matching(target, entry.sessions)[0]


def _source_of(entry: Entry) -> Source:
    source = next((source for source in all_sources() if source.id == entry.source), None)
    if source is None:
        raise LogNotReadable(f"{entry.path}: its source {entry.source!r} is not installed")
    return source


def _with_original_paths(source: Source, place: str) -> Source:
    """A source whose problems and working folders name the original's paths, not those of the temporary copy."""

    def read(path: str, session_id: str | None) -> Iterator[Event | Problem]:
        for item in source.read(path, session_id):
            yield _restore_path(item, place) if isinstance(item, Problem) else _restore_work_dir(item, place)

    return structs.replace(source, read=read)


def _restore_work_dir(event: Event, place: str) -> Event:
    """An event with the original's working folder: a few sources derive it from the path of the log."""
    work_dir = event.data.get("work_dir") if event.seq == 0 and isinstance(event.data, dict) else None
    if not isinstance(work_dir, str) or not work_dir.startswith(place):
        return event
    return replace(event, data={**event.data, "work_dir": work_dir.removeprefix(place)})


def _restore_path(problem: Problem, place: str) -> Problem:
    """A problem with the original's path."""
    return problem._replace(path=problem.path.removeprefix(place), detail=problem.detail.replace(place, ""))
