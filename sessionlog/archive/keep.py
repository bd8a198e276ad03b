"""Keep: copy every closed log into the archive, once, and verify the copy; the originals are only read.

An unchanged log costs one stat per file. A log that has changed is kept again as a new version; the version before is
deleted only if the new one begins with all of it. An error in one log becomes a `Problem`, and the others go on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sessionlog import files
from sessionlog.archive.collect import SMALL_LOG, SeenFile, contents_of, last_written_ns, list_files
from sessionlog.archive.entry import Entry, KeptFile, version_of
from sessionlog.archive.manifest import add_entries, read_manifest
from sessionlog.archive.pack import Content, is_whole, write_pack, write_shared
from sessionlog.errors import LogNotReadable, MissingExtra, Problem, problems_dict
from sessionlog.events.times import format_time
from sessionlog.fast_dataclasses import dataclass, field, replace
from sessionlog.sources.discover import discover
from sessionlog.sources.protocol import Log, Source
from sessionlog.sources.registry import all_sources

SCHEMA = "sessionlog.archive/1"
DAY_NS = 86_400 * 1_000_000_000
_TOGETHER = 4096  # entries whose packs are synced and added to the manifest at once
_BYTES_TOGETHER = 64 << 20
_SHARING = 256  # small logs whose packs share a file
_BYTES_SHARING = 1 << 20
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
        replaced: Entries that were deleted because a new one begins with them.
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

    Raises:
        LogNotReadable: Other users can write to the archive's folder.
        MissingExtra: The compression module is not installed.
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    done = Archived(folder=folder, dry_run=dry_run)
    keeper = _Keeper(done, read_manifest(folder) if os.path.isdir(folder) else {}, now_ns)
    if not dry_run:
        _sweep(folder, now_ns - DAY_NS)
    listed = list(discover(env, all_sources() if sources is None else sources))[::-1]
    count = len(listed)
    try:
        while listed:
            item = listed.pop()  # its memory is needed for what is kept
            if isinstance(item, Problem):
                done.problems += [item] if item.severity == "damage" else []
            else:
                keeper.archive(item, closed_before_ns=now_ns - closed_ns)
            if progress is not None:
                progress(count - len(listed), count)
    finally:
        keeper.close()
    return done


def _sweep(folder: str, before_ns: int) -> None:
    """Remove the temporary files of runs that were killed."""
    for place, folders, names in os.walk(folder):
        for name in [name for name in (*folders, *names) if name.startswith(".")]:
            status = files.stat_path(os.path.join(place, name))
            if status is None or status.st_mtime_ns >= before_ns:
                continue
            if name in folders:
                files.remove_directory(os.path.join(place, name))
            else:
                with suppress(OSError):
                    os.unlink(os.path.join(place, name))


class _Keeper:
    """Archives one log after the other."""

    def __init__(self, done: Archived, known: Mapping[tuple[str, str], Entry], now_ns: int) -> None:
        self._done, self._known = done, known
        self._moment = format_time(now_ns)
        self._waiting: list[tuple[Log, Entry, Entry | None, str]] = []  # what it replaces, and the pack's path now
        self._bytes = 0  # of these packs
        self._small: list[tuple[Log, Entry, Entry | None, Sequence[Content]]] = []  # to be written into one file
        self._small_bytes = 0
        self._work = os.path.join(done.folder, f".work-{os.getpid()}")

    def archive(self, log: Log, *, closed_before_ns: int) -> None:
        """Keep a log if it is closed and new; any error but a missing extra becomes a `Problem`."""
        try:
            seen = list_files(log)
            path = os.path.abspath(log.path)
            path = seen[0].path if seen[0].path == path else path  # one text in memory
            before = self._known.get((log.source.id, path))
            if before is not None and before.states == [file.state for file in seen if file.kind != "beside"]:
                self._done.unchanged += 1
            elif last_written_ns(seen) > closed_before_ns:
                self._done.open += 1
            else:
                self._keep(log, path, seen, before)
        except MissingExtra:
            raise
        except (LogNotReadable, OSError) as error:
            self._fail(log, files.reason_of(error).removeprefix(f"{log.path}: "))
        except Exception as error:  # noqa: BLE001 - a source's mistake must not cost the logs of all others
            self._fail(log, f"{log.source.id}: {type(error).__name__}: {error}")

    def _fail(self, log: Log, detail: str) -> None:
        problem = Problem(path=log.path, line=0, offset=0, kind="not_archived", detail=detail)
        self._done.problems.append(problem)

    def _keep(self, log: Log, path: str, seen: Sequence[SeenFile], before: Entry | None) -> None:
        entry = Entry(
            source=log.source.id, path=path, version="", sessions=_sessions(log),
            files=tuple(_state_of(file) for file in seen), archived=self._moment,
            subagent_logs=tuple(map(os.path.abspath, log.source.subagent_logs(log.path))),
        )  # fmt: skip
        if self._done.dry_run:
            sizes = (replace(file, bytes=file.size, sha256="?") for file in entry.files)
            self._done.kept.append(replace(entry, files=tuple(sizes)))
            return
        try:
            contents = contents_of(seen, self._work)
            entry, is_longer = _described(entry, seen, contents, before)
            if before is not None and before.version == entry.version and self._is_there(before):  # a new state of it
                entry = replace(entry, packed=before.packed, shared=before.shared, offset=before.offset)
                self._wait(log, entry, None, os.path.join(self._done.folder, entry.name))
                return
            if is_longer and before is not None and before.version != entry.version and not before.shared:
                entry = replace(entry, replaces=(before.version,))
            replaced = before if entry.replaces else None
            if all(isinstance(content.given, bytes) for content in contents) and entry.bytes <= SMALL_LOG:
                self._share(log, entry, replaced, contents)
            else:
                self._write(log, entry, replaced, contents)
        finally:
            self._remove_work()

    def _is_there(self, entry: Entry) -> bool:
        path = os.path.join(self._done.folder, entry.name)
        return files.stat_path(path) is not None and is_whole(path, entry)

    def _write(self, log: Log, entry: Entry, replaced: Entry | None, contents: Sequence[Content]) -> None:
        path = os.path.join(self._done.folder, entry.name)
        written = path if self._is_there(entry) else write_pack(path, entry, contents)
        status = files.stat_path(written)
        self._wait(log, replace(entry, packed=0 if status is None else status.st_size), replaced, written)

    def _share(self, log: Log, entry: Entry, replaced: Entry | None, contents: Sequence[Content]) -> None:
        """Keep a small log with others of its source, whose packs share a file."""
        if self._small and self._small[0][1].source != entry.source:
            self._write_small()
        self._small.append((log, entry, replaced, contents))
        self._small_bytes += entry.bytes
        is_last = len(self._waiting) + len(self._small) >= _TOGETHER
        if len(self._small) >= _SHARING or self._small_bytes >= _BYTES_SHARING or is_last:
            self._write_small()

    def _write_small(self) -> None:
        """Write the small logs that wait: several into a file, a single one as any other log."""
        small, self._small, self._small_bytes = self._small, [], 0
        try:
            if len(small) == 1:
                self._write(*small[0])
            elif small:
                kept = [(entry, contents) for _, entry, _, contents in small]
                written, entries = write_shared(self._done.folder, kept)
                for (log, _, replaced, _), entry in zip(small, entries, strict=True):
                    self._wait(log, entry, replaced, written)
        except MissingExtra:
            raise
        except Exception as error:  # noqa: BLE001 - as in `_add`
            for log, *_ in small:
                self._fail(log, files.reason_of(error))

    def _wait(self, log: Log, entry: Entry, replaced: Entry | None, written: str) -> None:
        self._waiting.append((log, entry, replaced, written))
        self._bytes += entry.packed
        if len(self._waiting) >= _TOGETHER or self._bytes >= _BYTES_TOGETHER:
            self._add()

    def _add(self) -> None:
        """Make the packs that were written a part of the archive, then delete those that they replace."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        folder = self._done.folder
        paths = {written: os.path.join(folder, entry.name) for _, entry, _, written in waiting}
        try:
            files.replace_files([pair for pair in paths.items() if pair[0] != pair[1]])
            add_entries(folder, [entry for _, entry, _, _ in waiting])
        except Exception as error:  # noqa: BLE001 - entries that wait must not be lost without a word
            for log, _, _, _ in waiting:
                self._fail(log, files.reason_of(error))
            return
        for log, entry, replaced, _ in waiting:
            self._done.kept.append(entry)
            if replaced is not None:
                self._done.replaced += 1
                try:
                    os.unlink(os.path.join(folder, replaced.name))
                except FileNotFoundError:
                    pass
                except OSError as error:
                    self._fail(log, files.reason_of(error))

    def close(self) -> None:
        """Add what was written, and remove the folder of temporary files."""
        self._write_small()
        self._add()
        self._remove_work()

    def _remove_work(self) -> None:
        if files.stat_path(self._work) is not None:
            files.remove_directory(self._work)


def _sessions(log: Log) -> tuple[str, ...]:
    return tuple(map(str, log.source.name_sessions(log.path)))


def _state_of(file: SeenFile) -> KeptFile:
    return KeptFile(
        path=file.path, size=file.size, mtime_ns=file.mtime_ns, ctime_ns=file.ctime_ns, beside=file.kind == "beside"
    )  # fmt: skip


def _described(
    entry: Entry, seen: Sequence[SeenFile], contents: Iterable[Content], before: Entry | None
) -> tuple[Entry, bool]:
    """Return the entry with the hashes of what is kept, and whether it begins with all of the version before."""
    earlier = {} if before is None else {file.path: file for file in before.kept if not file.beside}
    states = {file.path: _state_of(file) for file in seen}
    kept: dict[str, KeptFile] = {}
    for content in contents:
        old = earlier.get(content.path)
        sha256, begun = content.hashed(0 if old is None else old.bytes)
        kept[content.path] = replace(states[content.path], bytes=content.length, sha256=sha256)
        if old is not None and old.sha256 == begun:
            del earlier[content.path]
    version = version_of(entry.source, entry.path, {path: file.sha256 for path, file in kept.items()})
    return replace(entry, version=version, files=tuple((states | kept).values())), not earlier
