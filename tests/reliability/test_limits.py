"""Real limits of a real system: the agent goes on, health tells the truth, and the hole is written down when it can be.

What needs another user, a limit or a mount happens in forked children, so that the test runner keeps its own.
"""

import os
import resource
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from sessionlog.logger import log_file
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.check import check_log
from tests.reliability.children import in_child
from tests.reliability.oracle import check_gaps, check_health, check_recorded, check_whole, read_log
from tests.reliability.seam import watched

NOBODY = 65534
TEXT = "x" * 200


def is_root():
    """Whether mounts and other users can be had."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def open_logger(folder, **options):
    """A logger that says nothing aloud."""
    options.setdefault("notify", lambda text: None)
    return SessionLogger(folder, "s", work_dir="/w", **options)


def emit_many(log, numbers):
    """Emit numbered events; return the numbers of those acknowledged."""
    return [n for n in numbers if log.emit("tool.call", {"n": n, "output": TEXT})]


def judge(log, acknowledged, emitted):
    """What must hold after any of it: a true account, a whole file, all that was acknowledged, all that was lost."""
    health = log.health()
    log.close()
    written = read_log(log.path)
    return [
        *check_health(health, len(acknowledged), len(emitted)),
        *check_whole(written),
        *check_recorded(written, emitted, acknowledged),
        *check_gaps(written, health.dropped),
    ]


@pytest.fixture
def disk(tmp_path):
    """A file system of 256 KiB."""
    if not is_root():
        pytest.skip("mounting needs root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"this machine mounts no tmpfs: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def open_folder():
    """A folder that other users can reach."""
    folder = tempfile.mkdtemp(prefix="sessionlog-")
    os.chmod(folder, 0o755)
    yield Path(folder)
    shutil.rmtree(folder)


def test_a_file_at_its_size_limit(tmp_path):
    """RLIMIT_FSIZE: the short write is taken back, the loss is told of once there is room again."""

    def work():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
        log = open_logger(tmp_path)
        acknowledged = emit_many(log, range(30))
        full = os.path.getsize(log.path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        acknowledged += emit_many(log, [30])
        causes = dict(log.health().dropped_by)
        return full, acknowledged, causes, judge(log, acknowledged, range(31))

    full, acknowledged, causes, findings = in_child(work)
    assert findings == []
    assert full <= 4000
    assert 0 < len(acknowledged) < 30
    assert causes == {"EFBIG": 31 - len(acknowledged)}
    [gap] = read_log(tmp_path / "s.jsonl").of_type("log.gap")
    lost = [n for n in range(31) if n not in acknowledged]
    assert gap.data == {"events": len(lost), "from_seq": lost[0] + 1, "to_seq": lost[-1] + 1, "reason": "EFBIG"}


@pytest.mark.parametrize("durability", ["os", "interval", "fsync"])
def test_a_full_disk_and_room_again(disk, durability):
    """ENOSPC: nothing torn stays, one line goes to stderr, and the log tells how many events are missing."""
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * 100_000)
    said = []
    log = open_logger(disk, durability=durability, notify=said.append)
    acknowledged = emit_many(log, range(1000))
    assert len(acknowledged) < 1000
    ballast.unlink()
    acknowledged += emit_many(log, [1000])
    assert acknowledged[-1] == 1000
    assert set(log.health().dropped_by) == {"ENOSPC"}
    assert len(said) == 1
    assert judge(log, acknowledged, range(1001)) == []


def test_a_gap_is_told_of_at_the_end_as_well(disk):
    """A session whose last events were lost says so when it is closed."""
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * 100_000)
    log = open_logger(disk)
    acknowledged = emit_many(log, range(1000))
    ballast.unlink()
    assert judge(log, acknowledged, range(1000)) == []
    assert [event.type for event in read_log(log.path).events[-2:]] == ["log.gap", "session.end"]


def test_a_file_system_turned_read_only(disk):
    """EROFS: a remount and its end."""
    log = open_logger(disk)
    acknowledged = emit_many(log, range(3))
    log.close()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    log = open_logger(disk)
    assert emit_many(log, range(3, 6)) == []
    assert log.health().dropped_by == {"EROFS": 3}
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert emit_many(log, [6]) == [6]
    log.close()
    assert check_recorded(read_log(log.path), range(7), [*acknowledged, 6]) == []


def test_no_descriptors_left(tmp_path):
    """RLIMIT_NOFILE: events are counted, and written again as soon as descriptors are free."""

    def work():
        log = open_logger(tmp_path)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        acknowledged = emit_many(log, range(5))
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        acknowledged += emit_many(log, [5])
        return acknowledged, dict(log.health().dropped_by), judge(log, acknowledged, range(6))

    assert in_child(work) == [[5], {"EMFILE": 5}, []]


def test_a_thousand_loggers_fit_where_a_thousand_files_may_be_open(tmp_path):
    """One descriptor for each, and one for their folder; beyond that the notice says what to raise."""

    def work():
        limit = 400
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        free = limit - len(os.listdir("/proc/self/fd")) - 1  # that of the listing is free again, that of the folder not
        said = []
        logs = [SessionLogger(tmp_path, f"s{n}", work_dir="/w", notify=said.append) for n in range(limit)]
        written = sum(log.emit("tool.call", {"n": 1}) for log in logs)
        enough = "".join(said[:1])
        for log in logs[:200]:
            log.close()
        late = logs[-1].emit("tool.call", {"n": 2})
        for log in logs[200:]:
            log.close()
        return free, written, enough, late

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("descriptors are listed in /proc only")
    free, written, said, late = in_child(work)
    assert free - 2 <= written <= free + 1
    assert "EMFILE" in said
    assert "raise its limit (`ulimit -n`), or close loggers that have ended" in said
    assert late


def test_loggers_of_one_folder_outlive_each_other(tmp_path):
    """The folder's descriptor is closed with the last of them, and a deletion is noticed by each of them."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("descriptors are listed in /proc only")
    before = len(os.listdir("/proc/self/fd"))
    first, second = (SessionLogger(tmp_path / "logs", name, work_dir="/w") for name in ("a", "b"))
    assert first.emit("x", {})
    assert second.emit("x", {})
    assert len(os.listdir("/proc/self/fd")) == before + 3
    first.close()
    for n in range(5):
        os.unlink(second.path)
        assert second.emit("x", {"n": n})
        assert os.path.exists(second.path)
    second.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_renamed_folder_and_one_in_its_place(tmp_path):
    """A log goes on where its folder is, another one of that path begins in the new folder, whatever the cwd is."""
    folder, moved = tmp_path / "logs", tmp_path / "moved"
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        log = open_logger("logs")
        emit_many(log, range(2))
        os.chdir("/")
        os.rename(folder, moved)
        folder.mkdir()
        assert emit_many(log, [2]) == [2]
        other = SessionLogger(folder, "other", work_dir="/w")
        assert other.emit("x", {})
        os.unlink(moved / "s.jsonl")
        assert emit_many(log, [3]) == [3]
        log.close()
        other.close()
    finally:
        os.chdir(before)
    assert sorted(path.name for path in folder.iterdir()) == ["other.jsonl", "s.jsonl"]
    assert list(moved.iterdir()) == []


def test_a_folder_that_may_not_be_written(open_folder):
    """Without permission nothing is written and nothing breaks; when it is given, the log begins as it should."""
    if not is_root():
        pytest.skip("becoming another user needs root")
    place = open_folder / "sessions"
    place.mkdir(0o755)

    def work():
        os.setuid(NOBODY)
        log = open_logger(place)
        before = emit_many(log, range(4))
        os.chmod(open_folder / "mine", 0o700)
        log = open_logger(open_folder / "mine")
        acknowledged = emit_many(log, range(4))
        return before, dict(log.health().dropped_by), judge(log, acknowledged, range(4))

    mine = open_folder / "mine"
    mine.mkdir()
    os.chown(mine, NOBODY, NOBODY)
    assert in_child(work) == [[], {}, []]
    assert list(place.iterdir()) == []


def test_somebody_elses_file(open_folder):
    """A log of another user is left alone, even where its mode would allow writing."""
    if not is_root():
        pytest.skip("becoming another user needs root")
    os.chmod(open_folder, 0o777)
    (open_folder / "s.jsonl").write_bytes(b"theirs\n")
    os.chmod(open_folder / "s.jsonl", 0o666)

    def work():
        os.setuid(NOBODY)
        log = open_logger(open_folder)
        return emit_many(log, range(2)), log.health().dropped

    assert in_child(work) == [[], 2]
    assert (open_folder / "s.jsonl").read_bytes() == b"theirs\n"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_modes_do_not_depend_on_the_umask(open_folder, umask):
    """Files are 0600 and each new folder is 0700, also where the umask would leave nothing."""
    os.chmod(open_folder, 0o777)

    def work():
        if is_root():
            os.setuid(NOBODY)
        os.umask(umask)
        log = open_logger(open_folder / "a" / "b")
        return emit_many(log, range(2)), log.health().dropped_by

    assert in_child(work) == [[0, 1], {}]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in open_folder.rglob("*")}
    assert modes == {"a": 0o700, "b": 0o700, "s.jsonl": 0o600}


def test_an_existing_wide_file_is_used_and_reported(tmp_path):
    """A log that is 0644 stays so: modes that somebody set are reported by check, not changed."""
    log = open_logger(tmp_path)
    emit_many(log, range(2))
    log.close()
    os.chmod(log.path, 0o644)
    log = open_logger(tmp_path)
    assert emit_many(log, [2]) == [2]
    assert stat.S_IMODE(os.stat(log.path).st_mode) == 0o644
    assert check_log(log.path).counts == {"wide_mode": 1}


def test_a_deleted_file(tmp_path):
    """An event right after the deletion is in a new file, whose first line is session.start; a hundred times."""
    log = open_logger(tmp_path)
    for n in range(100):
        assert emit_many(log, [n]) == [n]
        events = read_log(log.path).events
        assert [event.type for event in events] == ["session.start", "tool.call"]
        assert events[-1].data["n"] == n
        os.unlink(log.path)
    assert log.health().dropped == 0


def test_a_deletion_within_one_tick_of_a_coarse_clock(tmp_path):
    """Where the kernel stamps a folder only every 4 ms, a deletion in the same tick is noticed all the same."""

    def coarse(name, real, args, kwargs):
        result = real(*args, **kwargs)
        if name != "fstat" or not stat.S_ISDIR(result.st_mode):
            return result
        tick = result.st_mtime_ns // 4_000_000 * 4_000_000
        return SimpleNamespace(st_mtime_ns=tick + 1, st_dev=result.st_dev, st_ino=result.st_ino)

    with watched(coarse):
        log = open_logger(tmp_path)
        for n in range(200):
            assert emit_many(log, [n, n]) == [n, n]
            os.unlink(log.path)
            assert emit_many(log, [n]) == [n]
            assert os.path.exists(log.path)
        log.close()


@pytest.mark.parametrize("depth", [1, 2])
def test_a_removed_folder(tmp_path, depth):
    """The folder, or folders, are made again."""
    folder = tmp_path / "a" / "b"
    log = open_logger(folder)
    emit_many(log, range(2))
    shutil.rmtree([folder, folder.parent][depth - 1])
    assert emit_many(log, [2]) == [2]
    assert judge(log, [0, 1, 2], range(3))[0].startswith("acknowledged event 0")  # deleted by its owner
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_in_the_folders_place(tmp_path):
    """ENOTDIR, until it is gone."""
    folder = tmp_path / "sessions"
    folder.write_text("in the way")
    log = open_logger(folder)
    assert emit_many(log, range(3)) == []
    folder.unlink()
    assert emit_many(log, [3]) == [3]
    assert judge(log, [3], range(4)) == []


@pytest.mark.parametrize("opened", [True, False], ids=["while it was open", "before"])
@pytest.mark.parametrize("what", ["fifo", "link", "dangling link", "folder", "device"])
def test_something_else_in_the_files_place(tmp_path, what, opened):
    """A pipe, a link, a folder or a device under the log's name is refused at once, and nothing is written into it."""
    place, target = tmp_path / "s.jsonl", tmp_path / "target"
    target.write_text("mine")
    log = open_logger(tmp_path)
    before = emit_many(log, range(2)) if opened else []
    place.unlink(missing_ok=True)
    if what == "fifo":
        os.mkfifo(place)
    elif what == "folder":
        place.mkdir()
    elif what == "device":
        if not is_root():
            pytest.skip("making a device needs root")
        os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    else:
        place.symlink_to(target if what == "link" else tmp_path / "nowhere")
    assert emit_many(log, range(2, 5)) == []
    assert target.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    place.rmdir() if what == "folder" else place.unlink()
    assert emit_many(log, [5]) == [5]
    health = log.health()
    log.close()
    written = read_log(place)
    assert check_whole(written) == []
    assert check_gaps(written, 3) == []
    assert check_health(health, len(before) + 1, len(before) + 4) == []
    assert check_recorded(written, [5], [5]) == []


def test_another_file_renamed_over_it(tmp_path):
    """What was put in the log's place, by a restore or an editor, is continued."""
    log = open_logger(tmp_path)
    emit_many(log, range(3))
    shutil.copy(log.path, tmp_path / "copy")
    os.replace(tmp_path / "copy", log.path)
    assert emit_many(log, [3]) == [3]
    assert judge(log, range(4), range(4)) == []


def test_a_file_renamed_away(tmp_path):
    """A log that was moved is written to its end where it is: its events stay together."""
    log = open_logger(tmp_path)
    emit_many(log, range(3))
    os.rename(log.path, tmp_path / "moved.jsonl")
    assert emit_many(log, [3]) == [3]
    log.close()
    assert check_recorded(read_log(tmp_path / "moved.jsonl"), range(4), range(4)) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only /proc tells a deleted name from a renamed one")
@pytest.mark.parametrize("place", ["the same folder", "another folder"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_file_that_has_a_hard_link(tmp_path, place, replaced):
    """A backup of links keeps the file; the events after the deletion are in a new one all the same."""
    folder, backup = tmp_path / "logs", tmp_path / "backup"
    backup.mkdir()
    log = open_logger(folder)
    emit_many(log, range(3))
    link = (folder if place == "the same folder" else backup) / "kept.jsonl"
    os.link(log.path, link)
    assert emit_many(log, [3]) == [3]
    if replaced:
        shutil.copy(log.path, tmp_path / "copy")
        os.replace(tmp_path / "copy", log.path)
    else:
        os.unlink(log.path)
    assert emit_many(log, [4, 5]) == [4, 5]
    log.close()
    assert check_recorded(read_log(log.path), range(6), range(6) if replaced else [4, 5]) == []
    assert [event.data["n"] for event in read_log(link).of_type("tool.call")] == [0, 1, 2, 3]


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_renamed_away_while_another_takes_its_place(tmp_path, linked):
    """As a rotation does: the log goes on where it is, whether it has a second name or not."""
    log = open_logger(tmp_path)
    emit_many(log, range(3))
    if linked:
        os.link(log.path, tmp_path / "kept.jsonl")
    os.rename(log.path, tmp_path / "moved.jsonl")
    (tmp_path / "s.jsonl").write_bytes(b"")
    assert emit_many(log, [3]) == [3]
    log.close()
    assert check_recorded(read_log(tmp_path / "moved.jsonl"), range(4), range(4)) == []


def test_an_emptied_file_begins_again(tmp_path):
    """A log cut to nothing gets a session.start again, or its token classes could not be understood."""
    log = open_logger(tmp_path)
    emit_many(log, range(3))
    os.truncate(log.path, 0)
    assert emit_many(log, [3]) == [3]
    assert [event.type for event in read_log(log.path).events] == ["session.start", "tool.call"]


def test_a_host_that_closes_all_descriptors(tmp_path):
    """A daemon closes what it did not open and takes the numbers itself: nothing is lost, its files are left alone."""

    def work():
        log = open_logger(tmp_path)
        acknowledged = emit_many(log, range(3))
        closed = set()
        for fd in map(int, os.listdir("/proc/self/fd")):
            try:
                if os.readlink(f"/proc/self/fd/{fd}").startswith(str(tmp_path)):
                    os.close(fd)
                    closed.add(fd)
            except OSError:
                continue
        taken = []
        while not taken or not closed <= set(taken):
            taken.append(os.open(tmp_path / f"host-{len(taken)}", os.O_RDWR | os.O_CREAT))
        acknowledged += emit_many(log, range(3, 6))
        findings = judge(log, acknowledged, range(6))
        sizes = [os.fstat(fd).st_size for fd in taken]  # still open, still empty
        return acknowledged, bool(closed), any(sizes), findings

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("descriptors are listed in /proc only")
    assert in_child(work) == [[0, 1, 2, 3, 4, 5], True, False, []]


def test_a_logger_that_is_forgotten_lets_go(tmp_path):
    """A logger nobody closed gives its descriptors back when it is collected."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("descriptors are listed in /proc only")
    before = len(os.listdir("/proc/self/fd"))
    for n in range(20):
        SessionLogger(tmp_path, f"s{n}", work_dir="/w").emit("x", {})
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_is_not_listed_for_every_loss(tmp_path, monkeypatch):
    """While a log cannot be made, an emit stays cheap in a folder of a hundred thousand others."""
    listed = []
    monkeypatch.setattr(log_file, "_case_twin", lambda directory, name: listed.append(name))

    def refuse(name, real, args, kwargs):
        if name == "open":
            raise PermissionError(13, "Permission denied")
        return real(*args, **kwargs)

    with watched(refuse):
        log = open_logger(tmp_path)
        assert emit_many(log, range(20)) == []
    assert emit_many(log, [20]) == [20]
    assert listed == ["s.jsonl"]
