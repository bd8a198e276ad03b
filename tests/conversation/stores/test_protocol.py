"""What a store is, and the versions of what it gives."""

import copy
import pickle

import pytest

from sessionlog.conversation.stores.file import FileStore
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.stores.protocol import Saved, SessionStore, check_version
from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.errors import StaleSession


def test_saved_is_a_dict_with_a_version():
    """It equals any other dict, and copies as a whole."""
    saved = Saved({"a": [1]}, version=3)
    assert (saved, saved.version, Saved().version) == ({"a": [1]}, 3, None)
    for twin in (copy.deepcopy(saved), pickle.loads(pickle.dumps(saved))):
        assert (twin, twin.version) == (saved, 3)


def test_ours_are_stores(tmp_path):
    """And a dict is none."""
    with SQLiteStore(tmp_path / "s.db") as sqlite:
        assert all(isinstance(store, SessionStore) for store in (MemoryStore(), FileStore(tmp_path), sqlite))
    assert not isinstance({}, SessionStore)


def test_who_derives_from_it_gets_exists():
    """By loading."""

    class Little(SessionStore):
        def load(self, session_id):
            return {} if session_id == "k" else None

        save = delete = list_sessions = None

    assert (Little().exists("k"), Little().exists("other")) == (True, False)


@pytest.mark.parametrize(("seen", "stored"), [(None, None), (3, None), (3, 3)])
def test_what_has_been_seen_or_is_gone_can_be_saved(seen, stored):
    """Nothing is lost by it, unlike where another one is stored."""
    assert check_version("k", seen, stored) is None
    with pytest.raises(StaleSession):
        check_version("k", seen, 4)


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (None, r"session 'k' is stored already \(version 4\) and was not loaded; load it"),
        (3, r"session 'k' was saved by another writer \(version 4, this one comes from 3\); load it"),
        (5, r"\(version 4, this one comes from 5\)"),
    ],
)
def test_another_version_is_refused(seen, says):
    """Naming the session, both versions, and what to do."""
    with pytest.raises(StaleSession, match=says):
        check_version("k", seen, 4)
