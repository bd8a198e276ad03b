"""FileStore: the contract, the files, what is odd about a folder, and clean-up."""

import json
import os
import stat
import tracemalloc

import pytest

from sessionlog import files
from sessionlog.conversation.stores import file
from sessionlog.conversation.stores.file import FileStore
from sessionlog.errors import InvalidHistory, InvalidSessionId, LogNotReadable, SessionNotSaved, StaleSession
from sessionlog.testing import FixedClock, SessionStoreContract
from tests.reliability.children import fork, in_child, wait

NOBODY = 65534
DAY = 86_400


class TestFileStore(SessionStoreContract):
    """What every store promises."""

    def make_store(self, tmp_path):
        return FileStore(tmp_path / "sessions")


@pytest.fixture
def store(tmp_path):
    """A store that need not be made first."""
    return FileStore(tmp_path / "sessions")


def age(store, session_id, seconds):
    """Let a session have been saved so long ago."""
    path = os.path.join(store.directory, f"{session_id}.json")
    then = os.stat(path).st_mtime_ns - int(seconds * 1e9)
    os.utime(path, ns=(then, then))


def names(store):
    """What is in the folder."""
    return sorted(os.listdir(store.directory))


def test_the_file_is_json_that_anybody_can_read(store):
    """One line, with what was saved as it was."""
    store.save("s-1", {"version": "its own", "messages": ["grüße"]})
    with open(os.path.join(store.directory, "s-1.json"), "rb") as file:
        content = file.read()
    told = json.loads(content)
    assert (told["schema"], told["version"], told["session_id"]) == ("sessionlog.saved/1", 1, "s-1")
    assert told["data"] == {"version": "its own", "messages": ["grüße"]}
    assert (content.count(b"\n"), content[-1:]) == (1, b"\n")
    assert told["saved_at"].endswith("Z")


def test_nobody_else_may_read_it(tmp_path):
    """Whatever the umask says."""

    def work():
        os.umask(0)
        store = FileStore(tmp_path / "a" / "b")
        store.save("s", {})
        paths = [store.directory, os.path.dirname(store.directory)]
        paths += [os.path.join(store.directory, name) for name in names(store)]
        return [stat.S_IMODE(os.stat(path).st_mode) for path in paths]

    assert in_child(work) == [0o700, 0o700, 0o600, 0o600, 0o600]


def test_nothing_is_made_before_the_first_save(store):
    """Looking changes nothing."""
    assert (store.list_sessions(), store.load("s"), store.exists("s"), store.delete("s"), store.clean()) == (
        [], None, False, False, [],
    )  # fmt: skip
    assert not os.path.exists(store.directory)


def test_a_later_change_of_folder_moves_nothing(tmp_path, monkeypatch):
    """A relative folder is that of the moment when the store was made."""
    monkeypatch.chdir(tmp_path)
    store = FileStore("sessions")
    monkeypatch.chdir("/")
    store.save("s", {})
    assert (tmp_path / "sessions" / "s.json").exists()


@pytest.mark.parametrize("odd", ["../s", "/tmp/s", "a/b", "", ".", "..", "a..b", ".hidden", "nul", "a\x00", "x" * 129])
def test_an_id_never_leaves_the_folder(store, odd):
    """It is a file name everywhere, or no id."""
    for call in (store.load, store.exists, store.delete, lambda name: store.save(name, {})):
        with pytest.raises(InvalidSessionId):
            call(odd)
    assert not os.path.exists(store.directory)


def test_ids_that_differ_in_case_only(store):
    """On some file systems they are one file."""
    store.save("Alice", {})
    with pytest.raises(InvalidSessionId, match="'alice' differs from 'Alice' in case only"):
        store.save("alice", {})
    assert store.list_sessions() == ["Alice"]


def test_another_sessions_file_is_not_taken_for_it(store):
    """A renamed file says so; so does `s` where the file system finds `S`."""
    store.save("a", {"v": "a"})
    os.rename(os.path.join(store.directory, "a.json"), os.path.join(store.directory, "b.json"))
    with pytest.raises(InvalidHistory, match=r"b\.json: it is session 'a'; rename it, or load that id"):
        store.load("b")


BROKEN = {
    "empty": b"",
    "half": b'{"schema":"sessionlog.saved/1","version":1,"session_id":"s","saved_at":"x","data":{"messages":["he',
    "without its end": b'{"schema":"sessionlog.saved/1","version":1,"session_id":"s","data":{}}',
    "no JSON": b"hello",
    "a list": b"[1]\n",
    "another program's": b'{"name":"left-pad","version":"1.0.0"}\n',
    "a newer one": b'{"schema":"sessionlog.saved/2","version":1,"session_id":"s","data":{}}\n',
    "zeros": b"\x00" * 200,
    "no data": b'{"schema":"sessionlog.saved/1","version":1,"session_id":"s","data":[{}]}\n',
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_named_and_left_as_it_is(store, kind):
    """By load and by save; only an explicit delete takes it away."""
    store.save("other", {})
    path = os.path.join(store.directory, "s.json")
    with open(path, "wb") as file:
        file.write(BROKEN[kind])
    if kind != "without its end":
        with pytest.raises(InvalidHistory, match=r"s\.json: .*"):
            store.load("s")
    if kind != "no data":
        with pytest.raises(InvalidHistory, match=r"s\.json: the file there is .*; it is left as it is: move it away"):
            store.save("s", {"v": 2})
    with open(path, "rb") as file:
        assert file.read() == BROKEN[kind]
    assert "other" in store.list_sessions()
    assert store.clean() == []
    assert store.delete("s")
    store.save("s", {"v": 3})
    assert store.load("s") == {"v": 3}


def test_foreign_files_are_neither_listed_nor_removed(store):
    """Not even by a store that keeps one session."""
    os.makedirs(os.path.join(store.directory, "folder.json"))
    for name in ("package.json", "notes.txt", ".hidden.json", ".json.swp"):
        with open(os.path.join(store.directory, name), "w") as file:
            file.write("{}")
    few = FileStore(store.directory, max_count=1)
    few.save("a", {})
    few.save("b", {})
    assert few.list_sessions() == ["b"]
    assert names(store) == [
        ".counter", ".hidden.json", ".json.swp", ".lock", "b.json", "folder.json", "notes.txt", "package.json",
    ]  # fmt: skip


def test_a_link_is_not_written_through(store, tmp_path):
    """What it leads to stays as it is."""
    (tmp_path / "target").write_text("mine")
    store.save("other", {})
    os.symlink(tmp_path / "target", os.path.join(store.directory, "s.json"))
    with pytest.raises(SessionNotSaved, match=r"s\.json: not saved: it is a link"):
        store.save("s", {})
    assert (tmp_path / "target").read_text() == "mine"
    assert store.delete("s")
    assert (tmp_path / "target").read_text() == "mine"


def test_a_dangling_link_is_not_nothing(store, tmp_path):
    """It exists, and says why it cannot be read."""
    store.save("other", {})
    os.symlink(tmp_path / "nowhere", os.path.join(store.directory, "s.json"))
    assert store.exists("s")
    with pytest.raises(LogNotReadable):
        store.load("s")


@pytest.mark.parametrize("name", [".lock", ".counter"])
def test_a_link_in_place_of_its_own_files(store, tmp_path, name):
    """Nothing is written into another's file."""
    (tmp_path / "target").write_text("7\n")
    store.save("s", {"v": 1})
    os.unlink(os.path.join(store.directory, name))
    os.symlink(tmp_path / "target", os.path.join(store.directory, name))
    if name == ".lock":
        with pytest.raises(SessionNotSaved, match="not saved"):
            store.save("s", {"v": 2})
    else:
        assert store.save("s", {"v": 2}) == 8
    assert (tmp_path / "target").read_text() == "7\n"


def test_a_pipe_does_not_hang_it(store):
    """Only regular files are opened."""
    store.save("other", {})
    os.mkfifo(os.path.join(store.directory, "s.json"))
    with pytest.raises(LogNotReadable, match="not a regular file"):
        store.load("s")
    with pytest.raises(SessionNotSaved, match=r"s\.json: not saved: not a regular file; it is unchanged"):
        store.save("s", {})
    assert store.list_sessions() == ["other"]


def test_a_file_in_the_folders_place(tmp_path):
    """It is said so, and it stays."""
    (tmp_path / "sessions").write_text("in the way")
    store = FileStore(tmp_path / "sessions")
    with pytest.raises(SessionNotSaved, match="not saved: not a directory"):
        store.save("s", {})
    assert store.load("s") is None
    with pytest.raises(LogNotReadable):
        store.list_sessions()
    assert (tmp_path / "sessions").read_text() == "in the way"


def test_a_folder_that_may_only_be_read(tmp_path):
    """What is there can be loaded; a save says why not, and changes nothing."""
    if os.geteuid() != 0:
        pytest.skip("another user is needed")
    place = tmp_path / "sessions"
    FileStore(place).save("s", {"v": 1})
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == 0 and not path.stat().st_mode & 0o005:
            os.chmod(path, 0o755)

    def work():
        os.chmod(place, 0o555)
        for name in os.listdir(place):
            os.chown(place / name, NOBODY, NOBODY)
        os.setuid(NOBODY)
        store, said = FileStore(place), []
        loaded = store.load("s")
        for call in (lambda: store.save("s", {"v": 2}), lambda: store.save("new", {}), lambda: store.delete("s")):
            try:
                call()
            except SessionNotSaved as error:
                said.append(str(error))
        assert store.load("s") == loaded
        return [loaded, store.list_sessions(), said]

    loaded, listed, said = in_child(work)
    assert (loaded, listed, len(said)) == ({"v": 1}, ["s"], 3)
    assert all("permission denied" in sentence for sentence in said)


def test_somebody_elses_file_is_not_read_as_none(tmp_path):
    """Without permission a session is not missing: who begins it anew would lose it."""
    if os.geteuid() != 0:
        pytest.skip("another user is needed")
    place = tmp_path / "sessions"
    FileStore(place).save("s", {"v": 1})
    for path in (place, tmp_path, *tmp_path.parents):
        if path.stat().st_uid == 0 and not path.stat().st_mode & 0o005:
            os.chmod(path, 0o755)

    def work():
        os.setuid(NOBODY)
        try:
            return FileStore(place).load("s")
        except LogNotReadable as error:
            return str(error)

    assert in_child(work) == f"{place}/s.json: permission denied"


def test_the_last_writer_does_not_win(store):
    """The seed's files were those of whoever saved last, in silence."""
    other = FileStore(store.directory)
    store.save("s", {"by": "us"})
    with pytest.raises(StaleSession, match=r"stored already \(version 1\) and was not loaded"):
        other.save("s", {"by": "them, who never looked"})
    theirs = other.load("s")
    store.save("s", {"by": "us again"})
    with pytest.raises(StaleSession, match=r"\(version 2, this one comes from 1\)"):
        other.save("s", theirs)
    assert store.load("s") == {"by": "us again"}


def test_saves_within_one_second_have_an_order(store):
    """Also if a clock stands still, or goes back by a year."""
    clock = FixedClock(step_ns=0)
    store = FileStore(store.directory, clock=clock)
    store.save("a", {})
    store.save("b", {})
    clock.advance(-365 * DAY)
    store.save("c", {})
    age(store, "c", 365 * DAY)
    store.save("a", {})
    assert store.list_sessions() == ["a", "c", "b"]


@pytest.mark.parametrize("lost", [None, b"", b"x\n", b"2\n"], ids=["missing", "empty", "odd", "from a backup"])
def test_a_counter_that_was_lost(store, lost):
    """It is found again, so that versions go on."""
    for name in ("a", "b", "c", "c"):
        store.save(name, {})
    place = os.path.join(store.directory, ".counter")
    os.unlink(place)
    if lost is not None:
        with open(place, "wb") as file:
            file.write(lost)
    again = FileStore(store.directory)
    again.load("c")
    assert again.save("c", {}) == 5
    assert again.save("d", {}) == 6
    assert again.list_sessions() == ["d", "c", "b", "a"]


def test_a_folder_that_was_removed_is_made_again(store):
    """A session that goes on is kept."""
    store.save("s", {"v": 1})
    for name in names(store):
        os.unlink(os.path.join(store.directory, name))
    os.rmdir(store.directory)
    store.save("s", {"v": 2})
    assert store.load("s") == {"v": 2}


def test_a_lock_that_others_keep(store, monkeypatch):
    """A stopped process must not hang this one: it says so after a while."""
    monkeypatch.setattr(file, "WAIT_SECONDS", 0.005)
    store.save("s", {"v": 1})
    holder = files.AppendFile(store.directory, ".lock")
    assert files.lock(holder.fd)
    with pytest.raises(SessionNotSaved, match=r"not saved: \.lock is kept locked by others"):
        store.save("s", {"v": 2})
    assert store.load("s") == {"v": 1}
    holder.close()
    store.save("s", {"v": 2})


def test_a_child_forked_in_the_middle_of_a_save_keeps_no_lock(store, monkeypatch):
    """It holds the lock's descriptor for as long as it lives."""
    monkeypatch.setattr(file, "WAIT_SECONDS", 0.005)
    reading, writing = os.pipe()
    with store._locked():
        child = fork(lambda: os.read(reading, 1))
    try:
        store.save("s", {})
    finally:
        os.write(writing, b"x")
        assert wait(child) == 0
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("counter", [b"9" * 25, b"9" * 18, b"9" * 31 + b"\n", b"", b"\x00" * 9, b"-5"])
def test_a_damaged_counter_is_found_again_in_the_files(tmp_path, counter):
    """A number that no counter reaches would make files that no store takes for its own."""
    store = FileStore(tmp_path / "s")
    assert [store.save(name, {"v": 1}) for name in ("a", "b")] == [1, 2]
    (tmp_path / "s" / ".counter").write_bytes(counter)
    fresh = FileStore(tmp_path / "s")
    loaded = fresh.load("a")
    assert fresh.save("a", loaded) == 3
    assert fresh.save("a", loaded) == 4
    assert fresh.list_sessions() == ["a", "b"]


def test_a_version_without_a_next_one_is_refused(tmp_path):
    """The file stays what it is."""
    store = FileStore(tmp_path / "s")
    store.save("a", {"v": 1})
    path = tmp_path / "s" / "a.json"
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":999999999999999999'))
    before = path.read_bytes()
    loaded = store.load("a")
    with pytest.raises(SessionNotSaved, match="there is no version after 999999999999999999; use another folder"):
        store.save("a", loaded)
    assert path.read_bytes() == before


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    """It is refused by name, at once, and stays as it is."""
    store = FileStore(tmp_path / "s")
    store.save("a", {"v": 1})
    path = tmp_path / "s" / "a.json"
    os.truncate(path, 3 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidHistory, match=r"a\.json: 3,221,225,472 bytes are too many for a session"):
            store.load("a")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(InvalidHistory, match="half written"):
        store.save("a", {"v": 2})
    assert path.stat().st_size == 3 << 30
    assert store.delete("a")


def test_what_could_not_be_loaded_again_is_not_saved(tmp_path, monkeypatch):
    """The largest session that is saved is one that is loaded."""
    monkeypatch.setattr(file, "LARGEST", 10_000)
    store = FileStore(tmp_path / "s")
    with pytest.raises(InvalidHistory, match=r"session 'a': 9,008 bytes are too many .* nothing was saved"):
        store.save("a", {"v": "x" * 9_000})
    store.save("a", {"v": "x" * 8_900})
    assert store.load("a") == {"v": "x" * 8_900}
