"""Check a place: compare the files that machines have exported with the digests in their manifests.

Damaged and missing files cost data. A file that no manifest lists does not count, and is a note: an export that was
killed has left it, or something else has put it there. Files that only an older manifest lists are kept for a day, for
readers that have begun with it, and are no finding.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from sessionlog import files
from sessionlog.engine.place import Folder, Place, open_folder, open_place
from sessionlog.engine.place_manifest import EVENTS, FORMATS, Document, File, parse_manifest
from sessionlog.errors import Problem
from sessionlog.files.remote import in_threads
from sessionlog.ledger.parquet_schema import TABLES
from sessionlog.reader.check import FileCheck

_TOPS = (*FORMATS, *TABLES, "events")
_MANIFEST = re.compile(rf"({'|'.join(FORMATS)})/v=\d+/machine=([^/]+)/[^/]+-([0-9a-f]{{16}})\.json", re.ASCII)
_AGAIN = "restore it from a copy"


class _File(NamedTuple):
    """A file to compare: its name below the place, the first digits of its SHA-256, and its rows."""

    name: str
    digest: str
    rows: int = 0


def check_place(
    path: str, now_ns: int, *, progress: Callable[[int, int | None], None] | None = None
) -> Iterator[FileCheck]:
    """Yield what is wrong with each file of a place; the rows of a file are its `events`.

    Args:
        path: A folder, or the URL of an open remote place.
        now_ns: The present, which manifests should not be after.
        progress: Called with (files done, files in all).

    Raises:
        LogNotReadable: No remote place is open that the URL is in.
    """
    folder = open_folder(path)
    sizes = folder.sizes(_TOPS)
    place = open_place(path, now_ns)
    manifests = _read_manifests(folder, sizes)
    refused = [one for one in manifests.values() if isinstance(one, Problem)]
    listed = {name: one.files for name, one in manifests.items() if isinstance(one, Document)}
    events = {file["path"]: file for name in listed if name.startswith(EVENTS) for file in listed[name]}
    problems: dict[str, list[Problem]] = defaultdict(list)
    for problem in dict.fromkeys((*place.problems, *refused, *_wrong_sizes(folder, sizes, events))):
        problems[problem.path].append(problem)
    compared = [one for one in _with_digests(place, listed, events) if _shown(folder, one.name) not in problems]
    for done, (file, digest) in enumerate(in_threads(lambda file: (file, _digest(folder, file.name)), compared)):
        if progress is not None:
            progress(done, len(compared))
        wrong = _difference(file, digest)
        found = [_problem(folder, file.name, wrong)] if wrong else []
        yield _result(_shown(folder, file.name), found, file.rows)
    known = {*manifests, *(file["path"] for found in listed.values() for file in found)}
    for name in sorted(sizes.keys() - known):
        if _shown(folder, name) not in problems:
            detail = "no manifest lists it, so it does not count: a stopped export left it, or another program"
            problems[_shown(folder, name)].append(_note(_shown(folder, name), "foreign", detail))
    for sentence in place.notes:
        problems[folder.place].append(_note(folder.place, "odd_machine", sentence))
    for shown, found in problems.items():
        yield _result(shown, found)


def _read_manifests(folder: Folder, names: Iterable[str]) -> dict[str, Document | Problem]:
    """Return the content of each manifest of any version; a problem for one that does not count."""
    found: dict[str, Document | Problem] = {}
    for parts in filter(None, map(_MANIFEST.fullmatch, sorted(names))):
        name = parts[0]
        try:
            found[name] = parse_manifest(folder.read(name), _shown(folder, name), parts[2], parts[1])
        except Exception as error:  # noqa: BLE001 - each file system has errors of its own, which share no base class
            found[name] = _problem(folder, name, files.reason_of(error))
    return found


def _wrong_sizes(folder: Folder, sizes: Mapping[str, int], events: Mapping[str, File]) -> Iterator[Problem]:
    """Yield problems of files of events that are missing, or have another size than their manifest lists."""
    for name, file in events.items():
        if name not in sizes:
            yield _problem(folder, name, f"it is missing; a manifest lists it: {_AGAIN}")
        elif sizes[name] != file["bytes"]:
            yield _problem(folder, name, f"{sizes[name]} bytes, {file['bytes']} were exported: {_AGAIN}")


def _with_digests(place: Place, manifests: Iterable[str], events: Mapping[str, File]) -> Iterator[_File]:
    """Yield the manifests, which have digests in their names, and the files that hold."""
    for name in manifests:
        yield _File(name, _MANIFEST.sub(r"\3", name))
    for listed in place.files:
        yield _File(listed.name, listed.sha256, listed.rows)
    for name, file in events.items():
        yield _File(name, file["sha256"], file["rows"])


def _digest(folder: Folder, name: str) -> str | Exception:
    """Return the SHA-256 of a file, or why it cannot be read."""
    try:
        return sha256(folder.read(name)).hexdigest()
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own, which share no base class
        return error


def _difference(file: _File, digest: str | Exception) -> str:
    """Return what is wrong with a file; an empty text for nothing."""
    if isinstance(digest, Exception):
        return files.reason_of(digest)
    return "" if digest.startswith(file.digest) else f"it is not what was exported, by its SHA-256: {_AGAIN}"


def _result(path: str, found: Iterable[Problem], rows: int = 0) -> FileCheck:
    damage = tuple(problem for problem in found if problem.severity == "damage")
    notes = tuple(problem for problem in found if problem.severity != "damage")
    counts = dict(Counter(problem.kind for problem in found))
    return FileCheck(path=path, events=rows, damaged=len(damage), damage=damage, notes=notes, counts=counts)


def _problem(folder: Folder, name: str, detail: str) -> Problem:
    return Problem(path=_shown(folder, name), kind="unreadable", detail=detail)


def _note(path: str, kind: str, detail: str) -> Problem:
    return Problem(path=path, kind=kind, detail=detail, severity="info")


def _shown(folder: Folder, name: str) -> str:
    return f"{folder.place}/{name}"
