"""Writing: the packs of some logs, under temporary names; one process or several do this, one adds them to the archive.

A log that is small shares a file with the others of its source that are written together. An error of one log is its
own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sessionlog import files
from sessionlog.archive.collect import SMALL_LOG, SeenFile, contents_of
from sessionlog.archive.entry import Entry, KeptFile, version_of
from sessionlog.archive.pack import Content, is_whole, write_pack, write_shared
from sessionlog.errors import LogNotReadable, MissingExtra
from sessionlog.sources.protocol import Log, Source
from sessionlog.sources.registry import source_of

_SHARING = 256  # small logs whose packs share a file
_BYTES_SHARING = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ToKeep:
    """A log to be kept.

    Attributes:
        number: Among the logs that are kept together.
        source: Id of its source.
        path: Its path as it was listed.
        seen: Its files.
        before: The entry that the archive has of it.
    """

    number: int
    source: str
    path: str
    seen: tuple[SeenFile, ...]
    before: Entry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a log.

    Attributes:
        number: That of `ToKeep`.
        path: The log.
        entry: Its entry; None if it could not be kept.
        replaced: The entry whose pack is not needed afterwards.
        written: The path of the file that holds its pack now.
        detail: Why it was not kept.
    """

    number: int
    path: str
    entry: Entry | None = None
    replaced: Entry | None = None
    written: str = ""
    detail: str = ""


def first_entry(log: Log, seen: Sequence[SeenFile], moment: str) -> Entry:
    """Return the entry of a log that has not been read."""
    path = os.path.abspath(log.path)
    return Entry(
        source=log.source.id,
        path=seen[0].path if seen[0].path == path else path,  # one text in memory
        version="",
        sessions=tuple(map(str, log.source.name_sessions(log.path))),
        files=tuple(map(_state_of, seen)),
        archived=moment,
        subagent_logs=tuple(map(os.path.abspath, log.source.subagent_logs(log.path))),
    )


def write_packs(
    logs: Sequence[ToKeep], *, folder: str, moment: str, sources: Mapping[str, Source] | None = None
) -> list[Written]:
    """Write the packs of some logs into an archive's folder; return what became of each, in any order.

    Args:
        logs: The logs.
        folder: The archive.
        moment: When they are archived.
        sources: Their sources by id; None: those that are installed.

    Raises:
        MissingExtra: The compression module is not installed.
    """
    writer = _Writer(folder, moment)
    for log in logs:
        writer.write(log, source_of(log.source) if sources is None else sources[log.source])
    writer.write_small()
    return writer.done


class _Writer:
    """Writes one log after the other."""

    def __init__(self, folder: str, moment: str) -> None:
        self._folder, self._moment = folder, moment
        self.done: list[Written] = []
        self._small: list[tuple[ToKeep, Entry, Sequence[Content]]] = []  # to be written into one file
        self._small_bytes = 0
        self._work = os.path.join(folder, f".work-{os.getpid()}")

    def write(self, log: ToKeep, source: Source) -> None:
        """Write the pack of a log; any error but a missing extra is its result."""
        try:
            self._write(log, first_entry(Log(source=source, path=log.path), log.seen, self._moment))
        except MissingExtra:
            raise
        except Exception as error:  # noqa: BLE001 - a source's mistake must not cost the logs of all others
            self._fail(log, detail_of(error, log.path, log.source))
        finally:
            if files.stat_path(self._work) is not None:
                files.remove_directory(self._work)

    def _fail(self, log: ToKeep, detail: str) -> None:
        self.done.append(Written(number=log.number, path=log.path, detail=detail))

    def _write(self, log: ToKeep, entry: Entry) -> None:
        contents, before = contents_of(log.seen, self._work), log.before
        entry, is_longer = _described(entry, log.seen, contents, before)
        if before is not None and before.version == entry.version and self._is_there(before):  # a new state of it
            entry = replace(entry, packed=before.packed, shared=before.shared, offset=before.offset)
            self._add(log, entry, os.path.join(self._folder, entry.name))
            return
        if is_longer and before is not None and before.version != entry.version:
            entry = replace(entry, replaces=(before.version,))
        if all(isinstance(content.given, bytes) for content in contents) and entry.bytes <= SMALL_LOG:
            self._share(log, entry, contents)
        else:
            self._write_alone(log, entry, contents)

    def _is_there(self, entry: Entry) -> bool:
        path = os.path.join(self._folder, entry.name)
        return files.stat_path(path) is not None and is_whole(path, entry)

    def _write_alone(self, log: ToKeep, entry: Entry, contents: Sequence[Content]) -> None:
        path = os.path.join(self._folder, entry.name)
        written = path if self._is_there(entry) else write_pack(path, entry, contents)
        status = files.stat_path(written)
        self._add(log, replace(entry, packed=0 if status is None else status.st_size), written)

    def _share(self, log: ToKeep, entry: Entry, contents: Sequence[Content]) -> None:
        if self._small and self._small[0][1].source != entry.source:
            self.write_small()
        self._small.append((log, entry, contents))
        self._small_bytes += entry.bytes
        if len(self._small) >= _SHARING or self._small_bytes >= _BYTES_SHARING:
            self.write_small()

    def write_small(self) -> None:
        """Write the small logs that wait: several into a file, a single one as any other log."""
        small, self._small, self._small_bytes = self._small, [], 0
        try:
            if len(small) == 1:
                self._write_alone(*small[0])
            elif small:
                written, entries = write_shared(self._folder, [(entry, contents) for _, entry, contents in small])
                for (log, _, _), entry in zip(small, entries, strict=True):
                    self._add(log, entry, written)
        except MissingExtra:
            raise
        except Exception as error:  # noqa: BLE001 - as in `write`
            for log, _, _ in small:
                self._fail(log, detail_of(error, log.path, log.source))

    def _add(self, log: ToKeep, entry: Entry, written: str) -> None:
        replaced = log.before if entry.replaces else None
        self.done.append(
            Written(number=log.number, path=log.path, entry=entry, replaced=replaced, written=written)
        )  # fmt: skip


def detail_of(error: Exception, path: str, source: str) -> str:
    """Return why a log was not kept."""
    if isinstance(error, LogNotReadable | OSError):
        return files.reason_of(error).removeprefix(f"{path}: ")
    return f"{source}: {type(error).__name__}: {error}"


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
