"""follow: a log as it grows; whatever happens to the file, it goes on."""

import os

import pytest

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.reader.follow import follow


def line(seq, data=None):
    return encode_object(Event(session_id="s", seq=seq, type="x", ts="2026-11-21T10:00:00Z", data=data).to_dict())


class Log:
    """A log to which things happen while somebody follows it."""

    def __init__(self, path):
        self.path = path
        self.slept = []

    def add(self, content):
        with open(self.path, "ab") as file:
            file.write(content)

    def rename(self):
        os.rename(self.path, f"{self.path}.1")

    def truncate(self, size=0):
        os.truncate(self.path, size)

    def delete(self):
        os.unlink(self.path)

    def follow(self, *steps, **options):
        """Follow the log; while the follower sleeps, the next step happens. What was seen, in short."""
        left = list(steps)

        def sleep(seconds):
            self.slept.append(seconds)
            left.pop(0)()

        items = follow(str(self.path), stop=lambda: not left, sleep=sleep, **options)
        return [
            (item.severity, item.kind) if isinstance(item, Problem) else item.seq if item.data is None else item.data
            for item in items
        ]


@pytest.fixture
def log(tmp_path):
    """A log that does not exist yet."""
    return Log(tmp_path / "s.jsonl")


def test_p10_growth(log):
    """Lines come as they are written, several at a time, and nothing twice."""
    log.add(line(1))
    assert log.follow(
        lambda: log.add(line(2) + line(3)), lambda: None, lambda: log.add(line(4)), poll_seconds=0.25
    ) == [1, 2, 3, 4]
    assert log.slept == [0.25] * 3


def test_p10_an_unfinished_line_is_waited_for(log):
    """A line is an event when it is whole, not before and not in pieces."""
    whole = line(2)
    log.add(line(1) + whole[:20])
    assert log.follow(lambda: log.add(whole[20:50]), lambda: log.add(whole[50:] + line(3))) == [1, 2, 3]


def test_what_is_unfinished_at_the_end_is_news(log):
    """When the follower stops, a torn line is named as information: its writer may go on."""
    log.add(line(1) + line(2)[:20])
    assert log.follow() == [1, ("info", "torn_tail")]


def test_a_file_that_does_not_exist_yet(log):
    """It is waited for, and read from its beginning."""
    assert log.follow(lambda: None, lambda: log.add(line(1)), lambda: log.add(line(2))) == [1, 2]


def test_only_what_is_new(log):
    """With from_start=False old events are passed over."""
    log.add(line(1) + line(2))
    assert log.follow(lambda: log.add(line(3)), from_start=False) == [3]


def test_only_what_is_new_of_a_file_that_does_not_exist_yet(log):
    """All of it is new."""
    assert log.follow(lambda: log.add(line(1)), lambda: log.add(line(2)), from_start=False) == [1, 2]


def test_only_what_is_new_begins_with_a_whole_line(log):
    """A line that is being written when the following begins is news, and comes whole."""
    whole = line(2)
    log.add(line(1) + whole[:20])
    assert log.follow(lambda: log.add(whole[20:]), from_start=False) == [2]


def test_what_is_new_has_its_place_in_the_file(tmp_path):
    """Problems are found again by their offset, although reading began in the middle."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(1) + line(2))
    steps = [lambda: path.write_bytes(line(1) + line(2) + b"x\n")]
    [problem] = follow(path, from_start=False, stop=lambda: not steps, sleep=lambda _: steps.pop()())
    assert problem.offset == len(line(1) + line(2))


def test_only_what_is_new_behind_an_endless_line(log):
    """The beginning of a line is looked for only as far back as a line may be long."""
    log.add(line(1) + b"x" * 5000)
    assert log.follow(lambda: log.add(b"\n" + line(2)), from_start=False, max_line=200) == [2]


def test_p10_a_rename_and_a_new_file(log):
    """The old file is read to its end, then the new one from its beginning; the change is named."""
    log.add(line(1))

    def rotate():
        log.add(line(2))
        log.rename()
        log.add(line(3))

    assert log.follow(rotate, lambda: log.add(line(4))) == [1, 2, ("info", "replaced"), 3, 4]


def test_a_rename_in_the_middle_of_a_line(log):
    """What was unfinished in the old file is named, and does not touch the new one."""
    log.add(line(1) + line(2)[:20])

    def rotate():
        log.rename()
        log.add(line(3))

    assert log.follow(rotate) == [1, ("info", "torn_tail"), ("info", "replaced"), 3]


def test_p10_truncation(log):
    """A file that became shorter is read again from its beginning; the change is named."""
    log.add(line(1, "long " * 20) + line(2))

    def truncate():
        log.truncate()
        log.add(line(3))

    assert log.follow(truncate, lambda: log.add(line(4))) == ["long " * 20, 2, ("info", "replaced"), 3, 4]


def test_news_of_the_file_has_no_line(tmp_path):
    """A truncation is about the file as a whole."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(1))
    steps = [lambda: os.truncate(path, 0)]
    _, news = follow(path, stop=lambda: not steps, sleep=lambda _: steps.pop()())
    assert (news.kind, news.line, news.offset) == ("replaced", 0, 0)


def test_truncation_in_the_middle_of_a_line(log):
    """The unfinished line that was cut away is named."""
    log.add(line(1) + line(2) + line(3)[:30])
    assert log.follow(lambda: log.truncate(len(line(1)))) == [1, 2, ("info", "torn_tail"), ("info", "replaced"), 1]


def test_p10_deletion_and_creation(log):
    """A deleted file is waited for, and the next one is read from its beginning."""
    log.add(line(1))
    assert log.follow(
        log.delete, lambda: None, lambda: log.add(line(2)), lambda: log.add(line(3)), from_start=True
    ) == [1, 2, 3]


def test_what_is_written_before_a_deletion(log):
    """The last lines of a file are read although its name is gone."""
    log.add(line(1))

    def last_words():
        log.add(line(2))
        log.delete()

    assert log.follow(last_words, lambda: None) == [1, 2]


def test_damage_does_not_end_the_following(log):
    """A broken line is named, and the next one comes."""
    log.add(line(1) + b"garbage\n")
    assert log.follow(lambda: log.add(b"more\n" + line(2))) == [1, ("damage", "not_json"), ("damage", "not_json"), 2]


def test_a_line_too_long_does_not_end_the_following(log):
    """It is skipped in pieces while it grows."""
    log.add(line(1) + b"x" * 300)
    assert log.follow(lambda: log.add(b"x" * 300), lambda: log.add(b"\n" + line(2)), max_line=200) == [
        1,
        ("damage", "too_long"),
        2,
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_refused(log):
    """A pipe would be waited for without end."""
    os.mkfifo(log.path)
    with pytest.raises(LogNotReadable, match="not a regular file"):
        log.follow()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_file_that_becomes_a_fifo_is_refused(log):
    """Also when it takes the place of the log."""
    log.add(line(1))

    def swap():
        log.delete()
        os.mkfifo(log.path)

    with pytest.raises(LogNotReadable):
        log.follow(swap, lambda: None)


def test_a_folder_is_refused(log):
    """A folder has no lines."""
    log.path.mkdir()
    with pytest.raises(LogNotReadable):
        log.follow()


def test_the_file_is_closed_when_following_stops_early(log):
    """A caller that has seen enough leaves no descriptor behind (an open file would be a warning, and so an error)."""
    log.add(line(1) + line(2))
    following = follow(str(log.path), sleep=lambda seconds: None)
    assert next(following).seq == 1
    following.close()
    log.delete()


def test_a_path_may_be_a_path_object(tmp_path):
    """Problems name it as text."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(1) + b"x\n")
    event, problem = follow(path, stop=lambda: True)
    assert (event.seq, problem.path) == (1, str(path))
