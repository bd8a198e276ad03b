"""One limit for lines: what the writer writes, every reader reads, and a longer line is named by all of them."""

import orjson
import pytest

from sessionlog.errors import Problem
from sessionlog.events.decoded_size import too_large
from sessionlog.events.limits import MAX_LINE
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.check import check_log
from sessionlog.reader.follow import follow
from sessionlog.reader.rows import Rows
from sessionlog.reader.stream import read_events
from sessionlog.sources.native import SOURCE

HEAD = b'{"session_id":"s","seq":1,"type":"llm.response","ts":"2026-11-20T10:00:00Z","data":{"usage":{"input":7},"content":"'


def rows(path):
    with Rows(path) as found:
        return list(found.all())


READERS = {
    "replay": lambda path: list(read_events(path)),
    "rows": rows,
    "report": lambda path: list(SOURCE.scan(path, None).problems.first),
    "follow": lambda path: list(follow(path, stop=lambda: True)),
}


def problems(path):
    """The kinds of problems that each reader has with a log."""
    return [[one.kind for one in read(path) if isinstance(one, Problem)] for read in READERS.values()]


def test_the_longest_line_is_read_by_all_and_a_longer_one_by_none(tmp_path):
    """The limit is the writer's."""
    path = tmp_path / "s.jsonl"
    room = MAX_LINE - len(HEAD) - len(b'"}}\n')
    path.write_bytes(HEAD + b"x" * room + b'"}}\n')
    assert path.stat().st_size == MAX_LINE
    assert problems(str(path)) == [[] for _ in READERS]
    path.write_bytes(HEAD + b"x" * (room + 2) + b'"}}\n')
    assert problems(str(path)) == [["too_long"] for _ in READERS]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"text": "x" * (MAX_LINE + 10)}, id="too long"),
        pytest.param({"text": "🙂" + "x" * (20 << 20)}, id="wide"),
        pytest.param({"values": [[]] * 4_000_000}, id="small values", marks=pytest.mark.slow),
    ],
)
def test_what_is_written_can_be_read(tmp_path, data):
    """An event that no reader would decode is shortened, and says so."""
    with SessionLogger(tmp_path, "s") as log:
        assert log.emit("tool.call", data)
    *_, event, _ = read_events(log.path)
    assert event.type == "tool.call"
    assert event.data["truncated"] is True
    line = orjson.dumps(event.to_dict())
    assert len(line) < MAX_LINE
    assert not too_large(line, copies=2)
    assert check_log(log.path).damaged == 0


def test_a_logger_does_not_write_longer_lines_than_are_read(tmp_path):
    """Its limit may be lower."""
    with pytest.raises(ValueError, match="max_event 33554433: at most 33554432"):
        SessionLogger(tmp_path, max_event=MAX_LINE + 1)


def test_what_grows_when_it_is_redacted_stays_below_the_limit(tmp_path):
    """The mark may be longer than the secret."""
    with SessionLogger(tmp_path, "s", max_event=2000) as log:
        assert log.emit("tool.call", {"text": "pwd=Xk9zQ2 " * 165})
    _, event, _ = read_events(log.path)
    assert event.data["truncated"] is True
    assert "Xk9" not in str(event.data)
    assert len(event.raw) < 2000
