"""P14, P15: whatever this program makes is for its owner alone, whatever the umask, and nothing is in a shared folder."""

import os
import shutil
import stat
import tempfile

import pytest

from sessionlog.conversation.stores.file import FileStore
from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.children import in_child
from tests.security.commands import run
from tests.security.every_command import build_logs, run_all


def modes_below(folder):
    """Path → mode of all files and folders below one, itself too."""
    found = {}
    for place, names, files in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in (*names, *files))):
            found[os.path.relpath(path, folder)] = stat.S_IMODE(os.lstat(path).st_mode)
    return found


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder in which the program finds its places, below parents that do not exist yet."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "made" / name.lower() / "below"))
    (tmp_path / "made").mkdir()
    return tmp_path / "made"


@pytest.mark.parametrize("umask", [0o000, pytest.param(0o022, marks=pytest.mark.slow), 0o777])
def test_p14_all_that_is_made_is_private(tmp_path, monkeypatch, made, umask):
    """Logs, stores, the ledger and what lies beside it, the archive, backups, quarantines and clean copies."""
    _, own = build_logs(tmp_path, monkeypatch)
    shutil.move(own, made / "own")
    monkeypatch.setenv("SESSIONLOG_DIR", str(made / "own"))
    written = modes_below(made / "own")

    def work():
        os.umask(umask)
        with SessionLogger(made / "a" / "b" / "c", "s", work_dir="/w") as log:
            log.emit("tool.call", {})
        FileStore(made / "d" / "files").save("s", {"messages": []})
        with SQLiteStore(made / "e" / "f" / "sessions.db") as store:
            store.save("s", {"messages": []})
        codes = {" ".join(line): outcome.code for line, outcome in run_all(made / "own")}
        return codes | {"repair": run("check", "--repair", str(made / "own" / "damaged.jsonl")).code}

    codes = in_child(work)
    assert {line: code for line, code in codes.items() if code not in {0, 1, 3}} == {}
    modes = modes_below(made)
    wide = {
        path: oct(mode) for path, mode in modes.items() if mode & 0o077 and path.partition("own/")[2] not in written
    }
    del wide["."], wide["own"]
    assert wide == {}
    assert any(path.endswith("ledger.sqlite") for path in modes)


def test_p15_nothing_is_made_in_the_shared_folder(tmp_path, monkeypatch, made):
    """Temporary files are beside what they become; copies of databases in use are in private folders, and go."""
    _, own = build_logs(tmp_path, monkeypatch)
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o777)
    seen = []

    def work():
        os.environ["TMPDIR"] = str(shared)
        tempfile.tempdir = None
        tempfile.gettempdir()  # which tries it with a file of its own, once
        real = os.open

        def watched(path, *args, **kwargs):
            descriptor = real(path, *args, **kwargs)
            folder = os.path.dirname(os.path.abspath(os.fsdecode(path)))
            if folder == str(shared) and args[0] & os.O_CREAT:  # removing a private folder opens it
                seen.append(os.fsdecode(path))
            return descriptor

        os.open = watched
        run_all(own)
        return seen, modes_below(shared)

    opened, left = in_child(work)
    assert opened == []
    del left["."]
    kept = {path.split(os.sep)[0] for path in left}  # a demonstration is there to be looked at
    assert [name for name in kept if not name.startswith("sessionlog-demo-")] == []
    assert {path: oct(mode) for path, mode in left.items() if mode & 0o077} == {}
