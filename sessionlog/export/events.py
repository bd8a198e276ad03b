"""Export of events to parquet: prompts, answers and tool calls, beside the numbers that `export_parquet` writes.

Events hold texts, so they are written only where that is asked for, and without the secrets that are known by their
shapes. Each export writes files of new and changed events, then a manifest that lists them. A changed event is written
again with a higher revision; one that its log has no more, as a tombstone. Manifests of events are in a folder of their
own, so that readers of numbers do not open texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from time import time_ns
from typing import TYPE_CHECKING, Any

import orjson

from sessionlog import files
from sessionlog._version import __version__
from sessionlog.analytics.sql.event_logs import EventSelection, choose_logs
from sessionlog.engine.place_manifest import EVENTS, FORMATS, File
from sessionlog.engine.shares import map_shares
from sessionlog.errors import MissingExtra, NotExported, Problem
from sessionlog.export.destination import Destination, open_destination
from sessionlog.export.event_state import WIDTH, EventState, Session
from sessionlog.export.manifests import KEPT
from sessionlog.export.state_database import state_path
from sessionlog.hashes import blake2b, hash_name
from sessionlog.messages.json_value import valid_text
from sessionlog.places import state_home
from sessionlog.sources.registry import source_of
from sessionlog.transcript.event_files import EventFile, LogPart, Wanted, write_rows
from sessionlog.transcript.event_rows import COLUMNS

if TYPE_CHECKING:
    from sessionlog.export.event_parquet import EventTable

VERSION = 1
MANIFEST = f"{FORMATS[EVENTS]}/{VERSION}"

_TEXTS = frozenset({"text", "data", "error"})
_NAMED = 5
_ZERO = bytes(WIDTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedEvents:
    """What an export of events has written.

    Attributes:
        events: Events, new and changed.
        deleted: Tombstones.
        unchanged_logs: Logs that are as they were at the last export.
        merged: Files that were replaced by merged ones.
        files: Files of new events, without the manifest.
        bytes: Their size.
        has_texts: Texts and payloads were written.
        manifest: The name of the manifest; empty if nothing was written.
        problem_count: Problems of the logs.
        problems: The first of them.
        notes: Sentences about what could not be merged or removed.
    """

    events: int
    deleted: int
    unchanged_logs: int
    merged: int
    files: int
    bytes: int
    has_texts: bool
    manifest: str
    problem_count: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in ("problem_count", "problems")}
        return {**fields, "problems": {"count": self.problem_count, "first": [str(one) for one in self.problems]}}


def export_events(
    destination: str,
    selection: EventSelection,
    machine: str,
    *,
    has_texts: bool = True,
    compact: bool = False,
    dry_run: bool = False,
) -> ExportedEvents:
    """Write new and changed events to a folder, or to a URL of a file system that fsspec knows.

    Args:
        destination: As in `export_parquet`.
        selection: Which events; those that were exported before stay.
        machine: The machine's id, as `export_parquet` returns it.
        has_texts: Write texts, payloads and errors, too.
        compact: Merge small files now; otherwise where a month has more than 24.
        dry_run: Count what would be written, and write nothing.

    Raises:
        MissingExtra: The extra `parquet`, or for a URL `remote`, is not installed.
        NotExported: The destination or the state cannot be read or written.
        InvalidQuery: A pattern of sources matches no agent.
    """
    if find_spec("duckdb") is None:
        raise MissingExtra("export to parquet needs: pip install 'sessionlog[parquet]'")
    from sessionlog.export.event_files import MOST_PARTS
    from sessionlog.export.event_parquet import Error, EventTable

    target = open_destination(destination)
    path = state_path(state_home(selection.env), f"events {has_texts} {machine} {target.place}")
    is_left = not dry_run or files.exists(path)  # a dry run of a copied ledger has another machine each time
    try:
        with EventState(path) as state, EventTable(machine) as table:
            run = _Run(target, machine, state, table, has_texts=has_texts, is_dry=dry_run)
            return run.write(selection, 1 if compact else MOST_PARTS)
    except Error as error:
        raise NotExported(f"the events cannot be written as parquet: {str(error).splitlines()[0]}") from error
    finally:
        if not is_left:
            files.remove_file(path)


class _Run:
    """One export."""

    def __init__(
        self, target: Destination, machine: str, state: EventState, table: EventTable, *, has_texts: bool, is_dry: bool
    ) -> None:
        self._target, self._machine, self._state, self._table = target, machine, state, table
        self._has_texts, self._is_dry = has_texts, is_dry
        self._folder = f"{EVENTS}/v={VERSION}/machine={machine}"
        self._revision = time_ns() // 1000
        self._open: dict[Session, bytearray] = {}
        self._counts: dict[Session, int] = {}
        self._events = self._deleted = 0
        self._notes: list[str] = []
        self._unread: set[int] = set()
        """Keys of logs of which something could not be read or seen, so that the next export reads them again."""

    def write(self, selection: EventSelection, most_parts: int) -> ExportedEvents:
        """Write files and the manifest, and return what was written; months with more small files are merged."""
        from sessionlog.export.event_files import MOST_PARTS, write_files

        self._state.begin({name for name in self._target.names(self._folder) if name.endswith(".json")})
        chosen = choose_logs(selection)
        what = f"{selection.window} {selection.projects}"
        identities = [f"{_identity(part)} {part.sessions} {what}" for part in chosen.parts]
        changed = [
            index
            for index, part in enumerate(chosen.parts)
            if self._state.identity(_key(part.path)) != identities[index]
        ]
        parts = [chosen.parts[index] for index in changed]
        count, problems = self._read(parts, [chosen.sizes[index] for index in changed], selection)
        if selection.window is None and not selection.projects:
            self._end_sessions(is_listed=all(problem.kind != "unreadable" for problem in chosen.problems))
        for session, hashes in self._open.items():
            self._state.put(session, bytes(hashes))
        for index in changed:
            key = _key(chosen.parts[index].path)
            if key not in self._unread:
                self._state.put_identity(key, identities[index])
        written, merged, replaced, manifest = list[File](), 0, list[str](), ""
        if not self._is_dry:
            written = list(write_files(self._target, self._machine, self._table))
            listed = written
            if written or most_parts < MOST_PARTS:
                listed, merged, replaced = self._merge(written, most_parts)
            manifest = self._write_manifest(listed) if listed else ""
            self._remove_old()
            self._state.commit(manifest, replaced, int(datetime.now(UTC).timestamp()))
        return ExportedEvents(
            events=self._events, deleted=self._deleted, unchanged_logs=len(chosen.parts) - len(parts),
            merged=merged, files=len(written), bytes=sum(file["bytes"] for file in written), has_texts=self._has_texts,
            manifest=f"{self._folder}/{manifest}" if manifest else "", problem_count=count + len(chosen.problems),
            problems=(*chosen.problems, *problems)[:_NAMED], notes=tuple(self._notes),
        )  # fmt: skip

    def _read(
        self, parts: Sequence[LogPart], sizes: Sequence[int], selection: EventSelection
    ) -> tuple[int, list[Problem]]:
        """Add the rows of logs that are new or have changed; return the number of problems and the first of them."""
        window = selection.window
        wanted = Wanted(
            columns=tuple(name for name in COLUMNS if self._has_texts or name not in _TEXTS),
            start_ns=window.start_ns if window is not None else None,
            end_ns=window.end_ns if window is not None else None,
            projects=tuple(pattern.lower() for pattern in selection.projects),
            redact=True,
        )
        count, problems, done = 0, list[Problem](), 0
        write = partial(write_rows, wanted=wanted, folder=self._table.folder)
        for logs, result in map_shares(parts, sizes, write, jobs=selection.jobs):
            for file in result.files:
                self._table.add(self._changes(file))
            count += result.problem_count
            problems += result.problems
            self._unread.update(map(_key, result.unread))
            done += logs
            if selection.progress is not None:
                selection.progress(done, len(parts))
        return count, problems

    def _changes(self, file: EventFile) -> Iterator[dict[str, Any]]:
        """Yield the rows of a file that the destination does not have as they are; the file is removed."""
        with files.open_log(file.path) as lines:
            for line in lines:
                row = orjson.loads(line)
                log = _key(row.pop("log"))
                session, position = (log, row["session"]), row["position"]
                hashes = self._hashes(session)
                self._counts[session] = max(self._counts[session], position + 1)
                if len(hashes) < (position + 1) * WIDTH:
                    hashes.extend(_ZERO * (position + 1 - len(hashes) // WIDTH))
                place = slice(position * WIDTH, (position + 1) * WIDTH)
                state = blake2b(line, digest_size=WIDTH).digest()
                if hashes[place] != state:
                    hashes[place] = state
                    self._events += 1
                    yield {"log_key": log, "revision": self._revision, "deleted": False, **row}
        files.remove_file(file.path)

    def _hashes(self, session: Session) -> bytearray:
        if session not in self._open:
            self._open[session], self._counts[session] = self._state.hashes(session), 0
        return self._open[session]

    def _end_sessions(self, *, is_listed: bool) -> None:
        """Write tombstones for events that a rewritten log has no more; not for what may only be out of reach."""
        for session, hashes in self._open.items():
            end = self._counts[session] * WIDTH
            if not is_listed and len(hashes) > end:  # a sub-agent's log may be where it cannot be seen
                self._unread.add(session[0])
            if session[0] not in self._unread:
                self._table.add(self._tombstones(session, hashes))
                del hashes[end:]

    def _tombstones(self, session: Session, hashes: bytearray) -> Iterable[dict[str, Any]]:
        for position in range(self._counts[session], len(hashes) // WIDTH):
            self._deleted += 1
            yield {
                "log_key": session[0], "session": session[1], "position": position, "revision": self._revision,
                "deleted": True,
            }  # fmt: skip

    def _merge(self, written: Sequence[File], most_parts: int) -> tuple[list[File], int, list[str]]:
        """Return what the manifest lists: the new files, or all that hold after a merge, which replaces manifests."""
        from sessionlog.export.event_files import merge_files, read_manifests

        names = self._state.manifests()
        try:
            before = read_manifests(self._target, self._machine, map(self._path, names))
        except NotExported as error:
            self._notes.append(f"not merged: {error}")
            return list(written), 0, []
        paths = {file["path"] for file in written}
        held, merged = merge_files(
            self._target, self._machine, [*(file for file in before if file["path"] not in paths), *written], most_parts
        )
        return (held, merged, names) if merged else (list(written), 0, [])

    def _remove_old(self) -> None:
        """Remove manifests that were replaced a day ago; what cannot be removed stays for the next export."""
        old = self._state.replaced(int((datetime.now(UTC) - KEPT).timestamp()))
        if not old:
            return
        from sessionlog.export.event_files import remove_manifests

        found = [name for name in self._target.names(self._folder) if name.endswith(".json")]
        there = [self._path(name) for name in old if name in found]
        others = [self._path(name) for name in found if name not in old]
        try:
            remove_manifests(self._target, self._machine, there, others)
            self._state.forget_replaced(old)
        except NotExported as error:
            self._notes.append(f"old files are not removed: {error}")

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _write_manifest(self, written: Sequence[File]) -> str:
        now = datetime.now(UTC)
        document = {
            "schema": MANIFEST, "machine_id": self._machine, "written": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "sessionlog": __version__, "files": list(written),
        }  # fmt: skip
        data = json.dumps(document, indent=1).encode()
        name = f"{now:%Y-%m-%dT%H-%M-%SZ}-{sha256(data).hexdigest()[:16]}.json"
        self._target.write(f"{self._folder}/{name}", data)
        return name


def _key(path: str) -> int:
    return hash_name(valid_text(path), b"log")


def _identity(part: LogPart) -> str:
    """Return the identity of a log as it is: sizes and times of its files."""
    source = source_of(part.source)
    paths = (part.path, *source.subagent_logs(part.path), *source.sidecars(part.path), f"{part.path}-wal")
    found = (files.stat_path(path) for path in paths)
    return " ".join(f"{one.st_ino}:{one.st_size}:{one.st_mtime_ns}" if one is not None else "-" for one in found)
