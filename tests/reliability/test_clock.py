"""A clock that jumps, stops or is beside itself: no event is lost for it, and durations never go below zero."""

import pytest

from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.oracle import check_recorded, check_whole, read_log

DAY = 86_400_000_000_000
NOW = 1_795_000_000_000_000_000
CLOCKS = {
    "a day forward": (NOW, NOW + DAY),
    "a day back": (NOW, NOW - DAY),
    "standing still": (NOW, NOW),
    "the epoch": (0, 1),
    "before the epoch": (-1, -DAY),
    "the year 1": (-62_135_596_800_000_000_000, -62_135_596_799_000_000_000),
    "the last second of 9999": (253_402_300_799_999_999_999, 253_402_300_799_999_999_999),
    "beyond the calendar": (10**30, -(10**30)),
    "a tenth of a second": (NOW // 10**9 * 10**9 + 99_999_999, NOW // 10**9 * 10**9 + 100_000_000),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_p11_no_event_is_lost_for_the_time(tmp_path, name):
    """Every event is recorded in order, with a time that can be read."""
    stamps = iter(CLOCKS[name] * 4)
    log = SessionLogger(tmp_path, "s", work_dir="/w", clock=lambda: next(stamps))
    assert all(log.emit("tool.call", {"n": n}) for n in range(5))
    log.close()
    read = read_log(log.path)
    assert check_whole(read) == []
    assert check_recorded(read, range(5), range(5)) == []
    assert all(event.time_ns is not None or event.ts < "1700" or event.ts > "2261" for event in read.events)
    assert all(len(event.ts) == len("2026-11-21T10:00:00.000000Z") for event in read.events)


def test_p11_durations_do_not_follow_the_clock(tmp_path):
    """session.end and tools are measured with a monotonic clock."""
    jumping = iter(range(NOW, NOW - 100 * DAY, -DAY))
    with SessionLogger(tmp_path, "s", work_dir="/w", clock=lambda: next(jumping)) as log, log.tool_call("bash"):
        pass
    read = read_log(log.path)
    assert all(event.data["duration_ms"] >= 0 for event in read.events if event.type in ("tool.call", "session.end"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-62_135_596_801, "0001-01-01T00:00:00."),
        (-62_135_596_800, "0001-01-01T00:00:00."),
        (-62_135_596_799, "0001-01-01T00:00:01."),
        (253_402_300_798, "9999-12-31T23:59:58."),
        (253_402_300_799, "9999-12-31T23:59:59."),
        (253_402_300_800, "9999-12-31T23:59:59."),
    ],
)
def test_the_first_and_the_last_second_that_can_be_spelt(tmp_path, seconds, text):
    """A second more is the same text, and no event is lost for it."""
    log = SessionLogger(tmp_path, "s", work_dir="/w", clock=lambda: seconds * 10**9 + 1_000)
    assert log.emit("progress", {})
    log.close()
    with open(log.path) as file:
        assert all(f'"ts":"{text}000001Z"' in line for line in file)
