"""AppendFile: descriptors that are closed by somebody else, or cannot be asked about."""

import os

import pytest

from sessionlog import files
from sessionlog.files import AppendFile


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
        without_memory.setattr(files.os, "fstat", fstat)
        file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
