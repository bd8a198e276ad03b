"""Manifest: what a machine's list of exported files may have in it, for all who read one.

It comes from a folder or bucket that others write to, so nothing in it is trusted: it is decoded by type, and can only
name files of its own machine, as an export names them. One that does not fit does not count, for reports and for the
next export alike.
"""

from __future__ import annotations

import re
from typing import Annotated, TypedDict

from msgspec import Meta, Struct
from msgspec.json import decode

from sessionlog.errors import Problem
from sessionlog.ledger.parquet_schema import SCHEMA_VERSION

NUMBERS, EVENTS = "manifest", "events-manifest"
"""The folders of manifests: of the tables of numbers, and of events."""

FORMATS = {NUMBERS: "sessionlog.export.manifest", EVENTS: "sessionlog.export.events"}
"""Folder → what `schema` of its manifests begins with, before the version."""

NEWER = "of a newer sessionlog: update this one to read it"

_VERSION = re.compile(r"/(\d{1,9})", re.ASCII)
_NUMBERED = re.compile(r"(\d{8})-[^/]*\.json", re.ASCII)
_FILE = re.compile(
    r"(\w+)/v=\d{1,9}/month=(?:\d{4}-\d\d|__HIVE_DEFAULT_PARTITION__)/machine=([^/]+)/[0-9a-f]{32}\.parquet", re.ASCII
)

Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class File(TypedDict):
    """A file in a manifest; its path is below the place, with `/`."""

    path: str
    table: str
    rows: Count
    bytes: Count
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    schema: Count


class Document(Struct, frozen=True, kw_only=True):
    """A manifest.

    Attributes:
        machine_id: The machine that has written it.
        files: The files that it lists.
        machine_name: The machine's name for people; None for none.
        written: When, as RFC 3339.
    """

    machine_id: str
    files: list[File]
    machine_name: str | None = None
    written: str = ""


class _Head(Struct, frozen=True):
    schema: str


def parse_manifest(data: bytes, shown: str, machine: str, folder: str = NUMBERS) -> Document | Problem:
    """Return the content of a manifest; a problem for one that does not count.

    Args:
        data: Its bytes.
        shown: Its path for people.
        machine: The machine in whose folder it is.
        folder: One of `FORMATS`.
    """
    ignored = "it does not count" + ("; remove it, and all events are written again" if folder == EVENTS else "")
    try:
        schema = decode(data, type=_Head).schema
        version = _VERSION.fullmatch(schema.removeprefix(FORMATS[folder]))
        if version is not None and int(version[1]) > SCHEMA_VERSION:
            return Problem(path=shown, kind="unknown_version", detail=f"it is {NEWER}")
        document = decode(data, type=Document)
    except (ValueError, RecursionError):
        version = None
    if version is None or document.machine_id != machine:
        return Problem(path=shown, kind="unreadable", detail=f"the manifest is damaged: {ignored}")
    for file in document.files:
        if not _is_own(file, machine):
            detail = f"it lists {file['path']!r:.100}, no file of a place by its machine: {ignored}"
            return Problem(path=shown, kind="unreadable", detail=detail)
    return document


def number_of(name: str) -> int | None:
    """Return the number in the name of a manifest of numbers; None for another name."""
    found = _NUMBERED.fullmatch(name)
    return None if found is None else int(found[1])


def _is_own(file: File, machine: str) -> bool:
    parts = _FILE.fullmatch(file["path"])
    return parts is not None and parts[1] == file["table"] and parts[2] == machine
