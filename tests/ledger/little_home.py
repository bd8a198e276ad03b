"""A little home: files that are written, torn, rewritten, copied, moved, packed, deleted and restored, with their times.

Times of files are given: an hour from now for what was written a moment ago (it is not settled, however long a test
takes), otherwise a tick of long ago, which every change moves on. Folders are settled, unless told otherwise.
"""

import gzip
import os
import shutil
import time
from pathlib import Path

from tests.ledger.little_logs import PATHS, SIDE_FILE, Pen, agent_of

LONG_AGO = 1_700_000_000
NEVER = 4_000_000_000


class LittleHome:
    """Logs in a folder.

    Attributes:
        folder: The home.
        env: The environment in which the agents wrote.
        ledger: Where a ledger may be; outside the home.
    """

    def __init__(self, folder):
        self.folder = Path(folder) / "home"
        self.ledger = str(Path(folder) / "ledger" / "ledger.db")
        self.env = {"HOME": str(self.folder), "SESSIONLOG_DIR": str(self.folder / "s")}
        self.env |= {"CLAUDE_CONFIG_DIR": str(self.folder / "c"), "CODEX_HOME": str(self.folder / "x")}
        self.pen = Pen()
        self._ticks = LONG_AGO
        self._rest = {}  # path → the rest of its torn last line
        self._totals = {}  # path → tokens of a Codex thread
        self._kept = {}  # path → what was there when it was deleted: bytes and mtime
        for place in ("s", "c", "x"):
            (self.folder / place).mkdir(parents=True, exist_ok=True)
        self.age_folders()

    def logs(self):
        """The logs that are there, as paths inside the home."""
        names = (one for paths in PATHS.values() for path in paths for one in (path, f"{path}.gz"))
        return sorted(name for name in names if self.at(name).exists())

    def at(self, path):
        """Where a path of the home is."""
        return self.folder / path

    def content(self, path):
        """What a log says, unpacked."""
        content = self.at(path).read_bytes()
        return gzip.decompress(content) if path.endswith(".gz") else content

    def is_fresh(self, path):
        """Whether a log was written to a moment ago."""
        return self.at(path).stat().st_mtime_ns > time.time_ns()

    def append(self, path, drawn, *, torn=False, fresh=False):
        """Append rows; with `torn` the last one lacks its end, which the next append writes."""
        first = b"" if self.at(path).exists() else self.pen.first(path)
        rows = first + b"".join(self._row(path, *one) for one in drawn)
        whole = self._rest.pop(path, b"") + rows
        cut = len(whole) - 9 if torn and len(whole) > 9 else len(whole)
        if whole[cut:]:
            self._rest[path] = whole[cut:]
        self._write(path, whole[:cut], "ab", fresh=fresh)

    def _row(self, path, kind, identity, amount):
        if agent_of(path) == "codex" and kind in ("count", "limits"):
            self._totals[path] = self._totals.get(path, 0) + amount
        return self.pen.row(path, kind, identity, amount, total=self._totals.get(path, 0))

    def _write(self, path, content, mode, *, fresh=False):
        place = self.at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open(mode) as file:
            file.write(gzip.compress(content, mtime=0) if path.endswith(".gz") else content)
        self.stamp(path, fresh=fresh)

    def stamp(self, path, *, fresh=False):
        """Say that a file was written: a moment ago, or at the next tick of long ago."""
        os.utime(self.at(path), ns=(0, NEVER * 10**9 if fresh else self.tick()))
        self.age_folders()

    def tick(self):
        """The next moment of long ago."""
        self._ticks += 1
        return self._ticks * 10**9

    def age_folders(self):
        """Say of every folder that has changed that this was long ago."""
        for folder, _, _ in os.walk(self.folder):
            if os.stat(folder).st_mtime_ns > (LONG_AGO + 10**6) * 10**9:
                os.utime(folder, ns=(0, self.tick()))

    def change_digit(self, path, number):
        """Rewrite a log in place, as long as before: one digit of a count is another."""
        content = bytearray(self.content(path))
        places = [i for i in range(1, len(content)) if content[i : i + 1] in b"12345678" and content[i - 1 : i] == b":"]
        if places:
            content[places[number % len(places)]] += 1
            self._write(path, bytes(content), "wb")

    def drop_line(self, path, number):
        """Rewrite a log in place without one of its lines."""
        lines = self.content(path).splitlines(keepends=True)
        if lines:
            del lines[number % len(lines)]
            self._write(path, b"".join(lines), "wb")

    def truncate(self, path, share):
        """Cut a log at a tenth of its bytes."""
        self._rest.pop(path, None)
        os.truncate(self.at(path), self.at(path).stat().st_size * share // 10)
        self.stamp(path)

    def delete(self, path):
        """Delete a log; it can be restored."""
        status = self.at(path).stat()
        self._kept[path] = self.at(path).read_bytes(), status.st_mtime_ns
        self.at(path).unlink()
        self.age_folders()

    def restore(self, path):
        """Bring a deleted log back as it was, with its old time, as backups do."""
        if path in self._kept and not self.at(path).exists():
            self.put(path, *self._kept[path])

    def put(self, path, content, mtime_ns):
        """Write a whole file with its time."""
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).write_bytes(content)
        os.utime(self.at(path), ns=(0, mtime_ns))
        self.age_folders()

    def copy(self, path, other, lines):
        """Copy the first lines of a log to another name: a fork."""
        content = b"".join(self.content(path).splitlines(keepends=True)[:lines])
        self._totals[other] = self._totals.get(path, 0)
        self._rest.pop(other, None)
        self._write(other, content, "wb")

    def move(self, path, other):
        """Rename a log, over whatever is there."""
        self.at(other).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).replace(self.at(other))
        for known in (self._rest, self._totals):
            if path in known:
                known[other] = known.pop(path)
        self.age_folders()

    def pack(self, path):
        """Pack a log, as agents do with idle ones."""
        status, content = self.at(path).stat(), self.at(path).read_bytes()
        self.at(path).unlink()
        self._rest.pop(path, None)
        self.put(f"{path}.gz", gzip.compress(content, mtime=0), status.st_mtime_ns)

    def tell_kind(self, kind):
        """Write the side file that tells the kind of a sub-agent, or take it away."""
        place = self.at(SIDE_FILE)
        if not kind:
            place.unlink(missing_ok=True)
            self.age_folders()
        else:
            self.put(SIDE_FILE, b'{"agentType":"%b"}' % kind.encode(), self.tick())

    def remove_folder(self):
        """Remove the home, and leave the ledger."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self):
        """Remove everything."""
        shutil.rmtree(self.folder.parent)
