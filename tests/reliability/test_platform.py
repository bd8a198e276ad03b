"""Where a platform lacks something, the package imports and appends without it; only that protection is missing."""

import subprocess
import sys

import pytest

from tests.reliability.oracle import check_recorded, check_whole, read_log

SCRIPT = """
import os, sys
{removal}
from sessionlog.logger.session_logger import SessionLogger
def log_of(**options):
    return SessionLogger(sys.argv[1], "s", work_dir="/w", notify=lambda text: None, **options)
log = log_of()
assert all(log.emit("tool.call", {{"n": n}}) for n in range(3)), log.health()
log.close()
with open(log.path, "ab") as other:
    other.write(b'{{"torn')
log = log_of(durability="fsync")
assert all(log.emit("tool.call", {{"n": n}}) for n in range(3, 6)), log.health()
log.close()
log = log_of(durability="interval")
assert log.emit("tool.call", {{"n": 6}}), log.health()
log.close()
os.unlink(log.path)
log = log_of()
assert log.emit("tool.call", {{"n": 0}})
os.unlink(log.path)
assert log.emit("tool.call", {{"n": 1}})
assert os.path.exists(log.path), "a deletion went unnoticed"
from sessionlog.reader.stream import read_events
print(*[type(item).__name__ for item in read_events(log.path)])
"""

REMOVALS = {
    "fcntl": "sys.modules['fcntl'] = None",
    "O_NOFOLLOW": "del os.O_NOFOLLOW",
    "O_DIRECTORY": "del os.O_DIRECTORY",
    "dir_fd": "os.supports_dir_fd = set()",
    "fdatasync": "del os.fdatasync",
    "fork": "del os.fork, os.register_at_fork",
    "pread": "del os.pread",
}
REMOVALS["everything"] = "\n".join(
    [*REMOVALS.values(), "del os.O_CLOEXEC, os.O_NONBLOCK, os.geteuid, os.fchmod, os.getuid, os.mkfifo"]
)


@pytest.mark.parametrize("missing", REMOVALS)
def test_a_platform_without_it(tmp_path, missing):
    """Recording, continuing a torn log, every durability, noticing a deletion: all of it works."""
    script = SCRIPT.format(removal=REMOVALS[missing])
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert run.stderr == ""
    assert run.stdout == "Event Event\n"
    read = read_log(tmp_path / "s.jsonl")
    assert check_whole(read) == []
    assert check_recorded(read, [0, 1], [1]) == []
