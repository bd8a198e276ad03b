"""Rows of a native log: what is decoded by type gives what decoding every line as an event gives, whatever is in it."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.limits import MAX_LINE
from sessionlog.sources import native
from sessionlog.sources.native import SOURCE
from tests.profiles import examples
from tests.sources.logs import LONG_AGO, answered, asked, ended, event, progress, start

HALVES = [0.1, 1e-12, 123.456789012, 999_999.999999999, 7.5e-9, 3.05e-8, 3.15e-8]
"""Dollars whose product with 10^9 falls on the other side of a half than their decimals do; and others."""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A log that is written again and again."""
    return tmp_path_factory.mktemp("rows") / "s.jsonl"


def scan(path, content):
    """What a log gives that holds this."""
    path.write_bytes(content)
    os.utime(path, (LONG_AGO, LONG_AGO))
    found = SOURCE.scan(str(path), None)
    return found.sessions, found.problems, found.resume and (found.resume.line, found.resume.offset)


def decoded(path, content):
    """The same where no line is decoded by type."""

    def refuse(_):
        raise RecursionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native._ROW, "decode", refuse)
        return scan(path, content)


# --- the law

STAMPS = st.one_of(
    st.integers(0, 400_000).map(lambda ms: f"2026-11-20T10:{ms // 60_000:02}:{ms // 1000 % 60:02}.{ms % 1000:03}000Z"),
    st.integers(0, 599).map(lambda s: f"2026-11-20T10:{s // 60:02}:{s % 60:02}Z"),
    st.sampled_from(
        [
            "2026-11-20T10:00:05.5Z", "2026-11-20T10:00:05.51Z", "2026-11-20T10:00:05.512345678Z",
            "2026-11-20T10:00:60.900000Z", "2026-11-20T10:00:59.999999Z", "2026-11-20T10:00:05.1234567890Z",
            "2026-11-20T12:00:07.250000+02:00", "2026-11-20T10:75:00.000000Z", "2026-13-20T10:00:00.000000Z",
            "2026-11-20 10:00:01Z", "2300-01-01T00:00:00.000000Z", "2026-11-20T10:00:05.Z", "2026-11-20T10:00:05",
            "2026-11-20T10:00:05.12-34Z", "20261120T100005....Z", "", "10", "2026-11-19T10:00:00.000000Z",
        ]
    ),
)  # fmt: skip
TEXTS = st.sampled_from(
    ["", "a", "ü λ\n", '{"session_id":"x"}', 'say "llm.response"', "\\", "}", '},"', "\ud83d", "\x00"]
)
NAMES = st.sampled_from(["", "m-1", "ü", "m,2"])
NUMBERS = st.sampled_from([0, 1, 7, -1, 2.0, 2.5, "8", "x", None, True, 2**60, 2**70, 1e300, [1], {}])
USAGES = st.one_of(
    st.none(),
    st.just([1]),
    st.just({}),
    st.dictionaries(st.sampled_from(["input", "output", "cache_read", "cache_write_1h", "total", "x"]), NUMBERS),
    st.builds(dict, input=st.integers(0, 99), output=st.integers(0, 99), cache_read=st.integers(0, 200)),
)
COSTS = st.one_of(
    st.none(), st.floats(), st.sampled_from([0, 1, -0.0, 0.1, 1e-10, 5e-10, 1.5e-9, 1e12, "0.5", "?", True])
)
MESSAGES = st.lists(st.builds(dict, role=st.just("user"), content=TEXTS, call=st.just({"a": {}})), max_size=2)
REQUEST = st.one_of(
    st.builds(dict, messages=MESSAGES, model=NAMES, temperature=st.just(0.2)),
    st.builds(dict, model=NAMES, messages=MESSAGES),
    st.builds(dict, messages=st.none(), tools=MESSAGES, model=NAMES, top_p=NUMBERS, reasoning=TEXTS),
    st.builds(dict, messages=MESSAGES, last=st.fixed_dictionaries({"model": NAMES})),
)
RESPONSE = st.builds(
    dict, content=TEXTS, usage=USAGES, cost_usd=COSTS, latency_ms=NUMBERS, error=TEXTS,
    attempt=st.none() | st.builds(dict, requested_model=NAMES, provider_system=NAMES, cost=st.just({"source": "unknown"})),
)  # fmt: skip
TOOL = st.builds(
    dict, tool=st.sampled_from(["bash", "mcp__a__b", "", None, 3, ["x"]]), output=TEXTS | MESSAGES, error=TEXTS,
    duration_ms=NUMBERS,
)  # fmt: skip
PAYLOADS = {
    "llm.delta": st.builds(dict, content=TEXTS),
    "progress": st.builds(dict, message=TEXTS) | st.just({"type": "llm.response", "session_id": "inner"}),
    "llm.request": REQUEST,
    "llm.response": RESPONSE,
    "tool.call": TOOL,
    "session.start": st.builds(dict, v=st.sampled_from([1, None]), prompt=TEXTS, model=NAMES),
    "session.end": st.builds(dict, status=st.just("success"), tokens=USAGES, cost_usd=COSTS),
    "rejected_override": st.builds(dict, rejection_error=TEXTS),
    "x-other.2": st.none(),
}
LIKELY = [*PAYLOADS, *["llm.delta", "progress", "llm.response", "tool.call"] * 2]
ITEMS = st.sampled_from(LIKELY).flatmap(
    lambda kind: st.builds(event, st.just(kind), STAMPS, st.one_of(PAYLOADS[kind], PAYLOADS[kind], st.none()))
)


def dumped(**how):
    return lambda item: json.dumps(item, **how).encode("utf-8", "surrogatepass") + b"\n"


compact = dumped(separators=(",", ":"), ensure_ascii=False)
spaced = dumped()


def reordered(item):
    return compact(dict(reversed(item.items())))


def extended(item):
    return compact(item | {"trace": {"spans": [1], "model": "not this one"}})


SPELLINGS = {
    "compact": compact,
    "again": compact,
    "spaced": spaced,
    "reordered": reordered,
    "extended": extended,
    "repeated": lambda item: compact(item)[:-2] + b',"type":"llm.response","data":{"usage":{"input":3}}}\n',
    "half spaced": lambda item: compact(item).replace(b'","seq":', b'", "seq":'),
    "pretty": dumped(indent=1),
    "crlf": lambda item: compact(item)[:-1] + b"\r\n",
    "trailing": lambda item: compact(item)[:-1] + b" \n",
    "mark": lambda item: b"\xef\xbb\xbf" + compact(item),
    "padded": lambda item: b"\x00\x00" + compact(item),
    "escaped": lambda item: compact(item).replace(b"llm.", b"llm\\u002e").replace(b"tool", b"\\u0074ool"),
    "torn": lambda item: compact(item)[:-9] + b"\n",
    "cut": lambda item: compact(item)[:-9],
    "glued": lambda item: compact(item)[:-1],
    "no seq": lambda item: compact(item).replace(b'"seq":0', b'"seq":007'),
    "big seq": lambda item: compact(item).replace(b'"seq":0', b'"seq":' + b"9" * 30),
    "bad text": lambda item: compact(item).replace(b'"inside"', b'"in\xffside"').replace(b"a", b"\xff"),
}
LINES = st.one_of(
    *[st.builds(compact, ITEMS)] * 4,
    st.builds(lambda item, how: SPELLINGS[how](item), ITEMS, st.sampled_from(sorted(SPELLINGS))),
    st.sampled_from([b"\n", b"\r\n", b"not json\n", b"[1]\n", b"\x00\n", b"{\n", b"}\n", b'{"session_id":"x"}\n']),
    st.integers(0, 900).map(lambda size: compact(progress(filled="x" * size))),
)


@pytest.mark.parametrize("max_line", [300, MAX_LINE])
@examples(150)
@given(lines=st.lists(LINES, max_size=14))
def test_both_ways_give_the_same(path, max_line, lines):
    """Records, tools, times, damage and where the reading ended, for any lines."""
    content = b"".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "MAX_LINE", max_line)
        assert scan(path, content) == decoded(path, content)


# --- what must not be missed


def cut(item):
    return compact(item)[:-9]


def tick(clock):
    return progress(f"2026-11-20T10:{clock}Z")


SURPRISES = {
    "an end glued to a torn line": [cut(progress()), ended(tokens={"input": 9})],
    "a tool call glued to a torn line": [cut(progress()), event("tool.call", "10:00:04", {"tool": "bash"})],
    "a response glued to a torn request": [cut(asked(messages=["a" * 200])), answered(usage={"input": 9})],
    "a request glued to a torn request": [cut(asked(messages=["a" * 200])), asked(messages=[], model="n"), answered()],
    "a response that ends otherwise": [compact(answered(usage={"input": 9}))[:-2] + b"]\n"],
    "a tool call with more behind its payload": [event("tool.call", "10:00:04", {"tool": "b"}) | {"x": {"a": 1}}],
    "times out of order": [tick("00:01"), tick("00:50"), tick("00:20"), tick("00:58"), tick("00:59")],
    "a pause": [tick("00:01"), tick("00:02"), tick("09:01"), tick("09:02")],
    "a leap second": [tick("00:59.999999"), tick("00:60.900000"), tick("01:05.000000")],
    "fractions of any length": [tick("00:05.5"), tick("00:05.51"), tick("00:05.509"), tick("00:06")],
    "a model that is not the request's": [asked(messages=[]) | {"trace": {"spans": [1], "model": "n"}}, answered()],
    "a model beside the messages": [asked(messages=[], model="n") | {"trace": {"a": 1}}, answered()],
    "a number of too many digits": [answered(usage={"input": 2**70}) | {"seq": 2**70}],
    "halves of nano-dollars": [answered(cost_usd=cost) for cost in HALVES],
}


@pytest.mark.parametrize("name", sorted(SURPRISES))
def test_surprises_are_seen(name, path):
    """Each gives what it gives when every line is decoded."""
    given_ = [item if isinstance(item, bytes) else compact(item) for item in SURPRISES[name]]
    around = [compact(start()), compact(asked("10:00:00", messages=[], model="m")), compact(progress("10:00:01"))]
    content = b"".join([*around, *given_, compact(answered("10:09:59"))])
    assert scan(path, content) == decoded(path, content)


@pytest.mark.parametrize("spell", [compact, spaced])
def test_the_model_is_the_requests_own(spell, path):
    """A model in a field behind the payload is another thing's, however the line ends."""
    behind = asked(messages=[], model="own") | {"trace": {"spans": [1], "model": "another"}}
    inside = asked(messages=[], tools=[{"model": "another"}, {"a": 1}], model="own", planning=True, stop="x")
    for request in (behind, inside):
        [record] = scan(path, spell(start()) + spell(request) + spell(answered()))[0][0].records
        assert record.model == "own"


# --- what it is for


@pytest.mark.parametrize("spell", [compact, spaced, reordered, SPELLINGS["crlf"]])
def test_whole_lines_are_decoded_by_type(monkeypatch, spell, path):
    """None is left to the reader of events: a scan that decoded all of each would take many times as long."""
    turn = [
        asked(messages=[{"role": "user", "content": "go"}], model="m"), progress(), progress(),
        answered(usage={"input": 5, "output": 1}, cost_usd=0.25, latency_ms=3.5), progress(),
        event("tool.call", "10:00:03", {"tool": "bash", "output": "ü", "duration_ms": 2}),
    ]  # fmt: skip
    left = []
    monkeypatch.setattr("sessionlog.reader.stream.decode_line", lambda line: left.append(line) or ([], []))
    [session] = scan(path, b"".join(map(spell, [start(), *turn * 3, ended()])))[0]
    assert left == []
    assert [(r.model, r.usage.input, r.cost_nano, r.latency_ms) for r in session.records] == [
        ("m", 5, 250_000_000, 3.5)
    ] * 3
    assert [(t.tool, t.output_bytes, t.duration_ms) for t in session.tools] == [("bash", 2, 2.0)] * 3
