"""Payloads given to emit: whatever they are, a readable event is written, cut to size and without secrets."""

import orjson
import pytest

from sessionlog.events.envelope import Event
from sessionlog.events.payloads import LLMResponse, ToolCall
from sessionlog.events.redact import FAILED
from sessionlog.events.tokens import TokenUsage
from sessionlog.testing import MemorySink
from tests.logger.log_files import content_of, lines, writer

SECRET = "ghp_" + "a1B2" * 9
ONE, TWO = ("sk-" + letters + "3fG7hJ9kL2mN4pQ6rS8tV1wX5" for letters in ("aB1", "cD2"))


def test_payload_dataclasses_are_written_as_their_json():
    """None is left out, unknown fields are there."""
    log = MemorySink()
    log.emit("tool.call", ToolCall(tool="bash", extra={"shell": "zsh"}))
    log.emit("llm.response", LLMResponse(usage=TokenUsage(input=3)))
    assert [event.data for event in log.events[1:]] == [
        {"tool": "bash", "shell": "zsh"},
        {"usage": {"input": 3, "output": 0, "total": 3}},
    ]
    assert log.totals.usage == TokenUsage(input=3)


class Hostile:
    """An object that cannot be spelled."""

    def __repr__(self):
        raise RuntimeError("no")


class HostileMeta(type):
    """A class that cannot be asked where it comes from."""

    @property
    def __module__(cls):
        raise RuntimeError("no")


class Nowhere(metaclass=HostileMeta):
    """An object of such a class."""


def circle():
    data = {}
    data["self"] = data
    return data


ODD = {
    "a set": lambda: {1, 2},
    "bytes": lambda: b"\xff",
    "a hostile object": lambda: {"a": Hostile()},
    "an object from nowhere": Nowhere,
    "a circle": circle,
    "surrogates": lambda: {"\ud800": "\udfff"},
    "a huge integer": lambda: {"n": 10**5000},
    "a function": lambda: print,
    "a number": lambda: 5,
    "text": lambda: "text",
    "a fragment with a newline": lambda: {"a": orjson.Fragment(b"1\n2")},
    "usage from elsewhere": lambda: {"usage": {"input": 10**5000}, "cost_usd": 10**5000},
    "a broken payload": lambda: ToolCall(extra=None),
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("type_", ["x", "llm.response", "session.start"])
def test_any_payload_is_recorded(make, type_):
    """No emit raises, and says True for one readable event."""
    log = MemorySink()
    assert log.emit(type_, make()) is True
    assert log.emit("after") is True
    assert [event.type for event in log.events][-2:] == [type_, "after"]
    assert log.health().ok


@pytest.mark.parametrize("type_", ["", 5, None, b"x"])
def test_any_type_is_recorded(type_):
    """A type that is no word still gives an event that can be read."""
    log = MemorySink()
    assert log.emit(type_, {"a": 1}) is True
    assert log.events[-1].data == {"a": 1}
    assert log.events[-1].type


def test_a_type_that_cannot_be_spelled_is_recorded():
    """Even that is an event."""
    log = MemorySink()
    assert log.emit(Hostile()) is True
    assert log.events[-1].type == "unknown"


def test_an_oversize_event_is_cut_and_says_so(tmp_path):
    """Its strings are cut until it fits; what fits is whole."""
    logger = writer(tmp_path, max_event=2000)
    assert logger.emit("tool.call", {"tool": "cat", "output": "x" * 10_000})
    assert logger.emit("tool.call", {"tool": "cat", "output": "x" * 1800})
    logger.close()
    _, cut, whole = lines(logger)
    assert cut["data"]["truncated"] is True
    assert cut["data"]["tool"] == "cat"
    assert cut["data"]["output"].endswith("characters cut]")
    assert len(orjson.dumps(cut)) < 2000
    assert whole["data"] == {"tool": "cat", "output": "x" * 1800}


@pytest.mark.parametrize("size", [-1, 0, 1])
def test_the_size_limit_is_exact(tmp_path, size):
    """A line of exactly the limit is whole, one byte more is cut."""
    logger = writer(tmp_path, max_event=1000)
    logger.emit("session.start")
    empty = (
        len(
            orjson.dumps(
                {"session_id": "s", "seq": 1, "type": "x", "ts": "2026-11-21T10:00:00.000000Z", "data": {"a": ""}}
            )
        )
        + 1
    )
    logger.emit("x", {"a": "y" * (1000 - empty + size)})
    logger.close()
    assert lines(logger)[1]["data"].get("truncated") is (True if size > 0 else None)


def test_secrets_do_not_reach_the_file(tmp_path):
    """By default well-known shapes are removed from everything that is written, keys and unknown keys included."""
    logger = writer(tmp_path, start={"prompt": f"use {SECRET}"})
    logger.emit("tool.call", {"output": [f"line\n{SECRET}"], SECRET: 1})
    logger.write(Event(session_id=SECRET, seq=0, type="x", ts="", data=None, extra={"k": {"n": SECRET}}))
    logger.close()
    assert SECRET.encode() not in content_of(logger)
    assert content_of(logger).count(b"[redacted]") == 5


def test_redaction_can_be_turned_off(tmp_path):
    """Who wants the bytes as they are gets them."""
    logger = writer(tmp_path, redact=False)
    logger.emit("x", {"a": SECRET})
    logger.close()
    assert lines(logger)[1]["data"] == {"a": SECRET}


def test_a_hook_gets_every_string_of_a_payload():
    """The session.start's too, before the well-known shapes are looked for."""
    log = MemorySink(redact=lambda text: text.replace("Alice", "[name]"), prompt="Alice asks", work_dir="/home/Alice")
    log.emit("x", {"Alice": ["Alice", {"deep": "dear Alice"}], "key": SECRET, "n": 5})
    log.emit("tool.call", ToolCall(tool="mail", output={"to": "Alice"}))
    start, event, call = (event.data for event in log.events)
    assert (start["prompt"], start["work_dir"]) == ("[name] asks", "/home/[name]")
    assert event == {"[name]": ["[name]", {"deep": "dear [name]"}], "key": "[redacted]", "n": 5}
    assert call == {"tool": "mail", "output": {"to": "[name]"}}


@pytest.mark.parametrize("answer", [None, 5, b"x"], ids=repr)
def test_a_hook_that_fails_fails_closed(answer):
    """Rubbish or an exception: the text is gone, the event is there."""
    log = MemorySink(redact=lambda text: answer)
    assert log.emit("x", {"secret": "secret"})
    assert log.events[-1].data == {FAILED: FAILED}


def test_a_hook_that_raises_fails_closed():
    """The event is there without its text, and emit does not raise."""

    def hook(text):
        raise RuntimeError(text)

    log = MemorySink(redact=hook)
    assert log.emit("x", {"secret": ["secret"]})
    assert b"secret" not in log.content


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({1: "a", "1": "b"}, {"1": "a", "1 (2)": "b"}),
        ({ONE: 1, TWO: 2}, {"[redacted]": 1, "[redacted] (2)": 2}),
        (
            {"a": [{f"use {ONE}\n": SECRET, f"use {TWO}\n": 1.5}], "[redacted]": -1},
            {"a": [{"use [redacted]\n": "[redacted]", "use [redacted]\n (2)": 1.5}], "[redacted]": -1},
        ),
        ({ONE: 1, "in": {TWO: 2}}, {"[redacted]": 1, "in": {"[redacted]": 2}}),
    ],
)
def test_p06_keys_that_become_equal_are_all_in_the_log(data, kept):
    """Text instead of numbers, marks instead of secrets: every value keeps a key of its own."""
    log = MemorySink()
    assert log.emit("x", data)
    assert orjson.loads(log.content.splitlines()[-1])["data"] == kept


def test_p06_keys_that_a_hook_makes_equal_are_all_in_the_log():
    """A hook that maps several keys to one keeps their values."""
    log = MemorySink(redact=lambda text: "x")
    assert log.emit("x", {"a": 1, "b": {"c": 2, "d": 3}})
    assert log.events[-1].data == {"x": 1, "x (2)": {"x": 2, "x (2)": 3}}


@pytest.mark.parametrize("text", [b"not json", b"", b'{"a":', b"1,2", b'1},"seq":7,"x":{"a":1', "\n"])
def test_p06_a_fragment_that_is_no_json_does_not_hide_its_event(text):
    """It is written as text with a mark, and what stands beside it stays."""
    log = MemorySink()
    assert log.emit("x", {"f": orjson.Fragment(text), "beside": 1})
    assert log.emit("x", {"f": orjson.Fragment(b'{"a":1}')})
    event, good = log.events[-2:]
    assert event.data["beside"] == 1
    assert good.data == {"f": {"a": 1}}


def test_p06_a_fragment_made_before_another_one_died_is_seen():
    """How many Fragments there are may fall below what it was when a line was written last."""
    log = MemorySink()
    others = [orjson.Fragment(b"1") for _ in range(3)]
    assert log.emit("x", {"a": 1})
    others.pop()
    assert log.emit("x", {"a": 1})
    others.append(orjson.Fragment(b"no"))
    assert log.emit("x", {"f": others[-1]})
    assert log.events[-1].data == {"f": "[not JSON] no"}
