"""repair: damaged bytes saved first, then taken out; whole events stay byte for byte."""

import fcntl
import gzip
import os
import stat
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.reader.repair import Repair, repair_log
from sessionlog.reader.stream import read_events
from tests.profiles import examples

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
SAMPLES = sorted((Path(__file__).parents[2] / "testdata" / "reader").glob("*.jsonl"))
TOO_LONG = 400


def line(seq, data=None):
    return encode_object(
        Event(session_id="s", seq=seq, type="tool.call", ts="2026-11-21T10:00:00Z", data=data).to_dict()
    )


def log(folder, content, mode=0o600):
    path = Path(folder) / "s.jsonl"
    path.write_bytes(content)
    path.chmod(mode)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def read(path, **options):
    items = list(read_events(str(path), **options))
    events = [item.raw.strip() for item in items if isinstance(item, Event)]
    return events, [item for item in items if isinstance(item, Problem) and item.severity == "damage"]


def quarantined(path):
    return Path(f"{path}.quarantine").read_bytes()


def test_a_damaged_line_is_moved(tmp_path):
    """The line is gone from the log and found in the quarantine; the log says nothing of it any more."""
    path = log(tmp_path, line(1) + b"garbage\n" + line(2))
    done = repair_log(str(path))
    assert path.read_bytes() == line(1) + line(2)
    assert quarantined(path) == b"garbage\n"
    assert (done.path, done.quarantine, done.pieces, done.length) == (str(path), f"{path}.quarantine", 1, 7)


@pytest.mark.parametrize(
    ("content", "repaired", "saved"),
    [
        (b"garbage\n" + line(1), line(1), b"garbage\n"),
        (line(1) + line(2)[:30], line(1), line(2)[:30] + b"\n"),
        (line(1)[:-1] + b"garbage\n", line(1), b"garbage\n"),
        (line(1)[:40] + line(2), line(2), line(1)[:40] + b"\n"),
        (line(1) + b"\0" * 9 + line(2), line(1) + line(2), b"\0" * 9 + b"\n"),
        (line(1) + b"\0 \0", line(1), b"\0 \0\n"),
        (line(1)[:-1] + b"x" + line(2), line(1)[:-1] + line(2), b"x\n"),
        (b"a\nb\n" + line(1) + b"c\n", line(1), b"a\nb\nc\n"),
        (b"{\n" + line(1), line(1), b"{\n"),
        (b"[1]\n{}\n" + line(1), line(1), b"[1]\n{}\n"),
    ],
)
def test_what_is_kept_and_what_is_saved(content, repaired, saved, tmp_path):
    """Whole lines, pieces of lines, the first line, the last line: events stay, damage goes."""
    path = log(tmp_path, content)
    repair_log(str(path))
    assert (path.read_bytes(), quarantined(path)) == (repaired, saved)


def test_p16_a_good_log_is_not_touched(tmp_path):
    """Nothing is written where nothing is wrong, not even the same bytes."""
    path = log(tmp_path, line(1) + line(2)[:-1])
    before = path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()
    done = repair_log(str(path))
    assert (done.quarantine, done.pieces, done.length) == (None, 0, 0)
    assert (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) == before
    assert os.listdir(tmp_path) == ["s.jsonl"]


def test_what_was_only_mended_stays(tmp_path):
    """Invalid UTF-8 and odd envelopes are readable, and nothing is deleted that can be read."""
    content = b'{"type":"x","data":"\xff"}\n{"type":"x","seq":"1"}\n'
    path = log(tmp_path, content)
    assert repair_log(str(path)).pieces == 0
    assert path.read_bytes() == content


def test_a_line_over_the_limit_stays(tmp_path):
    """It was not read, so nobody knows that it is damaged."""
    content = line(1) + line(2, "x" * 500)
    path = log(tmp_path, content + b"garbage\n")
    assert repair_log(str(path), max_line=TOO_LONG).pieces == 1
    assert path.read_bytes() == content


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_lesson_can_be_repaired(sample, tmp_path):
    """Afterwards the same events are there, no damage, and a second repair finds nothing to do."""
    path = log(tmp_path, sample.read_bytes())
    events, damage = read(path)
    if damage and not events:
        with pytest.raises(LogNotReadable, match="no event in it"):
            repair_log(str(path))
        return
    repair_log(str(path))
    assert read(path) == (events, [])
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert repair_log(str(path)).pieces == 0


PIECES = [line(1), line(2, {"a": [{"type": "text"}]}), line(3)[:-1], line(4)[:40], b"\n", b"\r\n", b"{\n", b"}\n", b'  "type": "x"\n', b"\x00" * 5, b"\xef\xbb\xbf", b"\xff", b'{"seq":5,', line(6, "x" * TOO_LONG), b"[1]\n", b'{"a":1}\n']  # fmt: skip


@examples(120)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=10))
def test_p16_repair_loses_no_byte_and_no_event(pieces):
    """Whatever a log is made of: same events, no damage left, all damaged bytes saved, nothing to do twice."""
    with tempfile.TemporaryDirectory() as folder:
        content = b"".join(pieces)
        path = log(folder, content)
        events, damage = read(path, max_line=TOO_LONG)
        assume(events)
        done = repair_log(str(path), max_line=TOO_LONG)
        after, left = read(path, max_line=TOO_LONG)
        assert after == events
        assert all(problem.kind == "too_long" for problem in left)
        removed = [problem for problem in damage if problem.kind != "too_long"]
        assert done.pieces == len(removed)
        for problem in removed:
            assert content[problem.offset : problem.offset + problem.length].rstrip(b"\n") in quarantined(path)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert repair_log(str(path), max_line=TOO_LONG).pieces == 0


def test_a_large_log_is_copied_whole(tmp_path):
    """Megabytes between two damaged lines come through, blank lines or not."""
    good = b"".join(line(seq, "x" * 900) for seq in range(3000))
    path = log(tmp_path, b"first\n" + good + b"\n" + b"last\n" + line(9))
    repair_log(str(path))
    assert path.read_bytes().replace(b"\n\n", b"\n") == good + line(9)


def test_p16_the_quarantine_comes_first(tmp_path, monkeypatch):
    """The damaged bytes are on the disk before the log is rewritten, and the log after them."""
    path = log(tmp_path, line(1) + b"garbage\n")
    steps = []
    sync, rename = os.fsync, os.replace

    def fsync(fd):
        if stat.S_ISREG(os.fstat(fd).st_mode):
            steps.append(("sync", os.fstat(fd).st_size))
        sync(fd)

    def replace(source, target):
        assert quarantined(path) == b"garbage\n"
        steps.append(("rename", Path(source).stat().st_size))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    repair_log(str(path))
    assert steps[:3] == [("sync", len(b"garbage\n")), ("sync", len(line(1))), ("rename", len(line(1)))]


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_p16_a_failure_leaves_the_log_as_it_was(call, tmp_path, monkeypatch):
    """When the new file cannot be put in place, the old one is there, whole, and no other file is left lying about."""
    content = line(1) + b"garbage\n" + line(2)
    path = log(tmp_path, content)

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="No space left"):
        repair_log(str(path))
    assert path.read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == ["s.jsonl", "s.jsonl.quarantine"]


def test_a_quarantine_that_cannot_be_written_leaves_the_log_as_it_was(tmp_path):
    """Without a place for the damaged bytes nothing happens."""
    content = line(1) + b"garbage\n"
    path = log(tmp_path, content)
    Path(f"{path}.quarantine").mkdir()
    with pytest.raises(OSError):
        repair_log(str(path))
    assert path.read_bytes() == content


def test_a_quarantine_collects(tmp_path):
    """A second repair adds to what the first one saved."""
    path = log(tmp_path, line(1) + b"one\n")
    repair_log(str(path))
    with open(path, "ab") as file:
        file.write(b"two\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    repair_log(str(path))
    assert quarantined(path) == b"one\ntwo\n"


def test_modes(tmp_path):
    """The quarantine is private; the log keeps the mode it had."""
    path = log(tmp_path, line(1) + b"garbage\n", mode=0o640)
    repair_log(str(path))
    assert stat.S_IMODE(os.stat(f"{path}.quarantine").st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_young_torn_tail_is_refused(tmp_path):
    """Its writer may be in the middle of it; nothing is touched."""
    content = line(1) + line(2)[:30]
    path = log(tmp_path, content)
    os.utime(path, (time.time() + 1, time.time() + 1))
    with pytest.raises(LogNotReadable, match="try again"):
        repair_log(str(path))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["s.jsonl"]


def test_other_damage_of_a_young_log_is_repaired(tmp_path):
    """Only the end of a log may be in the writing."""
    path = log(tmp_path, b"garbage\n" + line(1))
    os.utime(path, (time.time() + 1, time.time() + 1))
    assert repair_log(str(path)).pieces == 1


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_log_is_refused(suffix, tmp_path):
    """It is named, and the next step is said."""
    path = tmp_path / f"s.jsonl{suffix}"
    path.write_bytes(gzip.compress(b"garbage\n"))
    with pytest.raises(LogNotReadable, match="unpack it first"):
        repair_log(str(path))
    assert os.listdir(tmp_path) == [f"s.jsonl{suffix}"]


def test_a_log_that_is_being_written_is_refused(tmp_path, monkeypatch):
    """A writer that holds the lock is not interrupted."""
    content = line(1) + b"garbage\n"
    path = log(tmp_path, content)
    with open(path, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        with pytest.raises(LogNotReadable, match="lock"):
            repair_log(str(path))
    assert path.read_bytes() == content


def test_a_missing_log_is_refused(tmp_path):
    """There is nothing to repair."""
    with pytest.raises(LogNotReadable):
        repair_log(str(tmp_path / "gone.jsonl"))


def test_the_target_of_a_link_is_repaired(tmp_path):
    """The link stays a link."""
    (tmp_path / "real").mkdir()
    target = log(tmp_path / "real", line(1) + b"garbage\n")
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    repair_log(str(link))
    assert link.is_symlink()
    assert target.read_bytes() == line(1)
    assert quarantined(link) == b"garbage\n"


@pytest.mark.skipif(not ROOT, reason="only root can make a link of another user")
def test_another_users_link_is_refused(tmp_path):
    """A link made by somebody else does not choose what is rewritten."""
    (tmp_path / "real").mkdir()
    target = log(tmp_path / "real", line(1) + b"garbage\n")
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    os.lchown(link, 12345, 12345)
    with pytest.raises(LogNotReadable, match="another user"):
        repair_log(str(link))
    assert target.read_bytes() == line(1) + b"garbage\n"


def test_a_path_may_be_a_path_object(tmp_path):
    """What is returned names it as text."""
    path = log(tmp_path, line(1) + b"x\n")
    assert repair_log(path) == Repair(path=str(path), quarantine=f"{path}.quarantine", pieces=1, length=1)


def test_a_file_that_is_no_log_is_left_alone(tmp_path):
    """A file named by mistake holds no event: it is refused, and stays as it is to the byte."""
    path = tmp_path / "README.md"
    path.write_bytes(b"# A project\n\nWith words, not events.\n")
    with pytest.raises(LogNotReadable, match="no event in it"):
        repair_log(str(path))
    assert path.read_bytes() == b"# A project\n\nWith words, not events.\n"
    assert [p.name for p in tmp_path.iterdir()] == ["README.md"]
