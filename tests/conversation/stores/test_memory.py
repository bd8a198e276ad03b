"""MemoryStore: the contract, copies, and what else it has."""

from threading import Event, Thread

import pytest

from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.errors import InvalidHistory, InvalidSessionId, StaleSession
from sessionlog.testing import SessionStoreContract
from tests.reliability.children import in_child


class TestMemoryStore(SessionStoreContract):
    """What every store promises."""

    is_shared = False

    def make_store(self, tmp_path):
        return MemoryStore()


def test_live_references_are_not_kept():
    """The seed's store gave back the caller's own dict, so that a change before the next save was there already."""
    store, data = MemoryStore(), {"a": 1}
    store.save("k", data)
    data["a"] = 2
    assert store.load("k") == {"a": 1}
    assert store.load("k") is not store.load("k")


def test_its_length_is_the_number_of_its_sessions():
    """And an empty one is true, so that `store or default` takes it."""
    store = MemoryStore()
    assert (len(store), bool(store)) == (0, True)
    store.save("a", {})
    store.save("b", {})
    store.save("a", {})
    assert len(store) == 2


def test_clear_forgets_all():
    """And what was there can be saved again."""
    store = MemoryStore()
    store.save("a", {"v": 1})
    store.save("b", {})
    store.clear()
    assert (len(store), store.list_sessions(), store.load("a")) == (0, [], None)
    store.save("a", {"v": 2})
    assert store.load("a") == {"v": 2}


def test_a_version_is_never_given_twice():
    """Not even after a delete or a clear."""
    store = MemoryStore()
    versions = [store.save("a", {}), store.save("b", {})]
    store.delete("a")
    versions.append(store.save("a", {}))
    store.clear()
    versions.append(store.save("a", {}))
    assert versions == [1, 2, 3, 4]


def test_a_loaded_session_can_be_saved_again_and_again():
    """A save moves its version on."""
    store = MemoryStore()
    store.save("k", {"n": 0})
    data = store.load("k")
    for number in range(1, 4):
        data["n"] = number
        assert store.save("k", data) == data.version == number + 1


def test_a_refused_save_changes_nothing():
    """Neither the session, nor the order, nor the version of what was not saved."""
    store = MemoryStore()
    store.save("k", {"v": 1})
    store.save("z", {})
    old = store.load("k")
    store.save("k", store.load("k"))
    store.save("z", {})
    with pytest.raises(StaleSession, match=r"'k' was saved by another writer \(version 3, this one comes from 1\)"):
        store.save("k", old)
    with pytest.raises(InvalidHistory, match=r"\['v'\]: bytes is not JSON"):
        store.save("k", {"v": b""})
    assert (store.list_sessions(), store.load("k").version, old.version) == (["z", "k"], 3, 1)


@pytest.mark.parametrize("odd", ["", None, 7, "half \ud800"])
def test_an_id_is_a_text(odd):
    """Whatever it says."""
    with pytest.raises(InvalidSessionId):
        MemoryStore().save(odd, {})


def test_a_forked_process_goes_on_with_a_copy():
    """Also if another thread was in the middle of a save."""
    store = MemoryStore()
    store.save("k", {"v": 1})
    is_saving, may_end = Event(), Event()

    def save():
        with store._lock:
            is_saving.set()
            may_end.wait(60)

    thread = Thread(target=save)
    thread.start()
    is_saving.wait(60)
    assert in_child(lambda: [store.save("k", {"v": 2}), store.load("k")]) == [2, {"v": 2}]
    may_end.set()
    thread.join()
    assert store.load("k") == {"v": 1}
