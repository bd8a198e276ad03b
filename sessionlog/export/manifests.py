"""Manifests: which files of a destination are a machine's rows, now.

Each export writes a manifest of all files that hold, with the next number: readers take the newest one of each machine,
and no other file. One that is damaged, or lists what is not this machine's, counts neither for them nor for an export
(`engine.place_manifest`): the one before it holds, and what that lacks is written again. So files can be merged while
others read: what is not in the newest manifest stays for a day, for readers that have begun with an older one. Two
exports at once, of a copied ledger for example, may give one number twice: then both are the newest, and the next
export lists the files of both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby, pairwise

from sessionlog._version import __version__
from sessionlog.engine.place_manifest import FORMATS, NEWER, NUMBERS, Document, File, number_of, parse_manifest
from sessionlog.errors import NotExported, Problem
from sessionlog.export.destination import Destination
from sessionlog.ledger.parquet_schema import SCHEMA_VERSION, TABLES

MANIFEST = f"{FORMATS[NUMBERS]}/{SCHEMA_VERSION}"

KEPT = timedelta(days=1)
"""How long files and manifests are kept after a newer manifest has come without them."""

_TIME = "%Y-%m-%dT%H-%M-%SZ"
_LAST = 10**8 - 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """The newest manifest of a machine.

    Attributes:
        names: Its name; several after two exports at once, none before the first one.
        number: Counts up from 1.
        files: All files that hold.
        machine_name: The machine's name for people; None for none.
    """

    names: tuple[str, ...] = ()
    number: int = 0
    files: tuple[File, ...] = ()
    machine_name: str | None = None


class Manifests:
    """The manifests of one machine at a destination.

    Attributes:
        notes: Sentences about those that do not count.
    """

    def __init__(self, target: Destination, machine: str) -> None:
        self._target, self._machine = target, machine
        self._folder = f"{NUMBERS}/v={SCHEMA_VERSION}/machine={machine}"
        self.notes: list[str] = []

    def newest(self) -> Manifest:
        """Return the newest manifest.

        Raises:
            NotExported: It cannot be read, or is of a newer version.
        """
        for number, names in self._newest_first():
            documents = {name: found for name in names if (found := self._read(name)) is not None}
            if documents:
                listed = {file["path"]: file for found in documents.values() for file in found.files}
                return Manifest((*documents,), number, (*listed.values(),), [*documents.values()][-1].machine_name)
        return Manifest()

    def encode(
        self, before: Manifest, files: Sequence[File], machine_name: str | None, now: datetime
    ) -> tuple[Manifest, bytes]:
        """Return the next manifest, which lists all files that hold, and its bytes for `write`.

        Raises:
            NotExported: There is no next number.
        """
        number = before.number + 1
        if number > _LAST:
            raise NotExported(f"{self._shown(before.names[0])} has the last number that there is: remove it")
        document = {
            "schema": MANIFEST, "number": number, "machine_id": self._machine, "machine_name": machine_name,
            "written": f"{now:%Y-%m-%dT%H:%M:%SZ}", "sessionlog": __version__, "files": list(files),
        }  # fmt: skip
        data = json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace")
        name = f"{number:08d}-{now:{_TIME}}-{sha256(data).hexdigest()[:16]}.json"
        return Manifest((name,), number, tuple(files), machine_name), data

    def write(self, manifest: Manifest, data: bytes) -> None:
        """Write a manifest of `encode`."""
        self._target.write(self.path(manifest.names[0]), data)

    def path(self, name: str) -> str:
        """Return where a manifest is, below the destination."""
        return f"{self._folder}/{name}"

    def remove_old(self, now: datetime) -> int:
        """Remove manifests that had a successor a day ago, and before them the files that no later one lists.

        Files go first, so that what a kill has left is found again. Returns how many files there were.

        Raises:
            NotExported: They cannot be read or removed.
        """
        names = self._names()
        old = [name for name, after in pairwise(names) if _written(after) < now - KEPT]
        if not old:
            return 0
        newest = next((found for _, found in self._newest_first() if self._files_of(found)), ())
        old = [name for name in old if name < min(newest, default="")]
        kept = (self._files_of([name]) for name in names if name not in old)
        held = self._files_of(newest) | next(filter(None, kept), set())
        gone = self._files_of(old) - held
        for path in (*sorted(gone), *map(self.path, old)):
            self._target.remove(path)
        return len(gone)

    def _newest_first(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the numbers of manifests from the highest on, with the names that have it."""
        for number, names in groupby(reversed(self._names()), key=_number):
            yield number, tuple(sorted(names))

    def _names(self) -> list[str]:
        return [name for name in self._target.names(self._folder) if number_of(name) is not None]

    def _files_of(self, names: Iterable[str]) -> set[str]:
        return {file["path"] for name in names for file in getattr(self._read(name), "files", ())}

    def _read(self, name: str) -> Document | None:
        """Return a manifest; None, and a note, for one that does not count."""
        found = parse_manifest(self._target.read(self.path(name)), self._shown(name), self._machine)
        if isinstance(found, Document) and all(file["table"] in TABLES for file in found.files):
            return found
        if not isinstance(found, Problem) or found.kind == "unknown_version":
            raise NotExported(f"{self._shown(name)} is {NEWER}; without it, what it lists is written again")
        if (note := f"{found.path}: {found.detail}; what it listed is written again") not in self.notes:
            self.notes.append(note)
        return None

    def _shown(self, name: str) -> str:
        return f"{self._target.place}/{self.path(name)}"


def _number(name: str) -> int:
    return number_of(name) or 0


def _written(name: str) -> datetime:
    """Return when a manifest was written, by its name; a time that cannot be read is the present."""
    try:
        return datetime.strptime(name.partition("-")[2].rpartition("-")[0], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)
