"""The stores over Redis that docs/sessions.md shows, word for word."""
# ruff: noqa: D101 - what they are is told around them there

import json

from sessionlog.conversation import Saved, SessionStore
from sessionlog.conversation.stores.protocol import check_version


class RedisStore(SessionStore):
    def __init__(self, redis):
        self.redis = redis

    def save(self, session_id, data):
        self.redis.set("session:" + session_id, json.dumps(data))
        self.redis.zadd("sessions", {session_id: self.redis.incr("saves")})

    def load(self, session_id):
        return json.loads(self.redis.get("session:" + session_id) or "null")

    def delete(self, session_id):
        return self.redis.zrem("sessions", session_id) + self.redis.delete("session:" + session_id) > 0

    def list_sessions(self):
        return [name.decode() for name in self.redis.zrevrange("sessions", 0, -1)]


class VersionedRedisStore(RedisStore):
    def save(self, session_id, data):
        def swap(redis):
            stored = self.load(session_id)
            if stored is not None and isinstance(data, Saved):
                check_version(session_id, data.version, stored.version)
            version = redis.incr("saves")
            redis.multi()
            redis.set("session:" + session_id, json.dumps([data, version]))
            redis.zadd("sessions", {session_id: version})
            return version

        return self.redis.transaction(swap, "session:" + session_id, value_from_callable=True)

    def load(self, session_id):
        data, version = json.loads(self.redis.get("session:" + session_id) or "[null, 0]")
        return None if data is None else Saved(data, version=version)
