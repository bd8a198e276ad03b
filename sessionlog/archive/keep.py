"""Keep: copy every closed log into the archive, once, and verify the copy; the originals are only read.

An unchanged log costs one stat per file. A log that has changed is kept again as a new version; the version before is
deleted only if the new one begins with all of it. An error in one log becomes a `Problem`, and the others go on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sessionlog import files
from sessionlog.archive.collect import last_written_ns, list_files
from sessionlog.archive.entry import Entry
from sessionlog.archive.manifest import add_entries, read_manifest
from sessionlog.archive.sweep import remove_replaced, sweep
from sessionlog.archive.writing import ToKeep, Written, detail_of, first_entry, write_packs
from sessionlog.errors import Problem, problems_dict
from sessionlog.events.times import format_time
from sessionlog.sources.discover import discover
from sessionlog.sources.protocol import Log, Source
from sessionlog.sources.registry import all_sources
from sessionlog.sources.spread import AT_ONCE, Spread, in_shares

SCHEMA = "sessionlog.archive/1"
DAY_NS = 86_400 * 1_000_000_000
_TOGETHER = 4096  # entries whose packs are synced and added to the manifest at once
_BYTES_TOGETHER = 64 << 20
CLOSED_NS = DAY_NS
"""By default a log is closed when nothing was written to it for a day."""


@dataclass(slots=True, kw_only=True)
class Archived:
    """What was done, or would be.

    Attributes:
        folder: The archive.
        kept: The entries that are new.
        unchanged: Logs that were in the archive already.
        open: Logs that are still written to.
        replaced: Entries that are no longer kept because a new one begins with them.
        problems: Why a log was not kept.
        dry_run: Nothing was written.
    """

    folder: str
    kept: list[Entry] = field(default_factory=list)
    unchanged: int = 0
    open: int = 0
    replaced: int = 0
    problems: list[Problem] = field(default_factory=list)
    dry_run: bool = False

    @property
    def bytes(self) -> int:
        """Bytes that are new, unpacked."""
        return sum(entry.bytes for entry in self.kept)

    @property
    def packed(self) -> int:
        """Size of the new packs in bytes."""
        return sum(entry.packed for entry in self.kept)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.archive/1`."""
        kept = [
            {
                "source": entry.source, "path": entry.path, "sessions": list(entry.sessions), "files": len(entry.kept),
                "bytes": entry.bytes, "packed_bytes": entry.packed, "version": entry.version,
            }
            for entry in self.kept
        ]  # fmt: skip
        return {
            "schema": SCHEMA, "folder": self.folder, "dry_run": self.dry_run, "archived": kept,
            "archived_logs": len(self.kept), "unchanged_logs": self.unchanged, "open_logs": self.open,
            "replaced_entries": self.replaced, "bytes": self.bytes, "packed_bytes": self.packed,
            "problems": problems_dict(len(self.problems), self.problems),
        }  # fmt: skip


def archive_logs(
    folder: str,
    env: Mapping[str, str],
    *,
    sources: Sequence[Source] | None = None,
    closed_ns: int = CLOSED_NS,
    now_ns: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
    spread: Spread = in_shares,
) -> Archived:
    """Copy all closed logs of this machine that are new or have changed into an archive.

    Args:
        folder: The archive; created if it does not exist.
        env: The environment, which gives the folders of agents.
        sources: Whose logs; all when None.
        closed_ns: Nanoseconds since the last write after which a log is closed.
        now_ns: The present; of the system's clock when None.
        dry_run: Write nothing; only return what would be done.
        progress: Called with (logs done, logs in all).
        spread: May give the logs to several processes.

    Raises:
        LogNotReadable: Other users can write to the archive's folder.
        MissingExtra: The compression module is not installed.
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    done = Archived(folder=folder, dry_run=dry_run)
    keeper = _Keeper(done, read_manifest(folder) if os.path.isdir(folder) else {}, now_ns)
    if not dry_run:
        sweep(folder, now_ns - DAY_NS)
    installed = all_sources()
    chosen = installed if sources is None else sources
    own = None if all(source in installed for source in chosen) else {source.id: source for source in chosen}
    listed = list(discover(env, chosen))[::-1]
    count = len(listed)
    write = partial(write_packs, folder=folder, moment=format_time(now_ns), sources=own)
    try:
        while listed:
            while listed and len(keeper.closed) < AT_ONCE:
                item = listed.pop()  # its memory is needed for what is kept
                if isinstance(item, Problem):
                    done.problems += [item] if item.severity == "damage" else []
                else:
                    keeper.look(item, closed_before_ns=now_ns - closed_ns)
                if progress is not None and len(listed) + len(keeper.closed) < count:
                    progress(count - len(listed) - len(keeper.closed), count)
            for left in keeper.keep(write, spread if own is None else in_shares):
                if progress is not None:
                    progress(count - len(listed) - left, count)
    finally:
        keeper.close()
    if keeper.has_replaced_shared and keeper.has_added_all:
        remove_replaced(folder)
    return done


class _Keeper:
    """Decides which logs are kept, and adds their packs to the archive.

    Attributes:
        closed: The logs to be kept next.
        has_replaced_shared: A pack in a shared file is not needed any more.
        has_added_all: Whatever was written has its line in the manifest.
    """

    def __init__(self, done: Archived, known: Mapping[tuple[str, str], Entry], now_ns: int) -> None:
        self.closed: list[ToKeep] = []
        self.has_replaced_shared, self.has_added_all = False, True
        self._done, self._known = done, known
        self._moment = format_time(now_ns)
        self._waiting: list[Written] = []
        self._bytes = 0  # of their packs

    def look(self, log: Log, *, closed_before_ns: int) -> None:
        """Decide whether a log is kept: if it is closed and new."""
        try:
            seen = list_files(log)
            before = self._known.get((log.source.id, os.path.abspath(log.path)))
            if before is not None and before.states == [file.state for file in seen if file.kind != "beside"]:
                self._done.unchanged += 1
            elif last_written_ns(seen) > closed_before_ns:
                self._done.open += 1
            elif self._done.dry_run:
                entry = first_entry(log, seen, self._moment)
                sizes = (replace(file, bytes=file.size, sha256="?") for file in entry.files)
                self._done.kept.append(replace(entry, files=tuple(sizes)))
            else:
                number = len(self.closed)
                self.closed.append(
                    ToKeep(number=number, source=log.source.id, path=log.path, seen=seen, before=before)
                )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - a source's mistake must not cost the logs of all others
            self._fail(log.path, detail_of(error, log.path, log.source.id))

    def _fail(self, path: str, detail: str) -> None:
        self._done.problems.append(Problem(path=path, line=0, offset=0, kind="not_archived", detail=detail))

    def keep(self, write: Callable[[Sequence[ToKeep]], list[Written]], spread: Spread) -> Iterator[int]:
        """Write the packs of the closed logs and add them; yield how many are left after each."""
        closed, self.closed = self.closed, []
        left, first = len(closed), len(self._done.kept)
        failed: list[Written] = []
        order: dict[str, int] = {}
        for _, results in spread(closed, [sum(file.size for file in one.seen) for one in closed], write):
            for one in results:
                if one.entry is None:
                    failed.append(one)
                else:
                    order[one.entry.path] = one.number
                    self._waiting.append(one)
                    self._bytes += one.entry.packed
                left -= 1
                yield left
            if len(self._waiting) >= _TOGETHER or self._bytes >= _BYTES_TOGETHER:
                self._add()
        self._add()
        for one in sorted(failed, key=lambda one: one.number):
            self._fail(one.path, one.detail)
        self._done.kept[first:] = sorted(self._done.kept[first:], key=lambda entry: order[entry.path])

    def _add(self) -> None:
        """Make the packs that were written a part of the archive, then delete those that they replace."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        folder = self._done.folder
        paths = {one.written: os.path.join(folder, one.entry.name) for one in waiting if one.entry is not None}
        try:
            files.replace_files([pair for pair in paths.items() if pair[0] != pair[1]])
            waiting = [one for one in waiting if self._has_pack(one, paths[one.written])]
            entries = [one.entry for one in waiting if one.entry is not None]
            add_entries(folder, entries)
        except Exception as error:  # noqa: BLE001 - entries that wait must not be lost without a word
            self.has_added_all = False
            for one in waiting:
                self._fail(one.path, files.reason_of(error))
            return
        self._done.kept += entries
        for one in waiting:
            if one.replaced is not None:
                self._done.replaced += 1
                if one.replaced.shared:
                    self.has_replaced_shared = True
                    continue
                try:
                    os.unlink(os.path.join(folder, one.replaced.name))
                except FileNotFoundError:
                    pass
                except OSError as error:
                    self._fail(one.path, files.reason_of(error))

    def _has_pack(self, one: Written, path: str) -> bool:
        """Whether a pack is there: one that was there before may have been replaced by another run."""
        if files.stat_path(path) is not None:
            return True
        self._fail(one.path, "another `sessionlog archive` has replaced its pack meanwhile; run it again")
        return False

    def close(self) -> None:
        """Add what was written."""
        self._add()
