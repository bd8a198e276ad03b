"""P4: a log is cut at a byte, as a kill or a power failure leaves it, and another writer goes on."""

import itertools
import os
import random

import pytest

from sessionlog.events.envelope import Event
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events
from tests.reliability.oracle import check_bytes, read_log

AFTER = 1_000_000


def write_log(folder, seed, size, last=0):
    """A log of about `size` bytes, with short and long lines, escapes and letters of several bytes; `last` short ones."""
    chance = random.Random(seed)
    with SessionLogger(folder, f"s{seed}", work_dir="/w", notify=lambda text: None) as log:
        for n in itertools.count():
            is_long = os.path.getsize(log.path) <= size
            text = "".join(chance.choices('ab"\\{}é中\n\x1b', k=chance.choice((3, 60, 900)) if is_long else 30))
            log.emit("tool.call", {"n": n, "output": text})
            last -= not is_long
            if last < 0:
                break
    return log.path


def check_cut(path, content, length):
    """Cut the log, read it, continue it, and read it again."""
    with open(path, "wb") as file:
        file.write(content[:length])
    whole = content[: content.rfind(b"\n", 0, length) + 1].splitlines()
    rest = content[len(b"".join(line + b"\n" for line in whole)) : length]
    before = [item.raw for item in read_events(path) if isinstance(item, Event)]
    unfinished = [rest] if content[length : length + 1] == b"\n" else []  # only its newline is missing
    assert before == whole + unfinished, length
    with SessionLogger(os.path.dirname(path), os.path.basename(path)[:-6], work_dir="/w", redact=False) as log:
        assert log.emit("tool.call", {"n": AFTER})
    after = read_log(path)
    assert [event.raw for event in after.events[: len(before)]] == before, length
    assert [event.data["n"] for event in after.of_type("tool.call")].count(AFTER) == 1, length
    assert after.content.startswith(content[:length]), length  # the torn bytes stay where they are
    assert check_bytes(after) == [], length


def test_p04_a_log_cut_at_any_byte_goes_on(memory):
    """Every byte of the last three lines, and every 128th of the rest."""
    path = write_log(memory, 1, 16 << 10, last=3)
    with open(path, "rb") as file:
        content = file.read()
    last = len(b"\n".join(content.split(b"\n")[:-4]))
    for length in (*range(0, last, 128), *range(last, len(content) + 1)):
        check_cut(path, content, length)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("seed", "size"), [(1, 16 << 10), (2, 8 << 10), (3, 8 << 10), (4, 4 << 10), (5, 4 << 10)])
def test_p04_a_log_cut_at_every_byte_goes_on(memory, seed, size):
    """All of them, of five logs."""
    path = write_log(memory, seed, size)
    with open(path, "rb") as file:
        content = file.read()
    for length in range(len(content) + 1):
        check_cut(path, content, length)
    print(f"{len(content) + 1} cuts")
