"""What a store object has seen."""

import pytest

from sessionlog.conversation.stores.protocol import Saved, Versions
from sessionlog.errors import StaleSession


def test_a_plain_dict_is_taken_as_made_from_what_was_seen_last():
    """By this store object; another's is not known."""
    versions = Versions()
    versions.finish_load("k", {}, 3)
    versions.check("k", {}, 3)
    with pytest.raises(StaleSession):
        versions.check("k", {}, 4)
    with pytest.raises(StaleSession):
        versions.check("never seen", {}, 1)


def test_saved_brings_its_own():
    """Whatever the store object has seen since; one without a version is as any dict."""
    versions = Versions()
    versions.finish_load("k", {}, 3)
    versions.check("k", Saved({}), 3)
    with pytest.raises(StaleSession):
        versions.check("k", Saved({}, version=2), 3)


def test_a_save_moves_the_version_on():
    """Of what was saved, and of what was seen."""
    versions, data = Versions(), Saved({}, version=3)
    assert versions.finish_save("k", data, 4) == data.version == 4
    versions.check("k", {}, 4)


def test_a_save_that_may_have_been_done_can_be_tried_again():
    """The disk did not confirm it, but it is there: that is ours, nobody else's."""
    versions, data = Versions(), Saved({}, version=3)
    versions.start_save("k", data, 4)
    versions.check("k", data, 4)
    versions.check("k", data, 3)
    with pytest.raises(StaleSession):
        versions.check("k", data, 5)


def test_what_was_deleted_is_forgotten():
    """Then it is as never seen."""
    versions = Versions()
    versions.finish_load("k", {}, 3)
    versions.forget("k")
    versions.check("k", {}, None)
    with pytest.raises(StaleSession, match="was not loaded"):
        versions.check("k", {}, 3)
