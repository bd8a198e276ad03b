"""Targets that read an agent's home: each source, all commands, and the ledger.

An input names a file of a home by its first two bytes; the rest is what the file holds then. Before the next input it
is as it was.
"""

import json
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.errors import LedgerUnusable, LogNotReadable, MissingExtra, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payload_json import payload
from sessionlog.ledger.book import Book
from sessionlog.ledger.verify import verify_ledger
from sessionlog.pricing.book import PriceBook
from sessionlog.reader.unpack import open_unpacked
from sessionlog.sources.discover import recognise
from sessionlog.sources.names import OURS
from sessionlog.sources.protocol import HEAD, LogScan, Source
from sessionlog.sources.registry import load_source
from tests.reliability.fuzz.laws import Inputs, Target, demand
from tests.reliability.fuzz.parsers import check_counts, check_problem
from tests.security.commands import command_lines, judge, run
from tests.sources.homes import build_home, cases_of, environment

HEADER = 2
_LARGEST = 1 << 16
_LONG_AGO = 1_700_000_000
_TAKEN_ONE_IN = 4
"""Adding up in a book takes longer than a scan."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A file that inputs replace, and the log that it is or belongs to."""

    source: Source
    log: str
    file: Path
    content: bytes


def slots_of(source: Source, env: Mapping[str, str], home: Path) -> Iterator[Slot]:
    """Yield the files of one agent's logs in a home: logs, what is in logs that are folders, and what is read with them."""
    seen: set[str] = set()
    for place in (*source.locate(env), str(home)):
        for log in source.list_logs(place) if os.path.exists(place) else ():
            if isinstance(log, Problem):
                continue
            for path in (log, *source.sidecars(log)):
                for file in _files(Path(path)):
                    if str(file) not in seen and str(file).startswith(str(home)) and file.stat().st_size <= _LARGEST:
                        seen.add(str(file))
                        yield Slot(source, log, file, file.read_bytes())


def _files(path: Path) -> Iterable[Path]:
    return (
        sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path] if path.is_file() else []
    )


def _slot(slots: Sequence[Slot], data: bytes) -> Slot:
    return slots[int.from_bytes(data[:HEADER], "little") % len(slots)]


def _seeds(slots: Sequence[Slot]) -> list[bytes]:
    return [number.to_bytes(HEADER, "little") + slot.content for number, slot in enumerate(slots)]


def _put(slot: Slot, content: bytes) -> None:
    slot.file.write_bytes(content)
    os.utime(slot.file, (_LONG_AGO, _LONG_AGO))


def _remove_beside(slot: Slot) -> None:
    """Files that SQLite was asked to recover from would change the next input's meaning."""
    for suffix in ("-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(f"{slot.file}{suffix}")


def check_log(source: Source, log: str, *, prices: PriceBook, take: bool) -> None:
    """Do all that can be done with a log; only what the protocol allows may be raised."""
    with suppress(LogNotReadable, MissingExtra):
        if not os.path.isdir(log):
            with open_unpacked(log)[0] as file:
                head = file.read(HEAD)
            source.recognises(log, head)
            recognise(log)
    with suppress(LogNotReadable, MissingExtra):
        scan = source.scan(log, None)
        check_scan(scan)
        if take:
            book = Book(prices)
            book.add_scan(scan)
            book.close()
    with suppress(LogNotReadable, MissingExtra):
        names = list(source.name_sessions(log))
        demand(all(type(name) is str for name in names), f"session names: {names!r}")
        for name in (None, *names[:3]):
            for item in source.read(log, name):
                if isinstance(item, Problem):
                    check_problem(item)
                else:
                    demand(isinstance(item, Event) and isinstance(item.type, str), f"no event: {item!r}")
                    payload(item)


def check_scan(scan: LogScan) -> None:
    """Counts can be added up, and problems have documented kinds."""
    for session in scan.sessions:
        for record in session.records:
            check_counts(record.usage)
            demand(record.time_ns is None or type(record.time_ns) is int, f"a time of {record.time_ns!r}")
            demand(record.cost_nano is None or record.cost_nano >= 0, f"a cost of {record.cost_nano!r}")
            demand(record.requests >= 0 <= record.active_ms, f"negative: {record}")
    for problem in scan.problems.first:
        check_problem(problem)
    demand(scan.problems.count >= len(scan.problems.first), "fewer problems than are named")


def _check_source(slots: Sequence[Slot], prices: PriceBook, data: bytes) -> None:
    slot = _slot(slots, data)
    content = data[HEADER:]
    _put(slot, content)
    try:
        check_log(slot.source, slot.log, prices=prices, take=not zlib.crc32(data) % _TAKEN_ONE_IN)
    finally:
        _put(slot, slot.content)
        _remove_beside(slot)


def _cases(source_id: str, folder: Path, most: int | None = None) -> list[Slot]:
    slots = []
    for number, case in enumerate(cases_of(source_id)[:most]):
        home = build_home(case, folder / str(number))
        slots += slots_of(load_source(source_id), environment(case, home), home)
    return slots


def _source(source_id: str, most: int | None, folder: Path) -> Inputs:
    slots = _cases(source_id, folder, most)
    return Inputs(partial(_check_source, slots, PriceBook.load()), _seeds(slots), header=HEADER)


def _real(folder: Path) -> Inputs:
    """Homes that real clients left; copies of them are changed."""
    slots = []
    for real in sorted(Path(os.environ["SESSIONLOG_REAL"]).iterdir()):
        if not real.is_dir():
            continue
        home = folder / real.name
        shutil.copytree(real, home, symlinks=True, ignore_dangling_symlinks=True)
        for source_id in OURS:
            if source_id != "native":
                with suppress(OSError):
                    slots += slots_of(load_source(source_id), {"HOME": str(home)}, home)
    return Inputs(partial(_check_source, slots, PriceBook.load()), _seeds(slots), header=HEADER)


def _commands(most: int | None, folder: Path) -> Inputs:
    """The command line over a damaged log: exit codes, formats, and a terminal parser over every byte of output."""
    slots = [slot for number, source_id in enumerate(OURS) if source_id != "native"
             for slot in _cases(source_id, folder / f"home-{number}", most)[:4]]  # fmt: skip
    env = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data")}

    def check(data: bytes) -> None:
        slot = _slot(slots, data)
        _put(slot, data[HEADER:])
        before = dict(os.environ)
        os.environ.update(env)
        try:
            lines = list(command_lines(slot.log))
            words = lines[zlib.crc32(data) % len(lines)]
            judge(words, run(*words))
        finally:
            os.environ.clear()
            os.environ.update(before)
            _put(slot, slot.content)
            _remove_beside(slot)

    return Inputs(check, _seeds(slots), header=HEADER)


def _ledger(folder: Path) -> Inputs:
    """A ledger whose bytes, or those beside it, were edited; an input is a file's number and (place, byte) edits.

    A report is made from it or without it, and `verify` names what is wrong: neither raises anything of its own.
    """
    home = build_home("claude-code/transcripts", folder)
    env = environment("claude-code/transcripts", home)
    place = folder / "ledger"
    path = str(place / "ledger.sqlite")
    prices = PriceBook.load()
    truth = aggregate_usage(env=env, ledger=path, jobs=1).to_dict()["rows"]
    aggregate_usage(env=env, ledger=path, jobs=1)
    names = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-journal", "ledger.sqlite.sums")
    kept = {one.name: one.read_bytes() for one in place.iterdir() if one.is_file()}
    size = len(kept["ledger.sqlite"])

    def check(data: bytes) -> None:
        for one in place.iterdir():
            one.unlink()
        for name, content in kept.items():
            (place / name).write_bytes(
                _edited(content, data[1:]) if name == names[data[:1][0] % 4 if data else 0] else content
            )
            (place / name).chmod(0o600)
        chosen = place / names[data[0] % 4 if data else 0]
        if not chosen.exists():
            chosen.write_bytes(data[1:])
            chosen.chmod(0o600)
        report = aggregate_usage(env=env, ledger=path, jobs=1).to_dict()
        json.dumps(report)
        with suppress(LedgerUnusable):
            verified = verify_ledger(path, prices, env)
            if verified.is_whole:
                again = aggregate_usage(env=env, ledger=path, jobs=1).to_dict()["rows"]
                demand(again == truth, "`verify` finds nothing, and the report is wrong")

    spread = [
        bytes([number]) + (at * size // 16).to_bytes(4, "little") + b"\xff" for number in (0, 3) for at in range(16)
    ]
    return Inputs(
        check, [b"\x00", b"\x01" + b"7\x7f\x06\x82", b"\x02" + b"\xd9\xd5\x05\xf9 \xa1c\xd7", *spread], header=1
    )


def _edited(content: bytes, edits: bytes) -> bytes:
    """Apply edits of five bytes: four for the place, one for the new byte; what is left over cuts the end."""
    changed = bytearray(content)
    whole = len(edits) - len(edits) % 5
    for at in range(0, whole if content else 0, 5):
        changed[int.from_bytes(edits[at : at + 4], "little") % len(changed)] = edits[at + 4]
    return bytes(changed[: len(changed) - 4096 * (len(edits) % 5)])


def home_targets(most_cases: int | None = None) -> Sequence[Target]:
    """Return the targets of this module; with fewer cases of test data they are ready sooner."""
    sources = [Target(f"source:{name}", partial(_source, name, most_cases), 20) for name in OURS if cases_of(name)]
    return [
        *sources,
        Target("real", _real, 40, needs="SESSIONLOG_REAL"),
        Target("commands", partial(_commands, most_cases), 15),
        Target("ledger", _ledger, 15),
    ]
