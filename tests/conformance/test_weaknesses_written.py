"""The weaknesses of the original's way of writing, one test each, called by their numbers."""

import json
import threading

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.errors import InvalidSessionId, Problem
from sessionlog.events.envelope import Event
from sessionlog.logger import log_file, tool_timer
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.follow import follow
from sessionlog.reader.stream import read_events


def read(path):
    """A log's lines as JSON."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(text) for text in file]


def test_01_reopening_a_session_keeps_its_log(tmp_path):
    """The second logger of a session goes on where the first one stopped."""
    for word in ("one", "two"):
        log = SessionLogger(tmp_path, "s")
        assert log.emit("note", {"word": word})
        log.close()
    events = read(tmp_path / "s.jsonl")
    assert [event["data"].get("word") for event in events] == [None, "one", None, "two", None]  # each `close` is an end
    assert [event["seq"] for event in events] == [0, 1, 2, 3, 4]


def test_14_seq_is_file_order_under_threads(tmp_path):
    """Eight threads, one counter: numbers and times stand in the file as they were given."""
    log = SessionLogger(tmp_path, "s")
    threads = [threading.Thread(target=lambda: [log.emit("note", {}) for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    events = read(tmp_path / "s.jsonl")
    assert [event["seq"] for event in events] == list(range(1602))
    stamps = [event["ts"] for event in events]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize("hostile", ["../escaped", "a/b", "..", ".hidden", "a\x00b", "con", "C:x", ""])
def test_15_an_id_cannot_leave_its_folder(hostile, tmp_path):
    """An id is checked before it becomes a path."""
    folder = tmp_path / "sessions"
    with pytest.raises(InvalidSessionId):
        SessionLogger(folder, hostile)
    assert list(tmp_path.iterdir()) == []


def test_16_a_payload_that_is_no_json_is_kept_as_far_as_it_goes(tmp_path):
    """No line says `data: null` because one value could not be encoded."""

    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    log = SessionLogger(tmp_path, "s")
    circle: dict = {"answer": 42}
    circle["self"] = circle
    assert log.emit("note", {"answer": 42, "odd": {1, 2}, "worse": Unprintable()})
    assert log.emit("note", circle)
    log.close()
    assert [event["data"]["answer"] for event in read(tmp_path / "s.jsonl")[1:-1]] == [42, 42]
    assert log.health().dropped == 0


def test_17_a_torn_line_is_not_glued_to_the_next(tmp_path):
    """What a failed write left behind ends where it is; the next event has its own line."""
    path = tmp_path / "s.jsonl"
    log = SessionLogger(tmp_path, "s")
    log.emit("note", {"word": "one"})
    with path.open("ab") as file:
        file.write(b'{"session_id":"s","seq":2,"type":"no')
    assert log.emit("note", {"word": "two"})
    log.close()
    items = list(read_events(str(path)))
    assert [item.data.get("word") for item in items if isinstance(item, Event)] == [None, "one", "two", None]
    assert len([item for item in items if isinstance(item, Problem)]) == 1


def test_17_durability_is_a_choice(tmp_path, monkeypatch):
    """With `fsync` each event is on the disk before emit returns."""
    synced = []
    monkeypatch.setattr(log_file.files, "sync", synced.append)
    log = SessionLogger(tmp_path, "s", durability="fsync")
    for count in range(1, 4):
        log.emit("note", {})
        assert len(synced) >= count
    log.close()


def test_18_free_is_recorded_as_free(tmp_path):
    """A cost of 0 is written, and is 0 in the report; a missing one is unknown."""
    for name, cost in (("free", 0), ("unknown", None)):
        with SessionLogger(tmp_path, name, provider="local", model="mine") as log:
            log.llm_response("ok", usage={"input": 10, "output": 5}, cost_usd=cost)
    ends = {name: read(tmp_path / f"{name}.jsonl")[-1]["data"] for name in ("free", "unknown")}
    assert ends["free"]["cost_usd"] == 0
    assert "cost_usd" not in ends["unknown"]
    rows = {row.keys["session"]: row for row in aggregate_usage(tmp_path, by=("session",)).rows}
    assert (rows["free"].known_cost_usd, rows["free"].unknown_cost_sessions) == (0.0, 0)
    assert (rows["unknown"].known_cost_usd, rows["unknown"].unknown_cost_sessions) == (None, 1)


def test_32_a_duration_in_milliseconds_is_in_milliseconds(tmp_path, monkeypatch):
    """The unit is the one in the name."""
    ticks = iter([0, 0, 4_200_000])
    monkeypatch.setattr(tool_timer, "monotonic_ns", lambda: next(ticks))
    log = SessionLogger(tmp_path, "s")
    with log.tool_call("bash"):
        pass
    log.close()
    assert read(tmp_path / "s.jsonl")[-2]["data"]["duration_ms"] == 4.2


def test_33_reasoning_tokens_reach_the_end(tmp_path):
    """They are in session.end and in the report, as a part of the output."""
    with SessionLogger(tmp_path, "s", provider="p", model="m") as log:
        for _ in range(2):
            log.llm_response("ok", usage={"input": 10, "output": 50, "reasoning": 44})
    assert read(tmp_path / "s.jsonl")[-1]["data"]["tokens"]["reasoning"] == 88
    (row,) = aggregate_usage(tmp_path).rows
    assert (row.reasoning_tokens, row.output_tokens) == (88, 100)


def test_34_a_slow_follower_loses_nothing(tmp_path):
    """Following reads the file: what was written while nobody looked is still there, and after the end as well."""
    log = SessionLogger(tmp_path, "s")
    for number in range(100):
        log.emit("note", {"number": number})
    log.close()
    followed = follow(str(tmp_path / "s.jsonl"), stop=lambda: True)
    assert [item.data.get("number") for item in followed] == [None, *range(100), None]
