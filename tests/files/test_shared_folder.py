"""Logs of one folder share its descriptor."""

import os

from sessionlog import files
from tests.reliability.seam import put


def test_a_folder_that_is_being_closed_is_not_shared(tmp_path, monkeypatch):
    """Another thread may open a log of the folder while the last one there is being closed."""
    first, opened, close = files.AppendFile(str(tmp_path), "a.jsonl"), [], files.close

    def close_beside_another_thread(fd):
        if not opened and os.path.samestat(os.fstat(fd), tmp_path.stat()):
            opened.append(files.AppendFile(str(tmp_path), "b.jsonl"))
        close(fd)

    put(monkeypatch, "close", close_beside_another_thread)
    first.close()
    del first
    [second] = opened
    second.append(b"{}\n")
    assert os.path.samestat(os.fstat(second._folder), tmp_path.stat())
    second.close()


def test_the_last_log_closes_the_folder(tmp_path):
    """No sooner."""
    first, second = (files.AppendFile(str(tmp_path), name) for name in ("a.jsonl", "b.jsonl"))
    folder = first._folder
    assert second._folder == folder
    first.close()
    del first
    assert os.path.samestat(os.fstat(folder), tmp_path.stat())
    second.close()
    del second
    assert not os.path.exists(f"/proc/self/fd/{folder}") or not os.path.samestat(
        os.stat(f"/proc/self/fd/{folder}"), tmp_path.stat()
    )
