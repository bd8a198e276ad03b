"""One line of bytes → events and problems: never an exception, never an event that nobody wrote."""

import io
import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import Problem
from sessionlog.events.damaged import LineProblem
from sessionlog.events.decode import decode_line
from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.reader.stream import EventStream
from sessionlog.testing import event_strategy
from tests.profiles import examples

FAST = examples(200)
TS = "2026-11-21T10:00:00.000000Z"


def line(seq=1, data=None, **more):
    return orjson.dumps({"session_id": "s", "seq": seq, "type": "tool.call", "ts": TS, "data": data} | more)


LINE = line(1, {"tool": "bash"})
NEXT = line(2, {"tool": "read"})


def seqs(piece):
    return [event.seq for event in decode_line(piece)[0]]


def kinds(piece):
    return [(problem.kind, problem.start, problem.length, problem.severity) for problem in decode_line(piece)[1]]


def test_a_whole_line():
    """A line of ours is one event without a problem."""
    event = Event(session_id="s", seq=1, type="tool.call", ts=TS, data={"tool": "bash"})
    assert decode_line(LINE + b"\n") == ([event], [])


@pytest.mark.parametrize("blank", [b"", b"\n", b"\r\n", b"  \t \n", b"\xef\xbb\xbf\n"])
def test_blank_lines_are_nothing(blank):
    """White space and a byte order mark are neither an event nor a problem."""
    assert decode_line(blank) == ([], [])


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b" ", b"\t", b"\r"])
def test_what_may_stand_before_an_event(before):
    """A byte order mark and white space cost nothing."""
    assert seqs(before + LINE) == [1]
    assert kinds(before + LINE) == []


def test_unknown_keys_survive():
    """Top-level keys that are not of the envelope go to extra, as they are spelled."""
    [event] = decode_line(line(1, None, trace="t", camelCase=2))[0]
    assert event.extra == {"trace": "t", "camelCase": 2}


def test_the_older_word_for_the_time_is_read():
    """A line without ts may have timestamp; ts wins where there are both."""
    assert decode_line(b'{"type":"x","timestamp":"2026-11-21T10:00:00Z"}')[0][0].ts == "2026-11-21T10:00:00Z"
    assert decode_line(b'{"type":"x","timestamp":"no","ts":"2026-11-21T10:00:00Z"}')[0][0].ts == "2026-11-21T10:00:00Z"


def test_keys_match_in_any_case():
    """Envelope keys are matched as the Go original matches them, exact spellings first, and then the payload's too."""
    piece = b'{"Session_ID":"s","SEQ":4,"Type":"x","TS":"2026-11-21T10:00:00Z","Data":{"Tool":"a"},"fooBar":1}'
    [event] = decode_line(piece)[0]
    assert (event.session_id, event.seq, event.type, event.data) == ("s", 4, "x", {"tool": "a"})
    assert event.extra == {"fooBar": 1}
    assert seqs(b'{"type":"x","SEQ":4,"seq":5}') == [5]


def test_payload_keys_keep_their_case_in_a_line_with_ordinary_keys():
    """A short envelope alone does not change how a payload is spelled."""
    [event] = decode_line(b'{"type":"x","Note":1,"data":{"camelCase":1}}')[0]
    assert event.data == {"camelCase": 1}
    assert event.extra == {"Note": 1}


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        (b'{"type":"x","seq":"17"}', 17),
        (b'{"type":"x","seq":"many"}', 0),
        (b'{"type":"x","seq":1.5}', 0),
        (b'{"type":"x","seq":null}', 0),
        (b'{"type":"x","seq":true}', 0),
        (b'{"type":"x","seq":"9999999999999999999"}', 0),
        (b'{"type":"x","seq":-3}', -3),
        (b'{"type":"x"}', 0),
    ],
)
def test_seq_is_an_integer(piece, expected):
    """A seq of another type is mended or becomes 0; the event stays."""
    assert seqs(piece) == [expected]


@pytest.mark.parametrize(
    ("piece", "detail"),
    [
        (b'{"type":"x","ts":"2026-11-21T10:00:00Z","seq":"7"}', "seq is not an integer"),
        (b'{"type":"x","ts":"2026-11-21T10:00:00Z","session_id":7}', "session_id is not a string"),
        (b'{"type":"x","ts":7}', "ts is not a string"),
        (b'{"type":"x","ts":"soon"}', "ts 'soon' is not a time"),
        (b'{"type":"x","ts":null}', "no ts"),
        (b'{"type":"x","seq":[],"ts":7}', "seq is not an integer; ts is not a string"),
    ],
)
def test_a_mended_envelope_is_named(piece, detail):
    """The event is read all the same, and the problem is only information."""
    events, problems = decode_line(piece)
    assert len(events) == 1
    assert problems == [LineProblem(kind="bad_envelope", detail=detail, severity="info")]


@pytest.mark.parametrize("piece", [b"{}", b'{"type":7}', b'{"type":""}', b'{"type":null,"data":{}}', b'{"a":1}'])
def test_an_object_without_a_type_is_no_event(piece):
    """Its bytes are named."""
    assert decode_line(piece)[0] == []
    assert kinds(piece) == [("bad_envelope", 0, len(piece), "damage")]


@pytest.mark.parametrize("piece", [b"[1,2]", b'"text"', b"17", b"null", b"true"])
def test_json_that_is_no_object(piece):
    """A line of other JSON is no event."""
    assert decode_line(piece)[0] == []
    assert kinds(piece) == [("not_object", 0, len(piece), "damage")]


@pytest.mark.parametrize("piece", [b"hello", b"{", b'{"type":"x"', b"}", b'{"type":"x",}', b"{'type':'x'}", b"\x0b"])
def test_what_is_not_json(piece):
    """Every byte of it is named."""
    assert decode_line(piece)[0] == []
    assert kinds(piece) == [("not_json", 0, len(piece), "damage")]


@pytest.mark.parametrize("between", [b"", b" ", b"\t", b"\xef\xbb\xbf"])
def test_several_events_on_a_line(between):
    """Objects need no line break between them."""
    events, problems = decode_line(LINE + between + NEXT)
    assert [event.seq for event in events] == [1, 2]
    assert [event.raw for event in events] == [LINE, NEXT]
    assert problems == []


def test_a_log_that_lost_its_line_breaks():
    """However many events are on a line, all are read, in linear time."""
    piece = b" ".join(line(seq, "ü" * 20) for seq in range(20_000))
    started = time.perf_counter()
    assert seqs(piece) == list(range(20_000))
    assert kinds(piece) == []
    assert time.perf_counter() - started < 20  # a second here; hours if each event looked at the rest of the line


def test_a_torn_line_with_a_whole_one_glued_to_it():
    """What a writer without our care leaves: the torn part is named, the event behind it is read."""
    for cut in range(1, len(LINE)):
        torn = LINE[:cut]
        assert seqs(torn + NEXT) == [2]
        assert kinds(torn + NEXT) == [("not_json", 0, cut, "damage")]


def test_garbage_between_events():
    """What lies between two events is named with its place."""
    piece = LINE + b'garbage "\xff' + NEXT
    assert seqs(piece) == [1, 2]
    assert kinds(piece) == [("not_json", len(LINE), 10, "damage")]


def test_a_torn_payload_gives_no_event():
    """Objects inside a torn event are not events, though they have a type: no log said so."""
    blocks = [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "c1", "input": {"type": "x", "data": 1}}] * 50
    whole = line(1, {"messages": [{"role": "user", "content": blocks}]})
    for cut in range(1, len(whole), 7):
        events, problems = decode_line(whole[:cut])
        assert events == []
        assert [(problem.start, problem.length) for problem in problems] == [(0, cut)]
    assert seqs(whole[:-20] + NEXT) == [2]


def test_a_torn_event_inside_an_event_is_not_looked_for():
    """An event that is part of another one's payload is only its payload."""
    inner = {"session_id": "s", "seq": 9, "type": "tool.call", "ts": TS, "data": None}
    assert seqs(line(1, {"forwarded": inner})) == [1]


def test_nul_bytes_are_named_and_the_event_stays():
    """A file system may fill a crash's hole with NULs, before or after an event."""
    assert seqs(b"\x00\x00" + LINE) == [1]
    assert kinds(b"\x00\x00" + LINE) == [("nul_bytes", 0, 2, "damage")]
    assert kinds(LINE + b"\x00" * 9) == [("nul_bytes", len(LINE), 9, "damage")]
    assert kinds(b" \x00\xef\xbb\xbf\x00 " + LINE) == [("nul_bytes", 1, 5, "damage")]
    assert kinds(b"\x00" * 4096) == [("nul_bytes", 0, 4096, "damage")]


def test_invalid_utf8_is_replaced_and_named():
    """The event is read with U+FFFD, its bytes stay, and its place is given."""
    piece = LINE + b' {"type":"x","ts":"","data":"caf\xe9 \xed\xa0\x80"}'
    events, problems = decode_line(piece)
    assert events[1].data == "caf\ufffd \ufffd\ufffd\ufffd"
    assert b"\xe9" in events[1].raw
    named = [problem for problem in problems if problem.kind == "bad_utf8"]
    assert [(problem.start, problem.length, problem.severity) for problem in named] == [(len(LINE) + 1, 0, "info")]


@pytest.mark.parametrize("piece", [b'"\\ud800"', b'"\\uDFFF \xff"', b'{"\\ud800":"\\udc00"}'])
def test_unpaired_surrogates_are_replaced(piece):
    """What neither UTF-8 nor SQLite can hold does not come in, however it is spelled."""
    [event] = decode_line(b'{"type":"x","ts":"","data":' + piece + b"}")[0]
    assert "\ufffd" in str(event.data)
    assert orjson.dumps(event.data)


def test_paired_surrogates_are_a_character():
    """An escaped pair is what it means, also in a line that needs mending."""
    [event] = decode_line(b'{"type":"x","data":["\\ud83d\\ude00","\\ud800"]}')[0]
    assert event.data == ["\U0001f600", "\ufffd"]


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", 2**64),
        (b"-9223372036854775808", -(2**63)),
        (b"-9223372036854775809", -(2**63) - 1),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"9" * 400, int("9" * 400)),
        (b"1.5", 1.5),
    ],
)
def test_integers_keep_their_digits(number, value):
    """Integers beyond 64 bits are not rounded to floats."""
    [event] = decode_line(b'{"type":"x","data":' + number + b"}")[0]
    assert event.data == value
    assert type(event.data) is type(value)


def test_nan_and_infinity_are_read():
    """Python writes them, so they come."""
    [event] = decode_line(b'{"type":"x","data":[NaN,Infinity,-Infinity]}')[0]
    assert str(event.data) == "[nan, inf, -inf]"


def test_of_duplicate_keys_the_last_counts():
    """As everywhere else."""
    assert seqs(b'{"type":"x","seq":1,"seq":2}') == [2]
    assert seqs(b'{"type":"x","seq":1,"seq":2,"data":"\xff"}') == [2]


def test_raw_control_characters_are_read():
    """A writer that does not escape is understood."""
    [event] = decode_line(b'{"type":"x","data":"a\tb\x01"}')[0]
    assert event.data == "a\tb\x01"


@pytest.mark.parametrize("depth", [100, 900])
def test_depth_that_can_be_read(depth):
    """Nesting far beyond sense is read."""
    [event] = decode_line(b'{"type":"x","data":' + b"[" * depth + b"]" * depth + b"}")[0]
    assert str(event.data) == "[" * depth + "]" * depth


def test_depth_that_cannot_be_read():
    """Nesting beyond the parsers is named, and stops nothing."""
    piece = b'{"type":"x","data":' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert kinds(piece) == [("too_deep", 0, len(piece), "damage")]


def test_depth_at_the_limit_never_raises():
    """Where one parser gives up and another does not, the line is an event or is named."""
    for depth in range(900, 1060):
        for leaf in (b"1", b"123456789012345678901", b'"\\ud800"', b'"\xff"', b'"\xff\\ud800"'):
            events, problems = decode_line(b'{"type":"x","data":' + b"[" * depth + leaf + b"]" * depth + b"}")
            assert events or problems


@FAST
@given(piece=st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_decoding_never_raises(piece):
    """Any bytes give events and problems; each problem lies inside the line."""
    events, problems = decode_line(piece)
    assert all(isinstance(event, Event) for event in events)
    for problem in problems:
        assert 0 <= problem.start <= problem.start + problem.length <= len(piece)


TOKENS = [b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\x00", b"\xef\xbb\xbf", b"\xff", b"\xe9", b" ", b"1" * 25, LINE, b'{"type":"x"}', b'{"session_id":', b'"\\ud800"', b"NaN"]  # fmt: skip


@FAST
@given(pieces=st.lists(st.sampled_from(TOKENS), max_size=20))
def test_every_byte_of_a_line_is_accounted_for(pieces):
    """What is in no event and in no problem is only filler: white space and byte order marks."""
    piece = b"".join(pieces)
    events, problems = decode_line(piece)
    seen = bytearray(piece)
    for problem in problems:
        seen[problem.start : problem.start + problem.length] = b" " * problem.length
    rest = bytes(seen)
    for event in events:
        assert event.raw in rest
        rest = rest.replace(event.raw, b" ", 1)
    assert rest.replace(b"\xef\xbb\xbf", b"").strip() == b""


@examples(60)
@given(events=st.lists(event_strategy(), min_size=1, max_size=4), cut=st.integers(1, 10_000))
def test_whole_events_survive_beside_a_torn_one(events, cut):
    """Wherever a line was torn, what stands before it on the line is read."""
    lines = [encode_object(event.to_dict()).rstrip(b"\n") for event in events]
    torn = LINE[: 1 + cut % (len(LINE) - 1)]
    assert decode_line(b"".join(lines) + torn)[0] == events


def test_hostile_lines_take_linear_time():
    """A quarter of a megabyte made to confuse the search for the next event costs no more than the search for one."""
    hostile = [
        b'{"data":' * 31_000,
        b'{"type":1,' * 25_000,
        b'{"seq":[' * 31_000,
        b'{"ts":"' * 35_000,
        b"{" * 250_000,
    ]
    hostile += [b'{"type":"x"} ' * 17_000 + b"\xff", b'{"seq":{}}' * 25_000, b"\x00" * 250_000, b'x{"seq":1}' * 25_000]
    started = time.perf_counter()
    for piece in hostile:
        decode_line(piece)
    assert time.perf_counter() - started < 30  # half a second here; an hour if the work were quadratic


def flipped_bits(content):
    for index in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[index] ^= 1 << bit
            yield index, bytes(flipped)


def test_a_flipped_bit_harms_one_line_at_most():
    """Every bit of a log flipped in turn: other lines survive, no event appears, what is lost is named at its place."""
    log = [
        line(1, {"tool": "bash", "n": [1, 2]}),
        line(2, "text"),
        line(3, {"content": [{"type": "text", "text": "é"}]}),
    ]
    content = b"".join(piece + b"\n" for piece in log)
    starts = [content.index(piece) for piece in log]
    for index, flipped in flipped_bits(content):
        stream = EventStream("log.jsonl")
        items = [*stream.feed(io.BytesIO(flipped)), *stream.finish()]
        read = [item.raw for item in items if not isinstance(item, Problem)]
        damage = [item for item in items if isinstance(item, Problem) and item.severity == "damage"]
        for start, piece in zip(starts, log, strict=True):
            if not start <= index <= start + len(piece):
                assert piece in read
        assert len(read) <= len(log)
        if len(read) < len(log):
            assert any(item.offset <= index <= item.offset + item.length for item in damage)
