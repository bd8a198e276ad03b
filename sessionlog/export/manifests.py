"""Manifests: which files of a destination are a machine's rows, now.

Each export writes a manifest of all files that hold, with the next number: readers take the newest one of each machine,
and no other file. So files can be merged while others read: what is not in the newest manifest stays for a day, for
readers that have begun with an older one. Two exports at once, of a copied ledger for example, may give one number
twice: then both are the newest, and the next export lists the files of both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Any

from sessionlog._version import __version__
from sessionlog.errors import NotExported
from sessionlog.export.destination import Destination
from sessionlog.fast_dataclasses import dataclass
from sessionlog.ledger.parquet_schema import SCHEMA_VERSION, TABLES

MANIFEST = "sessionlog.export.manifest/1"

KEPT = timedelta(days=1)
"""How long files and manifests are kept after a newer manifest has come without them."""

_TIME = "%Y-%m-%dT%H-%M-%SZ"

File = dict[str, Any]
"""A file in a manifest: path, table, rows, bytes, sha256, schema."""


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
    """The manifests of one machine at a destination."""

    def __init__(self, target: Destination, machine: str) -> None:
        self._target, self._machine = target, machine
        self._folder = f"manifest/v={SCHEMA_VERSION}/machine={machine}"

    def newest(self, known: Manifest) -> Manifest:
        """Return the newest manifest; `known`, if it still is, without reading it.

        Raises:
            NotExported: It cannot be read, is damaged, or of a newer version.
        """
        found = self._names()
        number = max(map(_number, found), default=0)
        names = tuple(name for name in found if _number(name) == number)
        if names == known.names:
            return known
        documents = [self._read(name) for name in names]
        listed = {file["path"]: file for document in documents for file in document["files"]}
        name = documents[-1].get("machine_name") if documents else None
        return Manifest(names, number, tuple(listed.values()), name)

    def encode(
        self, before: Manifest, files: Sequence[File], machine_name: str | None, now: datetime
    ) -> tuple[Manifest, bytes]:
        """Return the next manifest, which lists all files that hold, and its bytes for `write`."""
        number = before.number + 1
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
        old = [name for name in old if _number(name) < _number(names[-1])]
        removed = 0
        if old:
            kept = {names[len(old)], *(name for name in names if _number(name) == _number(names[-1]))}
            held = {file["path"] for name in kept for file in self._read(name)["files"]}
            gone = {file["path"] for name in old for file in self._read(name)["files"]} - held
            for path in (*sorted(gone), *map(self.path, old)):
                self._target.remove(path)
            removed = len(gone)
        return removed

    def _names(self) -> list[str]:
        found = self._target.names(self._folder)
        return [name for name in found if name.endswith(".json") and name.partition("-")[0].isdigit()]

    def _read(self, name: str) -> dict[str, Any]:
        try:
            document: dict[str, Any] = json.loads(self._target.read(self.path(name)))
            found = [file for file in document["files"] if file["table"] in TABLES and file["sha256"] and file["path"]]
            if document["schema"] == MANIFEST and len(found) == len(document["files"]):
                return document
        except (ValueError, KeyError, TypeError):
            pass
        what = f"{self._target.place}/{self.path(name)} is damaged, or of a newer sessionlog"
        raise NotExported(f"{what}; without it, what it lists is written again")


def _number(name: str) -> int:
    return int(name.partition("-")[0])


def _written(name: str) -> datetime:
    """Return when a manifest was written, by its name; a time that cannot be read is the present."""
    try:
        return datetime.strptime(name.partition("-")[2].rpartition("-")[0], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)
