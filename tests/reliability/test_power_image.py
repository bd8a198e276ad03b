"""Power loss for real: ext4 on a loop device, whose image is copied while it is mounted.

What the kernel has not written back is missing from the copy, exactly as after a power loss. The copy is mounted, its
journal is replayed, and what was acknowledged must be there. Needs root, loop devices and mkfs.ext4.
"""

import os
import shutil
import subprocess

import pytest

from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.oracle import check_recorded, read_log


def run(*command):
    """Run a tool; True when it worked."""
    return subprocess.run([str(part) for part in command], capture_output=True).returncode == 0


@pytest.fixture
def power(memory):
    """(a mounted file system, a function that cuts its power and gives the place where the rest is mounted)."""
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("needs root and mkfs.ext4")
    image, place, after = memory / "image", memory / "before", memory / "after"
    place.mkdir()
    after.mkdir()
    with open(image, "wb") as file:
        file.truncate(8 << 20)
    if not (run("mkfs.ext4", "-q", "-F", image) and run("mount", "-o", "loop", image, place)):
        pytest.skip("this machine mounts no loop devices")

    def cut():
        run("umount", after)
        shutil.copyfile(image, memory / "copy")
        assert run("mount", "-o", "loop", memory / "copy", after)
        return after

    yield place, cut
    run("umount", "-l", after)
    run("umount", "-l", place)


@pytest.mark.parametrize("cycles", [8, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
@pytest.mark.parametrize("durability", ["fsync", "interval"])
def test_p03_acknowledged_events_survive_power_loss(power, durability, cycles):
    """Whenever the power goes, each event of `fsync` is there at once, and each of `interval` after close."""
    place, cut = power
    for cycle in range(cycles):
        log = SessionLogger(place / f"{cycle}", "s", work_dir="/w", durability=durability)
        acknowledged = [n for n in range(1 + cycle % 7) if log.emit("tool.call", {"n": n, "output": "x" * 700 * n})]
        if durability == "interval":
            log.close()
        after = cut()
        read = read_log(after / f"{cycle}" / "s.jsonl")
        assert check_recorded(read, acknowledged, acknowledged) == []
        assert len(acknowledged) == 1 + cycle % 7
        log.close()
        shutil.rmtree(place / f"{cycle}")


def test_os_does_not_promise_it(power):
    """The control: without a sync the events are not on the disk yet, so the test above can fail."""
    place, cut = power
    log = SessionLogger(place, "s", work_dir="/w")
    assert log.emit("tool.call", {"n": 0})
    left = cut() / "s.jsonl"
    assert not left.exists() or left.stat().st_size == 0
    log.close()
