"""P16: nothing is deleted, shortened or even opened for writing but by `check --repair`, which saves the bytes first."""

import os
import sys

import pytest

from tests.reliability.children import in_child
from tests.security.commands import run
from tests.security.every_command import all_commands, build_logs, run_line

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = frozenset({
    "os.remove", "os.rename", "os.truncate", "os.chmod", "os.chown", "os.link", "os.symlink", "os.mkdir", "os.rmdir",
    "os.utime", "os.setxattr", "shutil.move", "shutil.copyfile", "shutil.rmtree",
})  # fmt: skip


def everything(folders):
    """Path → bytes, mode, time, inode of all files and the names in all folders."""
    found = {}
    for top in folders:
        for folder, names, files in os.walk(top):
            found[folder] = sorted(names + files)
            for name in files:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                with open(path, "rb") as file:
                    found[path] = file.read(), status.st_mode, status.st_mtime_ns, status.st_ino
    return found


def watch(folders, touched):
    """Note, for the rest of this process, whatever would change something below these folders."""
    tops = tuple(f"{folder}{os.sep}" for folder in folders)
    logs = {name for folder in folders for _, _, files in os.walk(folder) for name in files}

    def hook(event, args):
        if event == "open":
            path, _, flags = args
            changes = isinstance(flags, int) and flags & _WRITES
        else:
            path, changes = (args[0] if args else None), event in _CHANGES
        if not changes or not isinstance(path, str | bytes):
            return
        path = os.fsdecode(path)
        # A name alone is one in a folder that is open, which the event does not tell.
        below = path.startswith(tops) if os.path.isabs(path) else path.removesuffix(".quarantine") in logs
        if below:
            touched.append([event, path])

    sys.addaudithook(hook)


@pytest.mark.parametrize("which", range(4))
def test_p16_no_command_changes_a_log(tmp_path, monkeypatch, which):
    """Every command but `check --repair` leaves every file and folder of every agent as it was, to the inode."""
    folders = build_logs(tmp_path, monkeypatch)
    before = everything(folders)
    lines = all_commands(folders[1])[which::4]

    def work():
        touched = []
        watch([os.path.realpath(folder) for folder in folders], touched)
        codes = {" ".join(line): run_line(line).code for line in lines}
        return codes, touched

    codes, touched = in_child(work)
    assert {line: code for line, code in codes.items() if code not in {0, 1, 3}} == {}
    assert touched == []
    assert everything(folders) == before


def test_p16_the_watch_sees_a_repair(tmp_path, monkeypatch):
    """Else the test above could not fail; the damaged bytes are saved before the log is replaced."""
    folders = build_logs(tmp_path, monkeypatch)
    damaged = folders[1] / "damaged.jsonl"
    before = damaged.read_bytes()

    def work():
        touched = []
        watch([os.path.realpath(folder) for folder in folders], touched)
        return run("check", "--repair", str(damaged)).code, touched

    code, touched = in_child(work)
    assert code in {0, 1}
    names = [os.path.basename(path) for _, path in touched]
    assert "damaged.jsonl.quarantine" in names
    assert any(event == "os.rename" for event, _ in touched)
    assert [event for event, _ in touched][-1] != "os.remove"
    saved = (folders[1] / "damaged.jsonl.quarantine").read_bytes()
    after = damaged.read_bytes()
    for line in before.splitlines():
        assert line in after or line in saved
