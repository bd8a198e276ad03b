"""FileStore's clean-up: old files go, and nothing else."""

import os
from datetime import timedelta

import pytest

from sessionlog.conversation.stores.file import FileStore
from sessionlog.errors import SessionNotSaved
from sessionlog.testing import FixedClock

DAY = 86_400


def age(store, session_id, seconds):
    """Let a session have been saved so long ago."""
    path = os.path.join(store.directory, f"{session_id}.json")
    then = os.stat(path).st_mtime_ns - int(seconds * 1e9)
    os.utime(path, ns=(then, then))


def test_by_age(tmp_path):
    """What was saved longer ago is removed at the next save."""
    store = FileStore(tmp_path, max_age=timedelta(days=30))
    for name in ("old", "young", "oldest"):
        store.save(name, {})
    age(store, "old", 31 * DAY)
    age(store, "oldest", 300 * DAY)
    age(store, "young", 29 * DAY)
    store.save("new", {})
    assert store.list_sessions() == ["new", "young"]


def test_by_count(tmp_path):
    """The newest stay, whatever their files' times say."""
    store = FileStore(tmp_path, max_count=3)
    for name in ("a", "b", "c", "a", "d"):
        store.save(name, {})
    age(store, "d", 300 * DAY)
    store.save("e", {})
    assert store.list_sessions() == ["e", "d", "a"]


def test_not_what_was_just_saved(tmp_path):
    """Not even if the clock is a year ahead of the files' times."""
    clock = FixedClock("2040-01-01T00:00:00Z")
    store = FileStore(tmp_path, max_age=1, max_count=1, clock=clock)
    store.save("a", {})
    assert store.list_sessions() == ["a"]


def test_not_what_another_process_saved_a_moment_ago(tmp_path):
    """A store that has looked before looks again."""
    store, other = FileStore(tmp_path, max_age=30 * DAY), FileStore(tmp_path)
    store.save("s", {})
    other.save("theirs", {"v": 1})
    age(store, "theirs", 31 * DAY)
    assert store.list_sessions() == ["theirs", "s"]
    other.save("theirs", {"v": 2})
    assert store.clean() == []
    assert store.load("theirs") == {"v": 2}


def test_on_demand(tmp_path):
    """It says what went; without limits nothing does."""
    store = FileStore(tmp_path)
    for name in ("a", "b", "c"):
        store.save(name, {})
    age(store, "a", 100)
    assert store.clean() == []
    assert FileStore(tmp_path, max_age=50).clean() == ["a"]
    assert FileStore(tmp_path, max_count=1).clean() == ["b"]
    assert store.list_sessions() == ["c"]


def test_what_was_removed_can_be_saved_again(tmp_path):
    """A session that is still open is not lost by clean-up."""
    store = FileStore(tmp_path)
    store.save("s", {"v": 1})
    mine = store.load("s")
    age(store, "s", 100)
    FileStore(tmp_path, max_age=50).clean()
    mine["v"] = 2
    store.save("s", mine)
    assert store.load("s") == {"v": 2}


def test_what_killed_processes_left(tmp_path):
    """Unfinished files go at a store's first save, and at a clean-up."""
    store = FileStore(tmp_path)
    left = (".s.json.a1b2c3d4", "..counter.zzzz_999")
    for action in (lambda: store.save("s", {}), store.clean):
        for name in left:
            (tmp_path / name).write_text("{")
        action()
        assert sorted(os.listdir(tmp_path)) == [".counter", ".lock", "s.json"]


def test_a_clean_up_that_fails_fails_no_save(tmp_path, monkeypatch):
    """It is tried again at the next one."""
    store = FileStore(tmp_path, max_count=1)
    store.save("a", {})
    with monkeypatch.context() as patch:
        patch.setattr(FileStore, "_remove", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
        assert store.save("b", {}) == 2
        with pytest.raises(SessionNotSaved, match="not cleaned"):
            store.clean()
    assert store.list_sessions() == ["b", "a"]
    store.save("b", {})
    assert store.list_sessions() == ["b"]


@pytest.mark.parametrize("options", [{"max_age": 0}, {"max_age": -1}, {"max_age": timedelta()}, {"max_count": 0}])
def test_a_store_that_keeps_nothing_is_a_mistake(tmp_path, options):
    """None keeps all."""
    with pytest.raises(ValueError, match="would keep no session"):
        FileStore(tmp_path, **options)


@pytest.mark.parametrize("limit", [{"max_age": float("inf")}, {"max_age": float("nan")}])
def test_a_limit_that_is_none(tmp_path, limit):
    """Before anything is saved."""
    with pytest.raises(ValueError, match="None keeps all"):
        FileStore(tmp_path, **limit)


@pytest.mark.parametrize("limit", [{"max_age": "7d"}, {"max_count": 1.5}, {"max_count": True}])
def test_a_limit_that_is_no_number(tmp_path, limit):
    """Named with its type."""
    with pytest.raises(TypeError, match=r"max_(age|count) is (str|float|bool); it is"):
        FileStore(tmp_path, **limit)
