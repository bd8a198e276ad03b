"""Discovery: find the logs of all agents on this machine, or under a path, each log once and with its source.

Without a path each source lists the folders where its agent writes. The source of a log under a path is recognised by
content: neither folder nor file names decide it. An unreadable file and one of an unknown format are reported as
different problems.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain

from sessionlog import files
from sessionlog.errors import LogLocked, LogNotReadable, MissingExtra, Problem
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.sources.protocol import HEAD, Env, Log, Source
from sessionlog.sources.registry import NATIVE, all_sources, each_source, load_source

_CANDIDATE = re.compile(r"\.(jsonl|json|db|sqlite)(\.|\Z)|\.imported-")
_PACKED = re.compile(r"(?<=\.jsonl)\.(gz|zst)\Z")
_OURS = re.compile(
    rb'^(?:\xef\xbb\xbf)?\s*\{\s*"session_id"\s*:\s*"[^"\\]*"\s*,\s*"seq"\s*:\s*\d', re.MULTILINE | re.IGNORECASE
)
_Key = str | int


def discover(env: Env, sources: Sequence[Source]) -> Iterator[Log | Problem]:
    """Yield the logs in all places of these sources, every file once."""
    seen: set[_Key] = set()
    for source in sources:
        for place in source.locate(env):
            missing = _missing(place)
            if missing is None:
                yield from _once(source, source.list_logs(place), seen)
            elif missing:
                yield Problem(path=place, kind="unreadable", detail=missing)


def find_logs(paths: Iterable[str], env: Env, sources: Sequence[Source] | None = None) -> Iterator[Log | Problem]:
    """Yield the logs under files and folders, every file once; a file given by name always has a source.

    Problems of kind `unknown_format` and severity `info` name files in folders that no source recognises.
    """
    sources = sources or all_sources()
    chosen = {source.id for source in sources}
    seen: set[_Key] = set()
    folder_log = cache(recognise_folder)
    names: set[str] = set()  # where `x.jsonl` exists, `x.jsonl.gz` is a packed copy of it
    for path in paths:
        if not os.path.isdir(path):
            log = recognise(path)
            if isinstance(log, Problem) and log.kind == "unreadable":
                yield log
                continue
            found = load_source("native") if isinstance(log, Problem) else log.source
            if found.id in chosen and _first(path, names):
                yield from _once(found, [path], seen)
            continue
        for source in sources:
            if source.id not in NATIVE:
                for place in _within(path, source.locate(env)):
                    yield from _once(source, source.list_logs(place), seen)
        for item in walk_files([path], lambda name: _CANDIDATE.search(name) is not None):
            if isinstance(item, Problem):
                yield item
            elif _key(item) not in seen and _first(item, names):
                log = recognise(item)
                if isinstance(log, Problem) and item.endswith(".json"):
                    log = folder_log(os.path.dirname(item)) or log
                if isinstance(log, Problem):
                    yield log
                elif log.source.id in chosen:
                    yield from _once(log.source, [log.path], seen)


def recognise(path: str) -> Log | Problem:
    """Return a file as a log of the source that recognises its content.

    A `.jsonl` file that cannot be read, or whose first line is not a JSON object, counts as native: the scan then
    reports its problems. Any other file that no source recognises is a `Problem`; so is a database that another program
    has locked, of kind `unreadable`.
    """
    native = load_source("native")
    ours = path.endswith(LOG_SUFFIXES)
    try:
        file, _ = open_unpacked(path)
        with file:
            head = file.read(HEAD)
    except (LogNotReadable, MissingExtra, OSError):
        return Log(source=native, path=path) if ours else _unknown(path)
    if ours and _OURS.search(head):
        return Log(source=native, path=path)
    try:
        for source in chain((s for s in each_source() if s.id not in NATIVE), (native,)):
            if _knows(source, path, head):
                return Log(source=source, path=path)
    except LogLocked as error:
        return Problem(path=path, kind="unreadable", detail=str(error).removeprefix(f"{path}: "))
    if ours and not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b'{"'):
        return Log(source=native, path=path)
    return _unknown(path)


def recognise_folder(path: str) -> Log | None:
    """Return the log that a folder of small files is; None for any other folder."""
    return next((Log(source=s, path=path) for s in all_sources() if s.id not in NATIVE and _knows(s, path, b"")), None)


def _knows(source: Source, path: str, head: bytes) -> bool:
    """Whether a source recognises a file; False if it fails, so that others are still tried.

    Raises:
        LogLocked: Another program holds the database's lock, which would block the other sources, too.
    """
    try:
        return source.recognises(path, head)
    except LogLocked:
        raise
    except Exception:  # noqa: BLE001 - a bug in another package must not stop the search
        return False


def _missing(place: str) -> str | None:
    """Return why a place cannot be listed; "" if it does not exist, None if it can."""
    try:
        os.stat(place)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    except OSError as error:
        return files.reason_of(error)
    return None


def _unknown(path: str) -> Problem:
    return Problem(path=path, kind="unknown_format", detail="no log of a known agent", severity="info")


def _first(path: str, names: set[str]) -> bool:
    name = _PACKED.sub("", os.path.abspath(path))
    if name in names:
        return False
    names.add(name)
    return True


def _within(path: str, places: Iterable[str]) -> Iterator[str]:
    """Yield the places inside a folder, or the folder itself if it is inside a place."""
    folder = files.real_path(path)
    for place in places:
        real = files.real_path(place)
        if real == folder or real.startswith(folder + os.sep):
            if files.stat_path(place) is not None:
                yield place
        elif folder.startswith(real + os.sep):
            yield path


def _once(source: Source, listed: Iterable[str | Problem], seen: set[_Key]) -> Iterator[Log | Problem]:
    """Yield logs that were not listed under another path before."""
    for item in listed:
        if isinstance(item, Problem):
            yield item
            continue
        key = _key(item)
        if key not in seen:
            seen.add(key)
            yield Log(source=source, path=item)


def _key(path: str) -> _Key:
    """Return a file's identity under any path as one number, because there may be very many; a missing file's path."""
    status = files.stat_path(path)
    return path if status is None else status.st_dev << 64 | status.st_ino
