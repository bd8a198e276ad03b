"""The contract is worth something: each store that breaks a promise fails the test that is named for it."""

import copy
import inspect
import json
import subprocess
import sys
from unittest import SkipTest

import pytest

from sessionlog import testing
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.stores.protocol import Saved
from sessionlog.errors import StaleSession
from sessionlog.testing import SessionStoreContract


class Keeps:
    """A store in a dict that does all right, but has no versions; the others break it."""

    def __init__(self):
        self.kept = {}

    def save(self, session_id, data):
        text = json.dumps(data)
        self.kept.pop(session_id, None)
        self.kept[session_id] = json.loads(text)

    def load(self, session_id):
        return copy.deepcopy(self.kept.get(session_id))

    def delete(self, session_id):
        return self.kept.pop(session_id, None) is not None

    def list_sessions(self):
        return list(self.kept)[::-1]

    def exists(self, session_id):
        return session_id in self.kept


class KeepsReferences(Keeps):
    """A change after saving is in it."""

    def save(self, session_id, data):
        self.kept.pop(session_id, None)
        self.kept[session_id] = data


class GivesReferences(Keeps):
    """A change after loading is in it."""

    def load(self, session_id):
        return self.kept.get(session_id)


class OrdersByFirstSave(Keeps):
    """What is saved again stays where it was."""

    def save(self, session_id, data):
        self.kept[session_id] = json.loads(json.dumps(data))


class Merges(Keeps):
    """Old fields stay."""

    def save(self, session_id, data):
        super().save(session_id, {**self.kept.get(session_id, {}), **data})


class ForgetsFolders(Keeps):
    """`a/k` is `k`."""

    def _short(self, session_id):
        return session_id.rpartition("/")[2]

    def save(self, session_id, data):
        super().save(self._short(session_id), data)

    def load(self, session_id):
        return super().load(self._short(session_id))


class TakesAnything(Keeps):
    """An object becomes its name."""

    def save(self, session_id, data):
        super().save(session_id, json.loads(json.dumps(data, default=str)))


class DeletesAlways(Keeps):
    """Also what is not there."""

    def delete(self, session_id):
        super().delete(session_id)
        return True


class MakesEmptyOnes(Keeps):
    """What is not there is empty."""

    def load(self, session_id):
        return super().load(session_id) or {}


class IsFalseWhenEmpty(Keeps):
    """As containers are."""

    def __len__(self):
        return len(self.kept)


class HidesAbsence(Keeps):
    """All exist."""

    def exists(self, session_id):
        return True


class Rounds(Keeps):
    """Integers come back as floats."""

    def load(self, session_id):
        loaded = super().load(session_id)
        return loaded and json.loads(json.dumps(loaded), parse_int=float)


class Counts(MemoryStore):
    """Has versions; made of ours."""


class LastWriterWins(MemoryStore):
    """It looks just before it saves."""

    def save(self, session_id, data):
        return super().save(session_id, {**data} if self.load(session_id) is not None else data)


class CountsPerSession(Keeps):
    """Versions that begin at 1 again."""

    def save(self, session_id, data):
        before = self.kept.get(session_id, (0, None))[0]
        if before and before != getattr(data, "version", before):
            raise StaleSession(repr(session_id))
        self.kept.pop(session_id, None)
        self.kept[session_id] = before + 1, json.dumps(data)
        return before + 1

    def load(self, session_id):
        version, text = self.kept.get(session_id, (0, "null"))
        return Saved(json.loads(text), version=version) if version else None


def failures(kind, folder):
    """The names of the contract's tests that a store fails."""
    shared = kind()

    class Tried(SessionStoreContract):
        def make_store(self, tmp_path):
            return shared if tmp_path == folder / "test_it_remembers" else kind()

    failed = set()
    for name, test in inspect.getmembers(Tried(), inspect.ismethod):
        if name.startswith("test_"):
            try:
                test(folder / name)
            except (AssertionError, TypeError, ValueError):
                failed.add(name.removeprefix("test_"))
            except SkipTest:
                continue
    return failed


@pytest.mark.parametrize("kind", [Keeps, Counts])
def test_a_store_that_does_right_passes(tmp_path, kind):
    """With versions and without."""
    assert failures(kind, tmp_path) == set()


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (KeepsReferences, "it_keeps_copies"),
        (GivesReferences, "it_keeps_copies"),
        (OrdersByFirstSave, "the_most_recently_saved_is_first"),
        (Merges, "saving_again_replaces"),
        (ForgetsFolders, "ids_are_kept_apart"),
        (TakesAnything, "what_is_not_json_is_refused"),
        (DeletesAlways, "deleting"),
        (MakesEmptyOnes, "what_is_not_there"),
        (IsFalseWhenEmpty, "an_empty_store"),
        (HidesAbsence, "what_is_not_there"),
        (Rounds, "what_is_saved_is_loaded"),
        (LastWriterWins, "a_lost_update_is_an_error"),
        (LastWriterWins, "no_update_is_lost_between_threads"),
        (CountsPerSession, "a_session_begun_anew_is_another"),
    ],
)
def test_a_store_that_does_wrong_is_caught(tmp_path, kind, test):
    """By the test that says what it does wrong."""
    assert test in failures(kind, tmp_path)


def test_a_store_that_does_not_share_is_caught(tmp_path):
    """Unless it says that it is none to share."""

    class Private(SessionStoreContract):
        def make_store(self, tmp_path):
            return Keeps()

    with pytest.raises(AssertionError):
        Private().test_it_remembers(tmp_path)
    Private.is_shared = False
    with pytest.raises(SkipTest, match="this store is not shared"):
        Private().test_it_remembers(tmp_path)


def test_a_class_without_a_store_says_what_is_missing(tmp_path):
    """The one method that it needs."""
    with pytest.raises(NotImplementedError, match="returns the store to test"):
        SessionStoreContract().test_deleting(tmp_path)


def test_it_is_loaded_when_it_is_used():
    """Who tests a plug pays for no store."""
    code = "import sys, sessionlog.testing as t; assert not hasattr(t, 'nothing'); print('sessionlog.conversation' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    assert testing.SessionStoreContract is SessionStoreContract
