"""A Redis in memory, with the methods of redis-py that the README's stores use, and what they return."""

from contextlib import contextmanager
from threading import RLock


class WatchError(Exception):
    """A watched key has changed."""


class FakeRedis:
    """Texts, counters and one kind of sorted set; each command is atomic, as on a server.

    Attributes:
        conflicts: How often a transaction began again.
    """

    def __init__(self):
        self._lock = RLock()
        self._texts = {}
        self._sorted = {}
        self._changes = {}
        self.conflicts = 0

    def get(self, name):
        with self._lock:
            return self._texts.get(name)

    def set(self, name, value):
        with self._changing(name):
            self._texts[name] = str(value).encode()
            return True

    def incr(self, name):
        with self._changing(name):
            self._texts[name] = b"%d" % (int(self._texts.get(name, b"0")) + 1)
            return int(self._texts[name])

    def delete(self, *names):
        with self._changing(*names):
            return sum(self._texts.pop(name, None) is not None for name in names)

    def zadd(self, name, mapping):
        with self._changing(name):
            members = self._sorted.setdefault(name, {})
            new = len(mapping.keys() - members)
            members.update(mapping)
            return new

    def zrem(self, name, *values):
        with self._changing(name):
            members = self._sorted.get(name, {})
            return sum(members.pop(value, None) is not None for value in values)

    def zrevrange(self, name, start, end):
        with self._lock:
            members = self._sorted.get(name, {})
            names = sorted(members, key=lambda member: (-members[member], member))
            return [member.encode() for member in names[start : None if end == -1 else end + 1]]

    def transaction(self, func, *watches, value_from_callable=False):
        while True:
            pipe = Pipeline(self, watches)
            value = func(pipe)
            try:
                done = pipe.execute()
            except WatchError:
                self.conflicts += 1
                continue
            return value if value_from_callable else done

    @contextmanager
    def _changing(self, *names):
        with self._lock:
            yield
            for name in names:
                self._changes[name] = self._changes.get(name, 0) + 1

    def changes(self, names):
        """How often each key was changed."""
        with self._lock:
            return [self._changes.get(name, 0) for name in names]

    def run(self, names, changes, commands):
        """Run commands at once, if the keys are as they were."""
        with self._lock:
            if self.changes(names) != changes:
                raise WatchError
            return [getattr(self, command)(*args) for command, *args in commands]


class Pipeline:
    """What a transaction's function gets: commands run at once until `multi`, and are collected after it."""

    def __init__(self, redis, watches):
        self._redis, self._watches = redis, watches
        self._changes = redis.changes(watches)
        self._commands = None

    def multi(self):
        self._commands = []

    def execute(self):
        return self._redis.run(self._watches, self._changes, self._commands or [])

    def __getattr__(self, command):
        if self._commands is None:
            return getattr(self._redis, command)
        return lambda *args: self._commands.append((command, *args)) or self
