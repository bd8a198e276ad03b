"""Files of exported events: writing them, and merging many small ones of a month into few.

A merged file has of each event the latest revision that its parts have. The manifest of a merge lists all files that
hold. The manifests before it stay for a day, for readers that have begun with them: a row that is read twice is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import groupby

from sessionlog.engine.place_manifest import EVENTS, File, parse_manifest
from sessionlog.errors import NotExported, Problem
from sessionlog.export.destination import Destination
from sessionlog.export.event_parquet import MOST_ROWS, EventTable

VERSION = 1
MOST_PARTS = 24
"""Small files of a month that are left as they are: about a day of hourly exports."""

_NO_DATE = "__HIVE_DEFAULT_PARTITION__"


def write_files(target: Destination, machine: str, table: EventTable) -> Iterator[File]:
    """Write the rows of a table; yield each file's entry in a manifest."""
    for month, count, data in table.files():
        digest = sha256(data).hexdigest()
        path = f"events/v={VERSION}/month={month or _NO_DATE}/machine={machine}/{digest[:32]}.parquet"
        target.write(path, data)
        yield {
            "path": path, "table": "events", "rows": count, "bytes": len(data), "sha256": digest, "schema": VERSION,
        }  # fmt: skip


def merge_files(target: Destination, machine: str, held: Sequence[File], most_parts: int) -> tuple[list[File], int]:
    """Merge the small files of each month with more than `most_parts`; return all that hold then, and how many went.

    A month of which a file is missing or damaged stays as it is.
    """
    kept, merged = list[File](), 0
    for _, group in groupby(sorted(held, key=lambda file: file["path"]), key=_folder):
        files = list(group)
        small = [file for file in files if file["rows"] < MOST_ROWS // 2]
        if len(small) > most_parts:
            with suppress(NotExported), EventTable(machine) as table:
                for file in small:
                    table.add_file(_read(target, file))
                table.keep_latest()
                files = [*(file for file in files if file not in small), *write_files(target, machine, table)]
                merged += len(small)
        kept += files
    return kept, merged


def read_manifests(target: Destination, machine: str, names: Iterable[str]) -> list[File]:
    """Return the files that manifests of a machine list, each once.

    Raises:
        NotExported: One cannot be read, or does not count.
    """
    found: dict[str, File] = {}
    for name in names:
        document = parse_manifest(target.read(name), f"{target.place}/{name}", machine, EVENTS)
        if isinstance(document, Problem):
            raise NotExported(f"{document.path}: {document.detail}")
        found |= {file["path"]: file for file in document.files}
    return list(found.values())


def remove_manifests(target: Destination, machine: str, old: Collection[str], others: Iterable[str]) -> None:
    """Remove manifests that were replaced, and before them the files that no other one lists.

    Raises:
        NotExported: They cannot be read or removed.
    """
    held = {file["path"] for file in read_manifests(target, machine, others)}
    gone = {file["path"] for file in read_manifests(target, machine, old)} - held
    for path in (*sorted(gone), *sorted(old)):
        target.remove(path)


def _folder(file: File) -> str:
    return file["path"].rpartition("/")[0]


def _read(target: Destination, file: File) -> bytes:
    data = target.read(file["path"])
    if sha256(data).hexdigest() != file["sha256"]:
        raise NotExported(f"{target.place}/{file['path']} is damaged: its digest is not that of the manifest")
    return data
