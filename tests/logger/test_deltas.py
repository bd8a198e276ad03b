"""A secret that a streamed answer spreads over its deltas, and our own words about lost events."""

import json

import pytest

from sessionlog import SessionLogger
from sessionlog.logger import log_file
from sessionlog.testing import MemorySink

TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3 + "-----END RSA PRIVATE KEY-----"


def streamed(text, size, field="content"):
    """What the deltas of a text say together, written in pieces of a size."""
    sink = MemorySink(work_dir="/w")
    for start in range(0, len(text), size):
        sink.emit("llm.delta", {field: text[start : start + size]})
    return "".join(event.data[field] for event in sink.events if event.type == "llm.delta")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 21, 34])
@pytest.mark.parametrize("field", ["content", "reasoning_content", "tool_call_args"])
def test_p17_a_token_is_taken_out_of_every_piece(size, field):
    """At most its public prefix, and one more letter, stays; the text around it is whole."""
    said = streamed(f"The key is {TOKEN}, keep it.", size, field)
    assert "a1" not in said
    assert said.startswith("The key is ")
    assert said.endswith(", keep it.")
    assert "[redacted]" in said


@pytest.mark.parametrize("size", [1, 4, 16, 50])
def test_the_body_of_a_private_key_is_taken_out(size):
    """Its frame may stay: it is no secret."""
    said = streamed(f"Here: {KEY} and so on.", size)
    assert "MII" not in said
    assert "BADAN" not in said
    assert said.endswith(" and so on.")


def test_a_value_known_by_its_name_loses_what_comes_after_it_was_recognised():
    """What was written before that stays: this is what the documentation says."""
    assert streamed("password=" + "hunter2hunter2" + " ok", 4) == "password=hun[redacted][redacted][redacted] ok"


@pytest.mark.parametrize(
    "text", ["sk-learn is a library", "the pattern of a path is key-value", "test_it and secret_it"]
)
def test_words_that_begin_like_tokens_stay(text):
    """Also where a piece ends within them."""
    for size in range(1, 8):
        assert streamed(text, size) == text


def test_a_whole_token_and_the_beginning_of_another():
    """Both go, in one piece as in two, and what stands between them stays."""
    sink = MemorySink(work_dir="/w")
    sink.emit("llm.delta", {"content": f"{TOKEN} and ghp_x1"})
    sink.emit("llm.delta", {"content": f"Y2{TOKEN[4:]} after"})
    texts = [event.data["content"] for event in sink.events[1:]]
    assert texts == ["[redacted] and [redacted]", "[redacted] after"]


def test_answers_do_not_touch_each_other():
    """What one answer ended with is forgotten at the next; two tool calls are two streams."""
    sink = MemorySink(work_dir="/w")
    sink.emit("llm.delta", {"content": "the key is ghp_a1B2"})
    sink.emit("llm.response", {"content": "the key is ghp_a1B2"})
    sink.emit("llm.delta", {"content": "word"})
    sink.emit("llm.delta", {"tool_call_id": "1", "tool_call_args": "AKIA1"})
    sink.emit("llm.delta", {"tool_call_id": "2", "tool_call_args": "words"})
    assert [event.data for event in sink.events[1:]] == [
        {"content": "the key is [redacted]"},
        {"content": "the key is ghp_a1B2"},
        {"content": "word"},
        {"tool_call_id": "1", "tool_call_args": "[redacted]"},
        {"tool_call_id": "2", "tool_call_args": "words"},
    ]


def test_odd_deltas_are_written_as_they_are():
    """Half letters, other types, no object at all; and nothing is done where redaction is off."""
    sink = MemorySink(work_dir="/w")
    for data in ({"content": 5}, {"content": ["x"]}, {"content": None}, {}):
        sink.emit("llm.delta", data)
    sink.emit("llm.delta", {"content": f"{TOKEN[:20]}\ud800"})
    assert [event.data for event in sink.events[1:5]] == [{"content": 5}, {"content": ["x"]}, {"content": None}, {}]
    sink.emit("llm.delta", ["no object"])
    assert sink.events[-1].data == ["no object"]
    off = MemorySink(work_dir="/w", redact=False)
    off.emit("llm.delta", {"content": TOKEN})
    assert off.events[-1].data == {"content": TOKEN}


def test_an_acknowledged_delta_is_in_the_file_at_once(tmp_path):
    """Nothing is held back for a secret's end."""
    log = SessionLogger(tmp_path, "s", work_dir="/w")
    assert log.emit("llm.delta", {"content": "and the key ghp_"})
    assert json.loads((tmp_path / "s.jsonl").read_bytes().splitlines()[-1])["data"]["content"] == "and the key ghp_"


def test_p17_our_own_words_hold_no_secret(tmp_path, monkeypatch):
    """An exception may quote what it could not write: the notice, last_error and NotRecorded do not."""
    said = []
    log = SessionLogger(tmp_path, "s", work_dir="/w", notify=said.append)

    def refuse(*_):
        raise OSError(5, f"cannot write {TOKEN}")

    monkeypatch.setattr(log_file.LogFile, "append", refuse)
    assert not log.emit("note", {"x": 1})
    assert TOKEN not in str(log.health().last_error)
    assert "[redacted]" in str(log.health().last_error)
    assert said
    assert not any("a1B2" in text for text in said)
