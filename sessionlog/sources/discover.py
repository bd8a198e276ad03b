"""Discovery: find the logs of all agents on this machine, or under a path, each log once and with its source.

Without a path each source lists the folders where its agent writes. The source of a log under a path is recognised by
content: neither folder nor file names decide it. An unreadable file and one of an unknown format are reported as
different problems.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby, islice

from sessionlog import files
from sessionlog.errors import LogLocked, LogNotReadable, MissingExtra, Problem, log_problem
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.sources.names import NATIVE
from sessionlog.sources.protocol import HEAD, Env, Log, Source
from sessionlog.sources.registry import all_sources, each_source, load_source

_CANDIDATE = re.compile(r"\.(jsonl|json|db|sqlite)(\.|\Z)|\.imported-")
_PACKED = re.compile(r"(?<=\.jsonl)\.(gz|zst)\Z")
_OURS = re.compile(
    rb'^(?:\xef\xbb\xbf)?\s*\{\s*"session_id"\s*:\s*"[^"\\]*"\s*,\s*"seq"\s*:\s*\d', re.MULTILINE | re.IGNORECASE
)
_BATCH = 1000
_Key = str | int

Recall = Callable[[str], str | None]
"""path → the id of its source, "" for no log, if it is unchanged since that was found out; else None."""


def discover(env: Env, sources: Sequence[Source]) -> Iterator[Log | Problem]:
    """Yield the logs in all places of these sources, every file once."""
    seen: set[_Key] = set()
    for source in sources:
        for place in source.locate(env):
            reason = files.why_absent(place)
            if reason is None:
                yield from _once(source, source.list_logs(place), seen)
            elif reason:
                yield Problem(path=place, kind="unreadable", detail=reason)


def find_logs(
    paths: Iterable[str], env: Env, sources: Sequence[Source] | None = None, recall: Recall = lambda _: None
) -> Iterator[Log | Problem]:
    """Yield the logs under files and folders, every file once; a file given by name always has a source.

    Problems of kind `unknown_format` and severity `info` name files in folders that no source recognises. What `recall`
    knows is not opened.
    """
    sources = sources or all_sources()
    chosen = {source.id for source in sources}
    seen: set[_Key] = set()
    folder_log = cache(recognise_folder)
    names: set[str] = set()  # where `x.jsonl` exists, `x.jsonl.gz` is a packed copy of it
    for path in paths:
        if not files.is_directory(path):
            log = _recalled(path, recall) or recognise(path)
            if isinstance(log, Problem) and log.kind == "unreadable":
                yield log
                continue
            found = load_source("native") if isinstance(log, Problem) else log.source
            if found.id in chosen and _first(path, names):
                yield from _once(found, [path], seen)
            continue
        for source in sources:
            if source.id not in NATIVE and not files.is_url(path):
                for place in _within(path, source.locate(env)):
                    yield from _once(source, source.list_logs(place), seen)
        walked = walk_files([path], lambda name: _CANDIDATE.search(name) is not None)
        for item in _identified(walked, recall, folder_log, seen, names):
            if isinstance(item, Problem):
                yield item
            elif item.source.id in chosen:
                yield from _once(item.source, [item.path], seen)


def _identified(
    found: Iterable[str | Problem],
    recall: Recall,
    folder_log: Callable[[str], Log | None],
    seen: set[_Key],
    names: set[str],
) -> Iterator[Log | Problem]:
    """Yield each file as a log or a problem; those that are not recalled are opened, remote ones in threads."""

    def recalled(path: str) -> Log | Problem | None:
        in_folder = _recalled(os.path.dirname(path), recall) if path.endswith(".json") else None
        return in_folder if isinstance(in_folder, Log) else _recalled(path, recall)

    def opened(path: str) -> Log | Problem:
        log = recognise(path)
        if isinstance(log, Problem) and path.endswith(".json"):
            return folder_log(os.path.dirname(path)) or log
        return log

    for batch in _batches(found):
        new = [one for one in batch if isinstance(one, Problem) or (_key(one) not in seen and _first(one, names))]
        known = {one: log for one in new if isinstance(one, str) and (log := recalled(one)) is not None}
        unknown = [one for one in new if isinstance(one, str) and one not in known]
        if unknown and files.is_url(unknown[0]):
            from sessionlog.files.remote import in_threads

            answers = in_threads(opened, unknown)
        else:
            answers = map(opened, unknown)
        for one in new:
            yield one if isinstance(one, Problem) else known[one] if one in known else next(answers)


def _batches(found: Iterable[str | Problem]) -> Iterator[list[str | Problem]]:
    """Yield local files one by one, remote ones many at once: waiting for each answer would take long."""
    for remote, items in groupby(found, lambda one: isinstance(one, str) and files.is_url(one)):
        while batch := list(islice(items, _BATCH if remote else 1)):
            yield batch


def _recalled(path: str, recall: Recall) -> Log | Problem | None:
    """The log or unknown file that `recall` knows; None for one that has to be opened."""
    known = recall(path)
    source = next((source for source in all_sources() if source.id == known), None) if known else None
    if source is not None:
        return Log(source=source, path=path)
    return _unknown(path) if known == "" else None


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
        return log_problem(path, error)
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


def _unknown(path: str) -> Problem:
    return Problem(path=path, kind="unknown_format", detail="no log of a known agent", severity="info")


def _first(path: str, names: set[str]) -> bool:
    name = _PACKED.sub("", files.absolute_path(path))
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
