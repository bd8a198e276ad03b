"""Place: a folder or URL with what machines have exported: which files hold, and what is wrong with them.

Only files that the newest manifest of a machine lists are read. Whatever is wrong with a manifest or a file is a
problem that names it, and the others count: damaged and missing files, other formats, and newer versions.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from sessionlog import files
from sessionlog.engine.place_manifest import NEWER, Document, File, number_of, parse_manifest
from sessionlog.errors import Problem
from sessionlog.events.times import parse_time
from sessionlog.ledger.parquet_schema import SCHEMA_VERSION, TABLES

_MANIFEST = re.compile(r"manifest/v=(\d{1,9})/machine=([^/]+)/([^/]+\.json)", re.ASCII)
_DAY_NS = 86_400 * 10**9


class PlaceFile(NamedTuple):
    """An exported file.

    Attributes:
        path: As DuckDB opens it (see `pattern_of`).
        table: A name of `parquet_schema.TABLES`.
        machine: The id of the machine that has written it.
        shown: Its path for people, without a password.
        name: Its path below the place.
        sha256: Its digest, as the manifest lists it.
        rows: How many rows it has, by the manifest.
    """

    path: str
    table: str
    machine: str
    shown: str
    name: str
    sha256: str
    rows: int


class Place(NamedTuple):
    """What a place has.

    Attributes:
        files: The files that hold.
        names: The names of machines, by id; an id without a name for its own.
        problems: What is wrong with files and manifests.
        notes: Sentences about machines.
        system: The file system of a URL, by which DuckDB opens files; None for a local folder.
    """

    files: list[PlaceFile]
    names: dict[str, str]
    problems: list[Problem]
    notes: list[str]
    system: Any = None


class Folder(Protocol):
    """Where the files of a place are; names are relative, with `/`.

    Attributes:
        place: The folder, or the URL without a password.
        system: As in `Place`.
    """

    place: str
    system: Any

    def sizes(self, tops: Iterable[str]) -> dict[str, int]:
        """Return the size of every file in some folders of the place, by name."""

    def read(self, name: str) -> bytes:
        """Return a file's bytes; any error is one of reading it."""

    def path(self, name: str) -> str:
        """Return a file's path or URL."""


_GLOB = re.compile(r"([*?[])")


def pattern_of(path: str) -> str:
    """Return a path as DuckDB opens it, which reads names as patterns."""
    return _GLOB.sub(r"[\1]", path)


def open_folder(path: str) -> Folder:
    """Return the folder of a path, or of the URL of an open remote place.

    Raises:
        LogNotReadable: No remote place is open that the URL is in.
    """
    return _RemoteFolder(path) if files.is_url(path) else _LocalFolder(path)


def open_place(path: str, now_ns: int) -> Place:
    """List a place's files, with one listing.

    Args:
        path: A folder, or the URL of an open remote place.
        now_ns: The present, which manifests should not be after.

    Raises:
        LogNotReadable: No remote place is open that the URL is in.
    """
    folder = open_folder(path)
    sizes = folder.sizes(("manifest", *TABLES))
    place = Place([], {}, [], [], folder.system)
    for machine, names in _manifests(folder, sizes, place.problems).items():
        _read_machine(folder, sizes, machine, names, now_ns, place)
    return place


def _manifests(folder: Folder, sizes: Iterable[str], problems: list[Problem]) -> dict[str, dict[int, list[str]]]:
    """Return machine → number → the manifests with that number; those without a number have 0."""
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in sorted(sizes):
        parts = _MANIFEST.fullmatch(name)
        if parts is None:
            continue
        if int(parts[1]) != SCHEMA_VERSION:
            problems.append(_problem(folder, name, "unknown_version", f"it is {NEWER}"))
            continue
        found[parts[2]][number_of(parts[3]) or 0].append(name)
    return found


def _read_machine(
    folder: Folder, sizes: Mapping[str, int], machine: str, names: Mapping[int, list[str]], now_ns: int, place: Place
) -> None:
    """Add what a machine's newest manifest lists; a damaged one is a problem, and the one before it holds."""
    for number in sorted(names, reverse=True):
        read = [_read_manifest(folder, name, machine, place.problems) for name in names[number]]
        documents = [one for one in read if one is not None]
        if documents:
            break
    else:
        return
    titles = sorted({one.machine_name for one in documents if one.machine_name})
    title = " and ".join(titles) or machine
    place.names[machine] = titles[-1] if titles else machine
    if len(titles) > 1 or (number and len(documents) > 1):
        place.notes.append(
            f"{title} export with one id, {machine}, as a copied ledger does: what they have in common counts once"
        )
    late = [one.written for one in documents if (parse_time(one.written) or 0) > now_ns + _DAY_NS // 24]
    if late:
        place.notes.append(f"{title}: exported at {max(late)}, which is in the future: a clock is wrong, here or there")
    listed = {file["path"]: file for document in documents for file in document.files}
    place.files.extend(_checked(folder, sizes, machine, listed.values(), place.problems))


def _read_manifest(folder: Folder, name: str, machine: str, problems: list[Problem]) -> Document | None:
    """Return a manifest; None, and a problem, for one that cannot be used."""
    try:
        found = parse_manifest(folder.read(name), f"{folder.place}/{name}", machine)
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own, which share no base class
        found = _problem(folder, name, "unreadable", files.reason_of(error))
    if isinstance(found, Problem):
        problems.append(found)
        return None
    return found


def _checked(
    folder: Folder, sizes: Mapping[str, int], machine: str, listed: Iterable[File], problems: list[Problem]
) -> Iterator[PlaceFile]:
    """Yield the files that are as a manifest lists them; tables of a newer version are left out."""
    for file in listed:
        name, table, size = file["path"], file["table"], file["bytes"]
        if table not in TABLES:
            continue
        if file["schema"] != SCHEMA_VERSION:
            problems.append(_problem(folder, name, "unknown_version", f"it is {NEWER}"))
        elif name not in sizes:
            problems.append(_problem(folder, name, "unreadable", "it is missing; a manifest lists it"))
        elif sizes[name] != size:
            problems.append(
                _problem(folder, name, "unreadable", f"{sizes[name]} bytes, {size} were exported: copy it again")
            )
        else:
            yield PlaceFile(
                pattern_of(folder.path(name)), table, machine, f"{folder.place}/{name}", name, file["sha256"],
                file["rows"],
            )  # fmt: skip


def _problem(folder: Folder, name: str, kind: str, detail: str) -> Problem:
    return Problem(path=f"{folder.place}/{name}", kind=kind, detail=detail)


class _LocalFolder:
    """A folder of this machine."""

    system = None

    def __init__(self, path: str) -> None:
        self.place = path.rstrip("/") or path

    def sizes(self, tops: Iterable[str]) -> dict[str, int]:
        found = {}
        for top in tops:
            for folder, _, names in os.walk(self.path(top)):
                inside = os.path.relpath(folder, self.place).replace(os.sep, "/")
                for name in names:
                    status = files.stat_path(os.path.join(folder, name))
                    if status is not None:
                        found[f"{inside}/{name}"] = status.st_size
        return found

    def read(self, name: str) -> bytes:
        with files.open_log(self.path(name)) as file:
            return file.read()

    def path(self, name: str) -> str:
        return os.path.join(self.place, *name.split("/"))


class _RemoteFolder:
    """An open remote place (`files.remote.opened`), which has been listed already."""

    def __init__(self, url: str) -> None:
        from sessionlog.files.remote import connection_of

        self.place = url.rstrip("/")
        self.system, self._root, self._sizes = connection_of(self.place)

    def sizes(self, tops: Iterable[str]) -> dict[str, int]:
        kept = {*tops}
        return {name: size for name, size in self._sizes.items() if name.partition("/")[0] in kept}

    def read(self, name: str) -> bytes:
        data: bytes = self.system.cat_file(f"{self._root}/{name}")
        return data

    def path(self, name: str) -> str:
        return str(self.system.unstrip_protocol(f"{self._root}/{name}"))
