"""P8: a bit of a log is flipped: the reader never raises, other lines stay, and what cannot be read is named."""

import itertools
import json

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.oracle import read_log

SIZE = 8 << 10


def write_log(folder):
    """A log of 8 KiB of all kinds of events."""
    with SessionLogger(folder, "s", model="claude-opus-4-5", work_dir="/w") as log:
        for n in itertools.count():
            if (folder / "s.jsonl").stat().st_size > SIZE:
                break
            log.llm_request([{"role": "user", "content": "hello"}])
            log.llm_response("Grüße 中 \x1b", usage={"input": 100 + n, "output": 7}, latency_ms=1.5)
            log.emit("tool.call", {"tool": "bash", "output": "x" * (n * 11 % 200)})
    return (folder / "s.jsonl").read_bytes()


def check_flip(path, content, bit):
    """Flip one bit, and judge what the reader and a report make of it."""
    at = bit // 8
    changed = bytearray(content)
    changed[at] ^= 1 << bit % 8
    path.write_bytes(changed)
    log = read_log(path)
    start = content.rfind(b"\n", 0, at) + 1
    end = content.find(b"\n", at)
    if end == at:  # this newline became something else, and joins two lines
        end = content.find(b"\n", at + 1)
    others = [*content[:start].splitlines(), *content[end + 1 :].splitlines()]
    read = [event.raw for event in log.events]
    for line in others:
        assert line in read, (bit, line)
    assert unexplained(log) == b"", bit


def unexplained(log):
    """The bytes that are neither in an event nor in what a problem names, nor space between them."""
    left = bytearray(log.content)
    at = 0
    for event in log.events:
        at = log.content.index(event.raw, at)
        left[at : at + len(event.raw)] = b" " * len(event.raw)
        at += len(event.raw)
    for problem in log.problems:
        left[problem.offset : problem.offset + problem.length] = b" " * problem.length
    return bytes(left).strip()


def check_report(folder, bit):
    """A report over it is made, in whole numbers."""
    report = aggregate_usage(str(folder), jobs=1).to_dict()
    assert report["totals"]["requests"] >= 0, bit
    json.dumps(report, allow_nan=False)


def test_p08_a_flipped_bit_costs_its_line_alone(memory):
    """Every 41st bit, and every 17th of them in a report: both meet each bit of a byte."""
    content = write_log(memory)
    for turn, bit in enumerate(range(0, len(content) * 8, 41)):
        check_flip(memory / "s.jsonl", content, bit)
        if turn % 17 == 0:
            check_report(memory, bit)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_p08_every_flipped_bit_costs_its_line_alone(memory):
    """All 65,536."""
    content = write_log(memory)
    for bit in range(len(content) * 8):
        check_flip(memory / "s.jsonl", content, bit)
        if bit % 201 == 0:
            check_report(memory, bit)
    print(f"{len(content) * 8} bits")
