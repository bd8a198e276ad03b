"""Write an HTML page to a file or to stdout. A file that is not one of these pages is never replaced unasked."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from sessionlog import files
from sessionlog.cli.output import fail, note
from sessionlog.render.html.page import GENERATOR
from sessionlog.render.numbers import size

_HEAD = 4096


def write_page(path: str, pieces: Iterable[str], *, force: bool) -> None:
    """Write a page whole or not at all, and note its size; `-` is stdout.

    An existing file that is no page of ours ends the command, unless `force` is given.
    """
    encoded = (piece.encode("utf-8", "backslashreplace") for piece in pieces)
    if path == "-":
        for piece in encoded:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    if files.stat_path(path) is not None and not force and not _is_page(path):
        fail(f"{path} is not a page of sessionlog: choose another name, or replace it with --force")
    try:
        files.replace_file(path, encoded)
    except OSError as error:
        fail(f"{path}: {files.reason_of(error)}")
    status = files.stat_path(path)
    note(f"wrote {path}, {size(0 if status is None else status.st_size)}")


def _is_page(path: str) -> bool:
    if files.is_directory(path):
        fail(f"{path} is a folder: name a file in it")
    with files.open_log(path) as file:
        return GENERATOR.encode("ascii") in file.read(_HEAD)
