"""The seam to the operating system: descriptors that others close, locks that stay, folders, small files."""

import os

import pytest

from sessionlog import files
from sessionlog.errors import LogNotReadable
from sessionlog.files import AppendFile
from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.children import in_child
from tests.reliability.seam import put


def test_a_descriptor_that_the_host_has_closed_is_left_alone(tmp_path):
    """Its number may be another file's by now."""
    file = AppendFile(str(tmp_path), "s.jsonl")
    number = file.fd
    with open(os.devnull, "rb") as other:
        os.dup2(other.fileno(), number)  # which closes the log
    file.close()
    os.close(number)  # it is still open


def test_a_descriptor_that_is_closed_already(tmp_path):
    """Nothing is left to do."""
    file = AppendFile(str(tmp_path), "s.jsonl")
    os.close(file.fd)
    file.close()
    assert file.fd == -1


def test_without_memory_descriptors_are_closed_all_the_same(tmp_path, monkeypatch):
    """Whose they are cannot be asked then, and keeping them would be worse."""
    file = AppendFile(str(tmp_path), "s.jsonl")
    number = file.fd

    def fstat(fd):
        raise MemoryError

    with monkeypatch.context() as without_memory:
        without_memory.setattr(os, "fstat", fstat)
        file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not list a process's descriptors")
def test_a_descriptor_that_is_another_file_by_now_is_not_written_to(tmp_path):
    """The host closed all descriptors, and opened a file of its own: events go to the log all the same."""
    folder = tmp_path / "logs"
    log = SessionLogger(folder, "s", work_dir="/w", notify=lambda text: None)
    assert log.emit("progress", {"n": 0})
    number = next(int(fd) for fd in os.listdir("/proc/self/fd") if _leads_to(fd, log.path))
    (tmp_path / "other").write_bytes(b"the host's own\n")
    with open(tmp_path / "other", "ab") as other:
        os.dup2(other.fileno(), number)
        (folder / "new").touch()  # the folder has changed, so that the file is looked at
        assert log.emit("progress", {"n": 1})
        log.close()
    assert (tmp_path / "other").read_bytes() == b"the host's own\n"
    os.close(number)
    with open(log.path, "rb") as file:
        assert [b'"n":%d' % n in line for n, line in zip((0, 1), list(file)[1:3], strict=True)] == [True, True]


def _leads_to(fd, path):
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == path
    except OSError:
        return False


def test_a_lock_that_cannot_be_given_back(tmp_path, monkeypatch):
    """The line is in the file, and the next one is not glued to what others tear meanwhile."""
    fcntl = pytest.importorskip("fcntl")
    real = fcntl.flock

    def flock(fd, operation):
        if operation == fcntl.LOCK_UN:
            raise OSError(5, "Input/output error")
        return real(fd, operation)

    file = AppendFile(str(tmp_path), "s.jsonl")
    monkeypatch.setattr(fcntl, "flock", flock)
    file.append(b"one\n")
    with open(tmp_path / "s.jsonl", "ab") as other:
        other.write(b"torn")
    file.append(b"two\n")
    monkeypatch.undo()
    file.close()
    assert (tmp_path / "s.jsonl").read_bytes() == b"one\ntorn\ntwo\n"


def test_a_folder_is_ours_alone_whatever_the_umask(tmp_path):
    """Each parent that is made can be listed, written and entered by its owner, and by nobody else."""

    def make():
        os.umask(0o277)
        files.make_directories(str(tmp_path / "a" / "b"))
        return [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")]

    assert in_child(make) == [0o700, 0o700]


@pytest.mark.parametrize(("size", "read"), [(0, 0), (9, 9), (10, 10), (11, 10)])
def test_a_small_file_is_read_up_to_its_limit(tmp_path, size, read):
    """What is no small file does not fill the memory."""
    path = tmp_path / "config.toml"
    path.write_bytes(b"x" * size)
    assert files.read_small(str(path), 10) == b"x" * read
    assert files.read_small(str(tmp_path / "none"), 10) is None


def test_a_megabyte_is_small(tmp_path):
    """Where no limit is given."""
    path = tmp_path / "config.toml"
    path.write_bytes(b"x" * ((1 << 20) + 1))
    assert len(files.read_small(str(path))) == 1 << 20


def test_a_file_that_was_replaced_is_in_its_folder_after_a_crash(tmp_path, monkeypatch):
    """The rename is on the disk when `replace_file` returns."""
    synced = []
    put(monkeypatch, "sync_directory", synced.append)
    files.replace_file(str(tmp_path / "s.jsonl"), [b"x"])
    assert synced == [str(tmp_path)]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not list a process's descriptors")
def test_what_is_refused_is_closed(tmp_path):
    """A folder full of pipes does not use up the descriptors."""
    os.mkfifo(tmp_path / "pipe")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(LogNotReadable, match="not a regular file"):
            files.open_log(str(tmp_path / "pipe"))
    assert len(os.listdir("/proc/self/fd")) == before
