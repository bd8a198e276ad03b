"""Can these tests fail? Each protection is taken away in turn, and the check that stands for it must notice.

Every check is first run with the protection in place, where it must find nothing.
"""

import os
import random
import stat
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sessionlog import files
from sessionlog.files import appending
from sessionlog.logger.log_file import LogFile
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.render import escape
from tests.reliability.children import in_child
from tests.reliability.kill import run_kills
from tests.reliability.oracle import check_recorded, check_whole, read_log
from tests.reliability.power import check_state, crash_states, record
from tests.reliability.seam import Double, put, watched
from tests.reliability.test_log_machine import run as run_stories
from tests.security.commands import run
from tests.security.hostile import EVIL, everywhere
from tests.security.vt import findings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def open_logger(folder, **options):
    """A logger that says nothing aloud."""
    return SessionLogger(folder, "s", work_dir="/w", redact=False, notify=lambda text: None, **options)


def write_slowly(folder, session, writer, seed, second):
    """A writer for the kill harness that thinks for a while between looking at the file's end and writing."""

    def slow(name, real, args, kwargs):
        time.sleep(0.0002)
        return real(*args, **kwargs)

    put(pytest.MonkeyPatch(), "os", Double(os, ("write",), slow))  # in a child that will be killed
    chance, n = random.Random(seed), 0
    log = SessionLogger(folder, session, work_dir="/w", redact=False, notify=lambda text: None)
    while log.emit("tool.call", {"writer": writer, "n": n, "output": "x" * chance.choice((90, 400_000))}):
        n += 1
        os.pwrite(second, n.to_bytes(8, "little") + bytes(8), writer * 16)


def most_kills(folder):
    """How many at most: without a protection the first finding ends them, with it there are tests of their own."""
    return 2_000 if folder.name == "without" else 40


def kill_one_writer(folder):
    """One writer at a time."""
    return run_kills([folder], cycles=most_kills(folder), writers=1, seed=1).findings


def kill_three_writers(folder):
    """Three at a time."""
    return run_kills([folder], cycles=most_kills(folder), writers=3, seed=1, work=write_slowly).findings


def fill_the_disk(folder):
    """A write that finds no room for its second half."""

    def work():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
        log = open_logger(folder)
        for n in range(30):
            log.emit("tool.call", {"n": n, "output": "x" * 200})
        return check_whole(read_log(log.path))

    return in_child(work)


def write_into_a_device(folder):
    """A device under the log's name."""
    if os.geteuid() != 0:
        pytest.skip("making a device needs root")
    os.mknod(folder / "s.jsonl", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    acknowledged = open_logger(folder).emit("tool.call", {})
    os.unlink(folder / "s.jsonl")
    return ["acknowledged, and written to nowhere"] if acknowledged else []


def write_through_a_link(folder):
    """A link under the log's name."""
    (folder / "target").write_text("")
    (folder / "s.jsonl").symlink_to(folder / "target")
    open_logger(folder).emit("tool.call", {})
    os.unlink(folder / "s.jsonl")
    return ["written through a link"] if (folder / "target").stat().st_size else []


def cut_the_power(folder):
    """Crash states behind the last sync."""
    recorder = record(folder, "fsync", 24, seed=1)
    states = crash_states(recorder, 200, seed=1)
    return [f for left, promised, _ in states for f in check_state(Path(folder) / "s.jsonl", left, promised, 24)]


def lose_the_name(folder):
    """Which folders got an entry and were not synced."""
    synced = set()

    def watch(name, real, args, kwargs):
        if name == "fsync":
            synced.add(os.fstat(args[0]).st_ino)
        return real(*args, **kwargs)

    with watched(watch):
        log = open_logger(folder / "a" / "b", durability="fsync")
        log.emit("tool.call", {})
        log.close()
    needed = (folder, folder / "a", folder / "a" / "b")
    findings = [f"{place} was not synced" for place in needed if place.stat().st_ino not in synced]
    os.unlink(log.path)
    os.removedirs(folder / "a" / "b")
    folder.mkdir(exist_ok=True)
    return findings


def delete_the_file(folder):
    """A log deleted between two emits."""
    log = open_logger(folder)
    log.emit("tool.call", {"n": 0})
    os.unlink(log.path)
    log.emit("tool.call", {"n": 1})
    return [] if os.path.exists(log.path) else ["the event went into a deleted file"]


def close_a_hosts_file(folder):
    """A host that closed our descriptors and took the numbers for its own files."""

    def work():
        log = open_logger(folder)
        log.emit("tool.call", {"n": 0})
        freed, taken = set(), []
        for fd in map(int, os.listdir("/proc/self/fd")):
            try:
                if os.readlink(f"/proc/self/fd/{fd}").startswith(str(folder)):
                    os.close(fd)
                    freed.add(fd)
            except OSError:
                continue
        while not freed.issubset(taken):  # a process that runs many tests has lower numbers free
            taken.append(os.open(folder / f"host-{len(taken)}", os.O_RDWR | os.O_CREAT))
        log.emit("tool.call", {"n": 1})
        log.close()
        return [f"host-{n} was closed" for n, fd in enumerate(taken) if not _is_open(fd)]

    return in_child(work)


def _is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def kill_in_the_first_line(folder):
    """A writer that was killed in the middle of its very first line."""
    (folder / "s.jsonl").write_bytes(b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026')
    log = open_logger(folder)
    log.emit("tool.call", {"n": 0})
    log.close()
    read = read_log(log.path)
    os.unlink(log.path)
    started = read.events[:1] and read.events[0].type == "session.start"
    return [*check_recorded(read, [0], [0]), *([] if started else ["no session.start"])]


def tell_stories(folder):
    """Two writers, and whatever may happen to their log."""
    try:
        run_stories(300, 30)
    except (AssertionError, ExceptionGroup) as error:
        return [str(error)]
    return []


def show_a_hostile_log(folder):
    """A log that speaks to the terminal, in every field."""
    path = folder / "hostile.jsonl"
    path.write_bytes(everywhere(EVIL, key=EVIL))
    found = [
        sequence for command in ("replay", "usage") for sequence in findings(run(command, str(path)).out, tab=True)
    ]
    path.unlink()
    return found


def look_at_modes(folder):
    """Where the umask takes nothing away."""

    def work():
        os.umask(0)
        open_logger(folder / "new").emit("tool.call", {})
        return [str(path) for path in (folder / "new", folder / "new" / "s.jsonl") if path.stat().st_mode & 0o077]

    return in_child(work)


def no_lock(patch):
    """Everybody believes to hold the lock."""
    put(patch, "fcntl", SimpleNamespace(flock=lambda fd, how: None))


def no_last_byte(patch):
    """A line is put behind whatever the file ends in."""
    patch.setattr(files.AppendFile, "_with_newline", lambda self, line, size, locked: line)


def no_rollback(patch):
    """What was written of a line stays."""
    real = appending._finish
    put(patch, "_finish", lambda *args, alone: real(*args, alone=False))


def no_regular_file(patch):
    """Anything is as good as a file."""
    others = {name: function for name, function in vars(stat).items() if name.startswith("S_IS")}
    put(patch, "stat", SimpleNamespace(**others | {"S_ISREG": lambda mode: True}))


def no_sync(patch):
    """The disk is not asked."""
    put(patch, "sync", lambda fd: None)


def no_folder_sync(patch):
    """Folders are not synced."""
    put(patch, "sync_directory", lambda path: None)


def no_link_check(patch):
    """Links are followed."""
    patch.setattr(os, "O_NOFOLLOW", 0)


def no_deletion_check(patch):
    """Nobody asks whether the file still has a name."""
    patch.setattr(files.AppendFile, "_check_exists", lambda self, changed: None)


def no_identity(patch):
    """A descriptor's number is taken for the file."""
    put(patch, "_is_same_file", lambda fd, identity: True)


def no_escape(patch):
    """Whatever a log says goes to the terminal."""
    patch.setattr(escape, "_visible", lambda match: match[0])


def no_private_mode(patch):
    """Files and folders get what the umask leaves."""
    wide = {"open": 0o666, "mkdir": 0o777}

    def widened(name, real, args, kwargs):
        return real(
            *[wide[name] if arg in {0o600, 0o700} and index else arg for index, arg in enumerate(args)], **kwargs
        )

    put(patch, "os", Double(os, tuple(wide), widened))


def no_look_at_the_start(patch):
    """A file that is not empty is believed to have begun."""
    real = LogFile.open
    patch.setattr(LogFile, "open", lambda self: (os.path.getsize(self.path) == 0, real(self)[1]))


@pytest.mark.parametrize(
    ("remove", "check"),
    [
        (no_lock, kill_three_writers),
        (no_last_byte, kill_one_writer),
        (no_rollback, fill_the_disk),
        (no_regular_file, write_into_a_device),
        (no_link_check, write_through_a_link),
        (no_sync, cut_the_power),
        (no_folder_sync, lose_the_name),
        (no_deletion_check, delete_the_file),
        (no_identity, close_a_hosts_file),
        (no_look_at_the_start, kill_in_the_first_line),
        (no_last_byte, tell_stories),
        (no_deletion_check, tell_stories),
        (no_escape, show_a_hostile_log),
        (no_private_mode, look_at_modes),
    ],
    ids=lambda function: function.__name__,
)
def test_without_it_the_check_fails(tmp_path, monkeypatch, remove, check):
    """With the protection nothing is found, without it something is."""
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    assert check(tmp_path / "with") == []
    with monkeypatch.context() as patch:
        remove(patch)
        found = check(tmp_path / "without")
    print(*found[:3], sep="\n")
    assert found
