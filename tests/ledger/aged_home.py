"""A little home with a past: logs of three agents in a ledger, two of them deleted since."""

import os
import random
from pathlib import Path

from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.verify import verify_ledger
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import KINDS, PATHS

_BESIDE = ("",)


class AgedHome(LittleHome):
    """The home; its ledger is up to date and closed.

    Attributes:
        gone: The logs that only the ledger remembers.
        files: What the ledger's files hold, by their endings.
    """

    def __init__(self, folder, *, seed=1):
        super().__init__(folder)
        draw = random.Random(seed)
        for agent, paths in PATHS.items():
            for path in paths:
                self.append(
                    path, [(draw.choice(KINDS[agent]), draw.randrange(4), draw.randrange(1, 50)) for _ in range(8)]
                )
        self.sync()
        self.gone = [next(path for path in self.logs() if path.startswith(place)) for place in ("c/", "x/")]
        for path in self.gone:
            self.delete(path)
        self.sync()
        self.files = {ending: Path(self.ledger + ending).read_bytes() for ending in _BESIDE}

    def sync(self):
        """Bring the ledger up to date."""
        with self.opened() as book:
            return refresh(book, self.env, list_all=True)

    def opened(self):
        """The ledger, closed at the end of a `with`."""
        return _Opened(self.ledger)

    def verify(self):
        """What `verify` finds."""
        return verify_ledger(self.ledger, PRICES, self.env)

    def put_back(self, content=None):
        """Give the ledger its first bytes back, or others."""
        for ending in (*_BESIDE, "-wal", "-shm"):
            Path(self.ledger + ending).unlink(missing_ok=True)
        for ending, kept in self.files.items():
            self.write(ending, kept if ending or content is None else content)

    def write(self, ending, content):
        """Write one of the ledger's files."""
        place = Path(self.ledger + ending)
        place.write_bytes(content)
        os.chmod(place, 0o600)

    def flipped(self, draw):
        """The ledger's bytes with one bit turned."""
        content = bytearray(self.files[""])
        bit = draw.randrange(len(content) * 8)
        content[bit // 8] ^= 1 << bit % 8
        return bytes(content)

    def ask(self, sql):
        """Rows of the ledger."""
        with self.opened() as book:
            return book.connection.execute(sql).fetchall()


class _Opened:
    def __init__(self, path):
        self._book = open_ledger(path, PRICES)

    def __enter__(self):
        return self._book

    def __exit__(self, *_):
        self._book.close()
