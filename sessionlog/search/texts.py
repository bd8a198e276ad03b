"""Texts: read items from their logs again, or from the archive where a log has been deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from sessionlog.errors import LogNotReadable, MissingExtra, SessionLogError
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.schema import GONE
from sessionlog.search.candidates import Candidate
from sessionlog.search.segments import NO_TIME
from sessionlog.sources.fold_items import Item, ItemFold, ItemState
from sessionlog.sources.protocol import Env, Log, Resume, Source
from sessionlog.sources.registry import source_of

_PACKED = (".gz", ".zst")


@contextmanager
def open_log(path: str, source: str, *, is_gone: bool, env: Env) -> Iterator[Log | None]:
    """Yield the log at a path, or its copy in the archive if it is gone; None if that has none."""
    if not is_gone:
        yield Log(source=source_of(source), path=path)
        return
    from sessionlog.archive.find import find_entry, open_entry
    from sessionlog.archive.manifest import archive_folder

    folder, entry = archive_folder(env), None
    with suppress(SessionLogError):
        entry = find_entry(path, folder)
    if entry is None:
        yield None
        return
    with open_entry(entry, folder) as log:
        yield log


def read_items(source: Source, path: str, place: int) -> Iterator[Item]:
    """Yield the items of a log from the row at an offset on; of a log without offsets all of them."""
    fold = ItemFold(ItemState(own_session(source, path)))
    for one in source.read_steps(path, Resume(offset=place) if place else None):
        if not isinstance(one, Resume):
            yield from fold.take(*one)
    yield from fold.end()


def own_session(source: Source, path: str) -> str:
    """Return the session that a log begins with."""
    return next(iter(source.name_sessions(path)), "")


def read_texts(candidates: Sequence[Candidate], env: Env) -> Mapping[int, Item]:
    """Return the items of candidates by their numbers; those that their logs no longer have are left out."""
    logs: dict[int, list[Candidate]] = {}
    for one in candidates:
        logs.setdefault(one.log, []).append(one)
    found: dict[int, Item] = {}
    for wanted in logs.values():
        path, is_gone = path_of(wanted[0].path), wanted[0].missing == GONE
        with (
            suppress(LogNotReadable, MissingExtra, OSError),
            open_log(path, wanted[0].source, is_gone=is_gone, env=env) as log,
        ):
            if log is not None:
                found |= _read(log, wanted)
    return found


def _read(log: Log, wanted: Sequence[Candidate]) -> dict[int, Item]:
    waiting: dict[int, list[Candidate]] = {}
    for one in wanted:
        waiting.setdefault(one.digest, []).append(one)
    found: dict[int, Item] = {}
    for place in sorted({one.place for one in wanted}) if not log.path.endswith(_PACKED) else ():
        _read_from(log, place, waiting, found, only_row=True)
    if waiting:  # what a row means may depend on rows before it, and the log may have changed
        _read_from(log, 0, waiting, found, only_row=False)
    return found


def _read_from(
    log: Log, place: int, waiting: dict[int, list[Candidate]], found: dict[int, Item], *, only_row: bool
) -> None:
    """Read a log from a row on until nothing is wanted; with `only_row` only what begins in that row."""
    for item in read_items(log.source, log.path, place):
        if not waiting or (only_row and item.place > place):
            return
        if not (same := waiting.get(digest := item.digest)):
            continue
        time_ns = NO_TIME if item.time is None else item.time
        one = next((one for one in same if one.time_ns == time_ns and (not only_row or one.place == item.place)), None)
        if one is not None:
            found[one.number] = item
            same.remove(one)
        if not same:
            del waiting[digest]
