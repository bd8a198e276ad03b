"""Write HTML pages to files or to stdout. A file that is not one of these pages is never replaced unasked."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo
from itertools import chain, count

from sessionlog import files
from sessionlog.cli.output import fail, note
from sessionlog.cli.reporting import scan_progress
from sessionlog.hashes import digest_of
from sessionlog.render.html.conversation import CUT
from sessionlog.render.html.page import GENERATOR
from sessionlog.render.numbers import size
from sessionlog.render.replay.blocks import Block, ResponseBlock
from sessionlog.render.replay.lines import Limits, View

_HEAD = 4096
_UNNAMED = re.compile(r"[^\w.-]+")
_LONGEST_NAME, _HASHED = 100, 12


def page_view(zone: tzinfo, now: datetime, *, full: bool = False) -> View:
    """Return the settings of a session's page; `full` cuts no text."""
    limits = Limits() if full else CUT
    return View(width=None, exact=False, limits=limits, zone=zone, now=now, home=os.path.expanduser("~"))


def file_name(session: str) -> str:
    """Return the name of a session's page in a folder; where the id has what a name cannot have, with a hash of it."""
    name = _UNNAMED.sub("-", session).strip(".-")[:_LONGEST_NAME]
    return (
        f"{name}.html" if name and name == session else f"{name or 'session'}-{digest_of(session).hex()[:_HASHED]}.html"
    )


def free_name(name: str, agent: str, taken: Iterable[str]) -> str:
    """Return the name of a page beside others in one folder: as it is, with the agent, or with a number.

    Args:
        name: By `file_name`.
        agent: The session's agent.
        taken: Names of other pages. Those that differ only in case are one file on many disks.
    """
    known = {one.casefold() for one in taken}
    numbered = (f"{number}-{agent}-{name}" for number in count(2))
    return next(one for one in chain((name, f"{agent}-{name}"), numbered) if one.casefold() not in known)


def write_page(path: str, pieces: Iterable[str], *, force: bool) -> None:
    """Write a page whole or not at all, and note its size; `-` is stdout.

    An existing file that is no page of ours ends the command, unless `force` is given.
    """
    if path == "-":
        for piece in _encoded(pieces):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    note(f"wrote {path}, {size(save_page(path, pieces, force=force))}")


def save_page(path: str, pieces: Iterable[str], *, force: bool) -> int:
    """Write a page into a file and return its bytes; see `write_page`."""
    exists = files.stat_path(path) is not None
    if not force and not (_is_page(path) if exists else not os.path.islink(path)):
        fail(f"{path} is not a page of sessionlog: choose another name, or replace it with --force")
    try:
        files.replace_file(path, _encoded(pieces))
    except OSError as error:
        hint = "; make the folder first" if isinstance(error, FileNotFoundError) else ""
        fail(f"{path}: {files.reason_of(error)}{hint}")
    status = files.stat_path(path)
    return 0 if status is None else status.st_size


def show_progress(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, and count their requests on stderr if that is a terminal."""
    requests = 0
    with scan_progress("reading the session, requests") as progress:
        for block in blocks:
            if progress is not None and isinstance(block, ResponseBlock):
                requests += 1
                progress(requests, None)
            yield block


def _encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode("utf-8", "backslashreplace") for piece in pieces)


def _is_page(path: str) -> bool:
    if files.is_directory(path):
        fail(f"{path} is a folder: name a file in it")
    with files.open_log(path) as file:
        return GENERATOR.encode("ascii") in file.read(_HEAD)
