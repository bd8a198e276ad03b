"""The stores over Redis of docs/sessions.md keep what a store promises; the client is a fake of what they use of redis-py."""

import re
from pathlib import Path

import pytest

from sessionlog.testing import SessionStoreContract
from tests.conversation.stores.fake_redis import FakeRedis
from tests.conversation.stores.redis_store import RedisStore, VersionedRedisStore

README = Path(__file__).parents[3] / "docs" / "sessions.md"
HERE = Path(__file__).with_name("redis_store.py")


class OneServer(SessionStoreContract):
    """Stores of one test speak to one server."""

    kind: type

    @pytest.fixture(autouse=True)
    def _server(self):
        self.redis = FakeRedis()

    def make_store(self, tmp_path):
        return self.kind(self.redis)


class TestRedisStore(OneServer):
    """Twelve lines."""

    kind = RedisStore

    def test_it_has_twelve_lines(self):
        """As the README says."""
        [text] = re.findall(r"^(class RedisStore.*?)^class", HERE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        assert len([line for line in text.splitlines() if line.strip()]) == 12


class TestVersionedRedisStore(OneServer):
    """With versions."""

    kind = VersionedRedisStore

    def test_a_save_in_between_is_seen(self):
        """Who saves between another's look and save wins, and the other is told."""
        store = self.make_store(None)
        store.save("k", {"v": 0})
        mine = store.load("k")
        look = store.load

        def look_and_be_late(session_id):
            seen = look(session_id)
            if self.redis.conflicts == 0:
                self.kind(self.redis).save("k", {"v": "theirs"})
            return seen

        store.load = look_and_be_late
        with pytest.raises(Exception, match="was saved by another writer"):
            store.save("k", mine)
        assert self.redis.conflicts == 1
        assert look("k") == {"v": "theirs"}


def test_the_readme_shows_these():
    """Word for word, as blocks that run in their order."""
    readme = README.read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "RedisStore" in block]
    if not blocks:
        pytest.skip("this page does not show it")
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
        shown = block[block.index("class ") :].strip()
        assert shown in HERE.read_text("utf-8")
    store = names["RedisStore"](FakeRedis())
    store.save("k", {"v": 1})
    assert (store.load("k"), store.exists("k"), store.list_sessions()) == ({"v": 1}, True, ["k"])
