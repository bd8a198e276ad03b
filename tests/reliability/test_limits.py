"""Real limits of a real file system: the agent goes on, health tells the truth, and the hole is written down."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sessionlog.errors import Problem
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events

DATA = {"tool": "bash", "output": "x" * 200}


def logger(folder, name="s", **options):
    said = []
    log = SessionLogger(folder, name, work_dir="/w", notify=said.append, **options)
    return log, said


def events_of(path):
    items = list(read_events(str(path)))
    return [i for i in items if not isinstance(i, Problem)], [i for i in items if isinstance(i, Problem)]


def accounted(health):
    assert health.written + health.dropped + health.deferred == health.emitted
    assert sum(health.dropped_by.values()) == health.dropped


def in_child(body, *arguments):
    """Run a script in a process of its own (limits and user ids do not come back) and return its JSON."""
    done = subprocess.run(
        [sys.executable, "-c", body, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_file_at_its_size_limit(tmp_path):
    """RLIMIT_FSIZE: a short write is rolled back, later events are counted, the file ends with a whole line."""
    script = (
        "import json, resource, sys\n"
        "from sessionlog.logger.session_logger import SessionLogger\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))\n"
        "log = SessionLogger(sys.argv[1], 's', work_dir='/w', notify=lambda t: None)\n"
        "acked = [log.emit('tool.call', {'n': n, 'text': 'x' * 200}) for n in range(40)]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "late = log.emit('tool.call', {'n': 40})\n"
        "h = log.health()\n"
        "print(json.dumps([acked, late, h.emitted, h.written, h.dropped, dict(h.dropped_by)]))\n"
    )
    acked, late, emitted, written, dropped, causes = in_child(script, tmp_path)
    assert late
    assert written == sum(acked) + 1
    assert written + dropped == emitted == 41
    assert dropped
    assert set(causes) == {"EFBIG"}
    events, problems = events_of(tmp_path / "s.jsonl")
    assert [p for p in problems if p.severity == "damage"] == []
    assert [e.data["n"] for e in events if e.type == "tool.call"] == [n for n, ok in enumerate(acked) if ok] + [40]
    [gap] = [e for e in events if e.type == "log.gap"]
    assert gap.data["events"] == dropped
    assert gap.data["reason"] == "EFBIG"
    assert gap.data["to_seq"] - gap.data["from_seq"] + 1 == dropped
    assert (tmp_path / "s.jsonl").read_bytes().endswith(b"\n")


def test_a_full_disk_and_room_again(tmp_path):
    """A small tmpfs fills up: nothing torn stays, the gap is written once there is room."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine does not mount a tmpfs")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 32_768)
        log, said = logger(disk)
        acked = [log.emit("tool.call", DATA) for _ in range(300)]
        assert not acked[-1]
        ballast.unlink()
        assert log.emit("tool.call", {"late": True})
        health = log.health()
        accounted(health)
        log.close()
        assert set(health.dropped_by) == {"ENOSPC"}
        assert len(said) == 1
        events, problems = events_of(disk / "s.jsonl")
        assert [p for p in problems if p.severity == "damage"] == []
        assert sum(e.type == "tool.call" for e in events) == sum(acked) + 1
        assert sum(e.data["events"] for e in events if e.type == "log.gap") == acked.count(False)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_a_folder_that_may_not_be_written(tmp_path):
    """A read-only folder costs the events, not the agent; when it opens, the log begins with its start and a gap."""
    locked = tmp_path / "locked"
    locked.mkdir()
    script = (
        "import json, os, sys\n"
        "from sessionlog.logger.session_logger import SessionLogger\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "log = SessionLogger(sys.argv[1], 's', work_dir='/w', notify=lambda t: None)\n"
        "acked = [log.emit('x', {'n': n}) for n in range(3)]\n"
        "print(json.dumps([acked, dict(log.health().dropped_by)]))\n"
    )
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    locked.chmod(0o555)
    acked, causes = in_child(script, locked)
    assert acked == [False] * 3
    assert causes == {"EACCES": 3}
    assert list(locked.iterdir()) == []


def test_a_path_where_a_file_is_in_the_way(tmp_path):
    """A file where the folder should be is counted, and the first event after it has gone is written behind a start."""
    folder = tmp_path / "sessions"
    folder.write_text("in the way")
    log, said = logger(folder)
    assert not log.emit("x", {})
    assert said
    folder.unlink()
    assert log.emit("x", {"n": 1})
    accounted(log.health())
    events, _ = events_of(folder / "s.jsonl")
    assert events[0].type == "session.start"
    assert {e.type for e in events} == {"session.start", "x", "log.gap"}


def test_a_deleted_file(tmp_path):
    """An event right after the log was deleted is in a new file that begins with session.start."""
    log, _ = logger(tmp_path)
    assert log.emit("x", {"n": 0})
    Path(log.path).unlink()
    assert log.emit("x", {"n": 1})
    events, problems = events_of(log.path)
    assert [e.type for e in events] == ["session.start", "x"]
    assert events[-1].data == {"n": 1}
    assert problems == []


def test_a_deleted_folder(tmp_path):
    """The folder is made again, private."""
    folder = tmp_path / "a" / "b"
    log, _ = logger(folder)
    assert log.emit("x", {"n": 0})
    Path(log.path).unlink()
    folder.rmdir()
    assert log.emit("x", {"n": 1})
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("what", ["fifo", "link", "folder"])
def test_something_else_in_the_files_place(tmp_path, what):
    """A pipe, a link or a folder under the log's name is refused at once, without hanging and without following."""
    place = tmp_path / "s.jsonl"
    target = tmp_path / "target"
    target.write_text("mine")
    if what == "fifo":
        os.mkfifo(place)
    elif what == "link":
        place.symlink_to(target)
    else:
        place.mkdir()
    log, _ = logger(tmp_path)
    assert not log.emit("x", {})
    accounted(log.health())
    assert target.read_text() == "mine"


def test_modes(tmp_path):
    """New files are 0600 whatever the umask; an existing file keeps its mode."""
    old = os.umask(0o777)
    try:
        log, _ = logger(tmp_path, "new")
        assert log.emit("x", {})
    finally:
        os.umask(old)
    assert Path(log.path).stat().st_mode & 0o777 == 0o600
    wide = tmp_path / "wide.jsonl"
    wide.write_bytes(b"")
    wide.write_text('{"session_id":"wide","seq":7,"type":"x","ts":"2026-11-21T10:00:00Z","data":null}\n')
    wide.chmod(0o644)
    log, _ = logger(tmp_path, "wide")
    assert log.emit("x", {})
    assert wide.stat().st_mode & 0o777 == 0o644
    assert [e.seq for e in events_of(wide)[0]] == [7, 8]


def test_no_descriptors_left(tmp_path):
    """RLIMIT_NOFILE: the events are counted, and written again when descriptors are free."""
    script = (
        "import json, os, resource, sys\n"
        "from sessionlog.logger.session_logger import SessionLogger\n"
        "log = SessionLogger(sys.argv[1], 's', work_dir='/w', notify=lambda t: None)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(os.open('/dev/null', os.O_RDONLY))\n"
        "except OSError: pass\n"
        "first = log.emit('x', {})\n"
        "for fd in held: os.close(fd)\n"
        "second = log.emit('x', {})\n"
        "print(json.dumps([first, second, dict(log.health().dropped_by)]))\n"
    )
    assert in_child(script, tmp_path) == [False, True, {"EMFILE": 1}]


def test_a_torn_tail_of_another_writer(tmp_path):
    """An unfinished last line is ended before the next event; its bytes stay and are named."""
    log, _ = logger(tmp_path)
    assert log.emit("x", {"n": 0})
    with open(log.path, "ab") as file:
        file.write(b'{"session_id":"s","seq":9,"ty')
    assert log.emit("x", {"n": 1})
    events, problems = events_of(log.path)
    assert [e.data["n"] for e in events if e.type == "x"] == [0, 1]
    [problem] = problems
    assert problem.length == len(b'{"session_id":"s","seq":9,"ty')
