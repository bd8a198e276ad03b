"""LogFile: what it knows of the file that it appends to, and of what others have put there."""

import os

import pytest

from sessionlog.files import appending
from sessionlog.logger import log_file
from sessionlog.logger.log_file import LogFile
from sessionlog.logger.session_logger import SessionLogger

LINE = b'{"seq":0}\n'


@pytest.fixture
def log(tmp_path):
    """A log that nobody has opened yet."""
    made = LogFile(str(tmp_path), "s.jsonl", "os")
    yield made
    made.release()


def write_elsewhere(log, line=LINE):
    """Append as another process does."""
    with open(log.path, "ab") as file:
        file.write(line)
    return os.path.getsize(log.path)


def test_a_file_without_bytes_is_a_new_session(tmp_path, log):
    """A writer that was killed between opening and writing leaves one."""
    assert log.is_empty()
    (tmp_path / "s.jsonl").touch()
    assert log.is_empty()
    write_elsewhere(log)
    assert not log.is_empty()


def test_our_own_lines_are_nobody_elses(log):
    """Whether the file is open, was released, or was opened again."""
    log.open()
    assert log.foreign_end() == 0
    log.append(LINE)
    assert log.foreign_end() == 0
    log.release()
    assert log.foreign_end() == 0
    log.open()
    log.append(LINE)
    assert log.foreign_end() == 0


def test_lines_of_others_are_known_by_their_end(log):
    """Before the first open, between two appends, after the last one, and while the file is not open."""
    end = write_elsewhere(log)
    log.open()
    assert log.foreign_end() == end
    log.append(LINE)
    assert log.foreign_end() == end
    later = write_elsewhere(log)
    assert log.foreign_end() == later
    log.append(LINE)
    assert log.foreign_end() == later
    log.release()
    assert log.foreign_end() == later
    last = write_elsewhere(log)
    assert log.foreign_end() == last
    log.open()
    assert log.foreign_end() == last


def test_a_file_that_was_opened_and_not_written_to(log):
    """Opening says nothing of whose the lines are that come later."""
    log.open()
    log.append(LINE)
    log.release()
    log.open()
    log.release()
    assert log.foreign_end() == 0
    end = write_elsewhere(log)
    assert log.foreign_end() == end


def test_the_logger_knows_it_too(tmp_path):
    """A conversation asks its logger whether others have written."""
    log = SessionLogger(tmp_path, "s", work_dir="/w")
    assert log.emit("progress", {})
    assert log.foreign_end() == 0
    assert log.foreign_end() is not None
    end = write_elsewhere(log)
    assert log.foreign_end() == end


def test_a_log_that_was_deleted_while_it_was_released_begins_anew(tmp_path, monkeypatch):
    """After a loss the file is opened again; what is empty then gets a session.start."""
    log = SessionLogger(tmp_path, "s", work_dir="/w", notify=lambda text: None)
    assert log.emit("progress", {})

    def fail(lines):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(log, "_append", fail)
    assert not log.emit("progress", {})
    os.unlink(log.path)
    assert log.emit("progress", {})
    with open(log.path, "rb") as file:
        types = [line.partition(b'"type":"')[2].partition(b'"')[0] for line in file]
    assert types == [b"session.start", b"log.gap", b"progress"]


def test_a_file_that_took_its_place_has_no_lines_of_others(log):
    """What another file under that name holds is none of this session's, until it is opened."""
    log.open()
    log.append(LINE)
    os.unlink(log.path)
    assert log.foreign_end() == 0
    write_elsewhere(log, LINE * 3)
    assert log.foreign_end() == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not list a process's descriptors")
def test_a_file_that_cannot_be_used_is_closed(log, monkeypatch):
    """What fails after the open leaves no descriptor behind."""

    def fail(fd, size):
        raise OSError(5, "Input/output error")

    write_elsewhere(log)
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(log_file, "_next_seq", fail)
    kept = []
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output") as raised:
            log.open()
        kept.append(raised.value.__traceback__)  # as a debugger would: destructors do not close it by chance
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # the folder's, which all logs of it share
    assert not log.is_open


def test_numbers_go_on_behind_lines_that_were_taken_over(tmp_path, monkeypatch):
    """A log that is replaced while its writer has no lock: what was copied is not written twice, and its number stays used."""
    log = SessionLogger(tmp_path, "s", work_dir="/w", notify=lambda text: None)
    assert log.emit("progress", {"n": 0})
    appended = []

    def replaced_meanwhile(lines):
        appended.append(lines)
        write_elsewhere(log, lines)
        raise appending._replaced_meanwhile(lines)

    monkeypatch.setattr(log, "_append", replaced_meanwhile)
    assert log.emit("progress", {"n": 1})
    assert log.emit("progress", {"n": 2})
    log.close()
    with open(log.path, "rb") as file:
        seqs = [line.partition(b'"seq":')[2].partition(b",")[0] for line in file]
    assert len(appended) == 1
    assert seqs == [b"0", b"1", b"2", b"3", b"4"]  # start, three events, end
