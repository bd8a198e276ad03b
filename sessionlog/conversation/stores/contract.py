"""SessionStoreContract: a test class that every store has to pass.

    class TestMyStore(SessionStoreContract):
        def make_store(self, tmp_path):
            return MyStore(tmp_path / "sessions")

pytest collects the inherited tests. Stores without versions skip the tests of versions.
"""

from __future__ import annotations

import time
import unittest
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sessionlog.conversation.stores.protocol import Saved, SessionStore
from sessionlog.errors import StaleSession

_JSON: dict[str, Any] = {
    "schema": "sessionlog.session/1",
    "version": "a session's own field",
    "": "an empty key",
    "messages": [
        {"role": "user", "content": "grüße \U0001f600 \x00 \u2028 \"'\\ </script>"},
        {"role": "tool", "x": []},
    ],
    "numbers": [0, -1, 2**53 + 1, 2**70, 0.1, -0.0, 1e300],
    "nothing": None,
    "yes": True,
    "empty": {},
    "nested": {"a": {"b": [[[{"c": "d"}]]]}},
}
_ODD_IDS = (
    "",
    ".",
    "..",
    "../out",
    "a/b",
    "/etc/x",
    "a\\b",
    "a\nb",
    "a\x00b",
    "user:42",
    "%s",
    "a b",
    "é",
    "*",
    "CON",
    "K",
)


class SessionStoreContract:
    """What every session store promises, as tests.

    Attributes:
        is_shared: Two stores that `make_store` opens in one folder hold the same sessions, as two processes would.
    """

    is_shared = True

    def make_store(self, tmp_path: Path) -> SessionStore:
        """Return a store; a second call with the same folder opens the same store again."""
        raise NotImplementedError("make_store(self, tmp_path) returns the store to test")

    def test_what_is_saved_is_loaded(self, tmp_path: Path) -> None:
        """Every kind of JSON is loaded unchanged."""
        with self._store(tmp_path) as store:
            store.save("k", _JSON)
            _same(store.load("k"), _JSON)
            assert repr(store.load("k")) == repr(_JSON), "numbers of another type came back"

    def test_much_is_kept(self, tmp_path: Path) -> None:
        """A session of several megabytes is loaded unchanged."""
        many = {"messages": [{"role": "user", "content": "x" * 1000, "n": n} for n in range(2000)]}
        with self._store(tmp_path) as store:
            store.save("k", many)
            assert store.load("k") == many, "a large session came back changed"

    def test_what_is_not_there(self, tmp_path: Path) -> None:
        """A missing session loads as None, does not exist, and cannot be deleted."""
        with self._store(tmp_path) as store:
            store.save("other", {})
            _same((store.load("k"), store.exists("k"), store.delete("k")), (None, False, False))

    def test_an_empty_store(self, tmp_path: Path) -> None:
        """An empty store lists nothing, and is still true."""
        with self._store(tmp_path) as store:
            _same((store.list_sessions(), store.exists("k"), store.load("k")), ([], False, None))
            assert store, "an empty store is false: `store or other` would use the other"

    def test_saving_again_replaces(self, tmp_path: Path) -> None:
        """`load` returns the last save, with nothing of earlier ones."""
        with self._store(tmp_path) as store:
            store.save("k", {"v": 1, "old": True})
            store.save("k", {"v": 2})
            _same((store.load("k"), store.list_sessions()), ({"v": 2}, ["k"]))

    def test_it_keeps_copies(self, tmp_path: Path) -> None:
        """Changes to a dict after it was saved or loaded do not change the store."""
        data: dict[str, Any] = {"messages": [{"content": "kept"}]}
        with self._store(tmp_path) as store:
            store.save("k", data)
            data["messages"][0]["content"] = "changed after saving"
            data["more"] = True
            loaded = _loaded(store, "k")
            _same(loaded, {"messages": [{"content": "kept"}]})
            loaded["messages"].append("changed after loading")
            _same(store.load("k"), {"messages": [{"content": "kept"}]})

    def test_deleting(self, tmp_path: Path) -> None:
        """A deleted session is gone, the others stay, and it can be saved again."""
        with self._store(tmp_path) as store:
            store.save("k", {"v": 1})
            store.save("other", {"v": 2})
            _same((store.delete("k"), store.delete("k")), (True, False))
            _same((store.load("k"), store.exists("k"), store.list_sessions()), (None, False, ["other"]))
            store.save("k", {"v": 3})
            _same((store.load("k"), store.exists("k"), store.load("other")), ({"v": 3}, True, {"v": 2}))

    def test_the_most_recently_saved_is_first(self, tmp_path: Path) -> None:
        """Sessions are listed by their last save, also within one second; loading does not change the order."""
        with self._store(tmp_path) as store:
            for name in ("a", "b", "c", "d"):
                store.save(name, {})
            store.save("b", {"again": True})
            store.save("a", {"again": True})
            _same(store.list_sessions(), ["a", "b", "d", "c"])
            store.load("c")
            _same(store.list_sessions(), ["a", "b", "d", "c"])

    def test_ids_are_kept_apart(self, tmp_path: Path) -> None:
        """An odd id raises a ValueError or is kept unchanged: two ids are never one session."""
        with self._store(tmp_path) as store:
            kept = {"k": {"id": "k"}}
            store.save("k", {"id": "k"})
            for name in _ODD_IDS:
                with suppress(ValueError):
                    store.save(name, {"id": name})
                    kept[name] = {"id": name}
            _same({name: store.load(name) for name in kept}, kept)
            _same(sorted(store.list_sessions()), sorted(kept))

    def test_what_is_not_json_is_refused(self, tmp_path: Path) -> None:
        """Data that is not JSON raises TypeError or ValueError, and the stored session stays."""
        with self._store(tmp_path) as store:
            store.save("k", {"v": 1})
            for odd in (object(), b"bytes", {1, 2}):
                data = {"messages": [{"content": odd}]}
                _raises((TypeError, ValueError), partial(store.save, "k", data))
            _same((store.load("k"), store.list_sessions()), ({"v": 1}, ["k"]))

    def test_threads_share_it(self, tmp_path: Path) -> None:
        """Many threads save and load many sessions at once."""
        with self._store(tmp_path) as store:

            def work(number: int) -> None:
                name = f"s{number}"
                for count in range(5):
                    store.save(name, {"count": count, "text": "x" * number * 100})
                    assert _loaded(store, name)["count"] == count, f"{name}: another save was loaded"
                store.list_sessions()

            with ThreadPoolExecutor(8) as threads:
                list(threads.map(work, range(16)))
            _same(sorted(store.list_sessions()), sorted(f"s{number}" for number in range(16)))

    def test_it_remembers(self, tmp_path: Path) -> None:
        """A second store of the same folder has the sessions of the first, and sees its later changes."""
        if not self.is_shared:
            raise unittest.SkipTest("this store is not shared")
        with self._store(tmp_path) as first:
            first.save("a", {"v": 1})
            first.save("b", {"v": 2})
        with self._store(tmp_path) as first, self._store(tmp_path) as second:
            _same((second.list_sessions(), second.load("a"), second.exists("b")), (["b", "a"], {"v": 1}, True))
            loaded = _loaded(first, "a")
            loaded["v"] = 3
            first.save("a", loaded)
            _same((second.list_sessions(), second.load("a")), (["a", "b"], {"v": 3}))
            second.delete("b")
            _same((first.exists("b"), first.list_sessions()), (False, ["a"]))

    def test_a_lost_update_is_an_error(self, tmp_path: Path) -> None:
        """Saving over a version that the saver has not loaded raises StaleSession and changes nothing."""
        with self._versioned(tmp_path) as store:
            store.save("k", {"messages": ["hello"]})
            one, other = _loaded(store, "k"), _loaded(store, "k")
            one["messages"].append("from one")
            other["messages"].append("from the other")
            store.save("k", one)
            error = _raises(StaleSession, lambda: store.save("k", other))
            assert "'k'" in str(error), f"the message names no session: {error}"
            _same(store.load("k"), {"messages": ["hello", "from one"]})
            again = _loaded(store, "k")
            again["messages"].append("from the other")
            store.save("k", again)
            _same(store.load("k"), {"messages": ["hello", "from one", "from the other"]})

    def test_a_save_returns_the_version_to_go_on_from(self, tmp_path: Path) -> None:
        """The version from a save allows the next save without a load in between."""
        with self._versioned(tmp_path) as store:
            version = store.save("k", {"turn": 0})
            for turn in range(1, 4):
                before, version = version, store.save("k", Saved({"turn": turn}, version=version))
                assert version != before, "two saves have one version"
            loaded = store.load("k")
            _same((loaded, getattr(loaded, "version", None)), ({"turn": 3}, version))

    def test_a_session_begun_anew_is_another(self, tmp_path: Path) -> None:
        """A session that was deleted and saved again cannot be overwritten from a copy of the deleted one."""
        with self._versioned(tmp_path) as store:
            store.save("k", {"v": "old"})
            old = _loaded(store, "k")
            store.delete("k")
            store.save("k", {"v": "new"})
            _raises(StaleSession, lambda: store.save("k", old))
            _same(store.load("k"), {"v": "new"})

    def test_no_update_is_lost_between_threads(self, tmp_path: Path) -> None:
        """Threads that load, count up and save, and load again on StaleSession, lose no count."""
        with self._versioned(tmp_path) as store:
            store.save("k", {"count": 0})

            def work(_: int) -> None:
                for _ in range(10):
                    _count_up(store)

            with ThreadPoolExecutor(4) as threads:
                list(threads.map(work, range(4)))
            _same(store.load("k"), {"count": 40})

    @contextmanager
    def _store(self, tmp_path: Path) -> Iterator[SessionStore]:
        """Open a store; close it afterwards if it has `close`."""
        store = self.make_store(tmp_path)
        try:
            yield store
        finally:
            close = getattr(store, "close", None)
            if close is not None:
                close()

    @contextmanager
    def _versioned(self, tmp_path: Path) -> Iterator[SessionStore]:
        with self._store(tmp_path) as store:
            if store.save("probe", {}) is None:
                raise unittest.SkipTest("this store counts no versions: the last writer wins")
            store.delete("probe")
            yield store


def _loaded(store: SessionStore, session_id: str) -> dict[str, Any]:
    data = store.load(session_id)
    assert data is not None, f"{session_id} is not there"
    return data


def _count_up(store: SessionStore) -> None:
    while True:
        data = _loaded(store, "k")
        data["count"] += 1
        time.sleep(0.0005)  # so that other threads save in between
        with suppress(StaleSession):
            store.save("k", data)
            return


def _same(found: object, expected: object) -> None:
    assert found == expected, f"found {found!r}, expected {expected!r}"


def _raises(kind: type[Exception] | tuple[type[Exception], ...], call: Callable[[], object]) -> Exception:
    try:
        result = call()
    except kind as error:
        return error
    raise AssertionError(f"it returned {result!r} where it should have raised {kind}")
