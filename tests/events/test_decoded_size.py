"""How much a line takes once it is decoded is known before it is decoded."""

import pytest

from sessionlog.events.decode import decode_line
from sessionlog.events.decoded_size import MOST, too_large

MIB = 1 << 20


@pytest.mark.parametrize(
    "make",
    [
        lambda: b"[" + b"[],[]," * MIB + b"[]]",
        lambda: b"{" + b",".join(b'"k%d":%d' % (n, n) for n in range(1_000_000)) + b"}",
        lambda: b"[" + b'"",' * (3 * MIB) + b'""]',
        lambda: b'{"a":"' + b"x" * (65 * MIB) + b'"}',
        lambda: b'{"a":"' + b"x" * (32 * MIB) + "😀".encode() + b'"}',
        lambda: b'{"a":"' + b"x" * (32 * MIB) + b'\\ud83d\\ude00"}',
    ],
    ids=["lists", "keys", "texts", "long", "wide", "wide when decoded"],
)
def test_what_would_take_too_much_is_refused(make):
    """Lists take 30 times their size, and a text as many bytes a character as its widest one needs."""
    line = make()
    assert f"a line of {len(line)} bytes" in too_large(line)


@pytest.mark.parametrize(
    "make",
    [
        lambda: b"",
        lambda: b"[" * 1000,
        lambda: b'{"a":"' + b"x" * (63 * MIB) + b'"}',
        lambda: b'{"a":"' + b'[],{\\"b\\":1},' * (2 * MIB) + b'"}',
        lambda: b'{"a":"' + "é".encode() * (15 * MIB) + b'"}',
        lambda: b"[" + b'{"role":"user","content":"' + b"words, and: more {words} " * 400 + b'"},' * 1500 + b"0]",
    ],
    ids=["nothing", "small", "long", "JSON in a text", "Latin", "messages"],
)
def test_large_texts_are_read(make):
    """Brackets and commas in texts take no more than their bytes."""
    assert too_large(make()) == ""


def test_a_decoder_that_copies_the_line_takes_more():
    """What is damaged is read as text: then there are three of it."""
    line = b'{"a":"' + b"x" * (MOST // 2 - MIB) + b'"}'
    assert too_large(line) == ""
    assert too_large(line, copies=2)


def test_an_event_that_would_take_too_much_is_a_flaw():
    """It is named, and never decoded."""
    events, [problem] = decode_line(
        b'{"session_id":"s","seq":1,"type":"x","ts":"","data":[' + b"[]," * (3 * MIB) + b"0]}"
    )
    assert (events, problem.kind) == ([], "too_large")
