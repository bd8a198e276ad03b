"""read_events: every kind of damage named, every whole event read, in bounded memory.

`testdata/reader` has one small file per lesson and what must be read from it. After a change of the wording run the tests
with SESSIONLOG_UPDATE_EXPECTED=1 and review the difference.
"""

import io
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import YOUNG_NS, EventStream, is_young, read_events
from sessionlog.testing import FixedClock, event_strategy
from tests.profiles import examples

CORPUS = sorted((Path(__file__).parents[2] / "testdata" / "reader").glob("*.jsonl"))
OLD = 1_700_000_000
FAST = examples(150)


def line(seq, data=None):
    return encode_object(
        Event(session_id="s", seq=seq, type="tool.call", ts="2026-11-21T10:00:00Z", data=data).to_dict()
    )


def told(item):
    """One item of a reading as a line of an .expected file."""
    if isinstance(item, Problem):
        place = f"line {item.line} byte {item.offset}+{item.length}"
        return f"{item.severity} {item.kind} {place}: {item.detail}"
    extra = json.dumps(item.extra) if item.extra else ""
    return f"event {item.session_id} {item.seq} {item.type} {item.ts} {json.dumps(item.data)[:200]} {extra}".rstrip()


def stream_of(content, *, max_line=1 << 20, young=False):
    stream = EventStream("log.jsonl", max_line=max_line)
    return [*stream.feed(io.BytesIO(content)), *stream.finish(young=young)]


def old_file(folder, content, name="log.jsonl"):
    path = folder / name
    path.write_bytes(content)
    os.utime(path, (OLD, OLD))
    return str(path)


def events_of(items):
    return [item for item in items if isinstance(item, Event)]


def problems_of(items):
    return [item for item in items if isinstance(item, Problem)]


@pytest.mark.parametrize("sample", CORPUS, ids=lambda path: path.stem)
def test_p08_every_lesson_is_read_as_expected(sample, tmp_path):
    """Events and problems of each file in testdata/reader, in order, with their places."""
    found = "".join(told(item) + "\n" for item in read_events(old_file(tmp_path, sample.read_bytes())))
    expected = sample.with_suffix(".expected")
    if os.environ.get("SESSIONLOG_UPDATE_EXPECTED"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_there_are_lessons():
    """The folder is found: an empty parameter list would test nothing."""
    assert len(CORPUS) > 30


@pytest.mark.parametrize("sample", CORPUS, ids=lambda path: path.stem)
def test_p10_reading_in_two_pieces_changes_nothing(sample):
    """A file that is read while it grows gives what it gives when it is whole, wherever the first reading stopped."""
    content = sample.read_bytes()
    whole = stream_of(content)
    for cut in range(0, len(content) + 1, 1 + len(content) // 300):
        stream = EventStream("log.jsonl", max_line=1 << 20)
        file = io.BytesIO(content[:cut])
        items = [*stream.feed(file)]
        file.write(content[cut:])
        file.seek(cut)
        items += [*stream.feed(file), *stream.finish()]
        assert items == whole


@pytest.mark.parametrize("sample", CORPUS, ids=lambda path: path.stem)
def test_reading_can_begin_again_where_it_stopped(sample):
    """The stored place is never inside an event: a new stream from there finds exactly the rest."""
    content = sample.read_bytes()
    whole = stream_of(content)
    for cut in range(0, len(content) + 1, 1 + len(content) // 300):
        first = EventStream("log.jsonl", max_line=1 << 20)
        items = [*first.feed(io.BytesIO(content[:cut]))]
        second = EventStream("log.jsonl", max_line=1 << 20, line=first.line, offset=first.offset)
        items += [*second.feed(io.BytesIO(content[first.offset :])), *second.finish()]
        assert items == whole


@pytest.mark.parametrize("age_ns", [-1_000_000_000, 0, 1_000_000_000])
def test_p10_a_torn_tail_is_news_while_the_file_is_young(age_ns, tmp_path, monkeypatch):
    """A writer may be in the middle of it; a clock a little ahead changes nothing."""
    path = old_file(tmp_path, line(1) + line(2)[:30])
    monkeypatch.setattr("sessionlog.reader.stream.time.time_ns", lambda: OLD * 1_000_000_000 + age_ns)
    [problem] = problems_of(read_events(path))
    assert (problem.kind, problem.severity, problem.length) == ("torn_tail", "info", 30)


def test_p10_a_torn_tail_is_damage_after_two_seconds(tmp_path, monkeypatch):
    """Then nobody will finish it."""
    path = old_file(tmp_path, line(1) + line(2)[:30])
    monkeypatch.setattr("sessionlog.reader.stream.time.time_ns", lambda: OLD * 1_000_000_000 + YOUNG_NS)
    [problem] = problems_of(read_events(path))
    assert (problem.kind, problem.severity, problem.line, problem.offset) == ("torn_tail", "damage", 2, len(line(1)))


def test_a_file_that_is_gone_is_not_young(tmp_path):
    """Nobody writes to it under this name."""
    assert not is_young(str(tmp_path / "gone.jsonl"))


def test_a_spread_out_object_may_be_in_the_writing(tmp_path):
    """A pretty-printed object without its end is a torn tail like any other."""
    content = line(1) + b'{\n  "type": "x",\n'
    [problem] = problems_of(stream_of(content, young=True))
    assert (problem.kind, problem.severity) == ("torn_tail", "info")
    assert (problem.line, problem.offset, problem.length) == (2, len(line(1)), len(content) - len(line(1)))


def test_p04_a_torn_line_does_not_swallow_the_next_one():
    """A line torn where a pretty-printed object's line might end costs itself alone."""
    for torn in (b'{"session_id":"s","seq":1,', b'{"session_id":"s","data":{', b'{"data":['):
        for blanks in (b"", b"\n\n"):
            items = stream_of(torn + b"\n" + blanks + line(2) + torn + b"\n" + torn + b"\n" + line(3))
            assert [event.seq for event in events_of(items)] == [2, 3]
            assert [problem.kind for problem in problems_of(items)] == ["not_json"] * 3


def test_a_byte_order_mark_before_a_spread_out_object():
    """What a Windows tool writes is read."""
    [event] = stream_of(b'\xef\xbb\xbf{\r\n  "type": "x",\r\n  "ts": "2026-11-21T10:00:00Z"\r\n}\r\n')
    assert event.type == "x"


@pytest.mark.parametrize(("length", "read"), [(199, 1), (200, 1), (201, 0)])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_longest_line(length, read, end):
    """A line of exactly the limit is read; one byte more is skipped and named, with or without its newline."""
    content = line(1)[:-1]
    content = content.replace(b"null", b'"' + b"x" * (length - len(content) + 2) + b'"')
    assert len(content) == length
    items = stream_of(content + end, max_line=200)
    assert len(events_of(items)) == read
    if not read:
        [problem] = items
        assert (problem.kind, problem.line, problem.offset) == ("too_long", 1, 0)
        assert problem.length == length + len(end)


def test_a_line_too_long_hides_no_other():
    """Lines before and after it are read, and its place is exact."""
    items = stream_of(line(1) + line(2, "x" * 5000) + line(3) + line(4, "y" * 900) + line(5), max_line=300)
    assert [event.seq for event in events_of(items)] == [1, 3, 5]
    first, second = problems_of(items)
    assert (first.line, first.offset, first.length) == (2, len(line(1)), len(line(2, "x" * 5000)))
    assert (second.line, second.length) == (4, len(line(4, "y" * 900)))


def test_a_line_too_long_that_grows():
    """A long line that comes in pieces is one problem, and the next line is read."""
    content = line(1, "x" * 1000) + line(2)
    for step in (1, 7, 99, 100, 101, 400):
        stream = EventStream("log.jsonl", max_line=100 + len(line(2)))
        file, items = io.BytesIO(), []
        for start in range(0, len(content), step):
            file.seek(start)
            file.write(content[start : start + step])
            file.seek(start)
            items += stream.feed(file)
        assert [told(item).split(" ")[:2] for item in items] == [["damage", "too_long"], ["event", "s"]]
        assert items[0].length == len(line(1, "x" * 1000))


class EndlessLine:
    """A file of one line of a quarter of a gigabyte, and then an event."""

    def __init__(self, length, rest):
        self.left = length
        self.rest = io.BytesIO(rest)
        self.largest = 0

    def readline(self, limit):
        self.largest = max(self.largest, limit)
        if not self.left:
            return self.rest.readline(limit)
        piece = b"x" * min(limit, self.left)
        self.left -= len(piece)
        return piece


def test_p09_memory_is_bounded_whatever_the_line():
    """A line is never held beyond the limit: 256 MiB of it cost less than half a megabyte."""
    file = EndlessLine(256 << 20, b"\n" + line(2))
    stream = EventStream("log.jsonl", max_line=1 << 16)
    tracemalloc.start()
    items = [*stream.feed(file)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 19
    assert [event.seq for event in events_of(items)] == [2]
    assert problems_of(items)[0].length == (256 << 20) + 1
    assert file.largest == (1 << 16) + 1


def test_an_object_spread_too_wide_is_given_up():
    """Lines are not collected for ever in the hope of an end."""
    content = b'{\n  "type": "x",\n' + b'  "a": "b",\n' * 100 + line(2)
    items = stream_of(content, max_line=300)
    assert [event.seq for event in events_of(items)] == [2]
    first = problems_of(items)[0]
    assert (first.kind, first.line, first.offset) == ("not_json", 1, 0)
    assert 300 < first.length < 320


@pytest.mark.parametrize("behind", [b"", b"\n", line(3), b"\n\n" + line(3)])
def test_an_object_whose_end_is_indented_is_read(behind):
    """It is whole, though its last line is not where printers put it: the end of the file or the next object ends it."""
    content = b'{\n  "session_id": "s",\n  "seq": 2,\n  "type": "x",\n  "ts": "2026-11-21T10:00:00Z"\n  }\n'
    items = stream_of(line(1) + content + behind)
    assert problems_of(items) == []
    assert [event.seq for event in events_of(items)] == [1, 2, *([3] if behind.strip() else [])]


def test_an_object_that_ends_and_is_no_json_costs_itself_alone():
    """What comes behind its last line is a line of its own."""
    first = b'{\n  "type": oops,\n}\n'
    items = stream_of(first + b"garbage\n" + line(2))
    assert [(one.kind, one.line, one.offset, one.length) for one in problems_of(items)] == [
        ("not_json", 1, 0, len(first)),
        ("not_json", 4, len(first), len(b"garbage")),
    ]
    assert [event.seq for event in events_of(items)] == [2]


@pytest.mark.parametrize(("more", "is_given_up"), [(0, False), (1, True)])
def test_an_object_that_is_spread_may_be_as_long_as_a_line(more, is_given_up):
    """Not a byte more."""
    content = b'{\n  "type": "x",\n  "ts": "2026-11-21T10:00:00Z",\n'
    items = stream_of(content + b"  " + b" " * more + b'"seq": 1\n}\n', max_line=len(content) + 11)
    assert bool(problems_of(items)) == is_given_up


@pytest.mark.parametrize(("length", "read"), [(199, 1), (200, 1), (201, 0), (202, 0)])
def test_the_longest_line_in_two_pieces(length, read):
    """The limit holds where a line was not whole when it was first read."""
    content = line(1)[:-1]
    content = content.replace(b"null", b'"' + b"x" * (length - len(content) + 2) + b'"') + b"\n"
    stream = EventStream("log.jsonl", max_line=200)
    items = [*stream.feed_bytes(content[:50]), *stream.feed_bytes(content[50:])]
    assert len(events_of(items)) == read
    assert [problem.kind for problem in problems_of(items)] == ["too_long"] * (1 - read)


def test_whether_the_stream_is_between_lines():
    """Only there may a caller decode lines itself: not behind a torn one, nor inside a spread-out object."""
    stream = EventStream("log.jsonl", max_line=100)
    assert stream.at_line_start
    for piece, is_line_start in ((b"{\n", False), (b'"type": "x"\n', False), (b"}\n", True), (b'{"a"', False), (b":1}\n", True),
                              (b"x" * 101, False), (b"\n", True)):  # fmt: skip
        list(stream.feed_bytes(piece))
        assert stream.at_line_start == is_line_start, piece


def test_lines_that_the_caller_has_decoded_are_counted():
    """Problems behind them have their place."""
    stream = EventStream("log.jsonl")
    stream.skip_decoded(2, len(line(1) + line(2)))
    [problem] = problems_of([*stream.feed(io.BytesIO(b"x\n"))])
    assert (problem.line, problem.offset) == (3, len(line(1) + line(2)))


def test_the_place_is_before_an_unfinished_tail():
    """A reader that stores its place begins again at the line that was not whole."""
    stream = EventStream("log.jsonl")
    list(stream.feed(io.BytesIO(line(1) + b"torn")))
    assert (stream.line, stream.offset) == (1, len(line(1)))


def test_a_path_may_be_a_path_object(tmp_path):
    """Problems name it as text."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(1) + b"x\n")
    event, problem = read_events(path)
    assert (event.seq, problem.path) == (1, str(path))


@FAST
@given(content=st.binary(max_size=400))
def test_reading_never_raises(content):
    """Any bytes give events and problems; each problem lies inside the file, and lines are in order."""
    items = stream_of(content, max_line=100)
    for problem in problems_of(items):
        assert 0 <= problem.offset <= problem.offset + problem.length <= len(content)
    lines = [problem.line for problem in problems_of(items)]
    assert lines == sorted(lines)


PIECES = [line(1), line(2, {"a": [{"type": "text"}]}), line(3)[:-1], line(4)[:40], b"\n", b"\r\n", b"{\n", b"}\n", b",\n", b'  "type": "x"\n', b'  "a": [\n', b"[\n", b"\x00" * 5, b"\xef\xbb\xbf", b"\xff", b'{"seq":5,', b"x" * 300 + b"\n"]  # fmt: skip


@FAST
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_every_byte_is_accounted_for(pieces):
    """What is in no event and in no problem is only filler between them."""
    content = b"".join(pieces)
    items = stream_of(content, max_line=250)
    seen = bytearray(content)
    for problem in problems_of(items):
        seen[problem.offset : problem.offset + problem.length] = b" " * problem.length
    rest = bytes(seen)
    for event in events_of(items):
        assert event.raw in rest
        rest = rest.replace(event.raw, b" ", 1)
    assert rest.replace(b"\xef\xbb\xbf", b"").strip() == b""


@examples(50)
@given(events=st.lists(event_strategy(), max_size=6))
def test_a_log_of_ours_is_read_whole(events):
    """What was written is read, in file order, without damage."""
    items = stream_of(b"".join(encode_object(event.to_dict()) for event in events))
    assert events_of(items) == events
    assert all(problem.severity == "info" for problem in problems_of(items))


def test_every_truncation_point_of_a_log(tmp_path):
    """Cut anywhere and written on: earlier events, the torn bytes and the new event are all there."""
    clock = FixedClock()
    with SessionLogger(tmp_path, "whole", clock=clock, work_dir="/p", prompt="naïve") as log:
        log.llm_request([{"role": "user", "content": [{"type": "text", "text": "hi"}]}], model="m")
        log.llm_response("ok", usage={"input": 1, "output": 2}, model="m")
    content = (tmp_path / "whole.jsonl").read_bytes()
    ends = [index + 1 for index, byte in enumerate(content) if byte == 0x0A]
    for cut in range(1, len(content) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(content[:cut])
        log = SessionLogger(tmp_path, str(cut), clock=clock)
        assert log.emit("progress", {"cut": cut})
        log.close()
        items = list(read_events(str(path)))
        events, problems = events_of(items), problems_of(items)
        whole = sum(end <= cut or end == cut + 1 for end in ends)
        started = ["session.start"] * (b"\n" not in content[:cut])  # begun anew: nobody knew that its start was whole
        torn = 0 if cut in ends or cut + 1 in ends else cut - max([end for end in ends if end < cut], default=0)
        assert [event.type for event in events[:-2]] == [
            "session.start", "llm.request", "llm.response", "session.end"
        ][:whole] + started  # fmt: skip
        assert events[-2].data == {"cut": cut}
        assert events[-1].data["status"] == "closed"
        assert sum(problem.length for problem in problems) in ([0] if not torn else [torn, torn + 1])
        assert path.read_bytes()[:cut] == content[:cut]
        path.unlink()


@pytest.mark.parametrize("name", ["gone.jsonl", "folder", "nul\0byte.jsonl"])
def test_what_is_no_log_is_refused(name, tmp_path):
    """A missing file, a folder, an impossible name: one exception, with the path and the reason."""
    (tmp_path / "folder").mkdir()
    path = str(tmp_path / name)
    with pytest.raises(LogNotReadable, match=": "):
        list(read_events(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_refused_and_not_waited_for(tmp_path):
    """Opening a pipe would block for ever."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(LogNotReadable, match="not a regular file"):
        list(read_events(str(tmp_path / "pipe.jsonl")))


def test_a_device_behind_a_link_is_refused(tmp_path):
    """An endless device is no log."""
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    with pytest.raises(LogNotReadable):
        list(read_events(str(tmp_path / "zero.jsonl")))


def test_the_file_is_closed_when_reading_stops_early(tmp_path):
    """A caller that takes one event leaves no descriptor behind (an open file would be a warning, and so an error)."""
    path = old_file(tmp_path, line(1) * 3)
    reading = read_events(path)
    assert next(reading).seq == 1
    reading.close()
    os.rename(path, path + ".moved")
